// SPDX-License-Identifier: Apache-2.0
//! `bulkhead log`: the hypervisor's records in RAM, from a memory dump or from a board that runs, or what a
//! serial line said, from the bytes that another program kept.

use super::LogArgs;
use crate::emulator::debugger::Debugger;
use crate::log::log_area::{self, LogArea};
use crate::problem::{Code, Problem};
use crate::serial::capture::{Capture, KeptLine};
use std::path::Path;

pub(super) fn run(args: &LogArgs) -> Result<Code, Problem> {
    match (&args.dump, &args.live) {
        (Some(dump), None) => from_dump(dump),
        (None, Some(server)) => live(server, &args.board, args.at),
        _ => Err(Problem::usage(
            "give a dump, or `--live` and where the debugger's server is",
        )),
    }
}

fn from_dump(path: &Path) -> Result<Code, Problem> {
    let dump = crate::input::read(
        path,
        "a dump of the board's memory, such as log-area.bin of `bulkhead run --log`",
    )?;
    let areas: Vec<_> = LogArea::find_all(&dump).collect();
    if areas.is_empty() {
        let mut capture = Capture::default();
        if let Some(mut lines) = capture.feed(&dump) {
            lines.extend(capture.finish());
            return from_lines(&lines);
        }
        return Err(
            Problem::new(format!("no log of the hypervisor in {}", path.display()))
                .remedy("dump the RAM in which `bulkhead check` shows the log of the hypervisor"),
        );
    }
    if areas.len() > 1 {
        super::print(&format!(
            "{} logs in this dump: a guest can write one into its memory; the hypervisor's is where `bulkhead check` shows it\n\n",
            areas.len()
        ))?;
    }
    for (at, area) in areas {
        super::print(&format!("at {at:#x} of the dump: {}", area.text_of_all()))?;
    }
    Ok(Code::Done)
}

/// Prints what a serial line said.
fn from_lines(lines: &[KeptLine]) -> Result<Code, Problem> {
    for line in lines {
        super::print(&format!("[{}] {}: {}\n", line.time, line.console, line.text))?;
    }
    Ok(Code::Done)
}

/// Returns the address of the log of a board.
fn place(board: &str) -> Result<u64, Problem> {
    let boards = bulkhead_manifest::boards();
    let Some(found) = boards.iter().find(|known| known.name == board) else {
        return Err(Problem::usage(format!("there is no board `{board}`")).remedy(
            "`bulkhead boards` lists them; for a board of your own say where its log is: --at ADDRESS",
        ));
    };
    Ok(found.log().base)
}

fn live(server: &str, board: &str, at: Option<u64>) -> Result<Code, Problem> {
    let at = match at {
        Some(at) => at,
        None => place(board)?,
    };
    // The board goes on before the text is made.
    let mut debugger = Debugger::connect(server)?;
    let memory = log_area::read(at, &mut |at, length| debugger.memory(at, length))?;
    drop(debugger);
    let Some(area) = LogArea::at_start(&memory) else {
        return Err(Problem::new(format!("no log of the hypervisor at {at:#x}")).remedy(
            "the hypervisor has not begun yet, or the board is another: --board NAME, or --at ADDRESS (`bulkhead check` shows it)",
        ));
    };
    super::print(&format!("at {at:#x}: {}", area.text_of_all()))?;
    Ok(Code::Done)
}
