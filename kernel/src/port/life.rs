// SPDX-License-Identifier: Apache-2.0
//! Ports when a vCPU or a partition begins or ends, and the loans of callers.
//!
//! **Donation.** A caller that donates lends its place to the vCPU that serves the port, if both are on this
//! pCPU. That is the vCPU that waits for the message, or the one that received last. If another vCPU takes
//! the message, the loan goes over to that one. The loan ends when the caller's wait ends, for any reason,
//! and when the server stops.

use crate::cap::ReplyIndex;
use crate::dispatch::Pcpu;
use crate::local::Activity;
use crate::parts::{PORTS, PartOf};
use crate::port::{CallState, PortId};
use crate::wait::Outcome;
use bulkhead_abi::Error;
use bulkhead_arch_api::{Arch, Drivers, PartitionId, VcpuId, VcpuSet};
use bulkhead_sched::{PcpuPolicy, Slot};

/// Tells whether a vCPU is blocked in a call.
fn is_calling(activity: Activity) -> bool {
    matches!(activity, Activity::Blocked(pause) if pause.wait.is_call())
}

/// The ports, on a pCPU.
pub(crate) struct Ports<'p, 's, 'i, A: Arch, D, P> {
    pub(super) pcpu: &'p mut Pcpu<'s, 'i, A, D, P>,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the part with its pCPU.
    #[inline(always)]
    pub(crate) const fn ports(&mut self) -> Ports<'_, 's, 'i, A, D, P> {
        Ports { pcpu: self }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Ports<'_, '_, '_, A, D, P> {
    /// Destroys a capability to reply by, and ends the call. Returns `None` if the index names
    /// another kind.
    #[inline]
    fn delete_reply(&mut self, holder: PartitionId, index: u64) -> Option<Outcome> {
        let index = ReplyIndex::of(index)?;
        let was_its = self.refuse_reply(holder, index.caller(), Some(index));
        Some(was_its.then_some([0; 4]).ok_or(Error::Revoked))
    }

    /// Ends the call of `caller` if `holder` has the capability to reply to it, with this index if one is
    /// given. Returns whether that was so.
    fn refuse_reply(&mut self, holder: PartitionId, caller: VcpuId, index: Option<ReplyIndex>) -> bool {
        let mut seat = self.pcpu.shared.seats.of(caller).lock();
        let held = seat.call.reply;
        let Some(reply) =
            held.filter(|held| held.holder == holder && index.is_none_or(|index| held.index == index))
        else {
            return false;
        };
        seat.call.reply = None;
        if seat.call.state == CallState::Open {
            seat.call.state = CallState::Done(Err(Error::Revoked));
        }
        self.pcpu.shared.capabilities.take_reply(reply, caller);
        drop(seat);
        self.pcpu.wake_all(VcpuSet::of(caller));
        true
    }

    /// Ends the calls that a partition has received and has not answered. None of its vCPUs runs. Bounded by
    /// the slots of a capability space.
    #[inline(never)]
    fn refuse_replies(&mut self, partition: PartitionId) {
        let shared = self.pcpu.shared;
        for caller in shared.capabilities.replies(partition) {
            self.refuse_reply(partition, caller, None);
        }
    }

    /// Ends the call of a vCPU. Its capability to reply by is gone then.
    pub(crate) fn end_call(&self, vcpu: VcpuId) {
        let mut seat = self.pcpu.shared.seats.of(vcpu).lock();
        seat.call.state = CallState::None;
        if let Some(held) = seat.call.reply.take() {
            self.pcpu.shared.capabilities.take_reply(held, vcpu);
        }
    }

    /// Raises the events of messages that wait in ports for a partition which begins a new life: the events
    /// of its last life are gone. Bounded by the ports.
    fn raise_for_messages(&mut self, partition: PartitionId) {
        for (_, number) in self.pcpu.system.image.ports().iter().zip(0_u8..) {
            let port = PortId(number);
            if let Some((receiver, events)) = self.pcpu.system.port(port).told
                && receiver == partition
                && self.pcpu.shared.ports.of(port).lock().oldest().is_some()
            {
                self.pcpu.raise(partition, events);
            }
        }
    }

    /// Lets a vCPU that has taken the message of a caller have the caller's place, if the caller donates.
    pub(super) fn take_loan(&mut self, caller: VcpuId, slot: Slot) {
        let there = self.pcpu.system.binding(caller);
        if !self.pcpu.is_here(there.pcpu) || !self.pcpu.shared.seats.of(caller).lock().call.donates {
            return;
        }
        if is_calling(self.pcpu.local.slot(there.slot).activity) {
            let now = self.pcpu.machine.now();
            self.pcpu.local.lend_on(there.slot, slot, now);
        }
    }

    /// Returns the vCPU that a vCPU with an open call lends its place to, if it donates.
    fn server_of(&self, vcpu: VcpuId) -> Option<VcpuId> {
        let (port, server) = {
            let seat = self.pcpu.shared.seats.of(vcpu).lock();
            let call = &seat.call;
            if call.state != CallState::Open || !call.donates {
                return None;
            }
            (call.at.it, call.server)
        };
        server.or_else(|| self.pcpu.shared.ports.of(port).lock().server)
    }

    /// Lets a slot, which is switched on or loads its partition, have the places of the callers of this pCPU
    /// that wait for its vCPU, or for any vCPU of its partition if it loads. Bounded by the slots in use.
    #[inline]
    fn relend_to(&mut self, slot: Slot) {
        if self.pcpu.local.loans.is_any_engaged() {
            self.relend_callers(slot);
        }
    }

    #[inline(never)]
    fn relend_callers(&mut self, slot: Slot) {
        let state = *self.pcpu.local.slot(slot);
        let partition = self.pcpu.system.binding(state.vcpu).partition;
        let loads = matches!(state.activity, Activity::Loading(_));
        for from in self.pcpu.local.all() {
            let caller = *self.pcpu.local.slot(from);
            if !is_calling(caller.activity) {
                continue;
            }
            let is_its = |server: VcpuId| {
                server == state.vcpu || loads && self.pcpu.system.binding(server).partition == partition
            };
            if self.server_of(caller.vcpu).is_some_and(is_its) {
                let now = self.pcpu.machine.now();
                self.pcpu.local.lend_on(from, slot, now);
            }
        }
    }

    /// Lends the place of a caller that waits on, after a look at why it was woken.
    pub(super) fn relend_call(&mut self, slot: Slot) {
        if let Some(server) = self.server_of(self.pcpu.local.slot(slot).vcpu) {
            let _without = self.pcpu.lend_to(slot, server);
        }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> PartOf for Ports<'_, '_, '_, A, D, P> {
    const IS_THERE: bool = PORTS;

    #[inline(always)]
    fn life_ended(&mut self, partition: PartitionId) {
        self.refuse_replies(partition);
    }

    #[inline(always)]
    fn was_reset(&mut self, partition: PartitionId) {
        self.raise_for_messages(partition);
    }

    #[inline(always)]
    fn vcpu_is_on(&mut self, slot: Slot) {
        self.relend_to(slot);
    }

    #[inline(always)]
    fn vcpu_leaves(&mut self, vcpu: VcpuId) {
        self.end_call(vcpu);
    }

    #[inline(always)]
    fn gives_up_reply(&mut self, caller: PartitionId, index: u64) -> Option<Outcome> {
        self.delete_reply(caller, index)
    }
}
