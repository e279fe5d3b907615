// SPDX-License-Identifier: Apache-2.0
//! What a time domain is given under policy `domains`.
//!
//! All time is charged to the budget of some domain, and a cycle ends when each of the others than 0 has had its turn
//! and domain 0 nothing it may still use. So for `k` budgets of its own a domain waits for at most `k` turns of each of
//! the others, and domain 0 can preempt it with `k + 1` budgets: what it kept of the one before, and one in each cycle.
//! Domain 0 itself waits for one turn of each of the others per budget.
//!
//! A vCPU of domain 0 that is more important than all in the other domains does not even wait for those, if what domain
//! 0 declares cannot use up its budget within a cycle.

use super::{Shared, Supply, Vcpu};
use crate::{Domain, SlotSet, Ticks};

/// The supply of one domain.
#[derive(Clone, Copy, Debug)]
pub struct DomainSupply<'a> {
    shared: Shared<'a>,
    domains: &'a [Domain],
    own: u8,
    budget: Ticks,
    /// The vCPU need not wait for turns.
    preempts: bool,
}

impl<'a> DomainSupply<'a> {
    /// The supply of the domain of `slot`; `None` if there is no such slot or domain.
    #[must_use]
    pub fn new(shared: Shared<'a>, slot: usize, domains: &'a [Domain]) -> Option<Self> {
        let vcpu = shared.vcpus.get(slot)?;
        let own = vcpu.parameters.domain;
        let budget = domains.get(usize::from(own))?.budget;
        let mut supply = Self {
            shared,
            domains,
            own,
            budget,
            preempts: false,
        };
        let is_above = |other: &Vcpu| {
            other.parameters.domain == 0 || other.parameters.priority < vcpu.parameters.priority
        };
        supply.preempts = own == 0 && shared.vcpus.iter().all(is_above) && supply.never_runs_out();
        Some(supply)
    }

    /// The slots of the domain.
    #[must_use]
    pub fn slots(&self) -> SlotSet {
        self.shared.slots(usize::MAX, |vcpu| vcpu.domain == self.own)
    }

    /// What all domains but 0 and one's own can use in a cycle, each a little late.
    fn others(&self) -> Ticks {
        let others = (0_u8..).zip(self.domains).skip(1);
        others
            .filter(|(number, _)| *number != self.own)
            .fold(0, |sum: Ticks, (_, domain)| {
                sum.saturating_add(self.with_end(domain.budget))
            })
    }

    /// A budget with the event that ends it.
    const fn with_end(&self, budget: Ticks) -> Ticks {
        budget.saturating_add(self.shared.overheads.event())
    }

    fn zero(&self) -> Ticks {
        self.domains
            .first()
            .map_or(0, |domain| self.with_end(domain.budget))
    }

    /// Whether the vCPUs of domain 0 cannot use up its budget in a cycle: what runs in one was released in it, or at
    /// most a deadline before.
    fn never_runs_out(&self) -> bool {
        let cycle = self.zero().saturating_add(self.others());
        let per_job = self.shared.overheads.per_job();
        let mut work = self.stolen(cycle);
        for vcpu in self.shared.in_slots(self.slots()) {
            let Some(demand) = vcpu.demand else {
                return false;
            };
            for task in demand.tasks {
                let jobs = cycle.saturating_add(task.deadline).div_ceil(task.period.max(1));
                work = work.saturating_add(jobs.saturating_mul(task.wcet.saturating_add(per_job)));
            }
        }
        work < self.budget
    }
}

impl Supply for DomainSupply<'_> {
    fn time_for(&self, work: Ticks) -> Ticks {
        if self.preempts || self.domains.len() == 1 {
            return work;
        }
        // Of each turn, the switch to the domain is lost, and what the one before was overdrawn by.
        let useful = self.budget.saturating_sub(self.shared.overheads.per_job());
        if useful == 0 {
            return Ticks::MAX;
        }
        let turns = work.div_ceil(useful);
        let by_zero = if self.own == 0 {
            0
        } else {
            turns.saturating_add(1).saturating_mul(self.zero())
        };
        let lost = turns.saturating_mul(self.budget.saturating_sub(useful));
        work.saturating_add(lost)
            .saturating_add(turns.saturating_mul(self.others()))
            .saturating_add(by_zero)
    }

    /// How often vCPUs of domain 0 that declare nothing come and go is limited by its budget alone.
    fn stolen(&self, interval: Ticks) -> Ticks {
        let mut zero = self
            .shared
            .vcpus
            .iter()
            .filter(|vcpu| vcpu.parameters.domain == 0);
        if self.own == 0 || zero.all(|vcpu| vcpu.demand.is_some()) {
            return 0;
        }
        // A cycle is at least as long as the turns of the others.
        let others = self.domains.iter().skip(1);
        let sum = others.fold(0, |sum: Ticks, domain| sum.saturating_add(domain.budget));
        let overdrawn = self
            .shared
            .overheads
            .event()
            .saturating_mul(self.domains.len() as Ticks);
        let shortest = sum.saturating_sub(overdrawn).max(1);
        let cycles = interval.div_ceil(shortest).saturating_add(1);
        let budget = self.zero();
        let paid = self
            .shared
            .overheads
            .decision
            .saturating_add(self.shared.overheads.switch);
        let storm = budget.checked_div(paid).unwrap_or(0).saturating_add(1);
        cycles
            .saturating_mul(storm)
            .saturating_mul(self.shared.overheads.event())
    }
}
