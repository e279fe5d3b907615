// SPDX-License-Identifier: Apache-2.0
//! The ticks that the guest printed.

use super::record::{DAMAGED, DECISION, DONE, Record, Ticks, WORD, Wrong, label, read};
use bulkhead::problem::Problem;
use bulkhead::serial::consoles::{ConsoleLine, Consoles, Control, Observer};
use bulkhead_manifest::Board;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// Nanoseconds of a second.
const SECOND: u128 = 1_000_000_000;
/// The remedy for a log of more than one machine.
const SEVERAL: &str = "give the log of one machine, and of one file that was built for it";
/// Bytes of a log that are read: the guest's part has some thousands.
const MOST: u64 = 4 << 20;

/// The end of what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The guest's last line: a serial line has no end.
    Done,
    /// The end of the log. It may have several runs, of which the worst turn counts.
    End,
}

/// The measurements by name.
#[derive(Debug, Default)]
pub(super) struct Readings {
    all: BTreeMap<String, Ticks>,
    /// The class and the board that the system was built for.
    origin: BTreeMap<&'static str, String>,
    is_done: bool,
    /// Consoles in whose line there was a byte that no console prints.
    damaged: BTreeSet<String>,
    /// The name of the log, and the number of the line that comes. `None` in an emulator.
    place: Option<(String, u64)>,
    /// The first line that no machine gives.
    wrong: Option<Problem>,
}

impl Observer for Readings {
    fn bytes(&mut self, console: &str, bytes: &[u8]) {
        // The text of a line leaves these bytes out, and with them a digit that they were.
        let is_lost = |byte: &u8| matches!(byte, 0..=6 | 0x0e..=0x1a | 0x7f);
        if bytes.iter().any(is_lost) {
            self.damaged.insert(console.to_owned());
        }
    }

    fn line(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        let is_damaged = self.damaged.remove(line.console);
        if let Err(wrong) = self.take(line.text, is_damaged) {
            self.wrong.get_or_insert(wrong);
        }
        control.stop = self.is_done || self.wrong.is_some();
    }

    fn cut(&mut self, line: ConsoleLine<'_>, _: &mut Control) {
        // A line that the end of the log has cut off may be whole, and need not be.
        let is_damaged = self.damaged.remove(line.console);
        let _ = self.take(line.text, is_damaged);
    }
}

impl Readings {
    /// Reads what a serial line has said.
    pub(super) fn of(line: impl Read, name: &str, until: Until) -> Result<Self, Problem> {
        let (mut consoles, mut control) = (Consoles::default(), Control::default());
        let (mut line, mut piece) = (line.take(MOST + 1), [0; 4096]);
        let mut found = Self {
            place: Some((name.to_owned(), 1)),
            ..Self::default()
        };
        while !found.is_over(until) {
            let count = line.read(&mut piece).map_err(Problem::io(name))?;
            if count == 0 {
                consoles.finish(&mut found, &mut control);
                break;
            }
            if line.limit() == 0 {
                return Err(too_long(name));
            }
            // A line at a time, so that its number is known.
            let read = piece.get(..count).unwrap_or_default();
            for part in read.split_inclusive(|byte| *byte == b'\n') {
                if !found.is_over(until) {
                    consoles.feed(part, &mut found, &mut control);
                    found.count(part);
                }
            }
        }
        found.sound()
    }

    /// Tells whether no more need be read.
    fn is_over(&self, until: Until) -> bool {
        self.wrong.is_some() || self.is_done && until == Until::Done
    }

    /// Counts a line whose end a part of the log is.
    fn count(&mut self, part: &[u8]) {
        if let Some((_, number)) = &mut self.place {
            *number += u64::from(part.ends_with(b"\n"));
        }
    }

    /// Returns the readings, if a machine can give each line.
    pub(super) fn sound(self) -> Result<Self, Problem> {
        match self.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(self),
        }
    }

    /// Takes a line.
    fn take(&mut self, text: &str, is_damaged: bool) -> Result<(), Problem> {
        let Some(record) = read(text) else { return Ok(()) };
        let taken = match record {
            _ if is_damaged => Err(Wrong("it has a byte that no console prints".to_owned(), DAMAGED)),
            Ok(record) => self.add(record),
            Err(wrong) => Err(wrong),
        };
        taken.map_err(|Wrong(what, remedy)| {
            let place = self.place.as_ref();
            let place = place.map_or_else(String::new, |(name, line)| format!("line {line} of {name}: "));
            let text = text.trim();
            Problem::new(format!("{place}`{text}`: {what}; nothing is written")).remedy(remedy)
        })
    }

    /// Adds what a line says. Of several lines of one path the worst turn counts.
    fn add(&mut self, record: Record) -> Result<(), Wrong> {
        match record {
            Record::Origin(key, word) => {
                let known = self.origin.entry(key).or_insert_with(|| word.clone());
                if *known != word {
                    return Err(Wrong(format!("a line before says {key} `{known}`"), SEVERAL));
                }
            }
            Record::Figure(name, new) => {
                self.is_done |= name == DONE;
                let known = self.all.entry(name.clone()).or_insert(new);
                match name.as_str() {
                    "counter-hz" if known.worst != new.worst => {
                        return Err(Wrong(format!("a line before says {}", known.worst), SEVERAL));
                    }
                    // The fewest turns are those that each figure has at least.
                    "runs" => known.worst = known.worst.min(new.worst),
                    _ => {
                        *known = Ticks {
                            worst: known.worst.max(new.worst),
                            median: known.median.max(new.median),
                            least: known.least.min(new.least),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Refuses a log of another class or board.
    pub(super) fn fits(&self, board: &Board) -> Result<(), Problem> {
        for (key, own) in [("class", board.class.name()), ("board", &label(&board.name))] {
            let Some(said) = self.origin.get(key) else {
                return Err(Problem::new(format!(
                    "the log has no line `{WORD} {key} {own}`; nothing is written"
                ))
                .remedy(
                    "keep all that the serial line says; a file of an older tool does not say it: \
                     make a new one with `--build`",
                ));
            };
            if said != own {
                return Err(Problem::new(format!(
                    "the log is one of {key} `{said}`, and the board that you name has {key} `{own}`; nothing \
                     is written"
                ))
                .remedy("give the board for which the file was built (`--board`), or its log"));
            }
        }
        Ok(())
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
        let (switch, decision) = (self.get("switch")?.worst, self.worst_of(DECISION)?.worst);
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
        let decision = self.time(self.worst_of(DECISION)?.worst)?;
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

/// Returns the problem of a log that does not end.
fn too_long(name: &str) -> Problem {
    Problem::new(format!(
        "{name} has more than {} MiB, and only that much of a log is read; nothing is written",
        MOST >> 20
    ))
    .remedy(format!("give the lines of the guest alone: `grep {WORD} LOG`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "0.001 meter | calibrate class aarch64\ncalibrate board xlnx-zcu102\n\
        calibrate counter-hz 100000000 0 0\ncalibrate runs 1000 0 0\n\
        calibrate interrupt 40 30 20\ncalibrate event 500 300 200\ncalibrate switch 199 120 100\n\
        calibrate decide-edf-2 9 9 9\ncalibrate decide-edf-32 99 99 99\n";
    const END: &str = "calibrate done 0 0 0\n";
    /// 10 ns a tick. The event is 202 ticks longer than switch and decision.
    const COSTS: Costs = Costs {
        switch: 2400,
        interrupt: 2436,
        decision: 1200,
        counter_hz: 100_000_000,
        runs: 1000,
    };

    fn of(text: &str, until: Until) -> Result<Readings, Problem> {
        let text = text.replace('\n', "\r\n");
        Readings::of(text.as_bytes(), "a log", until)
    }

    fn refused(text: &str) -> String {
        of(text, Until::End).expect_err("it is no log").to_string()
    }

    #[test]
    fn costs_are_the_worst_with_a_tick_and_the_margin() {
        let readings = of(&format!("{LOG}{END}"), Until::End).unwrap();
        assert_eq!(readings.costs(20).unwrap(), COSTS);
    }

    #[test]
    fn a_log_that_is_cut_off_gives_no_costs() {
        for end in ["", "calibrate done 0 0"] {
            let readings = of(&format!("{LOG}{end}"), Until::End).unwrap();
            assert!(!readings.is_done);
            assert!(readings.costs(20).is_err(), "{end}");
        }
    }

    #[test]
    fn the_worst_of_several_runs_counts_in_any_order() {
        let better = LOG
            .replace("switch 199 120", "switch 5 4")
            .replace("100\n", "3\n");
        let better = better.replace("runs 1000", "runs 2000");
        let cut_off = LOG.split("calibrate decide").next().unwrap();
        for log in [
            format!("{LOG}{END}{better}{END}"),
            format!("{better}{END}{LOG}{END}"),
            format!("{cut_off}{better}{END}"),
            format!("{better}{END}{cut_off}"),
        ] {
            let readings = of(&log, Until::End).unwrap();
            assert_eq!(readings.costs(20).unwrap(), COSTS, "{log}");
        }
        // A serial line is not read beyond the first end.
        let readings = of(&format!("{better}{END}{LOG}{END}"), Until::Done).unwrap();
        assert_ne!(readings.costs(20).unwrap(), COSTS);
    }

    #[test]
    fn a_line_that_no_machine_gives_is_named() {
        for (good, bad, why) in [
            (
                "switch 199 120 100",
                "switch 100 120 199",
                "line 7 of a log: `calibrate switch 100 120 199`: ",
            ),
            (
                "switch 199 120 100",
                "switch 19\0 120 100",
                "line 7 of a log: `calibrate switch 19 120 100`: it has",
            ),
            (
                "switch 199",
                "swi\u{1}tch 199",
                "line 7 of a log: `calibrate switch 199 120 100`: it has a byte",
            ),
            ("runs 1000", "runs 0", "line 4 of a log: `calibrate runs 0 0 0`: "),
            (
                "hz 100000000",
                "hz 0",
                "line 3 of a log: `calibrate counter-hz 0 0 0`: ",
            ),
            (
                "event 500",
                "event -500",
                "line 6 of a log: `calibrate event -500 300 200`: ",
            ),
        ] {
            let problem = refused(&format!("{LOG}{END}").replace(good, bad));
            assert!(problem.starts_with(why), "{problem}");
            assert!(problem.contains("; nothing is written\nhelp: "), "{problem}");
        }
        // Lines of others may have anything in them.
        assert!(of(&format!("\0\u{7f}boot\n{LOG}{END}"), Until::End).is_ok());
    }

    #[test]
    fn runs_of_several_machines_are_no_log() {
        for (good, other, why) in [
            ("hz 100000000", "hz 100000001", "a line before says 100000000"),
            (
                "board xlnx-zcu102",
                "board mine",
                "a line before says board `xlnx-zcu102`",
            ),
        ] {
            let problem = refused(&format!("{LOG}{END}{}{END}", LOG.replace(good, other)));
            assert!(problem.contains(why), "{problem}");
        }
    }

    #[test]
    fn a_log_of_another_board_is_refused() {
        let boards = bulkhead_manifest::boards();
        let board = |name: &str| boards.iter().find(|board| board.name == name).unwrap();
        let readings = of(&format!("{LOG}{END}"), Until::End).unwrap();
        assert!(readings.fits(board("xlnx-zcu102")).is_ok());
        for (name, why) in [
            (
                "xlnx-versal",
                "one of board `xlnx-zcu102`, and the board that you name has board `xlnx-versal`",
            ),
            ("mps2-an505", "one of class `aarch64`"),
        ] {
            let problem = readings.fits(board(name)).unwrap_err().to_string();
            assert!(problem.contains(why), "{problem}");
        }
        let old = LOG.replace("calibrate class aarch64\n", "\n");
        let problem = of(&format!("{old}{END}"), Until::End)
            .unwrap()
            .fits(board("xlnx-zcu102"));
        assert!(
            problem
                .unwrap_err()
                .to_string()
                .contains("no line `calibrate class aarch64`")
        );
    }

    #[test]
    fn a_log_without_an_end_is_given_up() {
        for (byte, until) in [(0, Until::Done), (0, Until::End), (b'\n', Until::End)] {
            let problem = Readings::of(std::io::repeat(byte), "/dev/zero", until).unwrap_err();
            let problem = problem.to_string();
            assert!(problem.contains("/dev/zero has more than 4 MiB"), "{problem}");
        }
    }
}
