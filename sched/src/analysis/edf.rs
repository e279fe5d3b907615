// SPDX-License-Identifier: Apache-2.0
//! The promise of policy `edf` to a vCPU with a server: its budget by each deadline, as long as the densities
//! of all servers add up to at most one.
//!
//! Within its deadline a budget is delivered after the work that is more urgent. That is the analysis of
//! Spuri, "Analysis of Deadline Scheduled Real-Time Systems", 1996: in a stretch in which the pCPU always has
//! something at least as urgent to do, the budget is asked for at some *offset*, and the longest time is at
//! an offset at which a deadline coincides with another. The others ask in such a stretch for the least of
//! two amounts:
//!
//! - The work of their tasks in its time. If a budget can be used up, work from before may be left.
//! - The budgets with deadlines in it. A server that starts anew with every job of its only task has a
//!   budget for each period. Any other has its share of the time, Q / D, which counts in small steps.
//!
//! A vCPU may become ready when its budget has just been used up, as early as possible. It then waits for the
//! next period ([`served`](super::served)).

use super::served::Served;
use super::{HORIZON, ONE, Shared, Supply, Vcpu, ratio, releases};
use crate::{MAX_SLOTS, Server, Ticks};

/// Steps in which a share of the time counts, for each relative deadline.
const STEPS: Ticks = 16;

/// Offsets that are looked at before the deadline itself is the bound.
const OFFSETS: Ticks = 1024;

/// The supply of one slot.
#[derive(Clone, Copy, Debug)]
pub struct EdfSupply<'a> {
    shared: Shared<'a>,
    slot: usize,
    served: Served,
    own: Contender<'a>,
    /// The other vCPUs with a server, each at its slot. They are the same for every time that is looked at.
    others: [Option<Contender<'a>>; MAX_SLOTS],
    /// The longest stretch in which a server has something to do.
    busy: Ticks,
}

/// A vCPU with its server, as others see it.
#[derive(Clone, Copy, Debug)]
struct Contender<'a> {
    shared: Shared<'a>,
    slot: usize,
    vcpu: &'a Vcpu<'a>,
    server: Server,
    deadline: Ticks,
    /// The server starts anew with each job of its only task, and has this many budgets for each of them.
    budgets_per_job: Option<Ticks>,
    /// The tasks cannot use the budget up.
    is_spared: bool,
}

impl<'a> Contender<'a> {
    fn new(shared: Shared<'a>, slot: usize) -> Option<Self> {
        let vcpu = shared.vcpus.get(slot)?;
        let server = vcpu.parameters.server?;
        shared.draw_all();
        let mut contender = Self {
            shared,
            slot,
            vcpu,
            server,
            deadline: relative_deadline(vcpu)?,
            budgets_per_job: None,
            is_spared: false,
        };
        contender.budgets_per_job = contender.budgets_per_job();
        contender.is_spared = contender.budgets_per_job == Some(1) || contender.never_runs_out();
        Some(contender)
    }

    /// Returns the useful part of each budget. The switch to the vCPU is lost, and so is the overrun of the
    /// one before.
    const fn useful(&self) -> Ticks {
        self.server.budget.saturating_sub(self.shared.overheads.at_ends())
    }

    fn stolen(&self, interval: Ticks) -> Ticks {
        self.shared
            .stolen(self.slot, |_| true, interval)
            .saturating_add(self.shared.overheads.written(interval))
    }

    fn budgets_per_job(&self) -> Option<Ticks> {
        let [task] = self.vcpu.demand?.tasks else {
            return None;
        };
        let overheads = &self.shared.overheads;
        let (_, response) = self.shared.known(self.slot).next()?;
        let work = task
            .wcet
            .saturating_add(overheads.per_job())
            .saturating_add(self.stolen(response.min(task.period)))
            .saturating_add(overheads.arrival());
        // A budget that is never used up has no overrun to make up for.
        let budgets = if work <= self.server.budget {
            1
        } else {
            work.div_ceil(self.useful().max(1))
        };
        (budgets.saturating_mul(self.server.period) <= task.period).then_some(budgets)
    }

    /// Tells whether the tasks cannot use the budget up in any period. A period starts when the vCPU becomes
    /// ready. All that it has to do by the end of the period is released in the period, if no budget has been
    /// used up before. With a deadline before the end of the period, a part of the budget is lost when the
    /// vCPU becomes ready late.
    fn never_runs_out(&self) -> bool {
        let work = self.shared.released(self.slot, self.server.period);
        let taken = self
            .stolen(self.server.period)
            .saturating_add(self.shared.overheads.per_job());
        self.vcpu.demand.is_some()
            && self.deadline == self.server.period
            && work.saturating_add(taken) <= self.server.budget
    }

    /// Returns a budget with what its ends take.
    const fn with_ends(&self) -> Ticks {
        self.server.budget.saturating_add(self.shared.overheads.at_ends())
    }

    /// Returns the length of a step of [`Self::share`].
    fn step(&self) -> Ticks {
        self.deadline.div_ceil(STEPS).max(1)
    }

    /// Returns the server's share of an interval, rounded up to a whole step.
    fn share(&self, interval: Ticks) -> Ticks {
        let step = self.step();
        let steps = interval.checked_div(step).unwrap_or(0).saturating_add(1);
        let whole = u128::from(steps.saturating_mul(step)).saturating_mul(u128::from(self.with_ends()));
        u64::try_from(whole.div_ceil(u128::from(self.deadline.max(1)))).unwrap_or(Ticks::MAX)
    }

    /// Returns the most that the server has by deadlines in a stretch of this length.
    fn by_deadlines(&self, interval: Ticks) -> Ticks {
        let Some(budgets) = self.budgets_per_job else {
            return self.share(interval);
        };
        let Some(beyond) = interval.checked_sub(self.deadline) else {
            return 0;
        };
        let times = beyond
            .checked_div(self.server.period)
            .unwrap_or(0)
            .saturating_add(1);
        let each = if budgets == 1 {
            self.job().min(self.with_ends())
        } else {
            self.with_ends()
        };
        times.saturating_mul(each)
    }

    /// Returns the work of a job of the first task.
    fn job(&self) -> Ticks {
        let mut tasks = self.shared.known(self.slot);
        let per_job = self.shared.overheads.per_job();
        tasks
            .next()
            .map_or(0, |(task, _)| task.wcet.saturating_add(per_job))
    }

    /// Returns the most that the vCPU does in a stretch of this length.
    fn by_time(&self, interval: Ticks) -> Ticks {
        self.by_tasks(interval).min(self.by_budgets(interval))
    }

    /// Returns the most that the server's budgets pay for in a stretch of this length.
    fn by_budgets(&self, interval: Ticks) -> Ticks {
        if self.budgets_per_job.is_none() {
            // All of them have their deadlines at most one relative deadline after the stretch.
            return self.share(interval.saturating_add(self.deadline));
        }
        let budgets = interval.div_ceil(self.server.period.max(1));
        budgets.saturating_mul(self.with_ends())
    }

    /// Returns the most that the tasks ask for in a stretch of this length.
    fn by_tasks(&self, interval: Ticks) -> Ticks {
        let Some(demand) = self.vcpu.demand else {
            return Ticks::MAX;
        };
        if self.is_spared {
            return demand.requested(interval, self.shared.overheads.per_job());
        }
        let budgets = interval.div_ceil(self.server.period.max(1));
        let ends = budgets
            .saturating_add(1)
            .saturating_add(releases(&demand, interval))
            .saturating_mul(self.shared.overheads.at_ends());
        self.shared
            .left_and_requested(self.slot, interval)
            .saturating_add(ends)
    }

    /// Returns the most that the vCPU did before an offset, in the same stretch, if it asks for `work` there.
    fn before(&self, offset: Ticks, work: Ticks) -> Ticks {
        if let Some(budgets) = self.budgets_per_job {
            let (period, each) = if budgets == 1 {
                (
                    self.vcpu
                        .demand
                        .map_or(0, |demand| demand.tasks.first().map_or(0, |task| task.period)),
                    self.job(),
                )
            } else {
                (self.server.period, self.with_ends())
            };
            return offset.checked_div(period).unwrap_or(0).saturating_mul(each);
        }
        if offset == 0 {
            return 0;
        }
        let step = self.step();
        let up = offset
            .checked_div(step)
            .unwrap_or(0)
            .saturating_add(1)
            .saturating_mul(step);
        let rest = self.with_ends().saturating_sub(work);
        let by_share = self.share(offset).saturating_add(rest);
        self.shared.worked(self.slot, up).min(by_share).min(up)
    }

    /// Returns the distance of the offsets at which [`Self::by_deadlines`] or [`Self::before`] changes, and
    /// the first of them for a vCPU with this relative deadline.
    fn offsets(&self, deadline: Ticks, is_own: bool) -> (Ticks, Ticks) {
        let Some(budgets) = self.budgets_per_job else {
            let step = self.step();
            let into = deadline.checked_rem(step).unwrap_or(0);
            return if is_own {
                (step, 0)
            } else {
                (step, step.saturating_sub(into))
            };
        };
        let period = self.server.period.max(1);
        if is_own {
            let task = self.vcpu.demand.and_then(|demand| demand.tasks.first());
            return match task {
                Some(task) if budgets == 1 => (task.period.max(1), 0),
                _ => (period, 0),
            };
        }
        match self.deadline.checked_sub(deadline) {
            Some(first) => (period, first),
            None => {
                let beyond = deadline.saturating_sub(self.deadline);
                let into = beyond.checked_rem(period).unwrap_or(0);
                (period, period.saturating_sub(into))
            }
        }
    }
}

impl<'a> EdfSupply<'a> {
    /// Returns the supply of `slot`, or `None` if it has no server, or if the pCPU is overloaded, or if all
    /// steps are used.
    #[must_use]
    pub fn new(shared: Shared<'a>, slot: usize) -> Option<Self> {
        let own = Contender::new(shared, slot)?;
        let with_server = shared
            .vcpus
            .iter()
            .filter(|vcpu| vcpu.parameters.server.is_some());
        // The only server shares with no other.
        if density(&shared) > ONE && with_server.count() > 1 {
            return None;
        }
        let server = own.server;
        let served = Served {
            slot,
            server,
            useful: if own.is_spared {
                server.budget
            } else {
                own.useful()
            },
            wait: server.period.saturating_sub(server.budget),
            taken: own.stolen(server.period),
            is_prompt: true,
            deadline: own.deadline,
        };
        if !shared.draw_all() {
            return None;
        }
        let mut others = [None; MAX_SLOTS];
        for (number, other) in others.iter_mut().enumerate() {
            if number != slot {
                *other = Contender::new(shared, number);
            }
        }
        let mut supply = Self {
            shared,
            slot,
            served,
            own,
            others,
            busy: 0,
        };
        let step = |time| {
            let all = |sum: Ticks, one: &Contender| sum.saturating_add(one.by_time(time));
            let written = shared.overheads.written(time);
            let from = own.by_time(time).saturating_add(written);
            supply.contenders().fold(from, all)
        };
        supply.busy = shared.fixed_point(1, HORIZON, step).unwrap_or(HORIZON);
        Some(supply)
    }

    /// Returns the other vCPUs with a server.
    fn contenders(&self) -> impl Iterator<Item = &Contender<'a>> {
        self.others.iter().flatten()
    }

    /// Returns the time for `work`, at most a budget, from the start of the budget's period.
    pub(super) fn paid(&self, work: Ticks) -> Ticks {
        let useful = self.served.useful;
        let by_deadline = self
            .own
            .deadline
            .saturating_sub(useful.saturating_sub(work.min(useful)))
            .saturating_add(self.shared.overheads.written(1));
        let time = self.longest_response(work).unwrap_or(Ticks::MAX);
        time.min(by_deadline)
            .saturating_add(self.shared.overheads.under_way())
    }

    /// Returns the longest time of all offsets, or `None` if there are too many.
    fn longest_response(&self, work: Ticks) -> Option<Ticks> {
        let deadline = self.own.deadline;
        let all = || {
            let others = self.contenders().map(|other| other.offsets(deadline, false));
            others.chain([self.own.offsets(deadline, true), (HORIZON, 0)])
        };
        let count = all().fold(0, |sum: Ticks, (distance, first)| {
            let beyond = self.busy.saturating_sub(first);
            sum.saturating_add(beyond.checked_div(distance).unwrap_or(0))
        });
        if count > OFFSETS {
            return None;
        }
        let mut longest = 0;
        for (distance, first) in all() {
            let mut offset = first;
            while offset < self.busy {
                longest = longest.max(self.response(work, offset, longest)?);
                offset = offset.saturating_add(distance);
            }
        }
        Some(longest)
    }

    /// Returns the time for `work` that is asked for at an offset.
    fn response(&self, work: Ticks, offset: Ticks, at_least: Ticks) -> Option<Ticks> {
        let end = offset.saturating_add(self.own.deadline);
        let own = work.saturating_add(self.own.before(offset, work));
        let step = |time| {
            let from = own.saturating_add(self.shared.overheads.written(time));
            self.contenders().fold(from, |sum: Ticks, other| {
                sum.saturating_add(other.by_deadlines(end).min(other.by_time(time)))
            })
        };
        let from = own.max(offset.saturating_add(at_least)).max(1);
        let time = self.shared.fixed_point(from, end, step)?;
        Some(time.saturating_sub(offset))
    }
}

fn relative_deadline(vcpu: &Vcpu) -> Option<Ticks> {
    let server = vcpu.parameters.server?;
    Some(match vcpu.parameters.deadline {
        0 => server.period,
        deadline => deadline,
    })
}

/// Returns the sum of the servers' densities, with what their ends cost the others and the share of the
/// output, in parts of [`ONE`].
#[must_use]
pub fn density(shared: &Shared) -> Ticks {
    let overdrawn = shared.overheads.at_ends();
    let output = shared.overheads.output_share();
    shared.vcpus.iter().fold(output, |sum: Ticks, vcpu| {
        let one = vcpu.parameters.server.zip(relative_deadline(vcpu));
        let density = one.map_or(0, |(server, deadline)| {
            ratio(server.budget.saturating_add(overdrawn), deadline)
        });
        sum.saturating_add(density)
    })
}

impl Supply for EdfSupply<'_> {
    fn time_for(&self, work: Ticks) -> Ticks {
        if self.served.useful == 0 {
            return Ticks::MAX;
        }
        let is_whole = self.own.is_spared || self.own.budgets_per_job.is_some();
        if !is_whole {
            return self.served.time_for(&self.shared, work, |rest| self.paid(rest));
        }
        let whole = work
            .saturating_sub(1)
            .checked_div(self.served.useful)
            .unwrap_or(0);
        let rest = work.saturating_sub(whole.saturating_mul(self.served.useful));
        whole
            .saturating_mul(self.served.server.period)
            .saturating_add(self.paid(rest))
    }

    fn stolen(&self, interval: Ticks) -> Ticks {
        self.shared
            .stolen(self.slot, |_| true, interval)
            .saturating_add(self.shared.overheads.written(interval))
    }
}
