// SPDX-License-Identifier: Apache-2.0
//! Times in which a pCPU may have stood still because the emulator ran another one.
//!
//! An emulator that counts instructions runs its CPUs in turns on one clock. A trace does not show which CPU
//! had its turn, but it shows when only one CPU can have had the turn: while all others waited for an
//! interrupt. Time in which another pCPU was not waiting is excused. Time in which all others were waiting is
//! not.

use super::Trace;
use bulkhead_abi::trace::Event;

/// Times in which another pCPU was busy: nanoseconds since boot, in order, without overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TurnSlack {
    busy: Vec<(u64, u64)>,
}

impl TurnSlack {
    /// Collects the busy times of the pCPUs other than `pcpu`.
    pub fn of_others(trace: &Trace, pcpu: u8) -> Self {
        let others = (0..trace.pcpus).filter(|other| *other != pcpu);
        let mut busy: Vec<(u64, u64)> = others.flat_map(|other| busy(trace, other)).collect();
        busy.sort_unstable();
        let mut union: Vec<(u64, u64)> = Vec::new();
        for (start, end) in busy {
            match union.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => union.push((start, end)),
            }
        }
        Self { busy: union }
    }

    /// Returns the time from `due` to `now`, without the excused parts.
    pub fn lateness(&self, due: u64, now: u64) -> u64 {
        let from = self.busy.partition_point(|(_, end)| *end <= due);
        let meanwhile = self.busy.iter().skip(from).take_while(|(start, _)| *start < now);
        let excused: u64 = meanwhile
            .map(|(start, end)| (*end).min(now).saturating_sub((*start).max(due)))
            .sum();
        now.saturating_sub(due).saturating_sub(excused)
    }
}

/// Returns the times in which `pcpu` was not waiting. A pCPU waits from a switch to no vCPU until the exit
/// that ends the wait. Nothing is known before its first record and after its last one, which counts as
/// busy.
fn busy(trace: &Trace, pcpu: u8) -> Vec<(u64, u64)> {
    let mut busy = Vec::new();
    let mut since = Some(0);
    for record in trace.of_pcpu(pcpu) {
        let now = trace.nanoseconds(record.time);
        match (record.event, since) {
            (Event::Switch { to: None, .. }, Some(start)) => {
                busy.push((start, now));
                since = None;
            }
            (Event::Switch { to: None, .. }, None) => {}
            (_, None) => since = Some(now),
            _ => {}
        }
    }
    busy.extend(since.map(|start| (start, u64::MAX)));
    busy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TraceVcpu;
    use bulkhead_abi::trace::{ExitCause, Record, SwitchReason};

    /// Returns a trace in which pCPU 1 runs from 10 us to 20 us and from 50 us on, and pCPU 2 from 15 us to
    /// 30 us.
    fn trace() -> Trace {
        let exit = Event::Exit {
            vcpu: None,
            cause: ExitCause::Deadline,
            argument: 0,
        };
        let idle = Event::Switch {
            from: Some(0),
            to: None,
            why: SwitchReason::Blocked,
        };
        let events = [
            (1, 1, idle),
            (1, 2, idle),
            (10, 1, exit),
            (15, 2, exit),
            (20, 1, idle),
            (30, 2, idle),
            (50, 1, exit),
        ];
        Trace {
            hertz: 1_000_000,
            pcpus: 3,
            partitions: vec!["one".to_owned()],
            vcpus: vec![TraceVcpu {
                partition: 0,
                index: 0,
                pcpu: 1,
            }],
            records: events
                .map(|(time, pcpu, event)| Record { time, pcpu, event })
                .to_vec(),
            ..Trace::default()
        }
    }

    #[test]
    fn only_time_in_which_another_was_busy_is_excused() {
        let turn_slack = TurnSlack::of_others(&trace(), 0);
        assert_eq!(
            turn_slack.busy,
            [(0, 1_000), (10_000, 30_000), (50_000, u64::MAX)]
        );
        assert_eq!(turn_slack.lateness(2_000, 9_000), 7_000);
        assert_eq!(turn_slack.lateness(5_000, 40_000), 15_000);
        assert_eq!(turn_slack.lateness(12_000, 29_000), 0);
        assert_eq!(turn_slack.lateness(45_000, 90_000), 5_000);
        assert_eq!(turn_slack.lateness(9_000, 5_000), 0);
    }

    #[test]
    fn nobody_is_excused_by_itself_or_without_others() {
        // pCPU 0 has no record: it may have been busy all the time.
        assert_eq!(TurnSlack::of_others(&trace(), 2).lateness(2_000, 9_000), 0);
        assert_eq!(TurnSlack::default().lateness(12_000, 29_000), 17_000);
    }
}
