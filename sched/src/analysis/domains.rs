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
//!
//! **Critical interrupts** bring vCPUs of other domains into domain 0, by their priority and on its budget: to those in domain 0
//! they are like members of it. To other domains they are what domain 0 does anyway, within its budget. To itself a vCPU with
//! critical interrupts is promised what its own domain has: not everything that wakes it is critical.

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

    /// The slots of the domain; of domain 0, also those that critical interrupts bring into it.
    #[must_use]
    pub fn slots(&self) -> SlotSet {
        let members = (0_u32..32)
            .zip(self.shared.vcpus)
            .filter(|(_, vcpu)| self.holds(vcpu));
        SlotSet(members.fold(0, |set, (slot, _)| set | 1_u32.rotate_left(slot)))
    }

    /// Whether `vcpu` may run by the rules of the domain.
    const fn holds(&self, vcpu: &Vcpu) -> bool {
        vcpu.parameters.domain == self.own || self.own == 0 && vcpu.critical > 0
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

    /// A budget with what ends it.
    const fn with_end(&self, budget: Ticks) -> Ticks {
        budget.saturating_add(self.shared.overheads.under_way())
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
        let useful = self.budget.saturating_sub(self.shared.overheads.at_ends());
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

    /// How often vCPUs of domain 0 that declare nothing come and go is limited by its budget alone. A critical interrupt
    /// of one comes once for each turn in which the vCPU may have been ready for the next.
    fn stolen(&self, interval: Ticks) -> Ticks {
        let mut undeclared = self.shared.vcpus.iter().filter(|vcpu| vcpu.demand.is_none());
        let lines = undeclared.clone().fold(0, |sum: Ticks, vcpu| {
            sum.saturating_add(Ticks::from(vcpu.critical))
        });
        let comes_and_goes = |vcpu: &Vcpu| vcpu.parameters.domain == 0 || vcpu.critical > 0;
        let storms = self.own != 0 && undeclared.any(comes_and_goes);
        if lines == 0 && !storms {
            return 0;
        }
        let storm = if storms { self.storm() } else { 0 };
        self.cycles(interval)
            .saturating_mul(storm.saturating_add(lines))
            .saturating_mul(self.shared.overheads.event())
    }
}

impl DomainSupply<'_> {
    /// The most cycles that an interval of this length meets. One is at least as long as the turns of the others.
    fn cycles(&self, interval: Ticks) -> Ticks {
        let others = self.domains.iter().skip(1);
        let sum = others.fold(0, |sum: Ticks, domain| sum.saturating_add(domain.budget));
        let overdrawn = self
            .shared
            .overheads
            .under_way()
            .saturating_mul(self.domains.len() as Ticks);
        let shortest = sum.saturating_sub(overdrawn).max(1);
        interval.div_ceil(shortest).saturating_add(1)
    }

    /// How often domain 0's budget pays for somebody to come and go.
    fn storm(&self) -> Ticks {
        let overheads = &self.shared.overheads;
        let paid = overheads.decision.saturating_add(overheads.switch);
        self.zero().checked_div(paid).unwrap_or(0).saturating_add(1)
    }
}
