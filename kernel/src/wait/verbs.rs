// SPDX-License-Identifier: Apache-2.0
//! The verbs of waits. Each wait has them beside its feature. This file passes a question on to the right
//! one.

use super::Wait;
use crate::dispatch::Pcpu;
use crate::dispatch::basis::Right;
use crate::lock::LockWait;
use crate::parts::{LOCKS, PORTS, SERVICES, of};
use crate::port::{MessageWait, ReplyWait};
use crate::service::AccessWait;
use crate::wait::Outcome;
use bulkhead_abi::Error;
use bulkhead_abi::trace::BlockReason;
use bulkhead_arch_api::{Arch, Drivers, Ticks, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

/// The end of a wait whose deadline has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// The wait is given up.
    GivesUp,
    /// The vCPU ends the wait in its own time, when it has its turn. No interrupt ends such a wait, and its
    /// outcome is more than an answer.
    TakesTurn,
}

/// The capability that a wait without a seat rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The slot of the capability.
    pub index: u8,
    /// The kind and the right that the wait needs.
    pub right: Right,
    /// The object.
    pub object: u8,
}

/// The facts about waits of one kind.
pub(crate) trait Facts: Copy {
    /// The reason that the trace gives for the block.
    const REASON: BlockReason;
    /// True if the vCPU has called, and waits for the reply.
    const IS_CALL: bool = false;
    /// The end of the wait when its own deadline comes. The vCPU's timer interrupts any other wait.
    const DEADLINE: Deadline = Deadline::GivesUp;

    /// Returns the capability that the wait rests on, if no seat says so.
    fn rests_on(self) -> Option<Rest> {
        None
    }
}

/// The verbs of a wait: the four that each wait has, and some that few waits need.
pub(crate) trait Verbs<A: Arch, D: Drivers, P: PcpuPolicy>: Copy {
    /// Returns the outcome of the wait, if the wait has ended. The vCPU is on this pCPU.
    fn outcome(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId) -> Option<Outcome>;

    /// Ends the wait because of an error. Returns the error, unless the wait has an outcome by now.
    fn give_up(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId, error: Error) -> Outcome;

    /// Takes a vCPU that is told no outcome out of the waiters: it is being switched off, or has lost its
    /// capability.
    fn leave(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId);

    /// Sees to the loans of others after the vCPU was told the outcome of its wait.
    #[inline(always)]
    fn ended(self, _pcpu: &mut Pcpu<'_, '_, A, D, P>, _outcome: Outcome) {}

    /// Sees to the loan of a vCPU that was woken and waits on. If it lends its place, it still does.
    #[inline(always)]
    fn lend(self, _pcpu: &mut Pcpu<'_, '_, A, D, P>, _slot: Slot) {}

    /// Ends a wait that takes a turn ([`Deadline::TakesTurn`]), in the time of its vCPU. Returns false if
    /// there is no reason to end it.
    #[inline(always)]
    fn take_turn(self, _pcpu: &mut Pcpu<'_, '_, A, D, P>, _slot: Slot, _until: Ticks) -> bool {
        false
    }
}

/// Asks a wait by a verb: one line for each wait.
macro_rules! ask {
    ($wait:expr, $of:ident => $answer:expr) => {
        match $wait {
            Wait::Events($of) => $answer,
            Wait::Sleep($of) => $answer,
            Wait::Message($of) => {
                let $of = of::<PORTS, MessageWait>($of);
                $answer
            }
            Wait::Reply($of) => {
                let $of = of::<PORTS, ReplyWait>($of);
                $answer
            }
            Wait::Lock($of) => {
                let $of = of::<LOCKS, LockWait>($of);
                $answer
            }
            Wait::Access($of) => {
                let $of = of::<SERVICES, AccessWait>($of);
                $answer
            }
        }
    };
}

/// Returns the reason that the trace gives for waits of this kind.
const fn reason<W: Facts>(_wait: W) -> BlockReason {
    W::REASON
}

/// Tells whether the vCPUs of waits of this kind have called.
const fn is_call<W: Facts>(_wait: W) -> bool {
    W::IS_CALL
}

/// Tells whether waits of this kind take a turn.
const fn takes_turn<W: Facts>(_wait: W) -> bool {
    matches!(W::DEADLINE, Deadline::TakesTurn)
}

impl Wait {
    /// Returns the reason that the trace gives for the block.
    #[inline(always)]
    pub(crate) fn reason(self) -> BlockReason {
        ask!(self, wait => reason(wait))
    }

    /// Tells whether the vCPU has called, and waits for the reply.
    #[inline(always)]
    pub(crate) fn is_call(self) -> bool {
        ask!(self, wait => is_call(wait))
    }

    /// Tells whether the vCPU ends the wait in its own time ([`Deadline::TakesTurn`]).
    #[inline(always)]
    pub(crate) fn takes_turn(self) -> bool {
        ask!(self, wait => takes_turn(wait))
    }

    /// Returns the outcome of the wait, if the wait has ended ([`Verbs::outcome`]).
    #[inline(always)]
    pub(crate) fn outcome<A: Arch, D: Drivers, P: PcpuPolicy>(
        self,
        pcpu: &mut Pcpu<'_, '_, A, D, P>,
        vcpu: VcpuId,
    ) -> Option<Outcome> {
        ask!(self, wait => wait.outcome(pcpu, vcpu))
    }

    /// Ends the wait because of an error ([`Verbs::give_up`]).
    #[inline(always)]
    pub(crate) fn give_up<A: Arch, D: Drivers, P: PcpuPolicy>(
        self,
        pcpu: &mut Pcpu<'_, '_, A, D, P>,
        vcpu: VcpuId,
        error: Error,
    ) -> Outcome {
        ask!(self, wait => wait.give_up(pcpu, vcpu, error))
    }

    /// Takes a vCPU that is told no outcome out of the waiters ([`Verbs::leave`]).
    #[inline(never)]
    pub(crate) fn leave<A: Arch, D: Drivers, P: PcpuPolicy>(
        self,
        pcpu: &mut Pcpu<'_, '_, A, D, P>,
        vcpu: VcpuId,
    ) {
        ask!(self, wait => wait.leave(pcpu, vcpu));
    }

    /// Returns the capability that the wait rests on, if no seat says so.
    #[inline(always)]
    pub(crate) fn rests_on(self) -> Option<Rest> {
        ask!(self, wait => wait.rests_on())
    }

    /// Sees to the loans of others after the vCPU was told the outcome ([`Verbs::ended`]).
    #[inline(always)]
    pub(crate) fn ended<A: Arch, D: Drivers, P: PcpuPolicy>(
        self,
        pcpu: &mut Pcpu<'_, '_, A, D, P>,
        outcome: Outcome,
    ) {
        ask!(self, wait => wait.ended(pcpu, outcome));
    }

    /// Sees to the loan of a vCPU that waits on ([`Verbs::lend`]).
    #[inline(always)]
    pub(crate) fn lend<A: Arch, D: Drivers, P: PcpuPolicy>(
        self,
        pcpu: &mut Pcpu<'_, '_, A, D, P>,
        slot: Slot,
    ) {
        ask!(self, wait => wait.lend(pcpu, slot));
    }

    /// Ends a wait that takes a turn ([`Verbs::take_turn`]).
    #[inline(always)]
    pub(crate) fn take_turn<A: Arch, D: Drivers, P: PcpuPolicy>(
        self,
        pcpu: &mut Pcpu<'_, '_, A, D, P>,
        slot: Slot,
        until: Ticks,
    ) -> bool {
        ask!(self, wait => wait.take_turn(pcpu, slot, until))
    }
}
