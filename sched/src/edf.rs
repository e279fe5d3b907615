// SPDX-License-Identifier: Apache-2.0
//! Policy `edf`: the earliest deadline runs. Budgets are constant-bandwidth servers.
//!
//! **Model.** A vCPU with a budget Q, a period T and a relative deadline D <= T is a server as in Abeni and
//! Buttazzo, "Integrating Multimedia Applications in Hard Real-Time Systems", 1998. From its release r, the
//! server has the deadline r + D and may run for Q. With Q used up, the server waits until r + T, its next
//! release. This is the *hard* rule. The original recharges at once and postpones the deadline. That lets a
//! vCPU borrow from its own future and then be late when others wake up.
//!
//! If a vCPU becomes ready again after r + T, that moment is its release. If a vCPU becomes ready before r +
//! T, the policy looks at the rest of Q. The rest is kept if it could be used up by the deadline at the rate
//! Q / D, that is left * D <= (deadline - now) * Q. Otherwise, with D = T, the moment is a new release. With
//! D < T, a new release would be more than Q per T. So just as much as fits is kept, or nothing until r + T.
//! The rule for D < T is that for constrained deadlines in Linux: Lelli, Scordino, Abeni and Faggioli,
//! "Deadline scheduling in the Linux kernel", 2016.
//!
//! So in any stretch of length L a server asks for at most L * Q / D by deadlines in it, with any behaviour
//! of its vCPU. Admission is by density, the sum of Q / D, and no vCPU can make another late.
//!
//! **Unnoticed wake-ups.** A wake-up that would not change the decision in force may be told at the next
//! decision only. The policy then takes the wake-up to have come with the decision in force. That decision
//! would have been the same one. A release later than the wake-up would have a deadline that is too late.
//!
//! vCPUs without a budget run in the background, while no server can run. The most important ready one runs,
//! and equals take turns ([`RunQueue`]).
//!
//! **Ties.** Among equal deadlines, the server that ran last goes on. Otherwise the server with the longer
//! relative deadline goes first, then the lower slot. A yield lets an equal deadline go first.
//!
//! **Cost.** The cost is O(log n): one tournament for deadlines and one for replenishments, in the order of
//! relative deadlines. So one search finds the servers that could come before the deadline in force at all.
//! `interested` and the timer are exact to that order. A vCPU with a relative deadline that is short enough
//! is looked at even if its budget turns out not to be enough.

use crate::fixed_priority::check;
use crate::run_queue::{Band, RunQueue, all_slots};
use crate::table::{Table, bit, each};
use crate::timers::Timers;
use crate::types::HAS_WIDE_DIVISION;
use crate::{
    Decision, EdfParameters, MAX_SLOTS, Policy, PolicyError, Server, ServerKind, Signals, Slot, SlotSet,
    StopReason, Ticks, VcpuParameters,
};

/// A constant-bandwidth server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bandwidth {
    budget: Ticks,
    period: Ticks,
    relative_deadline: Ticks,
    left: Ticks,
    /// The time that was used beyond the budget. It is taken from the next budget, and is less than the
    /// budget.
    debt: Ticks,
    /// Start of the period in force. It is never before the first activation.
    release: Ticks,
}

const NO_SERVER: Bandwidth = Bandwidth {
    budget: 0,
    period: 0,
    relative_deadline: 0,
    left: 0,
    debt: 0,
    release: Ticks::MAX,
};

impl Bandwidth {
    fn new(server: Server, deadline: Ticks) -> Result<Self, PolicyError> {
        let Server { budget, period, kind } = server;
        let relative_deadline = if deadline == 0 { period } else { deadline };
        let is_in_order = budget >= 1 && budget <= relative_deadline && relative_deadline <= period;
        if kind != ServerKind::ConstantBandwidth || !is_in_order {
            return Err(PolicyError::BadParameter);
        }
        Ok(Self {
            budget,
            period,
            relative_deadline,
            ..NO_SERVER
        })
    }

    const fn deadline(&self) -> Ticks {
        self.release.saturating_add(self.relative_deadline)
    }

    const fn next_release(&self) -> Ticks {
        self.release.saturating_add(self.period)
    }

    const fn start(&mut self, release: Ticks) {
        self.release = release;
        self.left = self.budget.saturating_sub(self.debt);
        self.debt = 0;
    }

    /// Takes note that the vCPU becomes ready, or has been ready since `since` without anybody's notice.
    fn activate(&mut self, since: Ticks, now: Ticks) {
        if self.release == Ticks::MAX {
            self.start(since);
            return;
        }
        if now >= self.next_release() {
            self.start(since.max(self.next_release()));
            return;
        }
        // Both numbers have 64 bits, so the product fits.
        let wide = |a: Ticks, b: Ticks| u128::from(a).wrapping_mul(u128::from(b));
        let remaining = self.deadline().saturating_sub(now);
        let share = wide(remaining, self.budget);
        if wide(self.left, self.relative_deadline) <= share {
            return;
        }
        if self.relative_deadline == self.period {
            self.start(now);
        } else {
            self.left = divided(share, self.relative_deadline);
        }
    }

    fn charge(&mut self, ran: Ticks) {
        let beyond = ran.saturating_sub(self.left);
        self.left = self.left.saturating_sub(ran);
        if beyond > 0 {
            // Each whole budget that is owed is a whole period to wait.
            let periods = beyond.checked_div(self.budget).unwrap_or(0);
            self.debt = beyond.saturating_sub(periods.wrapping_mul(self.budget));
            self.release = self.release.saturating_add(periods.saturating_mul(self.period));
        }
    }
}

/// Returns `dividend / divisor`, or the greatest number if the quotient is greater.
fn divided(dividend: u128, divisor: Ticks) -> Ticks {
    if HAS_WIDE_DIVISION {
        let quotient = dividend.checked_div(u128::from(divisor));
        return Ticks::try_from(quotient.unwrap_or(0)).unwrap_or(Ticks::MAX);
    }
    divided_bitwise(dividend, divisor)
}

/// Returns the same as `divided`, computed a bit at a time. Where the CPU has no wide division, the library's
/// division is ten times as long.
fn divided_bitwise(dividend: u128, divisor: Ticks) -> Ticks {
    let (mut rest, mut quotient) = ((dividend >> 64) as u64, dividend as u64);
    if rest >= divisor {
        return Ticks::MAX;
    }
    for _ in 0..u64::BITS {
        let is_beyond = rest >> 63 != 0;
        rest = rest << 1 | quotient >> 63;
        quotient <<= 1;
        if is_beyond || rest >= divisor {
            rest = rest.wrapping_sub(divisor);
            quotient |= 1;
        }
    }
    quotient
}

/// The policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edf {
    /// The ready vCPUs without a server.
    background: RunQueue,
    /// All vCPUs without a server.
    without: Band,
    /// All vCPUs with a server.
    with: u32,
    servers: Table<Bandwidth>,
    /// In the order of relative deadlines, the longest first: the slots, and the place of each.
    slot_of: Table<u8>,
    rank_of: Table<u8>,
    /// By rank: this slot and those with higher ranks.
    slots_from: Table<u32>,
    /// By rank: the deadlines of the ready servers with budget.
    deadlines: Timers,
    /// By rank: the next releases of the ready servers without budget.
    releases: Timers,
    ready: u32,
    /// The servers that were found without budget and have not been seen with some since.
    exhausted: u32,
    /// The servers that are not ready and might still have the deadline they had.
    kept: u32,
    /// The server that ran last.
    last: Option<u8>,
    has_yielded: bool,
    /// The time at which the decision in force was taken.
    decided: Ticks,
    interested: SlotSet,
    signals: Signals,
}

/// Returns no servers. The function stands alone, so that the servers are written where they stay.
#[inline(never)]
const fn no_servers() -> Table<Bandwidth> {
    Table::new(NO_SERVER)
}

impl Edf {
    /// Returns the policy of a pCPU with these vCPUs, slot 0 first.
    ///
    /// # Errors
    /// [`PolicyError::TooManyVcpus`] if there are too many vCPUs. [`PolicyError::BadParameter`] for a
    /// priority above 31, a quantum of 0, a server of another kind, and unless 1 <= budget <= deadline <=
    /// period.
    pub fn new(vcpus: &[VcpuParameters], parameters: EdfParameters) -> Result<Self, PolicyError> {
        let mut policy = Self::blank(parameters.quantum);
        policy.fill(vcpus)?;
        Ok(policy)
    }

    /// Returns a policy without slots.
    pub(crate) const fn blank(quantum: Ticks) -> Self {
        Self {
            background: RunQueue::new(quantum),
            without: Band::NONE,
            with: 0,
            servers: no_servers(),
            slot_of: Table::new(0),
            rank_of: Table::new(0),
            slots_from: Table::new(0),
            deadlines: Timers::new(),
            releases: Timers::new(),
            ready: 0,
            exhausted: 0,
            kept: 0,
            last: None,
            has_yielded: false,
            decided: 0,
            interested: SlotSet(0),
            signals: Signals::NONE,
        }
    }

    /// Gives a blank policy its slots. After an error the policy must not be used.
    pub(crate) fn fill(&mut self, vcpus: &[VcpuParameters]) -> Result<(), PolicyError> {
        check(vcpus, self.background.quantum())?;
        for (slot, vcpu) in (0..).zip(vcpus) {
            if let Some(server) = vcpu.server {
                *self.servers.at_mut(slot) = Bandwidth::new(server, vcpu.deadline)?;
                self.with |= bit(slot);
            }
        }
        self.background.sort(vcpus, &Table::new(0));
        self.interested = all_slots(vcpus.len());
        self.without = self.background.band(self.interested.0 & !self.with);
        self.sort();
        Ok(())
    }

    /// Ranks the servers. The ranks after the last server have the relative deadline 0.
    fn sort(&mut self) {
        let mut count = 0_u8;
        for slot in each(self.with) {
            let deadline = self.servers.at(slot).relative_deadline;
            let mut place = count;
            while place > 0 {
                let before = *self.slot_of.at(place.wrapping_sub(1));
                if self.servers.at(before).relative_deadline >= deadline {
                    break;
                }
                *self.slot_of.at_mut(place) = before;
                place = place.wrapping_sub(1);
            }
            *self.slot_of.at_mut(place) = slot;
            count = count.wrapping_add(1);
        }
        let mut slots = 0;
        for rank in (0..count).rev() {
            let slot = *self.slot_of.at(rank);
            slots |= bit(slot);
            *self.rank_of.at_mut(slot) = rank;
            *self.slots_from.at_mut(rank) = slots;
        }
    }

    /// Returns the lowest rank with a relative deadline below `limit`, or 32 if there is none.
    fn rank_below(&self, limit: Ticks) -> u8 {
        let count = self.with.count_ones() as usize;
        let ranks = self.slot_of.all().get(..count).unwrap_or(&[]);
        let rank = ranks.partition_point(|slot| self.servers.at(*slot).relative_deadline >= limit);
        if rank == count {
            MAX_SLOTS as u8
        } else {
            rank as u8
        }
    }

    /// Returns the servers that could have an earlier deadline than this one, and the next release of one of
    /// them. Mostly the servers that are not ready have kept their deadlines, and none waits for a release.
    /// Then there is nothing to look for.
    #[inline(always)]
    fn sooner(&self, slot: u8, now: Ticks) -> (u32, Ticks) {
        if self.with & !(self.ready | self.kept) == 0 && self.releases.earliest() == Ticks::MAX {
            return (0, Ticks::MAX);
        }
        self.look_for_sooner(slot, now)
    }

    #[inline(never)]
    fn look_for_sooner(&self, slot: u8, now: Ticks) -> (u32, Ticks) {
        let deadline = self.servers.at(slot).deadline();
        let rank = self.rank_below(deadline.saturating_sub(now));
        let sooner = if usize::from(rank) < MAX_SLOTS {
            *self.slots_from.at(rank)
        } else {
            0
        };
        (sooner, self.releases.earliest_from(rank))
    }

    /// Puts a ready server where its budget says.
    fn place(&mut self, slot: u8, now: Ticks) {
        let rank = *self.rank_of.at(slot);
        let server = self.servers.at_mut(slot);
        if server.left == 0 && server.next_release() <= now {
            server.start(server.next_release());
        }
        if server.left > 0 {
            self.deadlines.update(rank, server.deadline());
            self.releases.update(rank, Ticks::MAX);
            self.signals.replenished.0 |= self.exhausted & bit(slot);
            self.exhausted &= !bit(slot);
        } else {
            self.releases.update(rank, server.next_release());
            self.deadlines.update(rank, Ticks::MAX);
            self.signals.exhausted.0 |= !self.exhausted & bit(slot);
            self.exhausted |= bit(slot);
        }
    }

    fn unready(&mut self, slot: u8) {
        self.ready &= !bit(slot);
        if self.with & bit(slot) == 0 {
            self.background.remove(slot);
            return;
        }
        let rank = *self.rank_of.at(slot);
        self.deadlines.update(rank, Ticks::MAX);
        self.releases.update(rank, Ticks::MAX);
        if self.servers.at(slot).left > 0 {
            self.kept |= bit(slot);
        }
    }

    /// Takes note of the releases that are due. Each server has one.
    fn release(&mut self, now: Ticks) {
        while self.releases.earliest() <= now {
            let Some(rank) = self.releases.first() else {
                return;
            };
            self.place(*self.slot_of.at(rank), now);
        }
    }

    /// Returns the server with the earliest deadline, if one can run.
    fn choose(&mut self) -> Option<u8> {
        let earliest = self.deadlines.earliest();
        let mut rank = self.deadlines.first()?;
        if let Some(last) = self.last {
            let own = *self.rank_of.at(last);
            if self.deadlines.get(own) == earliest {
                rank = own;
                if self.has_yielded {
                    self.deadlines.set(own, Ticks::MAX);
                    let other = self.deadlines.first();
                    if self.deadlines.earliest() == earliest {
                        rank = other.unwrap_or(own);
                    }
                    self.deadlines.set(own, earliest);
                }
            }
        }
        self.has_yielded = false;
        Some(*self.slot_of.at(rank))
    }
}

impl Policy for Edf {
    fn ready(&mut self, slot: Slot, now: Ticks) {
        let slot = slot.0;
        if usize::from(slot) >= MAX_SLOTS || self.ready & bit(slot) != 0 {
            return;
        }
        if self.without.slots & bit(slot) != 0 {
            self.ready |= bit(slot);
            self.background.add(slot);
        } else if self.with & bit(slot) != 0 {
            let is_noticed = (self.interested.0 | self.kept) & bit(slot) != 0;
            let since = if is_noticed { now } else { self.decided };
            self.ready |= bit(slot);
            self.kept &= !bit(slot);
            self.servers.at_mut(slot).activate(since, now);
            self.place(slot, now);
        }
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        let slot = slot.0;
        if usize::from(slot) >= MAX_SLOTS || self.ready & bit(slot) == 0 {
            return;
        }
        if self.with & bit(slot) == 0 {
            self.background.stopped(slot, why, ran);
        } else {
            self.servers.at_mut(slot).charge(ran);
            self.place(slot, now);
            self.last = Some(slot);
            self.has_yielded = why == StopReason::Yielded;
        }
        if why == StopReason::Blocked {
            self.unready(slot);
        }
    }

    fn withdraw(&mut self, slot: Slot, _now: Ticks) {
        if usize::from(slot.0) < MAX_SLOTS && self.ready & bit(slot.0) != 0 {
            self.unready(slot.0);
        }
    }

    fn next(&mut self, now: Ticks) -> Decision {
        self.decided = now;
        self.release(now);
        let all = self.with | self.without.slots;
        if let Some(slot) = self.choose() {
            let (sooner, release) = self.sooner(slot, now);
            self.interested = SlotSet((sooner | self.kept) & !self.ready);
            let until = now.saturating_add(self.servers.at(slot).left).min(release);
            return Decision::Run(Slot(slot), until);
        }
        if let Some(pick) = self.background.pick(self.without) {
            self.interested = SlotSet((self.with | pick.interested) & !self.ready);
            let until = now.saturating_add(pick.left).min(self.releases.earliest());
            return Decision::Run(pick.slot, until);
        }
        self.interested = SlotSet(all & !self.ready);
        Decision::Idle(self.releases.earliest())
    }

    fn ready_slots(&self) -> SlotSet {
        SlotSet(self.ready)
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

    /// Returns a policy from the budget, period and deadline of each vCPU. A budget of 0 is the background.
    fn try_new(servers: &[(Ticks, Ticks, Ticks)]) -> Result<Edf, PolicyError> {
        let mut vcpus = [VcpuParameters::default(); MAX_SLOTS];
        for (vcpu, (budget, period, deadline)) in vcpus.iter_mut().zip(servers.iter().copied()) {
            vcpu.deadline = deadline;
            vcpu.server = (period != 0).then_some(Server {
                budget,
                period,
                kind: ServerKind::ConstantBandwidth,
            });
        }
        Edf::new(&vcpus[..servers.len()], EdfParameters { quantum: 5 })
    }

    fn policy(servers: &[(Ticks, Ticks, Ticks)]) -> Edf {
        try_new(servers).unwrap()
    }

    #[test]
    fn a_division_bit_by_bit_is_the_division() {
        let mut number = 1_u64;
        let mut next = || {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            number >> (number % 64)
        };
        for _ in 0..10_000 {
            let (a, b, divisor) = (next(), next(), next().max(1));
            let dividend = u128::from(a) * u128::from(b);
            let quotient = Ticks::try_from(dividend / u128::from(divisor)).unwrap_or(Ticks::MAX);
            assert_eq!(
                divided_bitwise(dividend, divisor),
                quotient,
                "{a} * {b} / {divisor}"
            );
            assert_eq!(divided(dividend, divisor), quotient);
        }
    }

    #[test]
    fn the_earliest_deadline_runs_for_its_budget_and_then_waits_for_its_period() {
        let mut policy = policy(&[(3, 10, 0), (4, 8, 0), (0, 0, 0)]);
        (0..3).for_each(|slot| policy.ready(Slot(slot), 0));
        assert_eq!(policy.next(0), Decision::Run(Slot(1), 4));
        policy.stopped(Slot(1), StopReason::Preempted, 4, 4);
        assert_eq!(policy.signals().exhausted, SlotSet(0b10));
        assert_eq!(policy.next(4), Decision::Run(Slot(0), 7));
        policy.stopped(Slot(0), StopReason::Preempted, 3, 7);
        assert_eq!(policy.next(7), Decision::Run(Slot(2), 8));
        policy.stopped(Slot(2), StopReason::Preempted, 1, 8);
        assert_eq!(policy.next(8), Decision::Run(Slot(1), 12));
        assert_eq!(policy.signals().replenished, SlotSet(0b10));
    }

    /// Wakes slot 1 up at 1. The policy need not know this before slot 0 has used its budget.
    #[test]
    fn a_deadline_counts_from_a_wake_up_that_nobody_noticed() {
        let mut policy = policy(&[(30, 40, 0), (12, 80, 55)]);
        policy.ready(Slot(0), 0);
        assert_eq!(policy.next(0), Decision::Run(Slot(0), 30));
        assert_eq!(policy.interested(), SlotSet(0));
        policy.stopped(Slot(0), StopReason::Preempted, 30, 30);
        policy.ready(Slot(1), 30);
        assert_eq!(
            policy.next(30),
            Decision::Run(Slot(1), 42),
            "its deadline is 55, not 85"
        );
    }

    #[test]
    fn an_overrun_is_paid_back() {
        let mut policy = policy(&[(3, 10, 0)]);
        policy.ready(Slot(0), 0);
        assert_eq!(policy.next(0), Decision::Run(Slot(0), 3));
        policy.stopped(Slot(0), StopReason::Preempted, 5, 5);
        assert_eq!(policy.next(5), Decision::Idle(10));
        assert_eq!(policy.next(11), Decision::Run(Slot(0), 12));
        policy.stopped(Slot(0), StopReason::Preempted, 1 + 7, 19);
        assert_eq!(policy.next(19), Decision::Idle(40));
        assert_eq!(policy.next(40), Decision::Run(Slot(0), 42));
    }

    #[test]
    fn waking_up_late_does_not_bring_more_than_the_bandwidth() {
        // With deadline = period, a new period starts: 2 of 3 until 10 is more than 3 per 10.
        let mut implicit = policy(&[(3, 10, 0)]);
        implicit.ready(Slot(0), 0);
        implicit.next(0);
        implicit.stopped(Slot(0), StopReason::Blocked, 1, 1);
        implicit.ready(Slot(0), 6);
        assert_eq!(implicit.next(6), Decision::Run(Slot(0), 9));
        // With deadline < period, the part that fits until the deadline is kept. The rest comes with the next
        // period.
        let mut constrained = policy(&[(4, 20, 10)]);
        constrained.ready(Slot(0), 0);
        constrained.next(0);
        constrained.stopped(Slot(0), StopReason::Blocked, 1, 1);
        constrained.ready(Slot(0), 5);
        assert_eq!(constrained.next(5), Decision::Run(Slot(0), 7));
        constrained.stopped(Slot(0), StopReason::Preempted, 2, 7);
        assert_eq!(constrained.next(7), Decision::Idle(20));
        assert_eq!(constrained.next(20), Decision::Run(Slot(0), 24));
    }

    #[test]
    fn equal_deadlines_do_not_preempt_and_a_yield_lets_them_go() {
        let mut policy = policy(&[(3, 10, 0), (3, 10, 0)]);
        policy.ready(Slot(1), 0);
        assert_eq!(policy.next(0), Decision::Run(Slot(1), 3));
        policy.ready(Slot(0), 0);
        policy.stopped(Slot(1), StopReason::Preempted, 1, 1);
        assert_eq!(policy.next(1), Decision::Run(Slot(1), 3));
        policy.stopped(Slot(1), StopReason::Yielded, 1, 2);
        assert_eq!(policy.next(2), Decision::Run(Slot(0), 5));
    }

    #[test]
    fn only_who_can_be_earlier_is_of_interest() {
        let mut policy = policy(&[(1, 10, 0), (1, 50, 0), (1, 100, 0), (0, 0, 0)]);
        policy.ready(Slot(1), 0);
        assert_eq!(policy.next(0), Decision::Run(Slot(1), 1));
        assert_eq!(policy.interested(), SlotSet(0b001));
        policy.withdraw(Slot(1), 0);
        policy.ready(Slot(3), 0);
        assert_eq!(policy.next(0), Decision::Run(Slot(3), Ticks::MAX));
        assert_eq!(policy.interested(), SlotSet(0b111));
    }

    #[test]
    fn bad_servers_are_refused() {
        for bad in [(0, 10, 0), (11, 10, 0), (5, 10, 4), (5, 10, 11)] {
            assert_eq!(try_new(&[bad]), Err(PolicyError::BadParameter), "{bad:?}");
        }
        assert!(try_new(&[(5, 10, 5)]).is_ok());
    }
}
