// SPDX-License-Identifier: Apache-2.0
//! The effect of what a vCPU did before: how much of its budget may be gone when it becomes ready.
//!
//! A job that is complete a response after its release at the latest runs between the two. So responses that
//! are known limit the work within any interval that lies before ([`Shared::worked`]). More cannot be gone of
//! a budget.
//!
//! **Known responses** are a hypothesis: that no job took longer *so far*. If every response that follows
//! from the hypothesis is one of the hypothesis or less, then the hypothesis is never the first to be wrong,
//! and all responses are bounds. [`Responses::of`] looks for the least such hypothesis from below. If that
//! takes too long, the deadlines are the hypothesis: a set of tasks that is not in time is refused anyway.

use super::pcpu::slot_delay;
use super::{Bound, MAX_TASKS, Miss, PolicyModel, Shared, Task, slot_bounds};
use crate::{MAX_SLOTS, Ticks};

/// Rounds in which the responses may grow before the deadlines are taken.
const ROUNDS: u32 = 24;

/// The longest responses of the tasks of all slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Responses {
    tasks: [[Ticks; MAX_TASKS]; MAX_SLOTS],
    /// The longest time for which others keep each slot waiting, from when it becomes ready to when it has
    /// nothing left to do, if its budget lasts.
    delays: [Ticks; MAX_SLOTS],
}

impl Responses {
    /// Returns the responses of the tasks of all slots under a policy. If a task may be late, its deadline
    /// counts.
    #[must_use]
    pub fn of(policy: &PolicyModel, shared: Shared) -> Self {
        let unknown = Self::filled(&shared, Ticks::MAX, |task| task.deadline);
        if !policy.looks_back() {
            return unknown;
        }
        let mut known = Self::filled(&shared, 0, |task| task.wcet);
        for _ in 0..ROUNDS {
            if !known.grow(policy, shared) {
                return known;
            }
        }
        unknown
    }

    fn filled(shared: &Shared, delay: Ticks, time: impl Fn(&Task) -> Ticks) -> Self {
        let mut responses = [[0; MAX_TASKS]; MAX_SLOTS];
        for (row, vcpu) in responses.iter_mut().zip(shared.vcpus) {
            let tasks = vcpu.demand.map_or(&[][..], |demand| demand.tasks);
            for (response, task) in row.iter_mut().zip(tasks) {
                *response = time(task);
            }
        }
        Self {
            tasks: responses,
            delays: [delay; MAX_SLOTS],
        }
    }

    /// Lengthens the responses to those that follow from them. Returns whether one is longer.
    fn grow(&mut self, policy: &PolicyModel, shared: Shared) -> bool {
        let mut has_grown = false;
        for (slot, vcpu) in shared.vcpus.iter().enumerate().take(MAX_SLOTS) {
            let Some(demand) = vcpu.demand else { continue };
            let mut results: [Bound; MAX_TASKS] = [Err(Miss::NotConverged); MAX_TASKS];
            let Some(results) = results.get_mut(..demand.tasks.len()) else {
                continue;
            };
            let known = Shared {
                responses: Some(self),
                ..shared
            };
            slot_bounds(policy, known, slot, results);
            let delay = slot_delay(policy, known, slot);
            if let Some(known) = self.delays.get_mut(slot) {
                has_grown |= delay > *known;
                *known = delay.max(*known);
            }
            let own = self.tasks.get_mut(slot).into_iter().flatten();
            for ((response, result), task) in own.zip(results).zip(demand.tasks) {
                let found = result.unwrap_or(task.deadline);
                has_grown |= found > *response;
                *response = found.max(*response);
            }
        }
        has_grown
    }
}

impl Shared<'_> {
    /// Returns the tasks of `slot`, each with the longest time that it has ever taken.
    pub(super) fn known(&self, slot: usize) -> impl Iterator<Item = (&Task, Ticks)> {
        let demand = self.vcpus.get(slot).and_then(|vcpu| vcpu.demand);
        let tasks = demand.map_or(&[][..], |demand| demand.tasks);
        let responses = self.responses.and_then(|responses| responses.tasks.get(slot));
        tasks.iter().enumerate().map(move |(number, task)| {
            let known = responses.and_then(|row| row.get(number).copied());
            (task, known.unwrap_or(task.deadline))
        })
    }

    /// Returns the work of the jobs of `slot` that can be released within an interval.
    pub(super) fn released(&self, slot: usize, interval: Ticks) -> Ticks {
        let demand = self.vcpus.get(slot).and_then(|vcpu| vcpu.demand);
        demand.map_or(0, |demand| demand.requested(interval, self.overheads.per_job()))
    }

    /// Returns the longest time for which others keep `slot` waiting until it has nothing left to do. Its
    /// budget lasts all the while.
    pub(super) fn delay(&self, slot: usize) -> Ticks {
        let delays = self.responses.map(|responses| &responses.delays);
        delays
            .and_then(|delays| delays.get(slot).copied())
            .unwrap_or(Ticks::MAX)
    }

    /// Returns the most that the tasks of `slot` run in any interval of this length.
    pub(super) fn worked(&self, slot: usize, interval: Ticks) -> Ticks {
        self.known(slot).fold(0, |sum: Ticks, (task, response)| {
            let work = task.wcet.saturating_add(self.overheads.per_job());
            sum.saturating_add(ran(task.period, work, response, interval))
        })
    }

    /// Returns the most that the tasks of `slot` ask for in an interval of this length, with what may be left
    /// of jobs from before.
    pub(super) fn left_and_requested(&self, slot: usize, interval: Ticks) -> Ticks {
        self.known(slot).fold(0, |sum: Ticks, (task, response)| {
            let jobs = interval.saturating_add(response).div_ceil(task.period.max(1));
            let work = task.wcet.saturating_add(self.overheads.per_job());
            sum.saturating_add(jobs.saturating_mul(work))
        })
    }
}

/// Returns the longest time for which jobs run in an interval of this length. The first of them is complete
/// as late as can be, and the others run as early as can be.
fn ran(period: Ticks, work: Ticks, response: Ticks, interval: Ticks) -> Ticks {
    let period = period.max(1);
    let reach = interval.saturating_add(response).saturating_sub(work);
    let whole = reach.checked_div(period).unwrap_or(0);
    let rest = reach.saturating_sub(whole.saturating_mul(period));
    whole
        .saturating_mul(work)
        .saturating_add(rest.min(work))
        .min(interval)
}
