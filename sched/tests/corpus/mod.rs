// SPDX-License-Identifier: Apache-2.0
//! A fixed corpus of systems as they are written, with what the analysis may and may not say of them.
//!
//! Nothing that is accepted misses. The bounds are near what the simulator finds. Few systems are refused in
//! which the simulator finds no miss.

mod adversary;
mod realistic;

use realistic::Part;

use crate::systems::{Kind, grouped};

/// Systems in each part.
const SYSTEMS: u64 = 150;

/// The figures of a part of the corpus.
#[derive(Debug, Default)]
struct Figures {
    accepted: u64,
    refused: u64,
    /// Refused, although the simulator finds no miss.
    in_vain: u64,
    /// Of each accepted task, the bound in hundredths of the longest response seen.
    ratios: Vec<u64>,
}

impl Figures {
    fn of(part: Part) -> Self {
        let mut figures = Self::default();
        for number in 0..SYSTEMS {
            figures.add(part, number);
        }
        figures.ratios.sort_unstable();
        figures
    }

    fn add(&mut self, part: Part, number: u64) {
        let system = realistic::system(part, number);
        let bounds: Result<Vec<u64>, _> = system.analyse().into_iter().flatten().collect();
        let worst = adversary::search(&system, bounds.is_err());
        let Ok(bounds) = bounds else {
            self.refused += 1;
            self.in_vain += u64::from(!worst.has_missed);
            if !worst.has_missed && std::env::var_os("BULKHEAD_SHOW").is_some() {
                println!(
                    "refused in vain: {number} of {part:?}: {system:?} \nBOUNDS {:?} SEEN {:?}",
                    system.analyse(),
                    worst.longest
                );
            }
            return;
        };
        self.accepted += 1;
        assert!(
            !worst.has_missed,
            "system {number} of {part:?} misses: {system:?}"
        );
        for (bound, longest) in bounds.into_iter().zip(worst.longest) {
            assert!(
                longest <= bound,
                "system {number} of {part:?}: {longest} is beyond {bound}: {system:?}"
            );
            self.ratios.push(bound * 100 / longest.max(1));
        }
    }

    /// Returns the ratio that this part of the tasks does not exceed, in hundredths.
    fn ratio(&self, percent: usize) -> u64 {
        self.ratios
            .get(self.ratios.len().saturating_sub(1) * percent / 100)
            .copied()
            .unwrap_or(0)
    }

    /// Returns the percentage of the systems without a miss that are refused, rounded up.
    fn percent_in_vain(&self) -> u64 {
        (self.in_vain * 100).div_ceil((self.accepted + self.in_vain).max(1))
    }
}

fn measure(kind: Kind, name: &str) {
    for on_board in [false, true] {
        let figures = Figures::of(Part { kind, on_board });
        println!(
            "| {name} | {} | {} | {} | {} | {} % | {} | {:.2} | {:.2} |",
            if on_board { "the board's" } else { "none" },
            grouped(figures.accepted + figures.refused),
            figures.accepted,
            figures.in_vain,
            figures.percent_in_vain(),
            figures.ratios.len(),
            figures.ratio(50) as f64 / 100.0,
            figures.ratio(90) as f64 / 100.0,
        );
    }
}

#[test]
fn pinned() {
    measure(Kind::Pinned, "`pinned`");
}

#[test]
fn fixed_priority() {
    measure(Kind::FixedPriority, "`fixed-priority`");
}

#[test]
fn fixed_priority_with_servers() {
    measure(Kind::Servers, "`fixed-priority`, servers");
}

#[test]
fn edf() {
    measure(Kind::Edf, "`edf`");
}

#[test]
fn arinc653() {
    measure(Kind::Arinc653, "`arinc653`");
}

#[test]
fn domains() {
    measure(Kind::Domains, "`domains`");
}
