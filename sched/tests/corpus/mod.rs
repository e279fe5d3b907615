// SPDX-License-Identifier: Apache-2.0
//! A fixed corpus of systems as they are written, with what the analysis may and may not say of them.
//!
//! Nothing that is accepted misses. The bounds are near what the simulator finds. Few systems are refused in
//! which the simulator finds no miss.

mod adversary;
mod realistic;

use realistic::Part;

use crate::systems::Kind;

/// Systems in each part.
const SYSTEMS: u64 = 150;

/// The limits of a part of the corpus. `ratio` limits the median of the bound over the longest response, in
/// hundredths. `in_vain` limits the percentage of systems without a miss that are refused. The goals are 120
/// and 10. If a limit is higher, docs/analysis.md says why.
struct Bars {
    ratio: u64,
    in_vain: u64,
}

const GOALS: Bars = Bars {
    ratio: 120,
    in_vain: 10,
};

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
        let analysed = system.analyse();
        let bounds: Result<Vec<u64>, _> = analysed.iter().flatten().copied().collect();
        let worst = adversary::search(&system, bounds.is_err());
        let Ok(bounds) = bounds else {
            self.refused += 1;
            self.in_vain += u64::from(!worst.has_missed);
            if !worst.has_missed && std::env::var_os("BULKHEAD_SHOW").is_some() {
                println!("refused in vain: {number} of {part:?}: {system:?}");
                println!("BOUNDS {analysed:?} SEEN {:?}", worst.longest);
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

    /// Returns the ratio that this percentage of the tasks does not exceed, in hundredths.
    fn ratio(&self, percent: usize) -> u64 {
        let last = self.ratios.len().saturating_sub(1);
        self.ratios.get(last * percent / 100).copied().unwrap_or(0)
    }

    /// Returns the percentage of the systems without a miss that are refused, rounded up.
    fn percent_in_vain(&self) -> u64 {
        (self.in_vain * 100).div_ceil((self.accepted + self.in_vain).max(1))
    }
}

/// Measures a part of the corpus, prints its row of the table in docs/analysis.md, and compares it with the
/// bars, first those without overheads.
fn measure(kind: Kind, name: &str, bars: [Bars; 2]) {
    for (on_board, bars) in [false, true].into_iter().zip(bars) {
        let figures = Figures::of(Part { kind, on_board });
        println!(
            "| {name} | {} | {} | {} | {} % | {:.2} | {:.2} |",
            if on_board { "the board's" } else { "none" },
            figures.accepted,
            figures.in_vain,
            figures.percent_in_vain(),
            figures.ratio(50) as f64 / 100.0,
            figures.ratio(90) as f64 / 100.0,
        );
        assert!(figures.ratio(50) <= bars.ratio, "{name}, board: {on_board}");
        assert!(
            figures.percent_in_vain() <= bars.in_vain,
            "{name}, board: {on_board}"
        );
    }
}

#[test]
fn pinned() {
    measure(Kind::Pinned, "`pinned`", [GOALS, GOALS]);
}

#[test]
fn fixed_priority() {
    measure(Kind::FixedPriority, "`fixed-priority`", [GOALS, GOALS]);
}

#[test]
fn fixed_priority_with_servers() {
    let with = |in_vain| Bars { in_vain, ..GOALS };
    measure(Kind::Servers, "`fixed-priority`, servers", [with(21), with(32)]);
}

#[test]
fn edf() {
    let on_board = Bars { in_vain: 14, ..GOALS };
    measure(Kind::Edf, "`edf`", [GOALS, on_board]);
}

#[test]
fn arinc653() {
    measure(Kind::Arinc653, "`arinc653`", [GOALS, GOALS]);
}

#[test]
fn domains() {
    measure(Kind::Domains, "`domains`", [GOALS, GOALS]);
}
