// SPDX-License-Identifier: Apache-2.0
//! The command line of `bulkhead calibrate`.

use super::readings::{Costs, Readings};
use super::table::{Origin, put, tables};
use super::{board, on_emulator, prepare};
use bulkhead::build::prepare::Prepared;
use bulkhead::command::{exit_code, print, refused_line};
use bulkhead::emulator::launch;
use bulkhead::problem::{Code, Problem};
use bulkhead::ui::progress::Progress;
use clap::Parser;
use std::ffi::OsString;
use std::fs;
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
    #[arg(long, value_name = "DAY")]
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
    let machine = args.machine.as_deref();
    let readings = match &args.over {
        Some(Source::File(log)) => listen(log, "", machine)?,
        Some(Source::Serial(device)) => listen(device, "listening: start the board now\n", machine)?,
        _ => {
            let progress = Progress::new();
            on_emulator(&prepare(&args.board, args.runs, &progress)?, &progress)?
        }
    };
    for line in readings.lines()? {
        print(&format!("{line}\n"))?;
    }
    let costs = readings.costs(args.margin)?;
    let Some(machine) = machine.filter(|_| args.over != Some(Source::Emulator)) else {
        print("\nThese are counts of an emulator: no cache, no pipeline. Nothing is written.\n")?;
        return Ok(Code::Done);
    };
    publish(args, machine, &costs)
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

/// Reads a serial line, or a log of one, until the guest is done. The machine must have a name before.
fn listen(path: &Path, words: &str, machine: Option<&str>) -> Result<Readings, Problem> {
    if machine.is_none() {
        return Err(Problem::usage("the machine has no name")
            .remedy("name it: `--machine \"ZCU102 rev 1.0, serial 123\"`"));
    }
    let line = fs::File::open(path).map_err(Problem::io(path.display()))?;
    print(words)?;
    Readings::of(line, &path.display().to_string())
}

/// Prints the tables of the board file, or writes them.
fn publish(args: &Args, machine: &str, costs: &Costs) -> Result<Code, Problem> {
    let date = args.date.clone().map_or_else(today, Ok)?;
    let origin = Origin {
        machine,
        date: &date,
        margin: args.margin,
    };
    let tables = tables(costs, &origin, board(&args.board).as_ref());
    let Some(path) = &args.write else {
        return print(&format!("\n{tables}")).map(|()| Code::Done);
    };
    let old = fs::read_to_string(path).map_err(Problem::io(path.display()))?;
    fs::write(path, put(&old, &tables)?).map_err(Problem::io(path.display()))?;
    let path = path.display();
    print(&format!(
        "\n[overheads] and [measurement] of {path} are written\n"
    ))
    .map(|()| Code::Done)
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
