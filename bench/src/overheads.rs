// SPDX-License-Identifier: Apache-2.0
//! The analysis' charges for the hypervisor, against the measured costs of the hypervisor.
//!
//! The figures of a board's `[overheads]` are round, and the analysis is only as safe as these figures: none
//! may be below the measured cost. The emulator runs one instruction per nanosecond, so its boards compare
//! directly. The boards of hardware need times measured on the hardware. A measured switch contains the
//! decision, so both are charged for it.

use super::latency::{Distribution, Measured};
use super::rows::{SWITCH, SWITCH_TRACED, TIMER_SHARED};
use super::runs::Results;
use bulkhead_sched::analysis::Overheads;

/// Measured figures of one kind, and the board's overhead for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The name of the charge.
    pub what: &'static str,
    /// The largest figure: its name, and its value.
    pub measured: (String, u64),
    /// The charge, in nanoseconds.
    pub charged: u64,
}

impl Charge {
    /// Returns the comparison as one line of text.
    #[must_use]
    pub fn text(&self) -> String {
        let (name, measured) = &self.measured;
        format!(
            "{}: at most {measured} ns ({name}), the board's overheads have {} ns{}",
            self.what,
            self.charged,
            if self.is_enough() { "" } else { ": TOO LITTLE" }
        )
    }

    /// Tells whether the board's figure covers the measured one.
    #[must_use]
    pub const fn is_enough(&self) -> bool {
        self.measured.1 <= self.charged
    }
}

/// Returns the measured figures of everything that is charged.
#[must_use]
pub fn charges(results: &Results, overheads: &Overheads) -> Vec<Charge> {
    let largest = |prefix: &str, but: &str| {
        let names = results
            .hypervised
            .keys()
            .filter(|name| name.starts_with(prefix) && (but.is_empty() || !name.starts_with(but)));
        let figures = names.filter_map(|name| Some((name.clone(), results.net(name)?)));
        figures.max_by_key(|(_, figure)| *figure)
    };
    let charge = |what, measured: Option<(String, u64)>, charged| {
        measured.map(|measured| Charge {
            what,
            measured,
            charged,
        })
    };
    [
        charge("decision", largest("decide-", ""), overheads.decision),
        charge(
            "switch, with the decision",
            largest(SWITCH, SWITCH_TRACED),
            overheads.switch.saturating_add(overheads.decision),
        ),
        charge(
            "interrupt of a VM's own timer",
            largest("timer-", TIMER_SHARED),
            overheads.interrupt,
        ),
        charge(
            "the same on a shared pCPU, with decision and switch",
            largest(TIMER_SHARED, ""),
            overheads.event(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the charges for the latency of a serial receive. From its first instruction on, the hypervisor
/// takes the interrupt, decides and switches. From the arrival on, other work may be under way first. A byte
/// that the hypervisor finds by looking, between two pieces of other work, counts from the arrival alone.
#[must_use]
pub fn latency_charges(measured: &[Measured], overheads: &Overheads) -> Vec<Charge> {
    let worst = |what, of: fn(&Measured) -> &Distribution, charged| {
        let charged_for = measured.iter().filter(|row| row.is_charged);
        let worst = charged_for.max_by_key(|row| of(row).most())?;
        Some(Charge {
            what,
            measured: (worst.title.to_owned(), of(worst).most()),
            charged,
        })
    };
    [
        worst(
            "interrupt, decision and switch",
            |row| &row.from_isr,
            overheads.event(),
        ),
        worst(
            "the same, behind what is under way",
            |row| &row.from_arrival,
            overheads.at_ends(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_sched::analysis::{Orders, Output};

    #[test]
    fn a_latency_is_charged_if_the_hypervisor_hands_it_on_as_soon_as_it_can() {
        let row = |title, is_charged, from_isr, from_arrival| Measured {
            title,
            is_charged,
            pings: 0,
            from_isr: Distribution::new(vec![1, from_isr]),
            from_arrival: Distribution::new(vec![1, from_arrival]),
        };
        let measured = [
            row("bare", false, 900, 900),
            row("quiet", true, 60, 80),
            row("flooded", true, 50, 300),
        ];
        let overheads = Overheads {
            switch: 30,
            interrupt: 20,
            decision: 10,
            longest: 200,
            orders: Orders::NONE,
            output: Output::NONE,
        };
        let charges = latency_charges(&measured, &overheads);
        let texts: Vec<String> = charges.iter().map(Charge::text).collect();
        assert_eq!(
            texts,
            [
                "interrupt, decision and switch: at most 60 ns (quiet), the board's overheads have 60 ns",
                "the same, behind what is under way: at most 300 ns (flooded), the board's overheads have 260 ns: TOO LITTLE"
            ]
        );
        assert_eq!(latency_charges(&measured[..1], &overheads), []);
    }

    #[test]
    fn the_largest_figure_of_a_kind_is_what_has_to_be_charged() {
        let figures = [
            ("decide-edf-2", 100),
            ("decide-edf-8", 400),
            ("switch", 600),
            ("switch-edf-8", 900),
            ("switch-traced", 5000),
            ("null-call", 9000),
        ];
        let results = Results {
            hypervised: figures.map(|(name, figure)| (name.to_owned(), figure)).into(),
            ..Results::default()
        };
        let overheads = |switch, decision| Overheads {
            switch,
            interrupt: 1,
            decision,
            longest: 0,
            orders: Orders::NONE,
            output: Output::NONE,
        };
        let enough = charges(&results, &overheads(500, 400));
        let seen: Vec<_> = enough
            .iter()
            .map(|charge| (charge.measured.1, charge.charged))
            .collect();
        assert_eq!(seen, [(400, 400), (900, 900)]);
        assert!(enough.iter().all(Charge::is_enough));
        assert_eq!(
            enough[1].text(),
            "switch, with the decision: at most 900 ns (switch-edf-8), the board's overheads have 900 ns"
        );
        let less = charges(&results, &overheads(500, 399));
        assert!(less.iter().all(|charge| !charge.is_enough()));
        assert!(less[0].text().ends_with("399 ns: TOO LITTLE"));
    }
}
