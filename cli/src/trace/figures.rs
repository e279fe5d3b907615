// SPDX-License-Identifier: Apache-2.0
//! The figures of a trace, before anybody formats them. The report for people and the report for programs
//! have the same ones.

use super::Trace;
use super::spans::{Response, Span};
use crate::log::never_ran::NeverRan;
use bulkhead_abi::trace::{Event, ExitCause};
use std::collections::{BTreeMap, BTreeSet};

/// The share of its pCPU that a vCPU got, in ticks of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The vCPU, or nothing for the time in which none ran.
    pub vcpu: Option<u8>,
    /// The time it ran.
    pub ran: u64,
    /// The time that was traced.
    pub of: u64,
    /// The number of its turns.
    pub turns: usize,
    /// The number of turns that another vCPU ended.
    pub preempted: usize,
    /// The longest turn.
    pub longest: u64,
}

impl Trace {
    /// Returns the shares of the vCPUs of a pCPU. The last one is the share in which none ran.
    #[must_use]
    pub fn shares_of(&self, pcpu: u8) -> Vec<Share> {
        let spans = self.spans(pcpu);
        let of = spans.iter().map(Span::length).sum();
        let numbers = self.vcpus.iter().zip(0_u8..);
        let own = numbers
            .filter(|(vcpu, _)| vcpu.pcpu == pcpu)
            .map(|(_, number)| Some(number));
        let share = |vcpu| {
            let turns = || spans.iter().filter(move |span| span.vcpu == vcpu);
            Share {
                vcpu,
                ran: turns().map(Span::length).sum(),
                of,
                turns: turns().count(),
                preempted: turns().filter(|span| span.preempted).count(),
                longest: turns().map(Span::length).max().unwrap_or(0),
            }
        };
        own.chain([None]).map(share).collect()
    }

    /// Counts the exits of each vCPU, and those without a vCPU, by their causes.
    #[must_use]
    pub fn exit_counts(&self) -> BTreeMap<Option<u8>, BTreeMap<ExitCause, u64>> {
        let mut counts: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for record in &self.records {
            if let Event::Exit { vcpu, cause, .. } = record.event {
                *counts.entry(vcpu).or_default().entry(cause).or_default() += 1;
            }
        }
        counts
    }

    /// Returns each vCPU's waits from ready to running, in nanoseconds, the shortest first. A vCPU counts as
    /// ready once the hypervisor has noticed. No list is empty.
    #[must_use]
    pub fn waits(&self) -> BTreeMap<u8, Vec<u64>> {
        self.sorted(|response| Some(response.woken))
    }

    /// Returns each vCPU's waits from the time at which its timer was due to running, as [`Trace::waits`]
    /// does.
    #[must_use]
    pub fn waits_from_due(&self) -> BTreeMap<u8, Vec<u64>> {
        self.sorted(|response| response.due)
    }

    /// Returns each vCPU's waits from the beginning of the exit in which an interrupt or a message for it was
    /// found to running, as [`Trace::waits`] does. No hardware tells when an interrupt arrived. It was not
    /// there when the exit began, or was the reason for the exit. So no wait was longer than this one and the
    /// entry into the hypervisor.
    #[must_use]
    pub fn waits_from_exit(&self) -> BTreeMap<u8, Vec<u64>> {
        self.sorted(|response| response.exit)
    }

    /// Returns the times from a moment to running, by vCPU, the shortest first.
    fn sorted(&self, from: impl Fn(&Response) -> Option<u64>) -> BTreeMap<u8, Vec<u64>> {
        let mut waits: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
        for response in self.responses() {
            if let Some(from) = from(&response) {
                let wait = self.duration(response.ran.saturating_sub(from));
                waits.entry(response.vcpu).or_default().push(wait);
            }
        }
        waits.values_mut().for_each(|waits| waits.sort_unstable());
        waits
    }

    /// Returns the vCPUs that were ready and never ran, as far as there are records.
    #[must_use]
    pub fn never_ran(&self) -> Vec<NeverRan> {
        let mut ready: BTreeMap<u8, u64> = BTreeMap::new();
        let mut ran = BTreeSet::new();
        for record in &self.records {
            match record.event {
                Event::Wake { vcpu, .. } => _ = ready.entry(vcpu).or_insert(record.time),
                Event::Switch { from, to, .. } => ran.extend([from, to].into_iter().flatten()),
                _ => {}
            }
        }
        let waiting = ready.into_iter().filter(|(vcpu, _)| !ran.contains(vcpu));
        let waiting = waiting.filter_map(|(vcpu, since)| {
            let pcpu = self.vcpus.get(usize::from(vcpu))?.pcpu;
            let shares = self.shares_of(pcpu);
            let of = shares.first().map_or(0, |share| self.duration(share.of));
            let name = |share: &Share| {
                share
                    .vcpu
                    .map_or("nobody".to_owned(), |vcpu| self.vcpu_name(vcpu))
            };
            let had = shares
                .iter()
                .map(|share| (name(share), self.duration(share.ran)))
                .collect();
            let since = Some(self.nanoseconds(since));
            Some(NeverRan::new(self.vcpu_name(vcpu), since, pcpu.into(), had, of))
        });
        waiting.collect()
    }

    /// Returns the starts of each vCPU's windows, in ticks.
    #[must_use]
    pub fn window_starts(&self) -> BTreeMap<u8, Vec<u64>> {
        let mut starts: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
        for record in &self.records {
            if let Event::WindowStart { vcpu } = record.event {
                starts.entry(vcpu).or_default().push(record.time);
            }
        }
        starts
    }

    /// Counts, for each vCPU that has any: budgets used up, budgets filled again, deadlines missed.
    #[must_use]
    pub fn budget_counts(&self) -> BTreeMap<u8, [u64; 3]> {
        let mut counts: BTreeMap<u8, [u64; 3]> = BTreeMap::new();
        for record in &self.records {
            let (vcpu, which) = match record.event {
                Event::Exhausted { vcpu } => (vcpu, 0),
                Event::Replenished { vcpu } => (vcpu, 1),
                Event::DeadlineMissed { vcpu } => (vcpu, 2),
                _ => continue,
            };
            counts.entry(vcpu).or_default()[which] += 1;
        }
        counts
    }

    /// Returns the events in the lives of partitions: nanoseconds after boot, and the event in words.
    #[must_use]
    pub fn life_events(&self) -> Vec<(u64, String)> {
        let mut events = Vec::new();
        for record in &self.records {
            let what = match record.event {
                Event::State { partition, state } => {
                    format!("{} {}", self.partition_name(partition), state.name())
                }
                Event::Health { partition, class } => {
                    let name = self.partition_name(partition);
                    format!("{name} health event: {}", class.name())
                }
                Event::Schedule { schedule } => format!("pCPU {} schedule {schedule}", record.pcpu),
                Event::Lost { count } => format!("pCPU {} {count} records lost", record.pcpu),
                _ => continue,
            };
            events.push((self.nanoseconds(record.time), what));
        }
        events
    }
}
