// SPDX-License-Identifier: Apache-2.0
//! The command line of `bulkhead calibrate`.

use super::board_file::BoardFile;
use super::readings::{Costs, Readings, Until};
use super::table::{Origin, measured, shown};
use super::{named, on_emulator, prepare};
use bulkhead::build::prepare::Prepared;
use bulkhead::command::{exit_code, print, refused_line};
use bulkhead::emulator::launch;
use bulkhead::problem::{Code, Problem};
use bulkhead::ui::progress::Progress;
use bulkhead_manifest::{Board, is_day};
use clap::Parser;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Measure what the hypervisor costs on a machine, and write that into its board file
#[derive(Debug, Parser)]
#[command(
    name = "bulkhead calibrate",
    bin_name = "bulkhead calibrate",
    after_help = "Examples:
  bulkhead calibrate --board mine.toml --build calibrate.img      a file to start on the machine
  stty -F /dev/ttyUSB0 115200 raw -echo                           the speed that the board's firmware has set
  bulkhead calibrate --board mine.toml --over serial:/dev/ttyUSB0 --machine \"ZCU102 rev 1.0\" --write mine.toml
  bulkhead calibrate --board mine.toml --over file:terminal.log --machine \"ZCU102 rev 1.0\"
  bulkhead calibrate --board xlnx-zcu102 --over emulator          a trial, which measures no machine"
)]
struct Args {
    /// The board, or the path of its file
    #[arg(long)]
    board: String,
    /// Where the figures come from: `emulator`, `file:LOG` or `serial:DEVICE`
    #[arg(long, value_name = "SOURCE", value_parser = Source::read, required_unless_present = "build")]
    over: Option<Source>,
    /// Write the file that is started on the machine
    #[arg(long, value_name = "FILE", conflicts_with = "over")]
    build: Option<PathBuf>,
    /// Turns of each measurement; the worst counts
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    runs: u32,
    /// Percent that are added to the worst turn
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000))]
    margin: u32,
    /// The machine, as its label names it
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// The day of the measurement, as 2026-12-03 [default: today]
    #[arg(long, value_name = "DAY", value_parser = day)]
    date: Option<String>,
    /// Write the tables into this board file, instead of printing them
    #[arg(long, value_name = "BOARD.toml", requires = "machine")]
    write: Option<PathBuf>,
}

/// The source of the figures.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Emulator,
    File(PathBuf),
    Serial(PathBuf),
}

impl Source {
    fn read(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "emulator" => Ok(Self::Emulator),
            Some(("file", log)) => Ok(Self::File(log.into())),
            Some(("serial", device)) => Ok(Self::Serial(device.into())),
            _ => Err("give `emulator`, `file:LOG` or `serial:DEVICE`".to_owned()),
        }
    }
}

/// Runs the command with these arguments, of which the first one is the command's name.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let args =
        Args::try_parse_from(arguments).unwrap_or_else(|refusal| refused_line(&refusal, Some("calibrate")));
    exit_code(run(&args), None)
}

fn run(args: &Args) -> Result<Code, Problem> {
    launch::clean_up_when_killed()?;
    if let Some(file) = &args.build {
        return build(args, file);
    }
    match &args.over {
        Some(Source::File(log)) => measure(args, log, ""),
        Some(Source::Serial(device)) => measure(args, device, "listening: start the board now\n"),
        _ => rehearse(args),
    }
}

/// Runs the system in the emulator of its board.
fn rehearse(args: &Args) -> Result<Code, Problem> {
    let progress = Progress::new();
    let readings = on_emulator(&prepare(&args.board, args.runs, &progress)?, &progress)?;
    drop(progress);
    show(&readings)?;
    readings.costs(args.margin)?;
    print("\nThese are counts of an emulator: no cache, no pipeline. Nothing is written.\n")
        .map(|()| Code::Done)
}

/// Reads a serial line, or a log of one, and prints or writes the tables. All that can be refused before the
/// machine has run for minutes is refused then.
fn measure(args: &Args, from: &Path, words: &str) -> Result<Code, Problem> {
    let Some(machine) = args.machine.as_deref().filter(|name| !name.trim().is_empty()) else {
        return Err(Problem::usage("the machine has no name")
            .remedy("name it: `--machine \"ZCU102 rev 1.0, serial 123\"`"));
    };
    let board = named(&args.board)?;
    if let Some(file) = &args.write {
        BoardFile::target(file, &board)?;
    }
    let readings = listen(from, words)?;
    readings.fits(&board)?;
    show(&readings)?;
    publish(args, machine, &board, &readings.costs(args.margin)?)
}

/// Prints the readings.
fn show(readings: &Readings) -> Result<(), Problem> {
    readings
        .lines()?
        .iter()
        .try_for_each(|line| print(&format!("{line}\n")))
}

/// Builds the file that is started on the machine.
fn build(args: &Args, file: &Path) -> Result<Code, Problem> {
    let progress = Progress::new();
    let prepared = prepare(&args.board, args.runs, &progress)?;
    drop(progress);
    fs::write(file, prepared.flash()).map_err(Problem::io(file.display()))?;
    print(&how_to_start(file, &prepared)).map(|()| Code::Done)
}

/// Returns the words for a person who has the file and the machine.
fn how_to_start(file: &Path, prepared: &Prepared) -> String {
    format!(
        "{} is written: {} bytes, to start at {:#x}\n\
         Start it as the page of the board says (docs/first-board.md), and let it run until its serial line\n\
         says `calibrate done`. Then give that log to `bulkhead calibrate --over file:LOG`, or let the tool\n\
         listen before you start: `--over serial:DEVICE`.\n",
        file.display(),
        prepared.flash().len(),
        prepared.system().board().load_address
    )
}

/// Reads a serial line until the guest is done, or a log to its end.
fn listen(path: &Path, words: &str) -> Result<Readings, Problem> {
    let line = fs::File::open(path).map_err(Problem::io(path.display()))?;
    let kind = line.metadata().map_err(Problem::io(path.display()))?.file_type();
    print(words)?;
    let until = if kind.is_char_device() {
        Until::Done
    } else {
        Until::End
    };
    Readings::of(line, &path.display().to_string(), until)
}

/// Prints the tables of the board file, or writes them.
fn publish(args: &Args, machine: &str, board: &Board, costs: &Costs) -> Result<Code, Problem> {
    let date = args.date.clone().map_or_else(today, Ok)?;
    let origin = Origin {
        machine,
        date: &date,
        margin: args.margin,
    };
    let tables = measured(costs, &origin);
    let Some(path) = &args.write else {
        return print(&format!("\n{}", shown(&tables, board))).map(|()| Code::Done);
    };
    // The file is read anew: a person may have changed it while the machine ran.
    BoardFile::target(path, board)?.write(&tables)?;
    let path = path.display();
    print(&format!(
        "\n[overheads] and [measurement] of {path} are written\n"
    ))
    .map(|()| Code::Done)
}

/// Reads the day of a measurement.
fn day(text: &str) -> Result<String, String> {
    let is_day = is_day(text);
    is_day
        .then(|| text.to_owned())
        .ok_or_else(|| "give year, month and day, as 2026-12-03".to_owned())
}

/// Returns the day, as `date` of the operating system says it.
fn today() -> Result<String, Problem> {
    let output = Command::new("date")
        .arg("+%F")
        .output()
        .map_err(Problem::io("date"))?;
    if !output.status.success() {
        return Err(Problem::new("`date` does not say which day it is").remedy("give `--date`"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
