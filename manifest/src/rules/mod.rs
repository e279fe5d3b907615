// SPDX-License-Identifier: Apache-2.0
//! The rules that need to know what the keys mean: one function per rule, grouped by subject.
//!
//! A rule looks at the manifest as written and at the board, reports, and changes nothing. So the order of
//! the rules does not matter, and all of them run even if some find something (except surprises). Rules about
//! the contents of payloads are where payloads are loaded ([`crate::payload`], [`crate::guest`]). Rules about
//! places in the board's RAM are where places are found ([`crate::place`]).
#![deny(clippy::arithmetic_side_effects)]

mod arinc653;
mod capabilities;
mod channels;
mod cpus;
mod device_events;
mod devices;
mod direct;
mod emulator;
mod health;
mod machine;
pub(crate) mod memory;
mod names;
mod networks;
mod own_policy;
mod ports;
mod scheduling;
mod secrets;
mod services;
mod signature;
mod surprises;
mod tasks;
mod timing;
mod trace;

use crate::board::Board;
use crate::class;
use crate::diagnostic::Report;
use crate::model::Manifest;

pub(crate) use emulator::disks_are_files;
pub(crate) use memory::virtual_areas;
pub(crate) use own_policy::own_policies;
pub(crate) use scheduling::BUDGET;
pub(crate) use signature::keys_are_keys;

/// Runs all rules. Rules about hardware run only if the board is known.
pub(crate) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    names::check(manifest, report);
    tasks::check(manifest, board, report);
    timing::check(manifest, report);
    memory::check(manifest, board, report);
    machine::check(manifest, board, report);
    health::check(manifest, report);
    capabilities::check(manifest, board, report);
    scheduling::check(manifest, board, report);
    networks::check(manifest, board, report);
    ports::check(manifest, board, report);
    channels::check(manifest, board, report);
    services::check(manifest, board, report);
    arinc653::check(manifest, report);
    trace::check(manifest, board, report);
    if let Some(board) = board {
        class::host(board.class).check(manifest, board, report);
        for partition in &manifest.partitions {
            direct::check(partition, manifest, board, report);
        }
        cpus::check(manifest, board, report);
        devices::check(manifest, board, report);
        emulator::check(manifest, board, report);
        timing::costs_are_known(manifest, board, report);
    }
    // A user who has an error to mend need not hear of surprises.
    if report.error_count() == 0 {
        surprises::check(manifest, board, report);
        if let Some(board) = board {
            device_events::check(manifest, board, report);
        }
    }
}
