// SPDX-License-Identifier: Apache-2.0
//! The ticks that the guest printed.

use bulkhead::problem::Problem;
use bulkhead::serial::consoles::{ConsoleLine, Consoles, Control, Observer};
use std::collections::BTreeMap;
use std::io::Read;

/// The first word of each line of the guest.
const WORD: &str = "calibrate";
/// The word that ends the list.
const DONE: &str = "done";
/// Nanoseconds of a second.
const SECOND: u128 = 1_000_000_000;

/// The ticks of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    pub worst: u64,
    pub median: u64,
    pub least: u64,
}

/// The measurements by name.
#[derive(Debug, Default)]
pub(super) struct Readings {
    all: BTreeMap<String, Ticks>,
    is_done: bool,
}

impl Observer for Readings {
    fn line(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        self.take(line.text);
        control.stop = self.is_done;
    }
}

impl Readings {
    /// Reads what a serial line has said.
    pub(super) fn of(mut line: impl Read, name: &str) -> Result<Self, Problem> {
        let (mut found, mut control) = (Self::default(), Control::default());
        let (mut consoles, mut piece) = (Consoles::default(), [0; 4096]);
        while !found.is_done {
            let count = line.read(&mut piece).map_err(Problem::io(name))?;
            if count == 0 {
                consoles.finish(&mut found, &mut control);
                break;
            }
            consoles.feed(piece.get(..count).unwrap_or_default(), &mut found, &mut control);
        }
        Ok(found)
    }

    /// Takes a line. The log of a terminal may have something before the words of the guest.
    fn take(&mut self, text: &str) {
        let mut words = text
            .split_ascii_whitespace()
            .skip_while(|word| *word != WORD)
            .skip(1);
        let Some(name) = words.next() else { return };
        let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let &[worst, median, least] = numbers.as_slice() else {
            return;
        };
        self.is_done |= name == DONE;
        let ticks = Ticks { worst, median, least };
        self.all.insert(name.to_owned(), ticks);
    }

    /// Returns a measurement.
    pub(super) fn get(&self, name: &str) -> Result<Ticks, Problem> {
        let found = self.all.get(name).copied().filter(|_| self.is_done);
        found.ok_or_else(|| {
            let what = if self.is_done { name } else { DONE };
            Problem::new(format!("the log has no line `{WORD} {what}`"))
                .remedy("let the board run until that line, and keep all that the serial line says")
        })
    }

    /// Returns the largest measurement whose name begins so.
    pub(super) fn worst_of(&self, prefix: &str) -> Result<Ticks, Problem> {
        let all = self.all.iter().filter(|(name, _)| name.starts_with(prefix));
        let worst = all.map(|(_, ticks)| *ticks).max_by_key(|ticks| ticks.worst);
        worst.map_or_else(|| self.get(prefix), Ok)
    }

    /// Returns the nanoseconds of ticks of the counter.
    pub(super) fn time(&self, ticks: u64) -> Result<u64, Problem> {
        let hz = self.get("counter-hz")?.worst.max(1);
        let time = (u128::from(ticks) * SECOND).div_ceil(u128::from(hz));
        Ok(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// Returns the measured costs, in nanoseconds. `margin`: percent that are added to each.
    pub(super) fn costs(&self, margin: u32) -> Result<Costs, Problem> {
        let hz = self.get("counter-hz")?.worst;
        let nanoseconds = |ticks: u64| {
            // A difference of two times is exact to one tick of the counter.
            let seen = u128::from(ticks.saturating_add(1)) * SECOND * u128::from(100 + margin);
            u64::try_from(seen.div_ceil(u128::from(hz.max(1)) * 100)).unwrap_or(u64::MAX)
        };
        let (busy, event) = (self.get("interrupt")?.worst, self.get("event")?.worst);
        let (switch, decision) = (self.get("switch")?.worst, self.worst_of("decide-")?.worst);
        // An event is an interrupt, a decision and a switch together. If it was seen to be longer than the
        // three, the interrupt is charged for the difference.
        let rest = event.saturating_sub(switch).saturating_sub(decision);
        Ok(Costs {
            switch: nanoseconds(switch),
            interrupt: nanoseconds(busy.max(rest)),
            decision: nanoseconds(decision),
            counter_hz: hz,
            runs: self.get("runs")?.worst,
        })
    }

    /// Returns the measurements as lines for people: name, worst, median, least, in nanoseconds.
    pub(super) fn lines(&self) -> Result<Vec<String>, Problem> {
        let line = |name: &str| {
            let Ticks { worst, median, least } = self.get(name)?;
            let (worst, median, least) = (self.time(worst)?, self.time(median)?, self.time(least)?);
            Ok(format!(
                "{name:<12} worst {worst:>9} ns   median {median:>9} ns   least {least:>9} ns"
            ))
        };
        let mut lines = ["interrupt", "event", "switch"]
            .into_iter()
            .map(line)
            .collect::<Result<Vec<String>, Problem>>()?;
        let decision = self.time(self.worst_of("decide-")?.worst)?;
        lines.push(format!(
            "{:<12} worst {decision:>9} ns   of all policies",
            "decision"
        ));
        Ok(lines)
    }
}

/// Costs of the hypervisor, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Costs {
    pub switch: u64,
    pub interrupt: u64,
    pub decision: u64,
    pub counter_hz: u64,
    pub runs: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "0.001 meter | calibrate counter-hz 100000000 0 0\ncalibrate runs 1000 0 0\n\
        calibrate interrupt 40 30 20\ncalibrate event 500 300 200\ncalibrate switch 199 120 100\n\
        calibrate decide-edf-2 9 9 9\ncalibrate decide-edf-32 99 99 99\n";

    fn readings(end: &str) -> Readings {
        let text = format!("{LOG}{end}").replace('\n', "\r\n");
        Readings::of(text.as_bytes(), "a log").unwrap()
    }

    #[test]
    fn costs_are_the_worst_with_a_tick_and_the_margin() {
        let costs = readings("calibrate done 0 0 0\n").costs(20).unwrap();
        // 10 ns a tick. The event is 202 ticks longer than switch and decision.
        let expected = Costs {
            switch: 2400,
            interrupt: 2436,
            decision: 1200,
            counter_hz: 100_000_000,
            runs: 1000,
        };
        assert_eq!(costs, expected);
    }

    #[test]
    fn a_log_that_is_cut_off_gives_no_costs() {
        for end in ["", "calibrate done 0 0"] {
            let readings = readings(end);
            assert!(!readings.is_done);
            assert!(readings.costs(20).is_err(), "{end}");
        }
    }

    #[test]
    fn lines_of_others_are_passed_over() {
        let text = "calibrate\ncalibrate switch\ncalibrate switch -1 0 0\nother switch 1 2 3\n";
        assert!(Readings::of(text.as_bytes(), "a log").unwrap().all.is_empty());
    }
}
