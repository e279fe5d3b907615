// SPDX-License-Identifier: Apache-2.0
//! What policy `fixed-priority` promises a vCPU.
//!
//! A vCPU waits for those above it, for its equals, and for its own budget.
//!
//! - Above, without a server: all releases of the declared tasks. With one: its budget once per period, for a
//!   deferrable server with one budget carried over from the period before (back to back).
//! - Equals take turns. Two ways to bound them, each valid alone ([`Sharing`]): all their demand comes first, or a
//!   turn of each for each turn of one's own. The caller takes the better result of the two; mixing the two within
//!   one busy interval would be unsound, since they are about intervals with different beginnings.
//! - One's own server: the budget may just have been used up, as early as possible in its period; from then on each
//!   budget comes as late in its period as those above allow.
//!
//! A server whose declared tasks cannot use it up, all of them being in time, is as good as none.

use super::{HORIZON, ONE, Shared, Supply, Vcpu, fixed_point, ratio};
use crate::{Server, ServerKind, SlotSet, Ticks};

/// How the equals of a vCPU are bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// As if they were more important.
    Demand,
    /// A turn of each for each turn of one's own.
    Turns,
}

/// The supply of one slot.
#[derive(Clone, Copy, Debug)]
pub struct FixedPrioritySupply<'a> {
    shared: Shared<'a>,
    above: SlotSet,
    equals: SlotSet,
    all: SlotSet,
    quantum: Ticks,
    sharing: Sharing,
    /// Unless it can never run out.
    server: Option<Server>,
}

impl<'a> FixedPrioritySupply<'a> {
    /// The supply of `slot`; `None` if there is no such slot.
    #[must_use]
    pub fn new(shared: Shared<'a>, slot: usize, quantum: Ticks, sharing: Sharing) -> Option<Self> {
        let own = shared.vcpus.get(slot)?;
        let priority = own.parameters.priority;
        let mut supply = Self {
            shared,
            above: shared.slots(slot, |other| other.priority > priority),
            equals: shared.slots(slot, |other| other.priority == priority),
            all: shared.slots(slot, |_| true),
            quantum: quantum.max(1),
            sharing,
            server: None,
        };
        supply.server = supply.binding_server(own);
        Some(supply)
    }

    /// The vCPU's server, if its tasks can use it up. What runs within one period of the server was released within
    /// that period or at most one deadline before it.
    fn binding_server(&self, vcpu: &Vcpu) -> Option<Server> {
        let server = vcpu.parameters.server?;
        let Some(demand) = vcpu.demand else {
            return Some(server);
        };
        let per_job = self.per_job();
        let work = demand.tasks.iter().fold(0, |sum: Ticks, task| {
            let jobs = server
                .period
                .saturating_add(task.deadline)
                .div_ceil(task.period.max(1));
            sum.saturating_add(jobs.saturating_mul(task.wcet.saturating_add(per_job)))
        });
        let stolen = self
            .shared
            .overheads
            .event()
            .saturating_mul(self.shared.releases(self.all, server.period).saturating_add(1));
        (work.saturating_add(stolen) > server.budget).then_some(server)
    }

    fn event(&self) -> Ticks {
        self.shared.overheads.event()
    }

    fn per_job(&self) -> Ticks {
        self.shared.overheads.per_job()
    }

    /// The most that `vcpu` takes in an interval of this length, with what its comings and goings cost.
    fn interference(&self, vcpu: &Vcpu, interval: Ticks) -> Ticks {
        let per_job = self.per_job();
        match (self.binding_server(vcpu), vcpu.demand) {
            (None, None) => Ticks::MAX,
            (None, Some(demand)) => demand.requested(interval, per_job),
            (Some(server), demand) => {
                let budgets = budgets(server, interval);
                let activations = match demand {
                    Some(demand) => {
                        let tasks = demand.tasks.iter();
                        tasks.fold(budgets, |sum: Ticks, task| {
                            let jobs = interval.div_ceil(task.period.max(1));
                            sum.saturating_add(jobs).saturating_add(1)
                        })
                    }
                    // It can come and go for as long as its budget pays for the decision and the switch.
                    None => {
                        let paid = self.event().saturating_sub(self.shared.overheads.interrupt);
                        let each = server.budget.checked_div(paid).unwrap_or(0).saturating_add(1);
                        budgets.saturating_mul(each)
                    }
                };
                budgets
                    .saturating_mul(server.budget)
                    .saturating_add(activations.saturating_mul(per_job))
            }
        }
    }

    fn of(&self, slots: SlotSet, interval: Ticks) -> Ticks {
        self.shared.in_slots(slots).fold(0, |sum: Ticks, vcpu| {
            sum.saturating_add(self.interference(vcpu, interval))
        })
    }

    /// What the equals take while this vCPU does `work`, in an interval of this length.
    fn shared_with_equals(&self, work: Ticks, interval: Ticks) -> Ticks {
        let count = Ticks::from(self.equals.0.count_ones());
        if count == 0 {
            return 0;
        }
        let event = self.event();
        // Of each turn, the switch to it is lost.
        let useful = self.quantum.saturating_sub(event).max(1);
        match self.sharing {
            Sharing::Demand => {
                let theirs = self.of(self.equals, interval);
                let turns = work.saturating_add(theirs).div_ceil(useful).saturating_add(count);
                theirs.saturating_add(turns.saturating_mul(event))
            }
            Sharing::Turns => {
                let turns = work.div_ceil(useful).saturating_add(1);
                let each = count.saturating_mul(self.quantum.saturating_add(event));
                turns.saturating_mul(each.saturating_add(event))
            }
        }
    }

    /// Utilisation of those that can keep this vCPU from running for ever.
    fn pressure(&self) -> Ticks {
        let per_job = self.per_job();
        let demanding = if self.sharing == Sharing::Demand {
            SlotSet(self.above.0 | self.equals.0)
        } else {
            self.above
        };
        self.shared.in_slots(demanding).fold(0, |sum: Ticks, vcpu| {
            sum.saturating_add(match (self.binding_server(vcpu), vcpu.demand) {
                (Some(server), _) => ratio(server.budget, server.period),
                (None, Some(demand)) => demand.utilisation(per_job),
                (None, None) => Ticks::MAX,
            })
        })
    }

    /// The time for `work` while the budget lasts.
    fn while_paid(&self, work: Ticks) -> Ticks {
        if self.pressure() >= ONE {
            return Ticks::MAX;
        }
        let base = work.saturating_add(self.event());
        let step = |time| {
            base.saturating_add(self.of(self.above, time))
                .saturating_add(self.shared_with_equals(work, time))
        };
        match fixed_point(base, HORIZON, step) {
            Some(time) if time <= HORIZON => time,
            _ => Ticks::MAX,
        }
    }
}

/// Budgets of a server that can be used in an interval of this length.
fn budgets(server: Server, interval: Ticks) -> Ticks {
    let carried = match server.kind {
        ServerKind::Deferrable => server.period.saturating_sub(server.budget),
        ServerKind::Sporadic | ServerKind::ConstantBandwidth => 0,
    };
    interval.saturating_add(carried).div_ceil(server.period.max(1))
}

impl Supply for FixedPrioritySupply<'_> {
    fn time_for(&self, work: Ticks) -> Ticks {
        let Some(server) = self.server else {
            return self.while_paid(work);
        };
        // The switch to it is lost each time the budget comes back.
        let useful = server.budget.saturating_sub(self.event());
        if useful == 0 || self.while_paid(useful) > server.period {
            return Ticks::MAX;
        }
        let whole = work.saturating_sub(1).checked_div(useful).unwrap_or(0);
        let rest = work.saturating_sub(whole.saturating_mul(useful));
        whole
            .saturating_mul(server.period)
            .saturating_add(server.period.saturating_sub(server.budget))
            .saturating_add(self.while_paid(rest))
    }

    fn stolen(&self, interval: Ticks) -> Ticks {
        self.shared
            .releases(self.all, interval)
            .saturating_mul(self.event())
    }
}
