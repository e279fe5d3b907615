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

use crate::class;
use bulkhead::build::prepare::{Options, Prepared, prepare_text};
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use std::path::Path;

pub use command::main;

/// vCPUs of the pCPU: as many as one can have.
const VCPUS: usize = 32;
/// vCPUs of the guest.
const OWN: usize = 2;
/// Returns the manifest of the system that measures.
fn manifest(board: &str, guest: &str, runs: u32) -> String {
    let own = "{ pcpu = 0, priority = 20 }, { pcpu = 0, priority = 20 }";
    let mut text = format!(
        "board = {board:?}\n[pcpu.0]\npolicy = \"fixed-priority\"\n[partition.meter]\nkind = \"vm\"\n\
         image = {guest:?}\nmemory = \"8M\"\nvcpus = [{own}]\nbootargs = \"runs={runs}\"\n"
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
    let manifest = manifest(board, meter(board)?, runs);
    prepare_text(Path::new("calibrate.toml"), &manifest, &options, progress)
}

/// Returns the guest that measures a machine of this board's class.
fn meter(board: &str) -> Result<&'static str, Problem> {
    let known = bulkhead_manifest::boards();
    let class = match known.iter().find(|known| known.name == board) {
        Some(board) => board.class.name().to_owned(),
        None => class_in_file(Path::new(board))?,
    };
    let found = class::all().find(|one| one.facts().name == class);
    found.and_then(class::Bench::meter).ok_or_else(|| {
        let able = class::all().filter(|one| one.meter().is_some());
        let able: Vec<String> = able.map(|one| format!("`{}`", one.facts().name)).collect();
        Problem::usage(format!(
            "no guest measures a machine of class `{class}` yet, only of {}",
            able.join(", ")
        ))
        .remedy("give `basis = \"estimated\"` in the board file")
    })
}

/// Returns the class that a board file names. All else in the file is checked when the system is built.
fn class_in_file(path: &Path) -> Result<String, Problem> {
    let text = std::fs::read_to_string(path).map_err(Problem::io(path.display()))?;
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| Problem::new(format!("{}: {}", path.display(), error.message())))?;
    let class = table.get("class").and_then(toml::Value::as_str);
    class
        .map(str::to_owned)
        .ok_or_else(|| Problem::new(format!("{} names no class", path.display())))
}
