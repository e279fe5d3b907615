// SPDX-License-Identifier: Apache-2.0
//! Class `armv8m`.

mod calls;
mod lengths;
mod measure;
mod page;
mod rows;
mod stretches;
mod systems;

use super::Bench;
use crate::page::Page;
use crate::runs::Results;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::ARMV8M;
use bulkhead_manifest::Board;
use bulkhead_manifest::board::Emulator;

/// The class.
pub(super) struct Armv8m;

impl Bench for Armv8m {
    fn facts(&self) -> &'static ClassFacts {
        &ARMV8M
    }

    fn page(&self) -> Page {
        page::PAGE
    }

    fn measure(&self, board: &Board, emulator: &Emulator, progress: &Progress) -> Result<Results, Problem> {
        measure::measure(board, emulator, progress)
    }
}
