// SPDX-License-Identifier: Apache-2.0
//! The trace: the length of its rings, and what a backend can record.

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::Manifest;

pub(super) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    trace_is_possible(manifest, report);
    if let Some(board) = board {
        short_exits_are_traced(manifest, board, report);
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
