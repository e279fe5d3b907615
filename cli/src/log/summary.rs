// SPDX-License-Identifier: Apache-2.0
//! The events of a run, gathered from the hypervisor's own console.

use crate::log::log_area::LogArea;
use crate::serial::consoles::ConsoleLine;
use crate::serial::framing::VirtualTime;
use bulkhead_abi::framing::HYPERVISOR_CONSOLE;
use bulkhead_abi::log::ending::{Ending, lockdown_reason};
use bulkhead_abi::log::entry::IS_AGAIN;
use bulkhead_abi::log::read::Told;
use bulkhead_abi::{HealthAction, PartitionState};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A health event or a change of state, in the hypervisor's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A health event.
    Health {
        /// Partition.
        partition: String,
        /// Class of the event.
        class: String,
        /// The hypervisor's reaction to the event.
        action: String,
        /// The number of the event among all of its kind, as far as the line says it. Not every event has a
        /// line.
        number: u32,
    },
    /// A change of state.
    State {
        /// Partition.
        partition: String,
        /// The state that the partition entered.
        state: PartitionState,
        /// The number of the start, if the line says it. Not every start has a line.
        start: Option<u32>,
    },
    /// The hypervisor locked itself down, for a reason.
    Lockdown(String),
    /// The time limit in the system image was reached.
    TimeLimit,
}

/// The age of the counters, in microseconds before the last line of a console, from which on it is told.
const STALE_US: u64 = 1000;

impl Report {
    /// Reads a line. Returns `None` if the line is no report, or is not the hypervisor's.
    #[must_use]
    pub fn read(line: ConsoleLine<'_>) -> Option<Self> {
        if line.console != HYPERVISOR_CONSOLE {
            return None;
        }
        if let Some(reason) = lockdown_reason(line.text) {
            return Some(Self::Lockdown(reason.to_owned()));
        }
        if line.text == Ending::TimeLimit.name() {
            return Some(Self::TimeLimit);
        }
        let told = Told::read(line.text)?;
        let partition = told.partition().to_owned();
        match (told.class(), told.state()) {
            (Some(class), _) => Some(Self::Health {
                partition,
                class: class.name().to_owned(),
                action: told.action().map_or("", HealthAction::name).to_owned(),
                number: told.number(),
            }),
            (None, Some(state)) => Some(Self::State {
                partition,
                state,
                start: (told.entry().flags & IS_AGAIN != 0).then(|| told.number().saturating_add(1)),
            }),
            (None, None) => None,
        }
    }
}

/// Lines about events of a kind, and the largest number that one of them gives. The hypervisor writes fewer
/// lines the more events there are.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    lines: u32,
    number: u32,
}

impl Seen {
    /// Takes note of a line.
    fn line(&mut self, number: Option<u32>) {
        self.lines += 1;
        self.number = self.number.max(number.unwrap_or_default());
    }

    /// Returns the number of events that there were at least, and whether there can be more.
    fn count(self) -> (u32, bool) {
        (self.lines.max(self.number), self.number > self.lines)
    }
}

/// Counts of reports, and the first lockdown.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Of each partition and class, with the actions in their order: events of a class are counted together.
    health: BTreeMap<(String, String), (Seen, Vec<String>)>,
    states: BTreeMap<String, (&'static str, Seen)>,
    /// When each partition ran first, in microseconds after boot.
    since: BTreeMap<String, u64>,
    /// The reason why the hypervisor locked itself down, if it did.
    pub lockdown: Option<String>,
    /// The system image's own time limit was reached.
    pub time_limit: bool,
}

impl Summary {
    /// Takes note of a line.
    pub fn line(&mut self, line: ConsoleLine<'_>) {
        match Report::read(line) {
            Some(Report::Health {
                partition,
                class,
                action,
                number,
            }) => {
                let (seen, actions) = self.health.entry((partition, class)).or_default();
                seen.line(Some(number));
                actions.retain(|own| *own != action);
                actions.push(action);
            }
            Some(Report::State {
                partition,
                state,
                start,
            }) => {
                let runs = state == PartitionState::Running;
                if runs {
                    self.since.entry(partition.clone()).or_insert(line.time.micros);
                }
                let entry = self.states.entry(partition).or_default();
                if runs {
                    entry.1.line(start);
                } else if let Some(start) = start {
                    // It may have no line of its own that says that it runs.
                    entry.1.number = entry.1.number.max(start);
                }
                entry.0 = state.name();
            }
            Some(Report::Lockdown(reason)) => self.lockdown = self.lockdown.take().or(Some(reason)),
            Some(Report::TimeLimit) => self.time_limit = true,
            None => {}
        }
    }

    /// Returns the number of starts of a partition.
    #[must_use]
    pub fn starts(&self, partition: &str) -> u32 {
        self.states
            .get(partition)
            .map_or(0, |(_, starts)| starts.count().0)
    }

    /// Returns the text for the user: the table of the hypervisor's counters in `area`, or else the events of
    /// its console.
    #[must_use]
    pub fn text_with(&self, area: Option<&[u8]>, time: VirtualTime, real: std::time::Duration) -> String {
        let Some((_, area)) = area.and_then(LogArea::find) else {
            return self.text(time, real);
        };
        let counts = area.counts();
        let counted = VirtualTime {
            micros: counts.time / 1000,
        };
        // The tool hears of the board's time by its consoles alone, and the counters are from the last
        // decision. Each can be the older one.
        let mut text = Self::default().text(time.max(counted), real);
        if time.micros.saturating_sub(counted.micros) >= STALE_US {
            let _ = write!(
                text,
                "\nthe figures are those of {counted} s: no pCPU has decided anything since"
            );
        }
        for line in counts.table().lines() {
            let _ = write!(text, "\n{line}");
        }
        let since = |partition: &str| Some(self.since.get(partition)?.saturating_mul(1000));
        for vcpu in counts.never_ran(since) {
            let _ = write!(text, "\n{vcpu}");
        }
        if let Some(crash) = area.crash() {
            let _ = write!(text, "\ncrash of the hypervisor: {crash}");
        }
        text
    }

    /// Returns the text for the user: one line per partition with something to tell.
    #[must_use]
    pub fn text(&self, virtual_time: VirtualTime, real: std::time::Duration) -> String {
        let mut text = format!(
            "{virtual_time} s of the board's time in {:.1} s",
            real.as_secs_f32()
        );
        for (partition, (state, starts)) in &self.states {
            let (starts, is_least) = starts.count();
            let restarts = starts.saturating_sub(1);
            let plural = if restarts == 1 { "" } else { "s" };
            let _ = write!(
                text,
                "\n  {partition}: {state}, {}{restarts} restart{plural}",
                at_least(is_least)
            );
        }
        for ((partition, class), (count, actions)) in &self.health {
            let action = actions.join(", then ");
            let (count, is_least) = count.count();
            let plural = if count == 1 { "" } else { "s" };
            let _ = write!(
                text,
                "\n  {partition}: {}{count} health event{plural} of class {class}, action {action}",
                at_least(is_least)
            );
        }
        text
    }
}

/// Returns the words before a number that is the least one.
const fn at_least(is_least: bool) -> &'static str {
    if is_least { "at least " } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<'a>(console: &'a str, text: &'a str) -> ConsoleLine<'a> {
        ConsoleLine {
            console,
            time: VirtualTime::default(),
            text,
            cursor: 0,
        }
    }

    #[test]
    fn reports_are_the_hypervisors_only() {
        let text = "health: partition=rogue vcpu=0 class=memory address=0x80000000 pc=0x40 syndrome=0x1 line=3 \
                    event=1 action=restart";
        assert_eq!(Report::read(line("rogue", text)), None);
        let expected = Report::Health {
            partition: "rogue".into(),
            class: "memory".into(),
            action: "restart".into(),
            number: 1,
        };
        assert_eq!(Report::read(line("bulkhead", text)), Some(expected));
        assert_eq!(
            Report::read(line("bulkhead", "partition a: VM, vCPUs on pCPU 0")),
            None
        );
        assert_eq!(
            Report::read(line("bulkhead", "LOCKDOWN: bad")),
            Some(Report::Lockdown("bad".into()))
        );
    }

    #[test]
    fn figures_that_are_older_than_the_last_line_say_so() {
        use bulkhead_abi::log::{AREA_SIZE, Header, MAGIC, VERSION};
        use std::mem::offset_of;
        let mut area = vec![0; AREA_SIZE];
        let fields: [(usize, u64); 3] = [
            (0, MAGIC),
            (offset_of!(Header, hertz), 1_000_000),
            (offset_of!(Header, noted), 2_000_000),
        ];
        for (at, value) in fields {
            area[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let (version, size) = (offset_of!(Header, version), offset_of!(Header, size));
        area[version..version + 4].copy_from_slice(&VERSION.to_le_bytes());
        area[size..size + 4].copy_from_slice(&(AREA_SIZE as u32).to_le_bytes());
        let text = |micros: u64| {
            let real = std::time::Duration::from_secs(1);
            Summary::default().text_with(Some(&area), VirtualTime { micros }, real)
        };
        assert!(
            text(1_000_000).starts_with("2.000000 s of the board's time"),
            "{}",
            text(1_000_000)
        );
        assert!(!text(2_000_500).contains("the figures are those of"));
        assert!(
            text(3_000_000).contains("the figures are those of 2.000000 s"),
            "{}",
            text(3_000_000)
        );
    }

    #[test]
    fn figures_without_the_log_area_are_at_least_those_of_the_last_line() {
        let mut summary = Summary::default();
        for text in [
            "health: partition=high vcpu=0 class=memory pc=0x40 syndrome=0x1 line=3 event=256 action=restart",
            "partition high: loading, start 257",
            "partition high: running",
            "health: partition=high vcpu=0 class=memory pc=0x40 syndrome=0x1 line=3 event=512 action=restart",
            "partition high: loading, start 513, warm",
        ] {
            summary.line(line("bulkhead", text));
        }
        let text = summary.text(VirtualTime::default(), std::time::Duration::ZERO);
        assert!(text.contains("high: loading, at least 512 restarts"), "{text}");
        assert!(
            text.contains("high: at least 512 health events of class memory"),
            "{text}"
        );
        assert_eq!(summary.starts("high"), 513);
    }

    #[test]
    fn starts_beyond_the_first_are_restarts() {
        let mut summary = Summary::default();
        for text in [
            "partition rogue: running",
            "partition rogue: failed",
            "partition rogue: running",
        ] {
            summary.line(line("bulkhead", text));
        }
        summary.line(line(
            "bulkhead",
            "health: partition=rogue vcpu=0 class=memory pc=0x40 syndrome=0x1 line=3 event=1 action=restart",
        ));
        assert_eq!(summary.starts("rogue"), 2);
        let text = summary.text(
            VirtualTime { micros: 1_500_000 },
            std::time::Duration::from_millis(300),
        );
        assert_eq!(
            text,
            "1.500000 s of the board's time in 0.3 s\n  rogue: running, 1 restart\n  \
             rogue: 1 health event of class memory, action restart"
        );
    }
}
