// SPDX-License-Identifier: Apache-2.0
//! The jobs of tasks: when each was released, when it ran, when it was done, and when it had to be.
//!
//! The simulator knows all of this. A board's trace knows only that a vCPU had something to do, and when it
//! had no more. So each stretch between the two counts as one job, without a deadline.

use bulkhead_abi::trace::{Event, Record};

/// One job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The tick of the release.
    pub released: u64,
    /// The tick of the deadline, if anybody knows it.
    pub deadline: Option<u64>,
    /// The tick of the end. `None`: the job was not done at the end of the chart.
    pub done: Option<u64>,
}

impl Job {
    /// Tells whether the job was not done at its deadline. A job that is not done may still be in time at
    /// the tick `end`.
    #[must_use]
    pub fn is_late(&self, end: u64) -> bool {
        self.deadline
            .is_some_and(|deadline| deadline < self.done.unwrap_or(end))
    }
}

/// The jobs of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The name of the task inside its vCPU.
    pub name: String,
    /// The number of the vCPU in the records.
    pub vcpu: u8,
    /// The jobs, in the order of their releases.
    pub jobs: Vec<Job>,
    /// The stretches in which the task ran, in order; from and to.
    pub runs: Vec<(u64, u64)>,
}

impl Task {
    /// Makes a task without jobs.
    #[must_use]
    pub const fn new(name: String, vcpu: u8) -> Self {
        Self {
            name,
            vcpu,
            jobs: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Adds a job.
    pub fn release(&mut self, at: u64, deadline: Option<u64>) {
        self.jobs.push(Job {
            released: at,
            deadline,
            done: None,
        });
    }

    /// Adds a stretch in which the task ran up to `now`.
    pub fn work(&mut self, passed: u64, now: u64) {
        let start = now.saturating_sub(passed);
        match self.runs.last_mut() {
            Some((_, end)) if *end == start => *end = now,
            _ => self.runs.push((start, now)),
        }
    }

    /// Ends the oldest job that is not done.
    pub fn complete(&mut self, now: u64) {
        let first = self.jobs.partition_point(|job| job.done.is_some());
        if let Some(job) = self.jobs.get_mut(first) {
            job.done = Some(now);
        }
    }
}

/// Returns the jobs of a vCPU that its records tell of. The stretches in which it ran are the ones of its
/// lane.
pub(super) fn of_records<'a>(records: impl Iterator<Item = &'a Record>, vcpu: u8) -> Task {
    let mut task = Task::new("from ready to waiting".to_owned(), vcpu);
    for record in records {
        let is_busy = task.jobs.last().is_some_and(|job| job.done.is_none());
        match record.event {
            Event::Wake { vcpu: who, .. } if who == vcpu && !is_busy => task.release(record.time, None),
            Event::Block { vcpu: who, .. } if who == vcpu => task.complete(record.time),
            // The trace does not say what is missing.
            Event::Lost { .. } => task.jobs.retain(|job| job.done.is_some()),
            _ => {}
        }
    }
    task
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_abi::trace::BlockReason;

    #[test]
    fn the_oldest_job_ends_first_and_stretches_grow() {
        let mut task = Task::new("loop".to_owned(), 0);
        task.release(10, Some(20));
        task.release(15, Some(25));
        task.work(2, 12);
        task.work(3, 15);
        task.work(1, 18);
        task.complete(21);
        let job = |released, deadline, done| Job {
            released,
            deadline: Some(deadline),
            done,
        };
        assert_eq!(task.jobs, [job(10, 20, Some(21)), job(15, 25, None)]);
        assert_eq!(task.runs, [(10, 15), (17, 18)]);
        let late: Vec<bool> = task.jobs.iter().map(|job| job.is_late(25)).collect();
        assert_eq!(late, [true, false]);
        assert!(task.jobs[1].is_late(26));
    }

    #[test]
    fn a_job_of_a_trace_lasts_from_ready_to_waiting() {
        let record = |time, event| Record { time, pcpu: 0, event };
        let block = |vcpu| Event::Block {
            vcpu,
            why: BlockReason::Idle,
        };
        let records = [
            record(1, block(3)),
            record(5, Event::Wake { vcpu: 3, late: 0 }),
            record(6, Event::Wake { vcpu: 3, late: 0 }),
            record(7, block(2)),
            record(9, block(3)),
            record(11, Event::Wake { vcpu: 3, late: 0 }),
            record(12, Event::Lost { count: 1 }),
        ];
        let job = Job {
            released: 5,
            deadline: None,
            done: Some(9),
        };
        assert_eq!(of_records(records.iter(), 3).jobs, [job]);
    }
}
