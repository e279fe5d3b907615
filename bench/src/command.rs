// SPDX-License-Identifier: Apache-2.0
//! `bulkhead bench`: the costs of the hypervisor.

use crate::latency::Certainty;
use crate::{Charge, board_named, differences, latency, latency_charges, linux, pages, papers, timing};
use bulkhead::build::artifacts::Workspace;
use bulkhead::command::{exit_code, print, refused_line};
use bulkhead::emulator::launch::clean_up_when_killed;
use bulkhead::problem::{Code, Problem};
use bulkhead::ui::progress::Progress;
use bulkhead::ui::terminal::has_colour;
use clap::Parser;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure what the hypervisor costs, in instructions: bare against hypervised
#[derive(Debug, Parser)]
#[command(
    name = "bulkhead bench",
    bin_name = "bulkhead bench",
    after_help = "Examples:
  bulkhead bench            the table: instructions on the bare board, in a VM, and what the hypervisor adds
  bulkhead bench --check    the same, and compare it with docs/timing.md
  bulkhead bench --linux    what operations of Linux cost bare and in a VM
  bulkhead bench --board mps2-an500    a microcontroller's
  bulkhead bench --board mps2-an500 --latency --plot latency.svg    how punctual it is
  bulkhead bench --paper hermes    the figures of a published paper beside ours"
)]
struct BenchArgs {
    /// The board; its emulator counts the instructions
    #[arg(long, default_value = "qemu-virt-aarch64")]
    board: String,
    /// Fail if a figure differs from the blessed one (docs/timing.md, docs/timing-mcu.md) by more than 5 %
    #[arg(long, conflicts_with = "bless")]
    check: bool,
    /// Write the figures into the page of the board's class
    #[arg(long)]
    bless: bool,
    /// Print one JSON document instead of tables
    #[arg(long, conflicts_with_all = ["bless", "check", "linux", "latency"])]
    json: bool,
    /// Instead, measure operations of Linux (system call, page fault, fork...) bare and in a VM; fail if one
    /// costs more there than its bar says
    #[arg(long, conflicts_with_all = ["check", "latency"])]
    linux: bool,
    /// Instead, measure a disk of Linux that a task serves. No test does this
    #[arg(long, conflicts_with_all = ["check", "latency", "linux", "board", "json"])]
    disk: bool,
    /// Instead, print the tables of a published paper beside the figures of the pages, and measure nothing:
    /// acrn, t-visor, urtzvisor, rodosvisor, hermes, or all
    #[arg(long, value_name = "NAME", conflicts_with_all = ["bless", "check", "latency", "linux", "board", "json"])]
    paper: Option<String>,
    /// Instead, measure the latency of a serial receive on a microcontroller: an RTOS alone and a partition,
    /// quiet and flooded
    #[arg(long, conflicts_with_all = ["bless", "check"])]
    latency: bool,
    /// Bytes that are sent in each of its settings
    #[arg(long, default_value_t = 200, value_name = "N", requires = "latency")]
    bytes: usize,
    /// Plot its histograms into this file (SVG)
    #[arg(long, value_name = "FILE", requires = "latency")]
    plot: Option<PathBuf>,
}

/// Runs the bench with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    let args = BenchArgs::try_parse().unwrap_or_else(|refusal| refused_line(&refusal, Some("bench")));
    exit_code(run(&args), args.json.then_some("bench"))
}

fn run(args: &BenchArgs) -> Result<Code, Problem> {
    clean_up_when_killed()?;
    if let Some(name) = &args.paper {
        print(&papers::text(Workspace::locate()?.root(), name, has_colour())?)?;
        return Ok(Code::Done);
    }
    if args.latency {
        return latencies(args);
    }
    if args.disk {
        let measured = linux::disk::measure(&Progress::new())?;
        print(&measured.table())?;
        if args.bless {
            write(linux::disk::PAGE, |page| measured.bless(page))?;
        }
        return Ok(Code::Done);
    }
    if args.linux {
        return operations_of_linux(&args.board, args.bless);
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
    if args.json {
        print(&bulkhead::json::document("bench", timing.json()))?;
        return Ok(Code::Done);
    }
    print(&timing.text())?;
    if args.bless {
        write(timing.page.file, |page| timing.bless(page))?;
        return Ok(Code::Done);
    }
    if !args.check {
        return Ok(Code::Done);
    }
    match differences(&timing)? {
        None => print("\nThe blessed figures come from another compiler: nothing is compared.\n")?,
        Some(found) if found.is_empty() => print("\nNothing differs from the blessed figures.\n")?,
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

/// Measures the costs of operations of Linux, and writes them into the page if they are to be blessed.
fn operations_of_linux(board: &str, is_blessed: bool) -> Result<Code, Problem> {
    let progress = Progress::new();
    let measured = linux::measure(board, &progress)?;
    drop(progress);
    print(&measured.text())?;
    if is_blessed {
        write(measured.page(), |page| measured.bless(page))?;
    }
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
    print(&latency::text(&measured))?;
    if let Some(path) = &args.plot {
        fs::write(path, latency::picture(&measured)).map_err(Problem::io(path.display()))?;
    }
    print("\n")?;
    let charges = latency_charges(
        &measured,
        &board.overheads(latency::PARTITIONS).unwrap_or_default(),
    );
    for charge in &charges {
        print(&format!("{}\n", charge.text()))?;
    }
    let certainties = latency::certainties(&measured);
    for certainty in &certainties {
        print(&format!("{}\n", certainty.text()))?;
    }
    if !certainties.iter().all(Certainty::is_enough) {
        return Err(Problem::new(
            "with a constant latency the next latency is less certain than that of the RTOS alone",
        ));
    }
    if charges.iter().all(Charge::is_enough) {
        return Ok(Code::Done);
    }
    Err(
        Problem::new("the board's overheads are less than what was measured")
            .remedy("raise them in the board file: the analysis is only as safe as they are"),
    )
}

/// Writes a page with new figures, and the page of the papers, which reads them there.
fn write(file: &str, new: impl FnOnce(&str) -> Option<String>) -> Result<(), Problem> {
    let workspace = Workspace::locate()?;
    let root = workspace.root();
    let path = root.join(file);
    let page = fs::read_to_string(&path).map_err(Problem::io(path.display()))?;
    let page =
        new(&page).ok_or_else(|| Problem::new(format!("{}: no place for the table", path.display())))?;
    fs::write(&path, page).map_err(Problem::io(path.display()))?;
    let path = root.join(papers::PAGE);
    fs::write(&path, papers::page(root)?).map_err(Problem::io(path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        BenchArgs::command().debug_assert();
    }

    #[test]
    fn figures_are_compared_or_blessed_and_an_experiment_is_neither() {
        let parse = |options: &str| BenchArgs::try_parse_from(options.split(' '));
        assert!(parse("bench --linux --bless").is_ok());
        assert!(parse("bench --linux --board ref405ep").is_ok());
        assert!(parse("bench --board mps2-an500 --latency --bytes 100 --plot latency.svg").is_ok());
        for bad in [
            "--check --bless",
            "--latency --bless",
            "--linux --latency",
            "--bytes 5",
            "--json --latency",
            "--json --check",
            "--paper acrn --linux",
            "--paper acrn --board mps2-an500",
            "--paper",
        ] {
            assert!(parse(&format!("bench {bad}")).is_err(), "{bad}");
        }
    }
}
