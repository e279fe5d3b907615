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
mod services;
mod surprises;
mod tasks;
mod timing;

use crate::board::{Board, Class};
use crate::class;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{Manifest, PartitionSpec};

pub(crate) use emulator::disks_are_files;
pub(crate) use memory::virtual_areas;
pub(crate) use own_policy::own_policies;
pub(crate) use scheduling::BUDGET;

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
    trace_is_possible(manifest, report);
    if let Some(board) = board {
        class::host(board.class).check(manifest, board, report);
        short_exits_are_traced(manifest, board, report);
        for partition in &manifest.partitions {
            semihosting_is_possible(partition, board, report);
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
    }
}

/// Reports the key `trace.short-exits` on a board of a class whose backend records no such exits.
fn short_exits_are_traced(manifest: &Manifest, board: &Board, report: &mut Report) {
    let Some(asked) = manifest
        .trace
        .as_ref()
        .and_then(|trace| trace.short_exits.given())
    else {
        return;
    };
    if board.class.facts().traces_short_exits || !asked.value {
        return;
    }
    let message = format!(
        "exits that the backend answers by itself are not traced on a board of class `{}`",
        board.class.name()
    );
    report.push(
        Diagnostic::at(Code::NotForClass, asked.place, message)
            .label("the log area counts them all the same")
            .help("remove it"),
    );
}

/// Reports the key `machine.semihosting` on a board of a class that answers no calls of a debugger.
fn semihosting_is_possible(partition: &PartitionSpec, board: &Board, report: &mut Report) {
    if board.class.facts().semihosting {
        return;
    }
    let Some(place) = partition.machine.semihosting.key else {
        return;
    };
    let able = Class::all().filter(|class| class.facts().semihosting);
    let able: Vec<String> = able.map(|class| format!("`{}`", class.name())).collect();
    let message = format!(
        "`machine.semihosting` has no meaning on a board of class `{}`",
        board.class.name()
    );
    report.push(
        Diagnostic::at(Code::NotForClass, place, message)
            .label("no program of this class has such calls answered")
            .help(format!(
                "remove it, or choose a board of class {}",
                able.join(" or ")
            )),
    );
}

/// Checks that the length of a ring is a power of two, because a ring wraps with a mask.
fn trace_is_possible(manifest: &Manifest, report: &mut Report) {
    let Some(records) = manifest.trace.as_ref().and_then(|trace| trace.records.given()) else {
        return;
    };
    let number = records.value.get();
    // The next power of two is possible: the largest number that a ring can have is a power of two itself.
    if let Some(above) = number
        .checked_next_power_of_two()
        .filter(|above| *above != number)
    {
        let message = format!("{number} records are no power of two");
        report.push(
            Diagnostic::at(Code::BadTrace, records.place, message)
                .help(format!("give {above} or {}", above / 2)),
        );
    }
}
