// SPDX-License-Identifier: Apache-2.0
//! The bench: costs of the hypervisor, in instructions. The guest `bench` runs on the bare board and in a VM.
//!
//! Both runs count time in instructions, so the figures repeat exactly and no other load of the machine
//! changes them. A path length is not time: a trap, a barrier and an addition all count 1, and there are no
//! caches.
//!
//! The bench is an instrument of the hypervisor's developers. Users have `bulkhead`, whose command `bench`
//! starts the program of this crate.
//!
//! | file | |
//! |---|---|
//! | `command` | the command line |
//! | `calibrate` | `bulkhead calibrate`: the costs on a machine |
//! | `class` | the differences between classes: page and measurement |
//! | `page` | the pages with blessed figures, one for each class |
//! | `latency` | the experiment of a serial receive |
//! | `linux` | costs of operations of Linux, bare and in a VM |
//! | `bare` | a program on the bare board of a microcontroller |
//! | `ping` | the round trip of a ping of microcontrollers |
//! | `rows` | the measured operations, and the bars |
//! | `waivers` | bars that do not hold yet |
//! | `systems` | the manifests of the runs |
//! | `runs` | the runs |
//! | `steps` | the emulator's log of executed instructions |
//! | `overheads` | the analysis' charges, against the measured figures |
//! | `footprint` | sizes and lines of code |
//! | `in_turns` | programs of an RTOS, alone and in turns with a busy VM |
//! | `trusted` | lines of code that a class binary is trusted with |
//! | `cells` | the tables of a page, read back
//! | `papers` | five published papers beside our figures: `docs/papers.md`
//! | `report` | tables for people and for `docs/timing.md`, and the comparison with the blessed one |
#![forbid(unsafe_code)]

use bulkhead::build::artifacts::{Workspace, compiler};
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_manifest::Board;

pub mod calibrate;
mod cells;
mod class;
pub mod command;
mod footprint;
mod in_turns;
pub mod latency;
pub mod linux;
mod overheads;
mod page;
pub mod papers;
mod ping;
mod report;
mod rows;
mod runs;
mod steps;
mod systems;
mod trusted;
mod waivers;

pub use class::{measure, pages};
pub use footprint::{Footprint, Lines, Sizes};
pub use overheads::{Charge, latency_charges};
pub use page::Page;
pub use report::{Blessed, Timing, blessed};
pub use rows::Row;
pub use runs::Results;
pub use trusted::{trusted_files, trusted_lines};

/// Measures everything on the emulator of a board.
///
/// # Errors
/// Something is missing, or a run fails.
pub fn timing(board: &str, progress: &Progress) -> Result<Timing, Problem> {
    let board = board_named(board)?;
    let results = measure(&board, progress)?;
    let page = class::of(&board)?.page();
    let compiler = compiler()?;
    Ok(Timing {
        is_pages_compiler: of_page(&page)?.is_of(&compiler),
        page,
        charges: overheads::charges(&results, &board.overheads(1).unwrap_or_default()),
        footprint: Footprint::measure(&results.class_binary, Workspace::locate()?.root(), &page)?,
        results,
        compiler,
    })
}

/// Returns a board by its name.
///
/// # Errors
/// There is no board of this name.
pub fn board_named(name: &str) -> Result<Board, Problem> {
    let mut boards = bulkhead_manifest::boards().into_iter();
    boards.find(|known| known.name == name).ok_or_else(|| {
        Problem::usage(format!("there is no board `{name}`")).remedy("`bulkhead boards` lists them")
    })
}

/// Returns the differences from the blessed figures, or `None` if those come from another compiler.
///
/// # Errors
/// There are no blessed figures.
pub fn differences(timing: &Timing) -> Result<Option<Vec<String>>, Problem> {
    Ok(timing.compare(&of_page(&timing.page)?))
}

/// Tells whether the blessed figures are of the compiler in use. All pages are blessed with one compiler.
///
/// # Errors
/// There are no blessed figures, or there is no compiler.
pub fn is_of_this_compiler() -> Result<bool, Problem> {
    let own = bulkhead::build::artifacts::compiler()?;
    let page = class::pages().next();
    let page = page.ok_or_else(|| Problem::new("there are no figures"))?;
    Ok(of_page(&page)?.is_of(&own))
}

/// Reads the blessed figures of a page.
fn of_page(page: &Page) -> Result<Blessed, Problem> {
    let path = Workspace::locate()?.root().join(page.file);
    let text = std::fs::read_to_string(&path).map_err(Problem::io(path.display()))?;
    blessed(&text).ok_or_else(|| Problem::new(format!("{}: no table of figures", path.display())))
}
