// SPDX-License-Identifier: Apache-2.0
//! Policy `domains`: time domains take turns. Domain 0 is driven by priority across them.
//!
//! **Model.** Every domain has a budget of running time for each cycle. In the cycle the domains have their
//! turns in order, domain 0 first. A turn lasts until the budget is used up. After the last turn all budgets
//! are full again. Within a domain the most important ready vCPU runs, and equals run in time slices
//! ([`RunQueue`]).
//!
//! A turn of another domain than 0 is the domain's own time. If no vCPU of the domain is ready, the rest of
//! the turn is *lent* to domain 0 until one is ready. If domain 0 has no ready vCPU either, the time goes by
//! unused. So no domain gains or loses by the behaviour of another. Domain 0's own turn is over as soon as no
//! vCPU of it is ready. Domain 0 may use the rest of its budget later in the cycle. A vCPU of domain 0 that
//! is more important than the one that would run preempts that vCPU, on domain 0's budget. The interrupted
//! turn waits.
//!
//! **Critical interrupts.** [`Policy::critical`] makes a vCPU urgent, until the vCPU blocks (or yields, where
//! a kernel has that). An urgent vCPU is in both queues, so one of another domain does not lose its turn when
//! domain 0's budget is used up. While a vCPU is urgent, domain 0 preempts the vCPUs of all domains that the
//! vCPU does not belong to, regardless of priorities: the latency of an interrupt is not to depend on the
//! priorities in a domain that has nothing to do with it. In the turn of the domain that it belongs to, the
//! vCPU waits for the more important ones there.
//!
//! **Guarantee.** Each domain has its whole budget in every cycle, and a cycle is no longer than the sum of
//! all budgets. The turns in round robin go back to Kleinrock, "Analysis of a Time-Shared Processor", 1964.
//! Budgets that are consumed on behalf of another are as in Mercer, Savage and Tokuda, "Processor Capacity
//! Reserves", 1994.
//!
//! **Lateness.** If a vCPU runs beyond its domain's budget, the excess is taken from that domain's next
//! budget (at most all of it). While no vCPU at all is ready, the clock is not armed. The turns that went by
//! are counted when a vCPU is ready again.
//!
//! **Cost.** Choosing is O(1). Passing the turn on is one step per domain without budget. The end of a cycle
//! is one step per domain.

use crate::fixed_priority::check;
use crate::run_queue::{Band, Pick, RunQueue, all_slots};
use crate::table::{Table, bit};
use crate::{
    Decision, DomainsParameters, MAX_DOMAINS, MAX_SLOTS, Policy, PolicyError, Signals, Slot, SlotSet,
    StopReason, Ticks, VcpuParameters,
};

/// The account of one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Account {
    budget: Ticks,
    left: Ticks,
    /// The time that was used beyond the budget. It is taken from the next budget.
    debt: Ticks,
    /// The vCPUs of the domain, in the queue of their own domains.
    band: Band,
}

impl Account {
    /// Takes `time` from the budget. Tells whether that was the last of the budget.
    fn take(&mut self, time: Ticks) -> bool {
        let is_over = self.left > 0 && time >= self.left;
        let beyond = time.saturating_sub(self.left);
        self.left = self.left.saturating_sub(time);
        self.debt = self.debt.saturating_add(beyond).min(self.budget);
        is_over
    }
}

/// The account that the time since the last decision is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Charge {
    /// A vCPU runs on the budget of this domain. Domain 0's queue chose the vCPU, or the queue of the vCPU's
    /// own domain did.
    Domain { domain: u8, by_zero: bool },
    /// Nothing has run in this turn since then.
    Unused(Ticks),
    /// Nothing has been ready anywhere since then.
    AllBlocked(Ticks),
    /// The time is charged to nothing: no decision is in force.
    Nothing,
}

/// The policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Domains {
    /// The vCPUs that are ready in domain 0: its own and the urgent ones.
    zero: RunQueue,
    /// The vCPUs that are ready in other domains, and the urgent ones.
    others: RunQueue,
    all: Band,
    /// The vCPUs of domain 0.
    members: u32,
    accounts: [Account; MAX_DOMAINS],
    count: u8,
    turn: u8,
    charge: Charge,
    interested: SlotSet,
    signals: Signals,
}

impl Domains {
    /// Returns the policy of a pCPU with these vCPUs, slot 0 first.
    ///
    /// # Errors
    /// [`PolicyError::TooManyVcpus`] if there are too many vCPUs. [`PolicyError::BadParameter`] for a
    /// priority above 31, a quantum of 0, no domain or too many, a budget of 0, budgets whose sum is out of
    /// range, or a vCPU in a domain that does not exist.
    pub fn new(vcpus: &[VcpuParameters], parameters: DomainsParameters<'_>) -> Result<Self, PolicyError> {
        let mut policy = Self::blank(parameters.quantum);
        policy.fill(vcpus, &parameters)?;
        Ok(policy)
    }

    /// Returns a policy without slots.
    pub(crate) const fn blank(quantum: Ticks) -> Self {
        Self {
            zero: RunQueue::new(quantum),
            others: RunQueue::new(quantum),
            all: Band::NONE,
            members: 0,
            accounts: [Account {
                budget: 0,
                left: 0,
                debt: 0,
                band: Band::NONE,
            }; MAX_DOMAINS],
            count: 0,
            turn: 0,
            charge: Charge::Nothing,
            interested: SlotSet(0),
            signals: Signals::NONE,
        }
    }

    /// Gives a blank policy its slots and domains. After an error the policy must not be used.
    pub(crate) fn fill(
        &mut self,
        vcpus: &[VcpuParameters],
        parameters: &DomainsParameters<'_>,
    ) -> Result<(), PolicyError> {
        let domains = parameters.domains;
        check(vcpus, parameters.quantum)?;
        let mut sum: Ticks = 0;
        for domain in domains {
            sum = sum.checked_add(domain.budget).ok_or(PolicyError::BadParameter)?;
        }
        let is_homeless = |vcpu: &VcpuParameters| usize::from(vcpu.domain) >= domains.len();
        let is_empty = domains.is_empty() || domains.iter().any(|domain| domain.budget == 0);
        if is_empty || domains.len() > MAX_DOMAINS || vcpus.iter().any(is_homeless) {
            return Err(PolicyError::BadParameter);
        }
        let mut classes = Table::new(0);
        self.zero.sort(vcpus, &classes);
        for (slot, vcpu) in (0..).zip(vcpus) {
            *classes.at_mut(slot) = vcpu.domain;
        }
        self.others.sort(vcpus, &classes);
        for ((number, domain), account) in (0..).zip(domains).zip(&mut self.accounts) {
            let own = (0..).zip(vcpus).filter(|(_, vcpu)| vcpu.domain == number);
            *account = Account {
                budget: domain.budget,
                left: domain.budget,
                debt: 0,
                band: self
                    .others
                    .band(own.fold(0, |slots, (slot, _)| slots | bit(slot))),
            };
        }
        self.interested = all_slots(vcpus.len());
        self.all = self.zero.band(self.interested.0);
        self.members = self.slots_of(0);
        self.count = domains.len() as u8;
        Ok(())
    }

    #[expect(clippy::indexing_slicing, reason = "a masked index is below MAX_DOMAINS")]
    const fn account(&mut self, domain: u8) -> &mut Account {
        &mut self.accounts[domain as usize & (MAX_DOMAINS - 1)]
    }

    /// Returns the vCPUs that belong to a domain.
    const fn slots_of(&mut self, domain: u8) -> u32 {
        self.account(domain).band.slots
    }

    fn take(&mut self, domain: u8, time: Ticks) {
        if self.account(domain).take(time) {
            self.signals.exhausted.0 |= self.slots_of(domain);
        }
    }

    /// Gives the next domain its turn. After the last domain, a cycle ends.
    fn pass_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        if self.turn < self.count {
            return;
        }
        self.turn = 0;
        for domain in 0..self.count {
            let account = self.account(domain);
            let was_empty = account.left == 0;
            account.left = account.budget.saturating_sub(account.debt);
            account.debt = 0;
            if was_empty {
                self.signals.replenished.0 |= self.slots_of(domain);
            }
        }
    }

    /// Passes the turn on until a domain has it that can have it. A domain that owes a whole budget is passed
    /// over once, so two cycles are enough.
    fn find_turn(&mut self) {
        let is_over = |policy: &mut Self| {
            policy.account(policy.turn).left == 0
                || policy.turn == 0 && policy.zero.ready() == 0 && policy.count > 1
        };
        let bound = u8::saturating_mul(self.count, 3);
        for _ in 0..bound {
            if !is_over(self) {
                return;
            }
            self.pass_turn();
        }
    }

    /// Lets the turns go by that no vCPU used. The turns go by one by one up to the end of the cycle. Then
    /// whole cycles go by, in which domain 0 has no time. Then turns go by one by one again.
    fn let_pass(&mut self, mut time: Ticks) {
        let others = self.accounts.iter().take(usize::from(self.count)).skip(1);
        let cycle = others.fold(0, |sum: Ticks, account| sum.saturating_add(account.budget));
        for _ in 0..u8::saturating_mul(self.count, 3) {
            if self.turn != 0 {
                let left = self.account(self.turn).left;
                self.account(self.turn).left = left.saturating_sub(time);
                if time < left {
                    return;
                }
                time = time.saturating_sub(left);
            } else if time == 0 {
                // This moment is the start of the cycle, so domain 0 may still have its turn.
                return;
            }
            self.pass_turn();
            if self.turn == 0 && self.has_full_budgets() {
                time = time.checked_rem(cycle).unwrap_or(0);
            }
        }
    }

    fn has_full_budgets(&self) -> bool {
        let mut accounts = self.accounts.iter().take(usize::from(self.count));
        accounts.all(|account| account.left == account.budget)
    }

    /// Charges the time since a decision to run nothing.
    fn settle(&mut self, now: Ticks) {
        match self.charge {
            Charge::Unused(since) => {
                let left = self.account(self.turn).left;
                self.take(self.turn, now.saturating_sub(since).min(left));
            }
            Charge::AllBlocked(since) => self.let_pass(now.saturating_sub(since)),
            Charge::Domain { .. } | Charge::Nothing => {}
        }
        self.charge = Charge::Nothing;
    }

    /// Runs the first vCPU of domain 0 on the budget of `domain`.
    fn run_zero(&mut self, domain: u8, now: Ticks) -> Option<(Pick, Ticks)> {
        let mut pick = self.zero.pick(self.all)?;
        self.charge = Charge::Domain {
            domain,
            by_zero: true,
        };
        let mut wanted = pick.interested & self.members;
        if self.turn != 0 {
            // The domain that has the turn gets it back as soon as one of its vCPUs is not less important.
            // From urgent vCPUs it does not. If the time is the domain's own, any of its vCPUs will do.
            let above = match domain {
                0 if self.is_urgent() => 0,
                0 => self.zero.not_below(pick.slot.0),
                _ => u32::MAX,
            };
            wanted |= self.slots_of(self.turn) & above;
        }
        pick.interested = wanted;
        Some((pick, now.saturating_add(self.account(domain).left)))
    }

    /// Runs the first vCPU of the domain that has the turn.
    fn run_own(&mut self, now: Ticks) -> Option<(Pick, Ticks)> {
        let band = self.account(self.turn).band;
        let mut pick = self.others.pick(band)?;
        self.charge = Charge::Domain {
            domain: self.turn,
            by_zero: false,
        };
        let mut wanted = pick.interested;
        if self.account(0).left > 0 {
            wanted |= self.zero.above(pick.slot.0) & self.members;
        }
        pick.interested = wanted;
        Some((pick, now.saturating_add(self.account(self.turn).left)))
    }

    /// Returns the vCPU that runs, and the time until which its budget lasts.
    fn choose(&mut self, now: Ticks) -> Option<(Pick, Ticks)> {
        if self.turn == 0 {
            return self.run_zero(0, now);
        }
        let band = self.account(self.turn).band;
        let Some(own) = self.others.top(band) else {
            return self.run_zero(self.turn, now);
        };
        if self.account(0).left > 0 && self.zero_goes_before(own) {
            self.run_zero(0, now)
        } else {
            self.run_own(now)
        }
    }

    /// Tells whether a vCPU is urgent that is not of the domain that has the turn.
    const fn is_urgent(&mut self) -> bool {
        self.zero.ready() & self.others.ready() & !self.slots_of(self.turn) != 0
    }

    /// Tells whether domain 0, if it has time, preempts this vCPU of the domain that has the turn.
    fn zero_goes_before(&mut self, own: u8) -> bool {
        let top = self.zero.top(self.all);
        top.is_some_and(|top| self.zero.above(own) & bit(top) != 0 || self.is_urgent())
    }

    /// Tells whether `slot` exists.
    const fn has(&self, slot: u8) -> bool {
        (slot as usize) < MAX_SLOTS && self.all.slots & bit(slot) != 0
    }

    fn remove(&mut self, slot: u8) {
        self.zero.remove(slot);
        self.others.remove(slot);
    }
}

impl Policy for Domains {
    fn ready(&mut self, slot: Slot, _now: Ticks) {
        if !self.has(slot.0) {
            return;
        }
        if self.members & bit(slot.0) != 0 {
            self.zero.add(slot.0);
        } else {
            self.others.add(slot.0);
        }
    }

    fn critical(&mut self, slot: Slot, _now: Ticks) {
        if self.has(slot.0) {
            self.zero.add(slot.0);
            self.others.add(slot.0);
        }
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, _now: Ticks) {
        let Charge::Domain { domain, by_zero } = self.charge else {
            return;
        };
        self.charge = Charge::Nothing;
        if !self.has(slot.0) {
            return;
        }
        if by_zero {
            self.zero.stopped(slot.0, why, ran);
        } else {
            self.others.stopped(slot.0, why, ran);
        }
        self.take(domain, ran);
        match why {
            StopReason::Preempted => {}
            StopReason::Blocked => self.remove(slot.0),
            // Afterwards the vCPU is in its own queue alone.
            StopReason::Yielded if self.members & bit(slot.0) == 0 => self.zero.remove(slot.0),
            StopReason::Yielded => self.others.remove(slot.0),
        }
    }

    fn withdraw(&mut self, slot: Slot, _now: Ticks) {
        if self.has(slot.0) {
            self.remove(slot.0);
        }
    }

    fn next(&mut self, now: Ticks) -> Decision {
        self.settle(now);
        if self.zero.ready() | self.others.ready() == 0 {
            self.charge = Charge::AllBlocked(now);
            self.interested = SlotSet(self.all.slots);
            return Decision::Idle(Ticks::MAX);
        }
        self.find_turn();
        if let Some((pick, end)) = self.choose(now) {
            self.interested = SlotSet(pick.interested & !(self.zero.ready() | self.others.ready()));
            return Decision::Run(pick.slot, now.saturating_add(pick.left).min(end));
        }
        self.charge = Charge::Unused(now);
        self.interested = SlotSet(self.slots_of(self.turn) | self.members);
        Decision::Idle(now.saturating_add(self.account(self.turn).left))
    }

    fn ready_slots(&self) -> SlotSet {
        SlotSet(self.zero.ready() | self.others.ready())
    }

    fn interested(&self) -> SlotSet {
        self.interested
    }

    fn has_signals(&self) -> bool {
        !self.signals.is_none()
    }

    fn signals(&mut self) -> Signals {
        core::mem::take(&mut self.signals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Domain;

    /// Returns a policy from the domain and priority of each vCPU.
    fn try_new(vcpus: &[(u8, u8)], budgets: &[Ticks]) -> Result<Domains, PolicyError> {
        let mut parameters = [VcpuParameters::default(); MAX_SLOTS];
        for (parameter, (domain, priority)) in parameters.iter_mut().zip(vcpus.iter().copied()) {
            parameter.domain = domain;
            parameter.priority = priority;
        }
        let mut domains = [Domain::default(); MAX_DOMAINS + 1];
        for (domain, budget) in domains.iter_mut().zip(budgets) {
            domain.budget = *budget;
        }
        let domains = DomainsParameters {
            domains: &domains[..budgets.len()],
            quantum: 5,
        };
        Domains::new(&parameters[..vcpus.len()], domains)
    }

    fn policy(vcpus: &[(u8, u8)], budgets: &[Ticks]) -> Domains {
        try_new(vcpus, budgets).unwrap()
    }

    fn run(policy: &mut Domains, now: &mut Ticks, slot: u8, ran: Ticks, why: StopReason) {
        let Decision::Run(chosen, until) = policy.next(*now) else {
            panic!("idle at {now}");
        };
        assert_eq!(chosen, Slot(slot), "at {now}");
        assert!(*now + ran <= until, "{until}");
        *now += ran;
        policy.stopped(chosen, why, ran, *now);
    }

    #[test]
    fn domains_take_turns_of_their_budgets() {
        let mut policy = policy(&[(0, 1), (1, 1), (2, 1)], &[4, 6, 8]);
        (0..3).for_each(|slot| policy.ready(Slot(slot), 0));
        assert_eq!(policy.next(0), Decision::Run(Slot(0), 4));
        let mut now = 0;
        policy.stopped(Slot(0), StopReason::Preempted, 0, 0);
        for (slot, ran) in [(0, 4), (1, 6), (2, 8), (0, 4), (1, 2), (1, 4), (2, 8)] {
            run(&mut policy, &mut now, slot, ran, StopReason::Preempted);
        }
    }

    #[test]
    fn domain_0_preempts_on_its_own_budget_and_the_turn_goes_on_after_it() {
        let mut policy = policy(&[(0, 9), (1, 5)], &[4, 6]);
        policy.ready(Slot(1), 0);
        let mut now = 0;
        run(&mut policy, &mut now, 1, 2, StopReason::Preempted);
        policy.next(now);
        assert_eq!(policy.interested(), SlotSet(1));
        policy.ready(Slot(0), now);
        policy.stopped(Slot(1), StopReason::Preempted, 0, now);
        run(&mut policy, &mut now, 0, 4, StopReason::Preempted);
        // The budget of domain 0 is used up. The others are safe from domain 0 until the cycle ends, 4 later.
        assert_eq!(policy.next(now), Decision::Run(Slot(1), now + 4));
        assert_eq!(policy.interested(), SlotSet(0));
        policy.stopped(Slot(1), StopReason::Preempted, 4, now + 4);
        assert_eq!(policy.next(now + 4), Decision::Run(Slot(0), now + 8));
    }

    #[test]
    fn a_blocked_domain_lends_the_rest_of_its_turn() {
        let mut policy = policy(&[(0, 1), (1, 5), (2, 5)], &[4, 6, 8]);
        (0..3).for_each(|slot| policy.ready(Slot(slot), 0));
        let mut now = 0;
        run(&mut policy, &mut now, 0, 4, StopReason::Preempted);
        run(&mut policy, &mut now, 1, 2, StopReason::Blocked);
        assert_eq!(policy.next(now), Decision::Run(Slot(0), 10));
        assert_eq!(policy.interested(), SlotSet(0b10));
        policy.ready(Slot(1), 7);
        policy.stopped(Slot(0), StopReason::Preempted, 1, 7);
        assert_eq!(policy.next(7), Decision::Run(Slot(1), 10));
        policy.stopped(Slot(1), StopReason::Blocked, 3, 10);
        assert_eq!(policy.next(10), Decision::Run(Slot(2), 18));
        // If domain 0 has no vCPU, the turn goes by, so that no vCPU has it early.
        policy.withdraw(Slot(0), 10);
        policy.stopped(Slot(2), StopReason::Preempted, 8, 18);
        assert_eq!(policy.next(18), Decision::Idle(24));
        assert_eq!(policy.interested(), SlotSet(0b011));
    }

    #[test]
    fn while_nothing_is_ready_turns_go_by_without_the_clock() {
        for wake in [0, 3, 6, 13, 14, 17, 14 * 1000 + 7] {
            let mut policy = policy(&[(0, 1), (1, 5), (2, 5)], &[4, 6, 8]);
            assert_eq!(policy.next(0), Decision::Idle(Ticks::MAX));
            policy.ready(Slot(1), wake);
            // A cycle without domain 0 is 14 long, and domain 1 has its first 6.
            let at = wake % 14;
            let expected = if at < 6 {
                Decision::Run(Slot(1), wake + 6 - at)
            } else {
                Decision::Idle(wake + 14 - at)
            };
            assert_eq!(policy.next(wake), expected, "{wake}");
        }
    }

    #[test]
    fn a_critical_interrupt_is_served_in_domain_0_until_it_blocks() {
        let mut policy = policy(&[(0, 1), (1, 5), (2, 7)], &[4, 6, 8]);
        (0..2).for_each(|slot| policy.ready(Slot(slot), 0));
        policy.critical(Slot(2), 0);
        let mut now = 0;
        run(&mut policy, &mut now, 2, 3, StopReason::Preempted);
        run(&mut policy, &mut now, 2, 1, StopReason::Preempted);
        // The budget of domain 0 is used up, but slot 2 still has its own turn.
        run(&mut policy, &mut now, 1, 6, StopReason::Preempted);
        run(&mut policy, &mut now, 2, 1, StopReason::Yielded);
        run(&mut policy, &mut now, 2, 7, StopReason::Blocked);
        policy.ready(Slot(2), now);
        run(&mut policy, &mut now, 0, 4, StopReason::Preempted);
        run(&mut policy, &mut now, 1, 6, StopReason::Preempted);
    }

    /// Tries all priorities, and a vCPU of domain 0 as well.
    #[test]
    fn a_critical_interrupt_is_served_at_once_while_another_domain_has_its_turn() {
        for (urgent, own, other) in (0..32).flat_map(|own| [(0, own, 31), (1, own, 0), (1, own, 31)]) {
            let mut policy = policy(&[(0, own), (1, own), (2, other), (0, 31)], &[4, 6, 8]);
            policy.next(0);
            let mut now = 6;
            policy.ready(Slot(2), now);
            run(&mut policy, &mut now, 2, 1, StopReason::Preempted);
            policy.critical(Slot(urgent), now);
            run(&mut policy, &mut now, urgent, 1, StopReason::Preempted);
            assert_eq!(policy.next(now), Decision::Run(Slot(urgent), now + 3));
            // Nothing of the domain that has the turn is wanted. A vCPU of domain 0 is that is not less
            // important.
            assert_eq!(
                policy.interested(),
                SlotSet(0b1000 | if urgent == 1 { 1 } else { 0 })
            );
            policy.stopped(Slot(urgent), StopReason::Blocked, 1, now + 1);
            policy.ready(Slot(urgent), now + 1);
            let is_above = urgent == 0 && own > other;
            let next = if is_above { urgent } else { 2 };
            run(&mut policy, &mut (now + 1), next, 1, StopReason::Preempted);
        }
    }

    #[test]
    fn an_overrun_is_paid_back() {
        let mut policy = policy(&[(0, 1), (1, 5)], &[4, 6]);
        (0..2).for_each(|slot| policy.ready(Slot(slot), 0));
        assert_eq!(policy.next(0), Decision::Run(Slot(0), 4));
        policy.stopped(Slot(0), StopReason::Preempted, 7, 7);
        assert_eq!(policy.next(7), Decision::Run(Slot(1), 13));
        policy.stopped(Slot(1), StopReason::Preempted, 100, 107);
        assert_eq!(policy.next(107), Decision::Run(Slot(0), 108));
        policy.stopped(Slot(0), StopReason::Preempted, 1, 108);
        // Domain 1 owed a whole budget and more. The policy passes it over once.
        assert_eq!(policy.next(108), Decision::Run(Slot(0), 112));
        policy.stopped(Slot(0), StopReason::Preempted, 4, 112);
        assert_eq!(policy.next(112), Decision::Run(Slot(1), 118));
    }

    #[test]
    fn bad_parameters_are_refused() {
        for (vcpus, budgets) in [
            (&[(0, 1)][..], &[][..]),
            (&[(1, 1)], &[4]),
            (&[(0, 1)], &[4, 0]),
            (&[(0, 32)], &[4]),
            (&[], &[1, Ticks::MAX]),
            (&[], &[1; MAX_DOMAINS + 1]),
        ] {
            assert_eq!(try_new(vcpus, budgets), Err(PolicyError::BadParameter));
        }
    }
}
