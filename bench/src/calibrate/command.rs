// SPDX-License-Identifier: Apache-2.0
//! The command line of `bulkhead calibrate`.

use super::figures::Figures;
use super::prepare;
use super::table::{Origin, put, tables};
use crate::runs::{counting, emulator_of, launch};
use bulkhead::build::prepare::Prepared;
use bulkhead::command::{exit_code, print, refused_line};
use bulkhead::emulator::launch as emulator;
use bulkhead::emulator::session::NoInput;
use bulkhead::problem::{Code, Problem};
use bulkhead::ui::progress::Progress;
use clap::Parser;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Measure what the hypervisor costs on a machine, and write that into its board file
#[derive(Debug, Parser)]
#[command(
    name = "bulkhead calibrate",
    bin_name = "bulkhead calibrate",
    after_help = "Examples:
  bulkhead calibrate --board mine.toml --build calibrate.img      a file to start on the machine
  bulkhead calibrate --board mine.toml --over serial:/dev/ttyUSB0 --machine \"ZCU102 rev 1.0\" --write mine.toml
  bulkhead calibrate --board mine.toml --over file:terminal.log --machine \"ZCU102 rev 1.0\"
  bulkhead calibrate --board xlnx-zcu102 --over emulator          shows the way, and measures no machine"
)]
struct Args {
    /// The board, or the path of its file
    #[arg(long)]
    board: String,
    /// Where the figures come from: `emulator`, `file:LOG` or `serial:DEVICE`
    #[arg(long, value_name = "SOURCE", required_unless_present = "build")]
    over: Option<String>,
    /// Write the file that is started on the machine
    #[arg(long, value_name = "FILE")]
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
    /// Write the tables into this board file, instead of printing them
    #[arg(long, value_name = "BOARD.toml", requires = "machine")]
    write: Option<PathBuf>,
}

/// Runs the command with these arguments, of which the first one is the command's name.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let args =
        Args::try_parse_from(arguments).unwrap_or_else(|refusal| refused_line(&refusal, Some("calibrate")));
    exit_code(run(&args), None)
}

fn run(args: &Args) -> Result<Code, Problem> {
    emulator::clean_up_when_killed()?;
    let progress = Progress::new();
    if let Some(file) = &args.build {
        let prepared = prepare(&args.board, args.runs, &progress)?;
        drop(progress);
        fs::write(file, prepared.flash()).map_err(Problem::io(file.display()))?;
        return print(&how_to_start(file, &prepared)).map(|()| Code::Done);
    }
    let over = args.over.as_deref().unwrap_or_default();
    let figures = match over.split_once(':') {
        None if over == "emulator" => on_emulator(&prepare(&args.board, args.runs, &progress)?, &progress)?,
        Some(("file", log)) => Figures::of_bytes(&fs::read(log).map_err(Problem::io(log))?),
        Some(("serial", device)) => on_serial_line(device)?,
        _ => {
            return Err(Problem::usage(format!("`--over {over}` is no source of figures"))
                .remedy("give `emulator`, `file:LOG` or `serial:DEVICE`"));
        }
    };
    drop(progress);
    let costs = figures.costs(args.margin)?;
    for line in figures.lines()? {
        print(&format!("{line}\n"))?;
    }
    if over == "emulator" {
        print(
            "\nThese are counts of an emulator: no cache, no pipeline. Do not write them down as measured.\n",
        )?;
        return Ok(Code::Done);
    }
    let machine = args.machine.as_deref().ok_or_else(|| {
        Problem::usage("the machine has no name")
            .remedy("name it: `--machine \"ZCU102 rev 1.0, serial 123\"`")
    })?;
    let origin = Origin {
        machine,
        date: &today()?,
        margin: args.margin,
    };
    let Some(path) = &args.write else {
        let old = fs::read_to_string(&args.board).unwrap_or_default();
        return print(&format!("\n{}", tables(&costs, &origin, &old))).map(|()| Code::Done);
    };
    let old = fs::read_to_string(path).map_err(Problem::io(path.display()))?;
    fs::write(path, put(&old, &tables(&costs, &origin, &old))).map_err(Problem::io(path.display()))?;
    print(&format!(
        "\n[overheads] and [measurement] of {} are written\n",
        path.display()
    ))
    .map(|()| Code::Done)
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

/// Runs the system in the emulator of the board.
pub(super) fn on_emulator(prepared: &Prepared, progress: &Progress) -> Result<Figures, Problem> {
    let emulator = emulator_of(prepared.system().board())?;
    let counting = counting(emulator, &emulator.arguments);
    let mut figures = Figures::default();
    progress.step("measuring in the emulator", || {
        let board = prepared.board_of(&counting);
        emulator::run(
            &launch(),
            board,
            prepared.flash(),
            &mut figures,
            &mut NoInput,
            None,
        )
        .map(drop)
    })?;
    Ok(figures)
}

/// Reads a serial line until the guest is done.
fn on_serial_line(device: &str) -> Result<Figures, Problem> {
    let mut line = fs::File::open(device).map_err(Problem::io(device))?;
    print(&format!("listening to {device}: start the board now\n"))?;
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let count = line.read(&mut piece).map_err(Problem::io(device))?;
        all.extend_from_slice(piece.get(..count).unwrap_or_default());
        let figures = Figures::of_bytes(&all);
        if figures.is_done() || count == 0 {
            return Ok(figures);
        }
    }
}

/// Returns the day, as `date` of the operating system says it.
fn today() -> Result<String, Problem> {
    let output = Command::new("date")
        .arg("+%F")
        .output()
        .map_err(Problem::io("date"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
