// SPDX-License-Identifier: Apache-2.0
//! The rules that need to know what the keys mean: one function per rule, grouped by subject.
//!
//! A rule looks at the manifest as written and at the board, reports, and changes nothing; so the order
//! of the rules does not matter, and all of them run even if some find something (but for surprises). Rules about the
//! contents of payloads and about places in the board's RAM are where payloads are loaded
//! ([`crate::payload`], [`crate::guest`]) and places are found ([`crate::plan`]).

mod capabilities;
mod cpus;
mod devices;
mod emulator;
mod health;
mod in_place;
pub(crate) mod memory;
mod names;
pub(crate) mod networks;
mod scheduling;
mod surprises;
mod tasks;
mod timing;

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::Manifest;

pub(crate) use devices::{chooses_ram_base, does_trusted_dma, owned, registers};

/// Runs all rules; those about hardware only if the board is known.
pub(crate) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    names::check(manifest, report);
    tasks::check(manifest, report);
    timing::check(manifest, report);
    memory::check(manifest, board, report);
    health::check(manifest, report);
    capabilities::check(manifest, board, report);
    scheduling::check(manifest, board, report);
    networks::check(manifest, board, report);
    trace_is_possible(manifest, report);
    if let Some(board) = board {
        in_place::check(manifest, board, report);
        cpus::check(manifest, board, report);
        devices::check(manifest, board, report);
        emulator::check(manifest, board, report);
        timing::costs_are_known(manifest, board, report);
    }
    // Who has an error to mend need not hear of surprises.
    if report.error_count() == 0 {
        surprises::check(manifest, board, report);
    }
}

/// A ring wraps with a mask.
fn trace_is_possible(manifest: &Manifest, report: &mut Report) {
    if let Some(records) = &manifest.trace
        && !records.value.is_power_of_two()
    {
        let (above, message) = (
            records.value.next_power_of_two(),
            format!("{} records are no power of two", records.value),
        );
        report.push(
            Diagnostic::at(Code::BadTrace, records.place, message)
                .help(format!("give {above} or {}", above / 2)),
        );
    }
}
