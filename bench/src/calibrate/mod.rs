// SPDX-License-Identifier: Apache-2.0
//! `bulkhead calibrate`: the costs of the hypervisor as a machine takes them, for the board file.
//!
//! One system is built for the board: the guest `calibrate` on a pCPU with all vCPUs that a pCPU can have.
//! The guest takes the worst of many turns, with cold and with warm caches, and prints figures. They come
//! from a serial line, from a file with a log of the line, or from the board's emulator. There the result is
//! no measurement: it shows that the way works.

mod command;
mod figures;
mod table;

use bulkhead::build::prepare::{Options, Prepared, prepare_text};
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use std::path::Path;

pub use command::main;

/// vCPUs of the pCPU: as many as one can have.
const VCPUS: usize = 32;
/// vCPUs of the guest.
const OWN: usize = 2;
/// The class whose guests can measure a machine.
const CLASS: &str = "aarch64";

/// Returns the manifest of the system that measures.
fn manifest(board: &str, runs: u32) -> String {
    let own = "{ pcpu = 0, priority = 20 }, { pcpu = 0, priority = 20 }";
    let mut text = format!(
        "board = {board:?}\n[pcpu.0]\npolicy = \"fixed-priority\"\n[partition.meter]\nkind = \"vm\"\n\
         image = \"@guests/calibrate\"\nmemory = \"8M\"\nvcpus = [{own}]\nbootargs = \"runs={runs}\"\n"
    );
    for number in 0..VCPUS.saturating_sub(OWN) {
        text.push_str(&format!(
            "[partition.other{number}]\nkind = \"vm\"\nimage = \"@guests/noisy\"\nmemory = \"1M\"\n\
             vcpus = [{{ pcpu = 0, priority = 4 }}]\n"
        ));
    }
    text
}

/// Measures in the emulator of a board, and tells which costs are more than the board's file says.
///
/// # Errors
/// The system cannot be built or run.
pub fn undercharged(board: &str, runs: u32) -> Result<Vec<String>, Problem> {
    let progress = Progress::new();
    let prepared = prepare(board, runs, &progress)?;
    let figures = command::on_emulator(&prepared, &progress)?;
    let costs = prepared.system().board().overheads(VCPUS).unwrap_or_default();
    let [event, switch] = [figures.get("event")?, figures.get("switch")?];
    let all = [
        ("an event, usually", event.median, costs.event()),
        ("an event behind other work", event.worst, costs.at_ends()),
        (
            "a switch with its decision",
            switch.median,
            costs.switch + costs.decision,
        ),
        ("a decision", figures.worst_of("decide-")?.worst, costs.decision),
    ];
    let missed = all.into_iter().filter(|(_, ticks, charged)| ticks > charged);
    Ok(missed
        .map(|(what, ticks, charged)| format!("{what} takes {ticks} ticks, and {charged} ns are charged"))
        .collect())
}

/// Builds the system for a board.
fn prepare(board: &str, runs: u32, progress: &Progress) -> Result<Prepared, Problem> {
    let options = Options {
        quiet: true,
        ..Options::default()
    };
    let prepared = prepare_text(
        Path::new("calibrate.toml"),
        &manifest(board, runs),
        &options,
        progress,
    )?;
    let class = prepared.system().board().class;
    if class.name() == CLASS {
        return Ok(prepared);
    }
    Err(Problem::usage(format!(
        "`calibrate` has no guest for class `{}`, only for `{CLASS}`",
        class.name()
    ))
    .remedy("give `basis = \"estimated\"` in the board file"))
}
