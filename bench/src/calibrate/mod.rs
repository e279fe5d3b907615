// SPDX-License-Identifier: Apache-2.0
//! `bulkhead calibrate`: the costs of the hypervisor as a machine takes them, for the board file.
//!
//! One system is built for the board: a guest of the class on a pCPU with all vCPUs that a pCPU can have. The
//! guest takes the worst of many turns, with cold and with warm caches, and prints figures. They come from a
//! serial line, from a file with a log of the line, or from the board's emulator. There the result is no
//! measurement: it shows that the way works.

mod board_file;
mod command;
mod readings;
mod record;
mod table;

use crate::Charge;
use crate::class;
use crate::runs::{emulator_of, launch, observe};
use board_file::BoardFile;
use bulkhead::build::own_policy::toml_string;
use bulkhead::build::prepare::{Options, Prepared, prepare_text};
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_manifest::{Board, Unchecked, board_names};
use readings::Readings;
use record::label;
use std::path::Path;

pub use command::main;

/// vCPUs of the pCPU: as many as one can have.
const VCPUS: usize = 32;
/// vCPUs of the guest.
const OWN: usize = 2;
/// The path that the manifest has. The board's file is looked for from there.
const PATH: &str = "calibrate.toml";

/// Returns the manifest of the system that measures.
fn manifest(name: &str, board: Option<&Board>, guest: &str, runs: u32) -> String {
    let own = "{ pcpu = 0, priority = 20 }, { pcpu = 0, priority = 20 }";
    // The guest repeats them, so that a log says where it is from.
    let from = board.map_or_else(String::new, |board| {
        format!(" class={} board={}", board.class.name(), label(&board.name))
    });
    let board = toml_string(name);
    let mut text = format!(
        "board = {board}\n[pcpu.0]\npolicy = \"fixed-priority\"\n[partition.meter]\nkind = \"vm\"\n\
         image = \"{guest}\"\nmemory = \"8M\"\nvcpus = [{own}]\nbootargs = \"runs={runs}{from}\"\n"
    );
    for number in 0..VCPUS.saturating_sub(OWN) {
        text.push_str(&format!(
            "[partition.other{number}]\nkind = \"vm\"\nimage = \"@guests/noisy\"\nmemory = \"1M\"\n\
             vcpus = [{{ pcpu = 0, priority = 4 }}]\n"
        ));
    }
    text
}

/// Returns a board by its name or by the path of its file. `None` if the file is wrong: the check of the
/// system says why.
fn board(name: &str) -> Option<Board> {
    Unchecked::read(Path::new(PATH), &format!("board = {}\n", toml_string(name))).board()
}

/// Returns a board by its name or by the path of its file.
///
/// # Errors
/// There is no such board, or the check refuses its file.
fn named(name: &str) -> Result<Board, Problem> {
    if let Some(board) = board(name) {
        return Ok(board);
    }
    if name.ends_with(".toml") {
        return BoardFile::read(Path::new(name)).map(|file| file.board);
    }
    let names = board_names().join(", ");
    Err(
        Problem::usage(format!("there is no board `{name}`")).remedy(format!(
            "give the path of a board file, ending in .toml, or one of: {names}"
        )),
    )
}

/// Builds the system for a board.
fn prepare(name: &str, runs: u32, progress: &Progress) -> Result<Prepared, Problem> {
    let options = Options {
        quiet: true,
        ..Options::default()
    };
    let board = board(name);
    let guest = match &board {
        Some(board) => class::of(board)?.meter().ok_or_else(|| no_meter(board))?,
        None => "",
    };
    let text = manifest(name, board.as_ref(), guest, runs);
    prepare_text(Path::new(PATH), &text, &options, progress)
}

/// Returns the problem of a board whose class cannot be measured on a machine.
fn no_meter(board: &Board) -> Problem {
    let able = class::all().filter(|one| one.meter().is_some());
    let able: Vec<String> = able.map(|one| format!("`{}`", one.facts().name)).collect();
    let class = board.class.name();
    Problem::usage(format!(
        "no guest measures a machine of class `{class}` yet, only of {}",
        able.join(", ")
    ))
    .remedy("give `basis = \"estimated\"` in the board file")
}

/// Runs the system in the emulator of the board.
fn on_emulator(prepared: &Prepared, progress: &Progress) -> Result<Readings, Problem> {
    let emulator = emulator_of(prepared.system().board())?;
    let mut readings = Readings::default();
    progress.step("measuring in the emulator", || {
        observe(emulator, prepared, &launch(), &mut readings).map(drop)
    })?;
    readings.sound()
}

/// Measures in the emulator of a board, and compares the costs with those that the board's file charges.
///
/// # Errors
/// The system cannot be built or run.
pub fn charges(board: &str, runs: u32) -> Result<Vec<Charge>, Problem> {
    let progress = Progress::new();
    let prepared = prepare(board, runs, &progress)?;
    let readings = on_emulator(&prepared, &progress)?;
    let costs = prepared.system().board().overheads(VCPUS).unwrap_or_default();
    let (event, switch) = (readings.get("event")?, readings.get("switch")?);
    let decision = readings.worst_of("decide-")?.worst;
    let rows = [
        ("an event, usually", "event", event.median, costs.event()),
        (
            "an event behind other work",
            "event",
            event.worst,
            costs.at_ends(),
        ),
        (
            "a switch with its decision",
            "switch",
            switch.median,
            costs.switch + costs.decision,
        ),
        ("a decision", "decide", decision, costs.decision),
    ];
    let charge = |(what, name, ticks, charged): (&'static str, &str, u64, u64)| {
        Ok(Charge {
            what,
            measured: (name.to_owned(), readings.time(ticks)?),
            charged,
        })
    };
    rows.into_iter().map(charge).collect()
}
