// SPDX-License-Identifier: Apache-2.0
//! The supply of a time domain under policy `domains`.
//!
//! All time is charged to the budget of some domain. A cycle ends when each domain but 0 has had its turn and
//! domain 0 has nothing left that it may use. So for `k` budgets of its own a domain waits for at most `k`
//! turns of each of the others. Domain 0 can preempt it with `k + 1` budgets: the rest of the budget before,
//! and one in each cycle. Domain 0 itself waits for one turn of each of the others per budget.
//!
//! A vCPU of domain 0 that is more important than all in the other domains does not even wait for those
//! turns, if the declared work of domain 0 cannot use up its budget within a cycle.
//!
//! **Critical interrupts** bring vCPUs of other domains into domain 0, by their priority and on its budget.
//! For the vCPUs of domain 0, such a vCPU is like a member of the domain. For the other domains, it is part
//! of what domain 0 does anyway, within its budget. A vCPU with critical interrupts is itself only promised
//! the time of its own domain, because not everything that wakes it is critical.

use super::{HORIZON, Shared, Supply, Vcpu};
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
    /// Returns the supply of the domain of `slot`, or `None` if there is no such slot or domain.
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

    /// Returns the slots of the domain. For domain 0 these include the slots that critical interrupts bring
    /// into it.
    #[must_use]
    pub fn slots(&self) -> SlotSet {
        let members = (0_u32..32)
            .zip(self.shared.vcpus)
            .filter(|(_, vcpu)| self.holds(vcpu));
        SlotSet(members.fold(0, |set, (slot, _)| set | 1_u32.rotate_left(slot)))
    }

    /// Tells whether `vcpu` may run by the rules of the domain.
    const fn holds(&self, vcpu: &Vcpu) -> bool {
        vcpu.parameters.domain == self.own || self.own == 0 && vcpu.critical > 0
    }

    /// Returns the time that all domains but 0 and one's own can use in a cycle, each a little late.
    fn others(&self) -> Ticks {
        let others = (0_u8..).zip(self.domains).skip(1);
        others
            .filter(|(number, _)| *number != self.own)
            .fold(0, |sum: Ticks, (_, domain)| {
                sum.saturating_add(self.with_end(domain.budget))
            })
    }

    /// Returns a budget together with the time that its end takes.
    const fn with_end(&self, budget: Ticks) -> Ticks {
        budget.saturating_add(self.shared.overheads.under_way())
    }

    fn zero(&self) -> Ticks {
        self.domains
            .first()
            .map_or(0, |domain| self.with_end(domain.budget))
    }

    /// Tells whether the vCPUs of domain 0 cannot use up its budget in a cycle. A job that runs in a cycle
    /// was released in the cycle, or at most its response before.
    fn never_runs_out(&self) -> bool {
        let cycle = self.zero().saturating_add(self.others());
        let mut work = self
            .comings(cycle)
            .saturating_add(self.shared.overheads.written(cycle));
        for (slot, vcpu) in self.shared.numbered(self.slots()) {
            if vcpu.demand.is_none() {
                return false;
            }
            work = work.saturating_add(self.shared.worked(slot, cycle));
        }
        work < self.budget
    }
}

impl Supply for DomainSupply<'_> {
    fn time_for(&self, work: Ticks) -> Ticks {
        if !self.has_turns() {
            return work;
        }
        // The switch to the domain is lost from each turn, and so is the overrun of the one before, and the
        // steps of output.
        let overheads = &self.shared.overheads;
        let ends = overheads.at_ends().saturating_add(overheads.written(self.budget));
        let useful = self.budget.saturating_sub(ends);
        if useful == 0 {
            return Ticks::MAX;
        }
        let turns = work.div_ceil(useful);
        let lost = turns.saturating_mul(self.budget.saturating_sub(useful));
        let without_zero = work
            .saturating_add(lost)
            .saturating_add(turns.saturating_mul(self.others()));
        if self.own == 0 {
            return without_zero;
        }
        let by_budget = turns.saturating_add(1).saturating_mul(self.zero());
        let step = |time| {
            let by_demand = self.asked_of_zero(time, turns);
            without_zero.saturating_add(by_budget.min(by_demand))
        };
        let time = self.shared.fixed_point(without_zero, HORIZON, step);
        time.unwrap_or_else(|| without_zero.saturating_add(by_budget))
    }

    /// Returns what comings and goings take. The steps of output are lost from each turn, if the domain has
    /// turns.
    fn stolen(&self, interval: Ticks) -> Ticks {
        let written = if self.has_turns() {
            0
        } else {
            self.shared.overheads.written(interval)
        };
        self.comings(interval).saturating_add(written)
    }
}

impl DomainSupply<'_> {
    /// Tells whether the vCPU has to wait for turns.
    const fn has_turns(&self) -> bool {
        !self.preempts && self.domains.len() != 1
    }

    /// Returns the time that comings and goings take in an interval of this length. The vCPUs of domain 0
    /// that declare nothing are limited by the budget of the domain alone: it pays for their coming and
    /// going. A critical interrupt of such a vCPU comes once for each turn in which the vCPU may have been
    /// ready for the next.
    fn comings(&self, interval: Ticks) -> Ticks {
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

    /// Returns the most that the vCPUs of domain 0 ask for in an interval of this length. The ends of its
    /// turns count, and so do jobs from before.
    fn asked_of_zero(&self, interval: Ticks, turns: Ticks) -> Ticks {
        let vcpus = self.shared.vcpus.iter().enumerate();
        let mut members = vcpus.filter(|(_, vcpu)| vcpu.parameters.domain == 0 || vcpu.critical > 0);
        if members.clone().any(|(_, vcpu)| vcpu.demand.is_none()) {
            return Ticks::MAX;
        }
        let ends = turns
            .saturating_add(1)
            .saturating_mul(self.shared.overheads.at_ends())
            .saturating_add(self.shared.overheads.written(interval));
        let asked = members.try_fold(ends, |sum: Ticks, (slot, _)| {
            sum.checked_add(self.shared.left_and_requested(slot, interval))
        });
        asked.unwrap_or(Ticks::MAX)
    }

    /// Returns the most cycles that an interval of this length meets. A cycle is at least as long as the
    /// turns of the others.
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

    /// Returns how often domain 0's budget pays for a vCPU to come and go.
    fn storm(&self) -> Ticks {
        let overheads = &self.shared.overheads;
        let paid = overheads.decision.saturating_add(overheads.switch);
        self.zero().checked_div(paid).unwrap_or(0).saturating_add(1)
    }
}
