// SPDX-License-Identifier: Apache-2.0
//! Calls with donation and their replies, straight from one vCPU to the other.
//!
//! A caller that donates lends its place to the vCPU that serves the port. If that vCPU waits there, on this
//! pCPU, then it runs next, no matter what the policy says of all other vCPUs: it runs in the place that runs
//! already. So the decision in force stands, with its end, its budget and the clock that is armed for it.
//! Only the vCPU in that place is another one ([`Policy::hand_over`](bulkhead_sched::Policy::hand_over)). The
//! reply gives the place back in the same way, if the server then waits for the next message.
//!
//! If anything is unusual (an error, a capability on its way, a pending interrupt, an upcall, a message that
//! waits already), no vCPU can tell that the short way was tried, and the call goes the long way
//! ([`super::message`]), which decides. There both give the same results. A late refusal may leave the
//! message in the buffer of the receiver. The receiver still waits, and no content of the buffer is promised
//! to a receiver that waits. The long way writes the buffer again.
//!
//! **Work bounds.** One message is copied with the port's lock held, as by a send.

use crate::cap::{HeldReply, Named, ReplyIndex};
use crate::dispatch::basis::{CALLS, RECEIVES, Right};
use crate::local::Activity;
use crate::parts::{PORTS, of};
use crate::port::life::Ports;
use crate::port::{CALL, CallState, MessageWait, PortId, ReplyWait};
use crate::wait::{Pause, Wait};
use bulkhead_abi::Rights;
use bulkhead_abi::hypercall::{MAX_MESSAGE, MESSAGE_ALIGN};
use bulkhead_arch_api::{Arch, Drivers, Exit, GuestPhys, Hypercall, PartitionId, Reply, Ticks, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

/// The vCPU that runs next.
type Chosen = (Slot, VcpuId);

impl<A: Arch, D: Drivers, P: PcpuPolicy> Ports<'_, '_, '_, A, D, P> {
    /// Carries out a call or a reply. Returns the vCPU that runs next, if that is known without a decision.
    #[inline(never)]
    pub(crate) fn call_or_hand_over(&mut self, slot: Slot, vcpu: VcpuId, call: &Hypercall) -> Option<Chosen> {
        let next = if call.operation == CALL {
            self.pass_call(slot, vcpu, call)
        } else {
            self.pass_reply(slot, vcpu, call)
        };
        let Some((next, now)) = next else {
            self.pcpu.handle_other(slot, vcpu, &Exit::Hypercall(*call));
            return None;
        };
        let mailbox = self.pcpu.mailbox;
        if self.pcpu.publish(mailbox, false) || !mailbox.is_empty() {
            self.pcpu.local.reschedule = true;
            return None;
        }
        self.pcpu.admit_and_arm(now).then_some(next)
    }

    /// Passes a call to the vCPU that waits at the port, and the place with it. Returns that vCPU and the
    /// time. Returns `None` if nothing has happened.
    #[inline(always)]
    fn pass_call(&mut self, slot: Slot, vcpu: VcpuId, call: &Hypercall) -> Option<(Chosen, Ticks)> {
        let (shared, system) = (self.pcpu.shared, self.pcpu.system);
        let [index, from, length, to, size, until] = call.arguments;
        let own = system.binding(vcpu).partition;
        let Right { kind, rights } = CALLS;
        let found = shared.capabilities.find_slot(own, index, kind, rights)?;
        let (port, size) = (PortId(found.object()), size.min(MAX_MESSAGE as u64));
        let facts = system.port(port);
        let is_right = length <= u64::from(facts.size)
            && (from | to).is_multiple_of(MESSAGE_ALIGN)
            && self.pcpu.machine.may_access(own, GuestPhys(from), length, false)
            && self.is_buffer(own, GuestPhys(to), size);
        if !is_right {
            return None;
        }
        let mut queue = shared.ports.of(port).lock();
        let server = queue.waiter()?;
        let there = self.waiting(server)?;
        let is_waiting = matches!(
            self.pcpu.local.slot(there).activity,
            Activity::Blocked(Pause { wait: Wait::Message(wait), .. }) if of::<PORTS, MessageWait>(wait).port == port
        );
        if !is_waiting {
            return None;
        }
        let own_time = self.pcpu.interruption(vcpu)?;
        let receiver = system.binding(server).partition;
        let buffer = shared.seats.of(server).lock().buffer;
        let mut seat = shared.seats.of(vcpu).lock();
        // The capability may have been taken away since. The lock of the seat orders this look and the look
        // of the pCPU that takes the capability away.
        if seat.call.state != CallState::None || !found.is_there() {
            return None;
        }
        self.pcpu
            .machine
            .pass_message((own, GuestPhys(from)), (receiver, buffer), length as usize)
            .ok()?;
        let reply_rights = Rights::WRITE.union(found.rights().intersection(Rights::GRANT));
        let number = seat.call.number.wrapping_add(1);
        let reply = shared
            .capabilities
            .put_reply(receiver, vcpu, number, reply_rights)
            .ok()?;
        let held = HeldReply {
            holder: receiver,
            index: reply,
        };
        let now = self.pcpu.machine.now();
        if !self.pcpu.local.hand_over(slot, there, now) {
            shared.capabilities.take_reply(held, vcpu);
            return None;
        }
        let opened = &mut seat.call;
        (opened.state, opened.number) = (CallState::Open, number);
        (opened.buffer, opened.size) = (GuestPhys(to), size as u16);
        (opened.donates, opened.reply_rights, opened.waits) = (true, reply_rights, true);
        opened.at = Named {
            it: port,
            index: index as u8,
        };
        (opened.reply, opened.server) = (Some(held), Some(server));
        drop(seat);
        queue.leave(server);
        queue.server = Some(server);
        drop(queue);
        self.pcpu.local.loans.engage(slot);
        let until = self.pcpu.deadline_of((until != 0).then_some(until));
        self.pcpu
            .local
            .wait(slot, Activity::waiting(ReplyWait.into(), until, own_time));
        let results = [length, facts.shown(own), u64::from(reply.0), 0];
        Some((self.go_on(there, server, results), now))
    }

    /// Passes a reply to the vCPU that called, and its place with it. Then `vcpu` waits for the next message.
    /// Returns the vCPU that called, and the time. Returns `None` if nothing has happened.
    #[inline(always)]
    fn pass_reply(&mut self, slot: Slot, vcpu: VcpuId, call: &Hypercall) -> Option<(Chosen, Ticks)> {
        let (shared, system) = (self.pcpu.shared, self.pcpu.system);
        let [index, to, size, length, reply, until] = call.arguments;
        let reply = ReplyIndex::of(reply)?;
        let (spaces, own) = (&shared.capabilities, system.binding(vcpu).partition);
        let Right { kind, rights } = RECEIVES;
        let found = spaces.find_slot(own, index, kind, rights)?;
        let port = PortId(found.object());
        let caller = reply.caller();
        let needed = u64::from(system.port(port).size);
        let is_right = size >= needed
            && to.is_multiple_of(MESSAGE_ALIGN)
            && self.pcpu.machine.may_access(own, GuestPhys(to), length, false)
            && self.is_buffer(own, GuestPhys(to), needed);
        if !is_right {
            return None;
        }
        let mut queue = shared.ports.of(port).lock();
        if queue.oldest().is_some() {
            return None;
        }
        let there = self.waiting(caller)?;
        if !matches!(
            self.pcpu.local.slot(there).activity,
            Activity::Blocked(Pause {
                wait: Wait::Reply(_),
                ..
            })
        ) {
            return None;
        }
        let own_time = self.pcpu.interruption(vcpu)?;
        let receiver = system.binding(caller).partition;
        let at = Named {
            it: port,
            index: index as u8,
        };
        self.pcpu.sit_down(vcpu, at, GuestPhys(to));
        // As above. Another one who finds this seat without a capability waits for the lock of the port.
        if !found.is_there() {
            return None;
        }
        let mut seat = shared.seats.of(caller).lock();
        let open = &mut seat.call;
        let held = HeldReply {
            holder: own,
            index: reply,
        };
        let is_its = open.state == CallState::Open && open.reply == Some(held);
        if !is_its || length > u64::from(open.size) {
            return None;
        }
        self.pcpu
            .machine
            .pass_message((own, GuestPhys(to)), (receiver, open.buffer), length as usize)
            .ok()?;
        let now = self.pcpu.machine.now();
        if !self.pcpu.local.hand_back(there, slot, now) {
            return None;
        }
        (open.state, open.reply) = (CallState::None, None);
        spaces.take_reply(held, caller);
        drop(seat);
        queue.wait(vcpu);
        drop(queue);
        self.pcpu.local.loans.engage(slot);
        let until = self.pcpu.deadline_of((until != 0).then_some(until));
        self.pcpu.local.wait(
            slot,
            Activity::waiting(MessageWait { port }.into(), until, own_time),
        );
        Some((self.go_on(there, caller, [length, 0, 0, 0]), now))
    }

    /// Tells whether a partition itself may write all of a buffer, for as long as it waits.
    #[inline(always)]
    fn is_buffer(&mut self, own: PartitionId, to: GuestPhys, size: u64) -> bool {
        self.pcpu.machine.may_access(own, to, size, true) && !self.pcpu.may_take(own, to, size)
    }

    /// Returns the slot of a vCPU, if the vCPU is on this pCPU and goes straight on when its wait ends.
    #[inline(always)]
    fn waiting(&self, vcpu: VcpuId) -> Option<Slot> {
        let there = self.pcpu.system.binding(vcpu);
        (self.pcpu.is_here(there.pcpu) && !self.pcpu.local.upcalls.is_watching(there.slot))
            .then_some(there.slot)
    }

    /// Answers the hypercall of a vCPU, which goes on in the place that it was given.
    #[inline(always)]
    fn go_on(&mut self, slot: Slot, vcpu: VcpuId, results: [u64; 4]) -> Chosen {
        self.pcpu.local.slot_mut(slot).activity = Activity::Ready;
        self.pcpu.machine.reply(vcpu, Reply::Hypercall(Ok(results)));
        (slot, vcpu)
    }
}
