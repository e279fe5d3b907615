// SPDX-License-Identifier: Apache-2.0
//! Exits by cause, as the backends count them ([`bulkhead_abi::log::Exits`]), and their table.

use bulkhead_abi::log::Exits;
use std::fmt::Write;
use std::mem::offset_of;

/// The causes of exits: their names, and their counters in [`Exits`].
pub const CAUSES: [(&str, usize); 7] = [
    ("interrupt", offset_of!(Exits, interrupts)),
    ("call", offset_of!(Exits, calls)),
    ("access", offset_of!(Exits, accesses)),
    ("system", offset_of!(Exits, instructions)),
    ("idle", offset_of!(Exits, idle)),
    ("FP", offset_of!(Exits, fp)),
    ("other", offset_of!(Exits, other)),
];

/// Exits in the order of [`CAUSES`].
pub type ExitCounts = [u64; CAUSES.len()];

/// Adds the head of the table, in 80 columns.
pub fn head(text: &mut String) {
    line(text, "exits of", "all", &CAUSES.map(|(name, _)| name.to_owned()));
}

/// Adds a row of the table.
pub fn row(text: &mut String, name: &str, exits: &ExitCounts) {
    let name: String = name.chars().take(15).collect();
    line(text, &name, &brief(exits.iter().sum()), &exits.map(brief));
}

fn line(text: &mut String, name: &str, total: &str, causes: &[String]) {
    let _ = write!(text, "{name:<15} {total:>6}");
    for (cause, (head, _)) in causes.iter().zip(CAUSES) {
        let _ = write!(text, " {cause:>width$}", width = head.len().max(7));
    }
    text.push('\n');
}

/// Formats a count in at most six characters.
pub(super) fn brief(count: u64) -> String {
    match count {
        0..1_000_000 => count.to_string(),
        1_000_000..1_000_000_000 => format!("{:.1}M", count as f64 / 1e6),
        _ => format!("{:.1}G", count as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_row_has_80_columns_and_the_sum() {
        let mut text = String::new();
        head(&mut text);
        row(
            &mut text,
            "a-partition-with-a-long-name",
            &[999_999; CAUSES.len()],
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line.len() == 80), "{text}");
        assert!(
            lines[1].starts_with("a-partition-wit   7.0M    999999  999999"),
            "{text}"
        );
    }
}
