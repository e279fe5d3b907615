// SPDX-License-Identifier: Apache-2.0
//! The results, in words.

use super::Instrument;
use super::result::{Found, Stretch};
use std::fmt::Write as _;

/// Functions of a profile that are shown.
const SHOWN: usize = 12;

/// Writes a table of the longest stretches by kind, with profiles of the first `profiles` kinds.
#[must_use]
pub fn table(instrument: &Instrument, found: &Found, profiles: usize) -> String {
    let mut text = format!(
        "{:>8} {:>9} {:>8} {:>10}  kind of entry: what it is about\n",
        "longest", "ns", "mean", "count"
    );
    for kind in &found.kinds {
        let longest = kind.longest.first().map_or(0, |stretch| stretch.length);
        let mean = kind.total.checked_div(kind.count).unwrap_or(0);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{longest:>8} {:>9} {mean:>8} {:>10}  {}",
            instrument.nanoseconds(u64::from(longest)),
            kind.count,
            kind.name
        );
    }
    for kind in found.kinds.iter().take(profiles) {
        if let Some(stretch) = kind.longest.first() {
            let _ = writeln!(
                text,
                "\n{} ({}):\n{}",
                kind.name,
                histogram(&kind.histogram),
                profile(stretch)
            );
        }
    }
    if found.forgotten != 0 {
        let _ = writeln!(text, "{} stretches of more kinds are not in it", found.forgotten);
    }
    let charged = instrument.charged();
    let _ = match charged {
        Some(charged) => writeln!(text, "the board charges {charged} ns"),
        None => writeln!(text, "the board charges nothing"),
    };
    text
}

/// Tells what a stretch did.
pub(super) fn profile(stretch: &Stretch) -> String {
    let mut text = format!(
        "  {} instructions on pCPU {}, behind {:#x} of a guest, stretch {}",
        stretch.length, stretch.cpu, stretch.guest, stretch.ordinal
    );
    for (count, name) in stretch.profile.iter().take(SHOWN) {
        let _ = write!(text, "\n  {count:>8}  {name}");
    }
    text
}

/// Tells how many stretches have less than 2^n instructions, for each n that has some.
fn histogram(buckets: &[u64]) -> String {
    let filled = buckets.iter().enumerate().filter(|(_, count)| **count != 0);
    let words: Vec<String> = filled
        .map(|(bits, count)| format!("<{}: {count}", 1_u64 << bits))
        .collect();
    words.join(", ")
}
