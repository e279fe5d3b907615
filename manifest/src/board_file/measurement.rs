// SPDX-License-Identifier: Apache-2.0
//! The table of a board file that says where the costs of the hypervisor were measured.

use crate::board::{Basis, Board};

/// Figures of `[overheads]` that a measurement may not have seen.
pub(crate) const FIGURES: [&str; 6] = [
    "switch",
    "interrupt",
    "decision",
    "longest",
    "longest-per-vcpu",
    "output",
];

/// The table.
const TABLE: &str = "measurement";

/// Checks that costs are measured exactly if the file says where and when.
pub(super) fn check(board: &Board, refuse: &mut impl FnMut(&str, String, &str)) {
    let is_measured = board.costs.is_some_and(|costs| costs.basis == Basis::Measured);
    let Some(given) = &board.measurement else {
        if is_measured {
            refuse(
                "overheads",
                "the overheads are measured, and no table says where and when".to_owned(),
                "add `[measurement]`, as `bulkhead calibrate` writes it, or give another `basis`",
            );
        }
        return;
    };
    if !is_measured {
        refuse(
            TABLE,
            "the board has a measurement, and its overheads are not measured".to_owned(),
            "remove `[measurement]`, or give `basis = \"measured\"`",
        );
    }
    if !is_day(&given.date) {
        refuse(
            TABLE,
            format!("`{}` is no day", given.date),
            "give year, month and day: `date = \"2026-12-03\"`",
        );
    }
    if given.machine.trim().is_empty() {
        refuse(
            TABLE,
            "the machine has no name".to_owned(),
            "name it as its label does",
        );
    }
    let unknown = given
        .estimated
        .iter()
        .find(|name| !FIGURES.contains(&name.as_str()));
    if let Some(name) = unknown {
        let all = FIGURES.join(", ");
        refuse(
            TABLE,
            format!("`{name}` is no figure of `overheads`"),
            &format!("`estimated` lists some of: {all}"),
        );
    }
}

/// Tells whether a text is a day of the calendar, as ISO 8601 writes it.
#[must_use]
pub fn is_day(text: &str) -> bool {
    let fields: Vec<&str> = text.split('-').collect();
    let [year, month, day] = fields.as_slice() else {
        return false;
    };
    let number = |text: &str, digits: usize| {
        let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u32>().unwrap_or(0))
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=last).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::is_day;

    #[test]
    fn days_are_those_of_the_calendar() {
        for day in ["2026-12-03", "2028-02-29", "2000-02-29"] {
            assert!(is_day(day), "{day}");
        }
        for day in [
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-1-01",
            "2026-06-31",
            "03.12.2026",
            "2026-06-00",
            "",
        ] {
            assert!(!is_day(day), "{day}");
        }
    }
}
