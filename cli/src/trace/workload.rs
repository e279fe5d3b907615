// SPDX-License-Identifier: Apache-2.0
//! The workload that a manifest gives its vCPUs, compared with the trace of their execution.
//!
//! The policy alone predicts the running vCPU, if it is told which vCPUs are ready. The workload of the
//! manifest predicts which vCPUs are ready: a job is released at its time, and its vCPU wakes up as soon as
//! anybody may notice. That is at once if the decision in force depends on the vCPU, and at the next decision
//! otherwise. The vCPU blocks when it ran for as long as its jobs take. Nothing is predicted before the first
//! release: until then the guest starts.
//!
//! Releases of kind `sporadic` and `interrupt` are left to chance. Only their least distance is known, so a
//! wake-up can be too early but not too late.

use super::micros;
use super::turn_slack::TurnSlack;
use bulkhead_sched::simulate::{Pattern, Source};

/// A workload of one vCPU.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    works: Vec<Work>,
    /// The time from which everything is predicted.
    from: u64,
    /// The release of the oldest job that is not noticed yet.
    oldest: Option<u64>,
    /// The least and the most that the pending jobs take.
    pending: (u64, u64),
    /// The time that the vCPU ran since it woke up, and the part of that time that cannot have been another
    /// pCPU's turn.
    ran: u64,
    ran_surely: u64,
    running_since: Option<u64>,
    is_awake: bool,
    /// The vCPU is done with its work to start.
    is_started: bool,
    /// The time since which the decision in force depends on the vCPU.
    noticed_since: Option<u64>,
    /// Jobs that were released and done as declared.
    pub done: u64,
    released: u64,
}

/// A source of jobs and its next release.
#[derive(Clone, Debug)]
struct Work {
    source: Source,
    next: u64,
}

impl Work {
    const fn is_endless(&self) -> bool {
        matches!(self.source.pattern, Pattern::AlwaysReady)
    }

    const fn is_by_chance(&self) -> bool {
        matches!(self.source.pattern, Pattern::Sporadic(_))
    }

    const fn jobs(&self) -> u64 {
        match self.source.pattern {
            Pattern::Burst(count) => count as u64,
            _ => 1,
        }
    }
}

impl Workload {
    pub fn new(sources: impl Iterator<Item = Source>) -> Self {
        let work = |source: Source| Work {
            source,
            next: source.first,
        };
        let works: Vec<Work> = sources.map(work).collect();
        Self {
            from: works.iter().map(|work| work.source.first).max().unwrap_or(0),
            works,
            oldest: None,
            pending: (0, 0),
            ran: 0,
            ran_surely: 0,
            running_since: None,
            is_awake: false,
            is_started: false,
            noticed_since: None,
            done: 0,
            released: 0,
        }
    }

    /// Tells whether the vCPU has jobs, and is not just always ready.
    pub fn has_jobs(&self) -> bool {
        !self.works.iter().any(Work::is_endless)
    }

    /// Records whether the decision in force depends on the vCPU from now on.
    pub fn notice(&mut self, is_interesting: bool, now: u64) {
        self.noticed_since = match (is_interesting, self.noticed_since) {
            (true, None) => Some(now),
            (true, since) => since,
            (false, _) => None,
        };
    }

    /// Records whether the vCPU runs from now on.
    pub fn runs(&mut self, runs: bool, now: u64, turn_slack: &TurnSlack) {
        if let Some(since) = self.running_since.take() {
            self.ran += now.saturating_sub(since);
            self.ran_surely += turn_slack.lateness(since, now);
        }
        self.running_since = runs.then_some(now);
    }

    /// Checks that no release was missed by `now`.
    pub fn check(&mut self, now: u64, overhead: u64, turn_slack: &TurnSlack) -> Result<(), String> {
        if self.is_awake || now < self.from {
            return Ok(());
        }
        self.release(now.saturating_sub(overhead));
        if let (Some(release), Some(since)) = (self.oldest, self.noticed_since)
            && turn_slack.lateness(release.max(since), now) > overhead
        {
            return Err(format!(
                "the job released at {} us did not wake it",
                micros(release)
            ));
        }
        Ok(())
    }

    pub fn woken(&mut self, now: u64, slack: u64) -> Result<(), String> {
        if self.is_awake {
            return Ok(());
        }
        self.is_awake = true;
        (self.ran, self.ran_surely) = (0, 0);
        if now < self.from {
            return Ok(());
        }
        self.release(now.saturating_add(slack));
        for work in self.works.iter_mut().filter(|work| work.is_by_chance()) {
            if self.oldest.is_none() && work.next <= now.saturating_add(slack) {
                self.oldest = Some(now);
                self.released += 1;
                self.pending.0 += work.source.shortest;
                self.pending.1 += work.source.task.wcet;
                work.next = now.saturating_add(work.source.task.period);
            }
        }
        let is_endless = self.works.iter().any(Work::is_endless);
        if self.oldest.take().is_some() || is_endless {
            Ok(())
        } else {
            Err("wakes up, but its workload has no job then".to_owned())
        }
    }

    pub fn blocked(&mut self, now: u64, overhead: u64, turn_slack: &TurnSlack) -> Result<(), String> {
        self.runs(false, now, turn_slack);
        self.is_awake = false;
        self.release(now);
        self.oldest = None;
        let (least, most) = std::mem::take(&mut self.pending);
        let jobs = std::mem::take(&mut self.released);
        if now < self.from {
            return Ok(());
        }
        if self.works.iter().any(Work::is_endless) {
            return Err("has nothing to do, but its workload is never done".to_owned());
        }
        if !std::mem::replace(&mut self.is_started, true) {
            return Ok(());
        }
        if self.ran_surely > most.saturating_add(overhead) || self.ran.saturating_add(overhead) < least {
            return Err(format!(
                "ran for {} us, its workload has {} to {} us",
                micros(self.ran),
                micros(least),
                micros(most)
            ));
        }
        self.done += jobs;
        Ok(())
    }

    /// Releases the jobs up to `now`.
    fn release(&mut self, now: u64) {
        for work in &mut self.works {
            if work.is_by_chance() || work.is_endless() {
                continue;
            }
            // A period is at least a tick.
            while work.next <= now {
                self.oldest = Some(self.oldest.map_or(work.next, |oldest| oldest.min(work.next)));
                let jobs = work.jobs();
                self.released += jobs;
                self.pending.0 += jobs * work.source.shortest;
                self.pending.1 += jobs * work.source.task.wcet;
                work.next = work.next.saturating_add(work.source.task.period.max(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Trace;
    use super::super::replay::{Agreement, Tolerance, compare};
    use super::super::tests::sample;
    use super::*;
    use bulkhead_abi::PartitionState;
    use bulkhead_abi::trace::{Event, Record};
    use bulkhead_sched::analysis::Task;
    use bulkhead_sched::{AnyPolicy, FixedPriorityParameters, Slot, VcpuParameters};

    const fn source(slot: u8, period: u64, shortest: u64, wcet: u64, pattern: Pattern) -> Source {
        Source {
            first: 200_000,
            shortest,
            ..Source::new(Slot(slot), Task::new(period, wcet), pattern)
        }
    }

    /// The work of `control` in [`sample`]: it runs for 10 us every 100 us.
    const CONTROL: Source = source(0, 100_000, 10_000, 10_000, Pattern::Periodic);
    const NOISE: Source = source(1, 1, 1, 1, Pattern::AlwaysReady);

    fn hold(trace: &Trace, sources: &[Source]) -> Result<Agreement, String> {
        let vcpus = [9, 1].map(|priority| VcpuParameters {
            priority,
            ..VcpuParameters::default()
        });
        let parameters = FixedPriorityParameters { quantum: 1_000_000 };
        let policy = AnyPolicy::fixed_priority(&vcpus, parameters).unwrap();
        let tolerance = Tolerance {
            overhead: 2_000,
            turns: false,
        };
        let of_slot = |slot: u8| {
            let own: Vec<Source> = sources
                .iter()
                .filter(|source| source.slot.0 == slot)
                .copied()
                .collect();
            (!own.is_empty()).then(|| Workload::new(own.into_iter()))
        };
        compare(trace, 0, policy, tolerance, (0..2).map(of_slot).collect())
    }

    #[test]
    fn what_is_done_as_declared_agrees_from_the_second_job_on() {
        let agreement = hold(&sample(20), &[CONTROL, NOISE]).unwrap();
        // The job at 100 us is before the first that is declared, and the job at 200 us is the first.
        assert_eq!((agreement.switches, agreement.jobs), (41, 18));
        let mut half = CONTROL;
        (half.shortest, half.task.wcet) = (5_000, 5_000);
        assert_eq!(hold(&sample(20), &[half, half]).unwrap().jobs, 36);
        let bursts = source(0, 100_000, 2_000, 5_000, Pattern::Burst(3));
        assert_eq!(hold(&sample(20), &[bursts]).unwrap().jobs, 54);
    }

    #[test]
    fn another_period_phase_or_execution_time_is_a_difference() {
        let differs = |source: Source, why: &str| {
            let error = hold(&sample(20), &[source]).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        let control = |period, shortest, wcet| source(0, period, shortest, wcet, Pattern::Periodic);
        differs(
            control(50_000, 10_000, 10_000),
            "control: the job released at 250.000 us did not wake it",
        );
        differs(
            control(200_000, 10_000, 10_000),
            "control: wakes up, but its workload has no job then",
        );
        differs(control(99_000, 10_000, 10_000), "did not wake it");
        differs(control(103_000, 10_000, 10_000), "has no job then");
        let late = Source {
            first: 210_000,
            ..CONTROL
        };
        differs(late, "has no job then");
        differs(
            control(100_000, 1_000, 7_000),
            "control: ran for 10.000 us, its workload has 1.000 to 7.000 us",
        );
        differs(control(100_000, 13_000, 20_000), "ran for 10.000 us");
        differs(
            source(0, 1, 1, 1, Pattern::AlwaysReady),
            "its workload is never done",
        );
    }

    #[test]
    fn a_job_that_is_missing_is_missed() {
        let mut trace = sample(20);
        trace
            .records
            .retain(|record| !(1600..1700).contains(&record.time));
        let error = hold(&trace, &[CONTROL]).unwrap_err();
        assert!(
            error.contains("the job released at 600.000 us did not wake it"),
            "{error}"
        );
        assert!(hold(&trace, &[NOISE]).is_ok());
    }

    #[test]
    fn of_what_is_left_to_chance_the_least_distance_is_known() {
        let chance = |period| source(0, period, 10_000, 10_000, Pattern::Sporadic(50_000));
        assert_eq!(hold(&sample(20), &[chance(90_000)]).unwrap().jobs, 18);
        let error = hold(&sample(20), &[chance(110_000)]).unwrap_err();
        assert!(error.contains("has no job then"), "{error}");
    }

    #[test]
    fn a_partition_that_is_stopped_does_no_more_of_it() {
        let mut trace = sample(20);
        trace.records.retain(|record| record.time < 1600);
        trace.records.push(Record {
            time: 1600,
            pcpu: 0,
            event: Event::State {
                partition: 0,
                state: PartitionState::Stopping,
            },
        });
        trace.records.push(Record {
            time: 2000,
            pcpu: 0,
            event: Event::Schedule { schedule: 0 },
        });
        assert_eq!(hold(&trace, &[CONTROL]).unwrap().jobs, 3);
    }
}
