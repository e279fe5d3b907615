// SPDX-License-Identifier: Apache-2.0
//! The time for some work by a vCPU that has a server.
//!
//! The vCPU becomes ready a *phase* after the start of one of its server's periods. (For a sporadic server:
//! after the moment since when a piece of its budget counts as used.) Until then it has used a part of the
//! budget. If the rest is not enough, the vCPU waits for the end of the period. From then on it has a whole
//! budget in each period. Two bounds follow, and the lower one counts:
//!
//! - Nothing is known of the part used: the budget may just be gone, as early as possible in the period.
//! - The part used is limited by what the vCPU's tasks can have run in the phase
//!   ([`history`](super::history)). The longest time is at a phase at which that part stops to grow. A vCPU
//!   with a single task becomes ready with its releases. So its earlier jobs are whole periods before.

use super::Shared;
use crate::{Server, ServerKind, Ticks};

/// Phases that are looked at before only the first bound counts.
const PHASES: Ticks = 64;

/// Steps of the phases of a server whose deadline is before the end of its period.
const STEPS: Ticks = 32;

/// A vCPU with its server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub slot: usize,
    pub server: Server,
    /// The part of each budget that the hypervisor leaves.
    pub useful: Ticks,
    /// The longest time until the budget is back after it is used up.
    pub wait: Ticks,
    /// Time that the hypervisor may take of a budget that is used in part.
    pub taken: Ticks,
    /// The used part of the budget comes back at the end of its period.
    pub is_prompt: bool,
    /// The time from the start of a period in which the budget is delivered. Under `edf` a vCPU that becomes
    /// ready before the end of its period keeps its share of what is left of this time.
    pub deadline: Ticks,
}

impl Served {
    /// Returns the time for `work`. `paid` is the time for a part of a budget while the budget lasts.
    pub fn time_for(&self, shared: &Shared, work: Ticks, paid: impl Fn(Ticks) -> Ticks) -> Ticks {
        let Some(whole) = work.saturating_sub(1).checked_div(self.useful) else {
            return Ticks::MAX;
        };
        let rest = work.saturating_sub(whole.saturating_mul(self.useful));
        let periods = whole.saturating_mul(self.server.period);
        let from_gone = periods.saturating_add(self.wait).saturating_add(paid(rest));
        if !self.is_prompt || !self.has_few_phases(shared) {
            return from_gone;
        }
        let from_whole = periods.saturating_add(self.behind(whole, rest, &paid));
        if self.deadline < self.server.period {
            return self.shortened(shared, work, &paid).max(from_whole).min(from_gone);
        }
        let longest = self.phases(shared).fold(from_whole, |longest, phase| {
            longest.max(self.since(shared, phase, work, &paid))
        });
        longest.min(from_gone)
    }

    /// Returns the longest time for `work` if the vCPU becomes ready within a period whose deadline is before
    /// its end. The phases count in steps: what is used by the end of a step, from the start of the step on.
    fn shortened(&self, shared: &Shared, work: Ticks, paid: impl Fn(Ticks) -> Ticks) -> Ticks {
        let step = self.server.period.div_ceil(STEPS).max(1);
        (1..=STEPS).fold(0, |longest, number| {
            let end = number.saturating_mul(step).min(self.server.period);
            // A part of the budget is lost at some moment, and more is used from then on.
            let lost_or_used = (0..=number).fold(0, |most: Ticks, lost| {
                let lost = lost.saturating_mul(step).min(end);
                let used = self.spent(shared, end.saturating_sub(lost).saturating_add(step));
                most.max(self.share(lost).saturating_add(used))
            });
            let all = work.saturating_add(lost_or_used.min(self.useful));
            let whole = all.saturating_sub(1).checked_div(self.useful).unwrap_or(0);
            if whole == 0 {
                return longest;
            }
            let rest = all.saturating_sub(whole.saturating_mul(self.useful));
            let time = whole
                .saturating_mul(self.server.period)
                .saturating_add(paid(rest));
            longest.max(time.saturating_sub(end.saturating_sub(step)))
        })
    }

    /// Returns the budget's share of a time before the deadline.
    fn share(&self, time: Ticks) -> Ticks {
        let share = u128::from(time).saturating_mul(u128::from(self.server.budget));
        let share = share.div_ceil(u128::from(self.deadline.max(1)));
        u64::try_from(share).unwrap_or(Ticks::MAX)
    }

    /// Returns the time for the `rest` of some work in the last period that the work takes. The first budget
    /// is whole. Others keep the vCPU waiting at first, and may do so once more at the end:
    ///
    /// - A deferrable server's first period may end before the vCPU has used the budget.
    /// - A sporadic server's first piece counts from when the policy is told of the vCPU. While more
    ///   important ones run, it is not told.
    fn behind(&self, periods: Ticks, rest: Ticks, paid: impl Fn(Ticks) -> Ticks) -> Ticks {
        let once = paid(rest);
        match self.server.kind {
            _ if periods == 0 => return once,
            ServerKind::ConstantBandwidth => return once,
            ServerKind::Sporadic => return once.saturating_add(paid(1)),
            ServerKind::Deferrable => {}
        }
        let again = once.saturating_sub(rest);
        if periods == 1 {
            return once.saturating_add(again);
        }
        let at_most = paid(self.useful).saturating_sub(self.useful);
        once.saturating_add(again).max(rest.saturating_add(at_most))
    }

    /// Returns the time for `work` if the vCPU becomes ready at this phase of a period.
    fn since(&self, shared: &Shared, phase: Ticks, work: Ticks, paid: impl Fn(Ticks) -> Ticks) -> Ticks {
        let all = work.saturating_add(self.spent(shared, phase));
        let whole = all.saturating_sub(1).checked_div(self.useful).unwrap_or(0);
        if whole == 0 {
            return paid(work);
        }
        let rest = all.saturating_sub(whole.saturating_mul(self.useful));
        whole
            .saturating_mul(self.server.period)
            .saturating_add(paid(rest))
            .saturating_sub(phase)
    }

    /// Returns the part of the budget that may be used after this much of a period.
    fn spent(&self, shared: &Shared, phase: Ticks) -> Ticks {
        if !shared.draw(shared.known(self.slot).count() as u64) {
            return self.useful;
        }
        let ran = if is_single(shared, self.slot) {
            self.ran_before(shared, phase)
        } else {
            shared.worked(self.slot, phase)
        };
        if ran == 0 {
            return 0;
        }
        ran.saturating_add(self.taken).min(self.useful)
    }

    /// Returns the most that the only task has run within `phase` before a release.
    fn ran_before(&self, shared: &Shared, phase: Ticks) -> Ticks {
        shared.known(self.slot).fold(0, |sum: Ticks, (task, response)| {
            let work = task.wcet.saturating_add(shared.overheads.per_job());
            let jobs = phase
                .saturating_add(response)
                .checked_div(task.period)
                .unwrap_or(0);
            (1..=jobs).fold(sum, |sum, job| {
                let before = job.saturating_mul(task.period);
                let reach = phase.saturating_add(response).saturating_sub(before);
                sum.saturating_add(reach.min(work))
            })
        })
    }

    fn has_few_phases(&self, shared: &Shared) -> bool {
        let jobs = shared.known(self.slot).fold(0, |sum: Ticks, (task, response)| {
            let reach = self.server.period.saturating_add(response);
            sum.saturating_add(reach.checked_div(task.period).unwrap_or(Ticks::MAX))
        });
        jobs <= PHASES
    }

    /// Returns the phase before which the vCPU may have run all the while.
    fn first_phase(&self, shared: &Shared) -> Ticks {
        let period = self.server.period;
        if is_single(shared, self.slot) {
            return 0;
        }
        let phase = shared.fixed_point(1, period, |phase| self.spent(shared, phase));
        phase.map_or(period, |phase| phase.min(period))
    }

    /// Returns the phases at which the part used stops to grow, and the end of the period.
    fn phases<'s>(&self, shared: &'s Shared) -> impl Iterator<Item = Ticks> + use<'s> {
        let period = self.server.period;
        let single = is_single(shared, self.slot);
        let per_job = shared.overheads.per_job();
        let stops = shared.known(self.slot).flat_map(move |(task, response)| {
            let work = task.wcet.saturating_add(per_job);
            let reach = period.saturating_add(response);
            let jobs = reach.checked_div(task.period).unwrap_or(0);
            (0..=jobs).filter_map(move |job| {
                let later = job.saturating_mul(task.period).saturating_add(work);
                if single {
                    return later.checked_sub(response);
                }
                Some(later.saturating_add(work).saturating_sub(response).max(work))
            })
        });
        let first = self.first_phase(shared);
        let stops = stops.filter(move |phase| first <= *phase && *phase < period);
        stops.chain([first, period])
    }
}

/// Tells whether the vCPU becomes ready with the releases of one task only.
fn is_single(shared: &Shared, slot: usize) -> bool {
    shared.known(slot).count() == 1
}
