// SPDX-License-Identifier: Apache-2.0
//! `bulkhead bench`: the costs of the hypervisor.

use super::BenchArgs;
use crate::bench::{
    Charge, Timing, board_named, differences, latency, latency_charges, linux, pages, timing,
};
use crate::build::artifacts::Workspace;
use crate::problem::{Code, Problem};
use crate::ui::progress::Progress;
use std::fs;

pub(super) fn run(args: &BenchArgs) -> Result<Code, Problem> {
    if args.latency {
        return latencies(args);
    }
    if args.linux {
        return operations_of_linux();
    }
    if (args.bless || args.check) && !pages().any(|page| page.board == args.board) {
        let boards: Vec<String> = pages().map(|page| format!("`{}`", page.board)).collect();
        return Err(Problem::usage(format!(
            "there are blessed figures of the boards {} only",
            boards.join(" and ")
        )));
    }
    let progress = Progress::new();
    let timing = timing(&args.board, &progress)?;
    drop(progress);
    super::print(&timing.text())?;
    if args.bless {
        return bless(&timing);
    }
    if !args.check {
        return Ok(Code::Done);
    }
    match differences(&timing)? {
        None => super::print("\nThe blessed figures come from another compiler: nothing is compared.\n")?,
        Some(found) if found.is_empty() => super::print("\nNothing differs from the blessed figures.\n")?,
        Some(found) => {
            return Err(Problem::new(format!(
                "figures differ from {}:\n  {}",
                timing.page.file,
                found.join("\n  ")
            ))
            .remedy("if that is right, `bulkhead bench --bless` writes them into the page"));
        }
    }
    Ok(Code::Done)
}

/// Measures the costs of operations of Linux.
fn operations_of_linux() -> Result<Code, Problem> {
    let progress = Progress::new();
    let measured = linux::measure(&progress)?;
    drop(progress);
    super::print(&measured.text())?;
    let broken = measured.broken();
    if broken.is_empty() {
        return Ok(Code::Done);
    }
    Err(Problem::new(format!(
        "Linux is slower in a VM than it may be:\n  {}",
        broken.join("\n  ")
    )))
}

/// Runs the experiment of a serial receive.
fn latencies(args: &BenchArgs) -> Result<Code, Problem> {
    let progress = Progress::new();
    let board = board_named(&args.board)?;
    let measured = latency::measure(&board, args.bytes, &progress)?;
    drop(progress);
    super::print(&latency::text(&measured))?;
    if let Some(path) = &args.plot {
        fs::write(path, latency::picture(&measured)).map_err(Problem::io(path.display()))?;
    }
    super::print("\n")?;
    let charges = latency_charges(
        &measured,
        &board.overheads(latency::PARTITIONS).unwrap_or_default(),
    );
    for charge in &charges {
        super::print(&format!("{}\n", charge.text()))?;
    }
    if charges.iter().all(Charge::is_enough) {
        return Ok(Code::Done);
    }
    Err(
        Problem::new("the board's overheads are less than what was measured")
            .remedy("raise them in the board file: the analysis is only as safe as they are"),
    )
}

/// Writes the figures into the page.
fn bless(timing: &Timing) -> Result<Code, Problem> {
    let path = Workspace::locate()?.root().join(timing.page.file);
    let page = fs::read_to_string(&path).map_err(Problem::io(path.display()))?;
    let page = timing
        .bless(&page)
        .ok_or_else(|| Problem::new(format!("{}: no place for the table", path.display())))?;
    fs::write(&path, page).map_err(Problem::io(path.display()))?;
    Ok(Code::Done)
}
