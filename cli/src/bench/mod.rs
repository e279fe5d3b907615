// SPDX-License-Identifier: Apache-2.0
//! What the hypervisor costs, in instructions: the guest `bench` on the bare board and in a VM.
//!
//! Both runs count time in instructions, so the figures repeat exactly and no other load of the machine
//! changes them. A path length is not time: a trap, a barrier and an addition all count 1, and there are no caches.
//!
//! | file | |
//! |---|---|
//! | `page` | the pages with blessed figures, one for each class |
//! | `latency` | the experiment of a serial receive |
//! | `linux` | what operations of Linux cost bare and in a VM |
//! | `mcu` | what is measured of class armv7m |
//! | `ping` | the round trip of a ping on that class |
//! | `rows` | what is measured, and the bars |
//! | `waivers` | bars that do not hold yet |
//! | `systems` | the manifests of the runs |
//! | `runs` | the runs |
//! | `overheads` | what the analysis charges, against what was measured |
//! | `footprint` | sizes and lines of code |
//! | `report` | tables for people and for `docs/timing.md`, and the comparison with the blessed one |

use crate::artifacts::{Workspace, compiler};
use crate::problem::Problem;
use crate::progress::Progress;
use bulkhead_manifest::Board;

mod footprint;
pub mod latency;
pub mod linux;
mod mcu;
mod overheads;
mod page;
mod ping;
mod report;
mod rows;
mod runs;
mod systems;
mod waivers;

pub use footprint::{Footprint, Lines, Sizes};
pub use overheads::{Charge, latency_charges};
pub use page::{AARCH64, ARMV7M, Page};
pub use report::{Blessed, Timing, blessed};
pub use rows::{ROWS, Row};
pub use runs::{Results, measure};

/// Measures everything on the emulator of a board.
///
/// # Errors
/// Something is missing, or a run fails.
pub fn timing(board: &str, progress: &Progress) -> Result<Timing, Problem> {
    let board = board_named(board)?;
    let results = measure(&board, progress)?;
    let page = Page::of(board.class);
    Ok(Timing {
        page,
        charges: overheads::charges(&results, &board.overheads.unwrap_or_default()),
        footprint: Footprint::measure(&results.class_binary, Workspace::locate()?.root(), page.crates)?,
        results,
        compiler: compiler()?,
    })
}

/// A board by its name.
///
/// # Errors
/// There is none.
pub fn board_named(name: &str) -> Result<Board, Problem> {
    let mut boards = bulkhead_manifest::boards().into_iter();
    boards.find(|known| known.name == name).ok_or_else(|| {
        Problem::usage(format!("there is no board `{name}`")).remedy("`bulkhead boards` lists them")
    })
}

/// What differs from the blessed figures; `None` if those come from another compiler.
///
/// # Errors
/// There are none.
pub fn differences(timing: &Timing) -> Result<Option<Vec<String>>, Problem> {
    let path = Workspace::locate()?.root().join(timing.page.file);
    let page = std::fs::read_to_string(&path).map_err(Problem::io(path.display()))?;
    let blessed =
        blessed(&page).ok_or_else(|| Problem::new(format!("{}: no table of figures", path.display())))?;
    Ok(timing.compare(&blessed))
}
