// SPDX-License-Identifier: Apache-2.0
//! The time that priorities leave a vCPU of the supply of its group. The group is the pCPU under
//! `fixed-priority`, a partition in its windows under `arinc653`, a time domain under `domains`.
//!
//! A vCPU waits for the vCPUs of its group above it, for its equals, and for its own budget.
//!
//! - Those above it without a server take all releases of the declared tasks. Those with a server take its
//!   budget once per period. A deferrable server can carry over one budget from the period before (back to
//!   back).
//! - Equals take turns. There are two ways to bound them, each valid alone ([`Sharing`]): all their demand
//!   comes first, or a turn of each for each turn of one's own. The caller takes the better of the two
//!   results. It would be unsound to mix the two within one busy interval, since they are about intervals
//!   with different beginnings.
//! - One's own server: the budget may just have been used up, as early as possible in its period. From then
//!   on each budget comes as late in its period as those above allow.
//!
//! A server counts as none if its declared tasks cannot use it up, all of them being in time.

use super::served::Served;
use super::{HORIZON, ONE, Shared, Supply, Vcpu, budgets, ratio, releases};
use crate::{Server, ServerKind, SlotSet, Ticks};

/// Activations within a period up to which no piece of a sporadic budget comes back later than it might.
const PIECES: Ticks = 4;

/// The way in which the equals of a vCPU are bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Equals count as if they were more important.
    Demand,
    /// A turn of each for each turn of one's own.
    Turns,
}

/// The place of a vCPU among others.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// The slots that share the supply, the vCPU itself among them.
    pub group: SlotSet,
    /// Turn among equals.
    pub quantum: Ticks,
    /// The way in which equals are bounded.
    pub sharing: Sharing,
    /// True if the policy has budgets for vCPUs.
    pub has_servers: bool,
}

/// The supply of one slot, out of what `given` supplies to its group.
#[derive(Clone, Copy, Debug)]
pub struct PrioritySupply<'a, S> {
    shared: Shared<'a>,
    given: S,
    level: Level,
    slot: usize,
    above: SlotSet,
    /// The slots above that take turns with others.
    sharing_above: SlotSet,
    equals: SlotSet,
    /// Unless it can never run out.
    server: Option<Served>,
}

impl<'a, S: Supply> PrioritySupply<'a, S> {
    /// Returns the supply of `slot`, or `None` if there is no such slot.
    #[must_use]
    pub fn new(shared: Shared<'a>, slot: usize, level: Level, given: S) -> Option<Self> {
        if !shared.draw_all() {
            return None;
        }
        let own = shared.vcpus.get(slot)?;
        let priority = own.parameters.priority;
        let group = |set: SlotSet| SlotSet(set.0 & level.group.0);
        let is_shared = |wanted: u8| {
            let members = shared.in_slots(level.group);
            members.filter(|vcpu| vcpu.parameters.priority == wanted).count() > 1
        };
        let mut supply = Self {
            shared,
            given,
            level,
            slot,
            above: group(shared.slots(slot, |other| other.priority > priority)),
            sharing_above: group(shared.slots(slot, |other| {
                other.priority > priority && is_shared(other.priority)
            })),
            equals: group(shared.slots(slot, |other| other.priority == priority)),
            server: None,
        };
        supply.server = supply
            .binding_server(slot, own)
            .map(|server| supply.served(slot, own, server));
        Some(supply)
    }

    fn served(&self, slot: usize, own: &Vcpu, server: Server) -> Served {
        let jobs = own
            .demand
            .map_or(Ticks::MAX, |demand| releases(&demand, server.period));
        let is_deferrable = server.kind == ServerKind::Deferrable;
        Served {
            slot,
            server,
            // The switch to the vCPU is lost from each budget, and so is the overrun of the one before.
            useful: server.budget.saturating_sub(self.shared.overheads.at_ends()),
            wait: if is_deferrable || jobs < PIECES {
                server.period.saturating_sub(server.budget)
            } else {
                server.period
            },
            taken: self.taken(slot, server),
            is_prompt: is_deferrable || jobs == 1,
            deadline: server.period,
        }
    }

    /// Returns the time that the hypervisor may take of a budget: in all of the period, or while each of the
    /// jobs is under way that can be in it.
    fn taken(&self, slot: usize, server: Server) -> Ticks {
        let in_jobs = self.shared.known(slot).fold(0, |sum: Ticks, (task, response)| {
            let reach = server.period.saturating_add(response);
            let jobs = reach.div_ceil(task.period.max(1));
            sum.saturating_add(jobs.saturating_mul(self.stolen_from(slot, response)))
        });
        let own = self.shared.vcpus.get(slot).and_then(|vcpu| vcpu.demand);
        let all = self.stolen_from(slot, server.period);
        own.map_or(all, |_| in_jobs.min(all))
    }

    /// Returns the time that the hypervisor takes from the vCPU in `slot` in an interval of this length.
    fn stolen_from(&self, slot: usize, interval: Ticks) -> Ticks {
        let own = self.shared.vcpus.get(slot);
        let priority = own.map_or(0, |vcpu| vcpu.parameters.priority);
        self.shared
            .stolen(slot, |other| other.priority > priority, interval)
            .saturating_add(self.given.stolen(interval))
    }

    /// Returns how late a budget can come back that is enough for all that can be released within a period:
    /// the longest time from when it is used up.
    ///
    /// *Deferrable.* From when the vCPU became ready to the end of a period, it has done all that it has
    /// been asked for, but for the delay by others. A period later there is new work. So when the budget of
    /// the next period is used up, there is at most the delay to go to its end. The same holds from each
    /// period to the next, because each used up a whole budget.
    ///
    /// *Sporadic.* A piece comes back a period after the policy was told that the vCPU is ready (`told`: at
    /// most so late). If more pieces are used than the queue holds, then two jobs are so late. The pieces of
    /// the others are joined, and come back later by as much.
    fn lateness(&self, slot: usize, server: Server, told: Ticks) -> Option<Ticks> {
        let demand = self.shared.vcpus.get(slot)?.demand?;
        if server.kind == ServerKind::Deferrable {
            return Some(self.shared.delay(slot)).filter(|delay| *delay != Ticks::MAX);
        }
        let jobs = releases(&demand, server.period);
        if told == 0 && jobs < PIECES {
            return Some(0);
        }
        let is_soon = told.saturating_mul(jobs) < server.period;
        (jobs <= 2 && is_soon).then(|| told.saturating_mul(jobs))
    }

    /// Returns the vCPU's server, if its tasks can use it up.
    fn binding_server(&self, slot: usize, vcpu: &Vcpu) -> Option<Server> {
        let server = vcpu
            .parameters
            .server
            .filter(|server| self.level.has_servers && server.budget < server.period)?;
        let Some(demand) = vcpu.demand else {
            return Some(server);
        };
        let per_job = self.per_job();
        let by_jobs = demand.tasks.iter().fold(0, |sum: Ticks, task| {
            let reach = server.period.saturating_add(task.deadline);
            let jobs = reach.div_ceil(task.period.max(1));
            sum.saturating_add(jobs.saturating_mul(task.wcet.saturating_add(per_job)))
        });
        let by_history = match server.kind {
            ServerKind::Deferrable => self.shared.worked(slot, server.period),
            ServerKind::Sporadic | ServerKind::ConstantBandwidth => Ticks::MAX,
        };
        let late = self.lateness(slot, server, self.shared.delay(slot));
        let released = self.shared.released(slot, server.period);
        let by_lateness = late.map_or(Ticks::MAX, |late| released.saturating_add(late));
        let work = by_jobs.min(by_history).min(by_lateness);
        let taken = self.taken(slot, server).saturating_add(per_job);
        (work.saturating_add(taken) > server.budget).then_some(server)
    }

    const fn event(&self) -> Ticks {
        self.shared.overheads.event()
    }

    const fn per_job(&self) -> Ticks {
        self.shared.overheads.per_job()
    }

    /// Returns the most that the vCPU in `slot` takes in an interval of this length, with the cost of its
    /// comings and goings.
    fn interference(&self, slot: usize, vcpu: &Vcpu, interval: Ticks) -> Ticks {
        let per_job = self.per_job();
        match (self.binding_server(slot, vcpu), vcpu.demand) {
            (None, None) => Ticks::MAX,
            (None, Some(demand)) => demand.requested(interval, per_job),
            (Some(server), demand) => {
                let budgets = budgets(server, interval);
                let each = server.budget.saturating_add(self.shared.overheads.excess());
                let paid = budgets.saturating_mul(each);
                let Some(demand) = demand else {
                    // The cost of its comings and goings beyond its budget is in [`Supply::stolen`].
                    return paid.saturating_add(budgets.saturating_mul(per_job));
                };
                // Each can also have been released before the interval.
                let jobs = releases(&demand, interval).saturating_add(demand.tasks.len() as Ticks);
                let by_budget = paid.saturating_add(jobs.saturating_mul(per_job));
                let by_demand = self
                    .shared
                    .left_and_requested(slot, interval)
                    .saturating_add(budgets.saturating_mul(self.shared.overheads.excess()));
                by_budget
                    .min(by_demand)
                    .saturating_add(budgets.saturating_mul(per_job))
            }
        }
    }

    fn of(&self, slots: SlotSet, interval: Ticks) -> Ticks {
        self.shared.numbered(slots).fold(0, |sum: Ticks, (slot, vcpu)| {
            sum.saturating_add(self.interference(slot, vcpu, interval))
        })
    }

    /// Turns that `work` needs: of each, the switch to it is lost.
    fn turns(&self, work: Ticks) -> Ticks {
        let useful = self.level.quantum.saturating_sub(self.event()).max(1);
        work.div_ceil(useful)
    }

    /// Returns the time that those above take in an interval of this length.
    fn above(&self, interval: Ticks) -> Ticks {
        let taken = self.of(self.above, interval);
        let count = Ticks::from(self.sharing_above.0.count_ones());
        if count == 0 {
            return taken;
        }
        let turns = self
            .turns(self.of(self.sharing_above, interval))
            .saturating_add(count);
        taken.saturating_add(turns.saturating_mul(self.event()))
    }

    /// Returns the time that the equals take while this vCPU does `work`, in an interval of this length.
    fn shared_with_equals(&self, work: Ticks, interval: Ticks) -> Ticks {
        let count = Ticks::from(self.equals.0.count_ones());
        if count == 0 {
            return 0;
        }
        let event = self.event();
        match self.level.sharing {
            Sharing::Demand => {
                // A sporadic server that is late because this very vCPU ran makes up for that later: its
                // budgets then meet without a gap. Only turns bound that.
                let is_late = |(slot, vcpu): (usize, &Vcpu)| {
                    self.binding_server(slot, vcpu)
                        .is_some_and(|server| server.kind == ServerKind::Sporadic)
                };
                if self.shared.numbered(self.equals).any(is_late) {
                    return Ticks::MAX;
                }
                let theirs = self.of(self.equals, interval);
                let turns = self.turns(work.saturating_add(theirs)).saturating_add(count);
                theirs.saturating_add(turns.saturating_mul(event))
            }
            Sharing::Turns => {
                let turns = self.turns(work).saturating_add(1);
                let each = self
                    .level
                    .quantum
                    .saturating_add(self.shared.overheads.under_way());
                let all = count.saturating_mul(each).saturating_add(event);
                turns.saturating_mul(all)
            }
        }
    }

    /// Utilisation of those that can keep this vCPU from running for ever.
    fn pressure(&self) -> Ticks {
        let demanding = match self.level.sharing {
            Sharing::Demand => SlotSet(self.above.0 | self.equals.0),
            Sharing::Turns => self.above,
        };
        self.shared
            .numbered(demanding)
            .fold(0, |sum: Ticks, (slot, vcpu)| {
                let by_demand = vcpu.demand.map(|demand| demand.utilisation(self.per_job()));
                sum.saturating_add(match self.binding_server(slot, vcpu) {
                    Some(server) => {
                        let budget = server.budget.saturating_add(self.shared.overheads.excess());
                        ratio(budget, server.period).min(by_demand.unwrap_or(Ticks::MAX))
                    }
                    None => by_demand.unwrap_or(Ticks::MAX),
                })
            })
    }

    /// Returns the longest time for which others keep the vCPU waiting until it has nothing left to do. Its
    /// budget lasts all the while.
    pub(super) fn longest_delay(&self) -> Ticks {
        let slot = self.slot;
        let step = |time| {
            let released = self.shared.released(slot, time);
            self.while_paid(released.saturating_add(self.given.stolen(time)))
        };
        match self.shared.fixed_point(1, HORIZON, step) {
            Some(time) if time <= HORIZON => time.saturating_sub(self.shared.released(slot, time)),
            _ => Ticks::MAX,
        }
    }

    /// Returns the longest time from when the budget is used up to when some is back, if the budget is enough
    /// for all that can be released within a period. The spare part has to be used up too.
    fn gap(&self, served: &Served) -> Option<Ticks> {
        let server = served.server;
        let work = self.shared.released(served.slot, server.period);
        let spare = served.useful.checked_sub(work.saturating_add(served.taken))?;
        let step = |time| self.while_paid(self.given.stolen(time).saturating_add(1));
        let told = self.shared.fixed_point(1, HORIZON, step).unwrap_or(Ticks::MAX);
        let told = told.saturating_sub(1);
        let late = self.lateness(served.slot, server, told)?;
        Some(late.saturating_sub(spare))
    }

    /// Returns the number of jobs that can be released in a period of the server.
    fn jobs(&self, served: &Served) -> Ticks {
        let demand = self.shared.vcpus.get(served.slot).and_then(|vcpu| vcpu.demand);
        demand.map_or(Ticks::MAX, |demand| releases(&demand, served.server.period))
    }

    /// Returns the time for `work` if the only task has one job for each budget at most. Others keep the job
    /// waiting before the gap and after it.
    fn once(&self, served: &Served, work: Ticks, gap: Ticks) -> Ticks {
        let direct = self.while_paid(work);
        let waits = direct.saturating_sub(work);
        if gap == 0 {
            return direct;
        }
        let spare = served.useful.saturating_sub(work).saturating_sub(served.taken);
        direct.saturating_add(waits.saturating_sub(spare))
    }

    /// Returns the time for `work` if others and gaps between budgets keep the vCPU waiting.
    fn with_gaps(&self, served: &Served, work: Ticks) -> Ticks {
        let Some(gap) = self.gap(served) else {
            return Ticks::MAX;
        };
        // A sporadic budget comes back in its pieces.
        let tasks = self.shared.known(served.slot).count();
        let is_once = tasks == 1 && self.jobs(served) == 1;
        let once = if is_once {
            self.once(served, work, gap)
        } else {
            Ticks::MAX
        };
        let pieces = match served.server.kind {
            ServerKind::Sporadic => self.jobs(served),
            ServerKind::Deferrable | ServerKind::ConstantBandwidth => 1,
        };
        let period = served.server.period.max(1);
        let step = |time: Ticks| {
            let periods = time.checked_div(period).unwrap_or(0);
            let rest = time.saturating_sub(periods.saturating_mul(period));
            let gaps = periods.saturating_mul(gap).saturating_add(rest.min(gap));
            self.while_paid(work.saturating_add(gaps.saturating_mul(pieces)))
        };
        match self.shared.fixed_point(work, HORIZON, step) {
            Some(time) if time <= HORIZON => time.min(once),
            _ => once,
        }
    }

    /// Returns the time for `work` while the budget lasts.
    fn while_paid(&self, work: Ticks) -> Ticks {
        if self.pressure() >= ONE {
            return Ticks::MAX;
        }
        let base = work.saturating_add(self.shared.overheads.under_way());
        let step = |time| {
            let all = base
                .saturating_add(self.above(time))
                .saturating_add(self.shared_with_equals(work, time));
            self.given.time_for(all)
        };
        match self.shared.fixed_point(base, HORIZON, step) {
            Some(time) if time <= HORIZON => time,
            _ => Ticks::MAX,
        }
    }
}

impl<S: Supply> Supply for PrioritySupply<'_, S> {
    fn time_for(&self, work: Ticks) -> Ticks {
        let Some(served) = self.server else {
            return self.while_paid(work);
        };
        let with_gaps = self.with_gaps(&served, work);
        if served.useful == 0 || self.while_paid(served.useful) > served.server.period {
            return with_gaps;
        }
        let by_phase = served.time_for(&self.shared, work, |rest| self.while_paid(rest));
        by_phase.min(with_gaps)
    }

    fn stolen(&self, interval: Ticks) -> Ticks {
        self.stolen_from(self.slot, interval)
    }
}
