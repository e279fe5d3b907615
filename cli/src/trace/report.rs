// SPDX-License-Identifier: Apache-2.0
//! A trace in words and numbers: the share of each vCPU of its pCPU, the reasons why the hypervisor got
//! control, and the waiting times. The report also says how regular windows were, and tells the events of
//! budgets, deadlines and partitions.
//!
//! Times are of the board's clock. Nothing is averaged away: each figure comes with its worst case.

use super::Trace;
use crate::log::exits;
use std::collections::BTreeMap;
use std::fmt::Write;

/// State changes and health events that are listed.
const LISTED: usize = 30;
/// Width of a histogram's longest bar.
const BAR: u64 = 40;

impl Trace {
    /// Returns the report, in at most 100 columns.
    #[must_use]
    pub fn report(&self) -> String {
        let mut text = self.heading();
        for pcpu in 0..self.pcpus {
            self.shares(pcpu, &mut text);
        }
        for vcpu in self.never_ran() {
            let _ = writeln!(text, "\n{vcpu}");
        }
        self.exits(&mut text);
        self.latencies(&mut text);
        self.windows(&mut text);
        self.budgets(&mut text);
        self.life(&mut text);
        text
    }

    fn heading(&self) -> String {
        let Some((first, last)) = self.range() else {
            return format!("trace of board {}: no records\n", self.board);
        };
        let mut text = format!(
            "trace of board {}: {} records from {} to {} s after boot\n",
            self.board,
            self.records.len(),
            seconds(self.nanoseconds(first)),
            seconds(self.nanoseconds(last)),
        );
        if self.lost() != 0 {
            let _ = writeln!(
                text,
                "{} records are LOST: what follows is incomplete",
                self.lost()
            );
        }
        text
    }

    /// Writes the vCPUs of a pCPU, and their shares of it.
    fn shares(&self, pcpu: u8, text: &mut String) {
        let _ = writeln!(
            text,
            "\npCPU {pcpu:<20} {:>7} {:>8} {:>10} {:>12} {:>12}",
            "share", "turns", "preempted", "longest us", "total us"
        );
        for share in self.shares_of(pcpu) {
            let _ = writeln!(
                text,
                "  {:<23} {:>6.2}% {:>8} {:>10} {:>12} {:>12}",
                share.vcpu.map_or("idle".to_owned(), |vcpu| self.vcpu_name(vcpu)),
                100.0 * share.ran as f64 / share.of.max(1) as f64,
                share.turns,
                if share.vcpu.is_some() {
                    share.preempted.to_string()
                } else {
                    "-".to_owned()
                },
                micros(self.duration(share.longest)),
                micros(self.duration(share.ran)),
            );
        }
    }

    fn exits(&self, text: &mut String) {
        let counts = self.exit_counts();
        if !self.exits.is_empty() {
            text.push('\n');
            exits::head(text);
        }
        for (number, exits) in (0..).zip(&self.exits) {
            exits::row(text, &self.vcpu_name(number), exits);
        }
        if !counts.is_empty() {
            text.push_str("\nexits with a record: those that reach the kernel\n");
        }
        for (vcpu, causes) in counts {
            let name = vcpu.map_or("idle".to_owned(), |vcpu| self.vcpu_name(vcpu));
            let causes: Vec<String> = causes
                .iter()
                .map(|(cause, count)| format!("{} {count}", cause.name()))
                .collect();
            let _ = writeln!(text, "  {name:<23} {}", causes.join(", "));
        }
    }

    /// Writes the latencies from ready to running, from the time of a timer, and from the exit in which an
    /// interrupt or a message was found.
    fn latencies(&self, text: &mut String) {
        let waits = self.waits();
        self.waits_table("ready until running, us", &waits, text);
        self.waits_table("timer due until running", &self.waits_from_due(), text);
        self.waits_table("exit until running", &self.waits_from_exit(), text);
        for (vcpu, waits) in &waits {
            histogram(&self.vcpu_name(*vcpu), waits, text);
        }
    }

    fn waits_table(&self, title: &str, waits: &BTreeMap<u8, Vec<u64>>, text: &mut String) {
        if waits.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "\n{title:<25} {:>8} {:>10} {:>10} {:>10} {:>10}",
            "times", "least", "median", "99 %", "most"
        );
        for (vcpu, waits) in waits {
            let at = |share: usize| waits[(waits.len() - 1) * share / 100];
            let _ = writeln!(
                text,
                "  {:<23} {:>8} {:>10} {:>10} {:>10} {:>10}",
                self.vcpu_name(*vcpu),
                waits.len(),
                micros(at(0)),
                micros(at(50)),
                micros(at(99)),
                micros(at(100)),
            );
        }
    }

    /// Writes how regularly windows come.
    fn windows(&self, text: &mut String) {
        let starts = self.window_starts();
        if starts.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "\n{:<25} {:>8} {:>14} {:>14}",
            "windows", "starts", "least gap us", "most gap us"
        );
        for (vcpu, starts) in starts {
            let gaps = || starts.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
            let shown = |gap: Option<u64>| gap.map_or("-".to_owned(), |gap| micros(self.duration(gap)));
            let _ = writeln!(
                text,
                "  {:<23} {:>8} {:>14} {:>14}",
                self.vcpu_name(vcpu),
                starts.len(),
                shown(gaps().min()),
                shown(gaps().max()),
            );
        }
    }

    fn budgets(&self, text: &mut String) {
        let counts = self.budget_counts();
        if counts.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "\n{:<25} {:>10} {:>12} {:>16}",
            "budgets", "exhausted", "replenished", "deadlines missed"
        );
        for (vcpu, [exhausted, replenished, missed]) in counts {
            let name = self.vcpu_name(vcpu);
            let _ = writeln!(
                text,
                "  {name:<23} {exhausted:>10} {replenished:>12} {missed:>16}"
            );
        }
    }

    /// Writes the events in the lives of partitions.
    fn life(&self, text: &mut String) {
        let lines: Vec<String> = self
            .life_events()
            .iter()
            .map(|(time, what)| format!("  {} {what}\n", seconds(*time)))
            .collect();
        if lines.is_empty() {
            return;
        }
        text.push_str("\nevents\n");
        text.extend(lines.iter().take(LISTED).map(String::as_str));
        if lines.len() > LISTED {
            let _ = writeln!(text, "  and {} more", lines.len() - LISTED);
        }
    }
}

/// Writes sorted waits in nanoseconds by powers of two.
fn histogram(name: &str, waits: &[u64], text: &mut String) {
    let class = |wait: &u64| wait.checked_ilog2().map_or(0, |log| log + 1);
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for wait in waits {
        *counts.entry(class(wait)).or_default() += 1;
    }
    let most = counts.values().copied().max().unwrap_or(1);
    let _ = writeln!(text, "\n  {name}: ready until running");
    for (class, count) in counts {
        let below = 1_u64
            .checked_shl(class)
            .map_or("more".to_owned(), |limit| format!("< {limit} ns"));
        let bar = "#".repeat((count * BAR).div_ceil(most) as usize);
        let _ = writeln!(text, "  {below:>20} {count:>9} {bar}");
    }
}

fn micros(nanoseconds: u64) -> String {
    format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}

fn seconds(nanoseconds: u64) -> String {
    format!(
        "{}.{:06}",
        nanoseconds / 1_000_000_000,
        nanoseconds / 1000 % 1_000_000
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use bulkhead_abi::trace::Event;
    use bulkhead_abi::trace::Record;

    fn line<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
        let line = text.lines().find(|line| line.trim_start().starts_with(start));
        line.unwrap_or_else(|| panic!("no `{start}` in\n{text}"))
            .split_whitespace()
            .collect()
    }

    #[test]
    fn shares_exits_and_waits_are_those_of_the_trace() {
        let mut trace = sample(9);
        trace.exits = vec![[9, 0, 852, 0, 9, 0, 0]; trace.vcpus.len()];
        let counted = trace.report();
        let text = sample(9).report();
        let exits = "control            870         9       0     852       0       9       0       0\n";
        assert!(counted.contains(exits), "{counted}");
        assert_eq!(
            line(&text, "control "),
            ["control", "9.87%", "9", "0", "10.000", "90.000"]
        );
        assert_eq!(
            line(&text, "idle "),
            ["idle", "0.00%", "0", "-", "0.000", "0.000"]
        );
        assert!(text.contains("control                 idle 9\n"), "{text}");
        assert!(text.contains("noise                   wake 9\n"), "{text}");
        let waits = text
            .lines()
            .rfind(|line| line.starts_with("  control  "))
            .unwrap();
        let waits: Vec<&str> = waits.split_whitespace().collect();
        assert_eq!(waits, ["control", "9", "2.000", "2.000", "2.000", "2.000"]);
        assert!(
            text.contains(&format!("< 2048 ns         9 {}", "#".repeat(40))),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn a_timer_is_told_from_the_time_at_which_it_was_due() {
        let mut trace = sample(3);
        assert!(!trace.report().contains("timer due"));
        for record in &mut trace.records {
            if let Event::Wake { vcpu: 0, late } = &mut record.event {
                *late = 18;
            }
        }
        let text = trace.report();
        let waits = |title: &str| {
            let rest = &text[text.find(title).unwrap()..];
            line(rest, "control ")
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(waits("ready until running, us")[2], "2.000");
        assert_eq!(
            waits("timer due until running"),
            ["control", "3", "20.000", "20.000", "20.000", "20.000"]
        );
        assert!(!text[text.find("exit until running").unwrap()..].contains("  control  "));
        assert!(trace.list(0, u64::MAX).contains("due 18.000 us before"));
    }

    #[test]
    fn an_interrupt_is_told_from_the_exit_in_which_it_was_found() {
        let mut trace = sample(3);
        for record in &mut trace.records {
            if let Event::Exit { vcpu: Some(1), .. } = record.event {
                record.time -= 7;
            }
        }
        let text = trace.report();
        let rest = &text[text.find("exit until running").unwrap()..];
        assert_eq!(
            line(rest, "control "),
            ["control", "3", "9.000", "9.000", "9.000", "9.000"]
        );
    }

    #[test]
    fn what_is_rare_is_shown_when_it_is_there() {
        let mut trace = sample(1);
        let before = trace.report();
        for absent in ["budgets", "windows", "events", "LOST"] {
            assert!(!before.contains(absent), "{before}");
        }
        let events = [
            Event::WindowStart { vcpu: 0 },
            Event::WindowStart { vcpu: 0 },
            Event::Exhausted { vcpu: 1 },
            Event::DeadlineMissed { vcpu: 1 },
            Event::State {
                partition: 1,
                state: bulkhead_abi::PartitionState::Failed,
            },
            Event::Lost { count: 5 },
        ];
        for (event, time) in events.into_iter().zip((2000..).step_by(7)) {
            trace.records.push(Record { time, pcpu: 0, event });
        }
        assert_eq!(trace.check(), Ok(()));
        let text = trace.report();
        assert_eq!(
            line(&text, "5 records"),
            [
                "5",
                "records",
                "are",
                "LOST:",
                "what",
                "follows",
                "is",
                "incomplete"
            ]
        );
        assert!(text.contains("0.001028 noise failed"), "{text}");
        assert!(
            text.contains("noise                            1            0                1"),
            "{text}"
        );
        assert!(
            text.contains("control                        2          7.000          7.000"),
            "{text}"
        );
    }

    #[test]
    fn a_vcpu_that_was_ready_and_never_ran_is_named() {
        let mut trace = sample(9);
        assert!(!trace.report().contains("NEVER RAN"));
        let vcpu = trace.vcpus[1];
        trace.vcpus.push(super::super::TraceVcpu { partition: 2, ..vcpu });
        trace.partitions.push("late".to_owned());
        let ready = Record {
            time: 1500,
            pcpu: 0,
            event: Event::Wake { vcpu: 2, late: 0 },
        };
        trace.records.push(ready);
        trace.records.sort_by_key(|record| record.time);
        let text = trace.report();
        let expected =
            "late was ready from 0.000500 s on and NEVER RAN; pCPU 0 was with noise 90.1 %, control 9.9 %\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn an_empty_trace_has_a_report() {
        assert_eq!(Trace::default().report(), "trace of board : no records\n");
    }
}
