// SPDX-License-Identifier: Apache-2.0
//! Class `armv7m`.

pub(super) mod measure;
mod page;

use super::Bench;
use crate::page::Page;
use crate::runs::Results;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::ARMV7M;
use bulkhead_manifest::Board;
use bulkhead_manifest::board::Emulator;

/// The class.
pub(super) struct Armv7m;

impl Bench for Armv7m {
    fn facts(&self) -> &'static ClassFacts {
        &ARMV7M
    }

    fn page(&self) -> Page {
        page::PAGE
    }

    fn measure(&self, board: &Board, emulator: &Emulator, progress: &Progress) -> Result<Results, Problem> {
        measure::measure(board, emulator, progress)
    }
}
