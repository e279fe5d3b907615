// SPDX-License-Identifier: Apache-2.0
//! The waits at ports, for a message and for the reply to a call, and their verbs.

use crate::dispatch::Pcpu;
use crate::local::Activity;
use crate::port::command::Buffer;
use crate::port::life::Ports;
use crate::port::{CallState, MessageWait, PortId, ReplyWait};
use crate::wait::Outcome;
use crate::wait::verbs::{Facts, Verbs};
use bulkhead_abi::Error;
use bulkhead_abi::trace::BlockReason;
use bulkhead_arch_api::{Arch, Drivers, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

impl<A: Arch, D: Drivers, P: PcpuPolicy> Ports<'_, '_, '_, A, D, P> {
    /// Blocks a vCPU that is a waiter of a port.
    pub(super) fn wait_for_message(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        port: PortId,
        buffer: &Buffer,
    ) -> Option<Outcome> {
        let until = self.pcpu.deadline_of(buffer.until);
        let wait = MessageWait { port };
        let Some(timer) = self.pcpu.interruption(vcpu) else {
            return Some(wait.give_up(self.pcpu, vcpu, Error::Interrupted));
        };
        self.pcpu
            .local
            .block(slot, Activity::waiting(wait.into(), until, timer));
        None
    }

    /// Blocks a vCPU that has a call, unless the call is done.
    pub(super) fn wait_for_reply(&mut self, slot: Slot, vcpu: VcpuId, until: Option<u64>) -> Option<Outcome> {
        let mut outcome = self.replied(vcpu);
        if outcome.is_none() {
            let until = self.pcpu.deadline_of(until);
            if let Some(timer) = self.pcpu.interruption(vcpu) {
                self.pcpu
                    .local
                    .block(slot, Activity::waiting(ReplyWait.into(), until, timer));
                return None;
            }
            outcome = Some(ReplyWait.give_up(self.pcpu, vcpu, Error::Interrupted));
        }
        self.pcpu.end_loan(slot);
        outcome
    }

    /// Returns the outcome of the vCPU's call, if the call is done. There is no call then.
    fn replied(&self, vcpu: VcpuId) -> Option<Outcome> {
        let mut seat = self.pcpu.shared.seats.of(vcpu).lock();
        let CallState::Done(outcome) = seat.call.state else {
            return None;
        };
        seat.call.state = CallState::None;
        let index = seat.call.at.index;
        drop(seat);
        if outcome == Err(Error::Revoked) {
            // Also if the receiver has ended the call: then the slot has its capability, and keeps it.
            self.pcpu.meet_revoked(vcpu, index);
        }
        Some(outcome)
    }
}

impl Facts for MessageWait {
    const REASON: BlockReason = BlockReason::Message;
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Verbs<A, D, P> for MessageWait {
    #[inline(always)]
    fn outcome(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId) -> Option<Outcome> {
        pcpu.received(vcpu)
    }

    /// Takes the vCPU from the waiters. Returns `error`, unless a message has come meanwhile.
    #[inline(never)]
    fn give_up(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId, error: Error) -> Outcome {
        if pcpu.shared.ports.of(self.port).lock().leave(vcpu) {
            return Err(error);
        }
        pcpu.received(vcpu).unwrap_or(Err(error))
    }

    #[inline(always)]
    fn leave(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId) {
        pcpu.shared.ports.of(self.port).lock().leave(vcpu);
    }
}

impl Facts for ReplyWait {
    const REASON: BlockReason = BlockReason::Reply;
    const IS_CALL: bool = true;
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Verbs<A, D, P> for ReplyWait {
    #[inline(always)]
    fn outcome(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId) -> Option<Outcome> {
        pcpu.ports().replied(vcpu)
    }

    /// Ends the wait. Returns `error`, unless the reply has come meanwhile. An interrupt leaves the call
    /// open.
    #[inline(never)]
    fn give_up(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId, error: Error) -> Outcome {
        if let Some(outcome) = pcpu.ports().replied(vcpu) {
            return outcome;
        }
        if error == Error::Interrupted {
            pcpu.shared.seats.of(vcpu).lock().call.waits = false;
        } else {
            pcpu.ports().end_call(vcpu);
        }
        Err(error)
    }

    /// Leaves nothing. The call ends with the vCPU, if the vCPU waits for the reply or not.
    #[inline(always)]
    fn leave(self, _pcpu: &mut Pcpu<'_, '_, A, D, P>, _vcpu: VcpuId) {}

    /// Lends the place of a caller that waits on, after a look at why it was woken. A caller that lends its
    /// place goes on to do so.
    #[inline(always)]
    fn lend(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, slot: Slot) {
        if !pcpu.local.loans.is_lending(slot) {
            pcpu.ports().relend_call(slot);
        }
    }
}
