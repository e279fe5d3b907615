// SPDX-License-Identifier: Apache-2.0
//! Calls, and accesses to the console, that the backend answers without an exit, by asking the kernel
//! ([`ShortCalls`]).
//!
//! None of these calls changes who runs on this pCPU. So they need neither the state of the pCPU nor a
//! decision, and the frame of an exit would be most of their cost. Each takes this way only if it succeeds.
//! Otherwise nothing has changed and the call goes the long way, which knows all errors. A capability is one
//! look at its slot and one comparison: kind and right are bits of the same word.
//!
//! A pCPU that is traced answers no call here, so that each has its record.

use super::basis::{RECEIVES, Right};
use crate::cap::Spaces;
use crate::channel::command::ChannelId;
use crate::parts::PORTS;
use crate::port::{Letter, PortId, Room};
use crate::shared::Shared;
use crate::system::System;
use bulkhead_abi::hypercall::{ABI_VERSION, MESSAGE_ALIGN, SELF_CAPABILITY};
use bulkhead_abi::{ObjectKind, Operation, Rights};
use bulkhead_arch_api::{
    Arch, CallRegisters, GuestPhys, PartitionId, ShortCalls, VcpuId, VcpuSet, VirtualLine,
};
use bulkhead_devices::pl011::FIFO_DEPTH;
use spin::RelaxStrategy;

const VERSION: u16 = Operation::Version as u16;
const STATUS: u16 = Operation::PartitionStatus as u16;
const KICK: u16 = Operation::PartitionKick as u16;
const NOW: u16 = Operation::TimerNow as u16;
const SEND: u16 = Operation::PortSend as u16;
const RECEIVE: u16 = Operation::PortReceive as u16;
const TRY_RECEIVE: u16 = Operation::PortTryReceive as u16;

/// The calls of the vCPUs of a pCPU.
#[derive(Debug)]
pub(crate) struct Short<'s, 'i, R> {
    shared: &'s Shared<'i, R>,
    system: &'s System<'i>,
    /// True if the pCPU is traced.
    is_traced: bool,
}

impl<'s, 'i, R: RelaxStrategy> Short<'s, 'i, R> {
    pub(crate) const fn new(shared: &'s Shared<'i, R>, system: &'s System<'i>, is_traced: bool) -> Self {
        Self {
            shared,
            system,
            is_traced,
        }
    }

    /// Returns the object that a capability names, if it is of this kind and gives this right.
    #[inline(always)]
    fn find(&self, holder: PartitionId, index: u64, kind: ObjectKind, right: Rights) -> Option<u8> {
        let spaces: &Spaces<R> = &self.shared.capabilities;
        spaces.find_quickly(holder, index, kind, right)
    }

    /// Puts a message without a capability into a port at which no vCPU waits.
    #[inline(always)]
    fn send<A: Arch>(
        &self,
        machine: &mut A,
        sender: PartitionId,
        registers: &mut CallRegisters,
    ) -> Option<VcpuSet> {
        let [_, index, from, length, gift, ..] = *registers;
        let port = PortId(self.find(sender, index, ObjectKind::Port, Rights::WRITE)?);
        let facts = self.system.port(port);
        if length >= u64::from(facts.short_end) || gift != 0 || !from.is_multiple_of(MESSAGE_ALIGN) {
            return None;
        }
        if !machine.may_access(sender, GuestPhys(from), length, false) {
            return None;
        }
        let mut queue = self.shared.ports.of(port).lock();
        if queue.has_waiters() || queue.is_full(facts) {
            return None;
        }
        let (header, body) = self.shared.messages.entry(facts, queue.end(facts));
        machine
            .load_message((sender, GuestPhys(from)), length as usize, body)
            .ok()?;
        Letter::plain(length as u16, sender).write(header, Room::Common);
        queue.push();
        drop(queue);
        finish(registers, [0; 4]);
        Some(VcpuSet::EMPTY)
    }

    /// Takes a message out of a port that has one, unless the message is a call or has a capability with it.
    #[inline(always)]
    fn receive<A: Arch>(
        &self,
        machine: &mut A,
        vcpu: VcpuId,
        receiver: PartitionId,
        registers: &mut CallRegisters,
    ) -> Option<VcpuSet> {
        let [_, index, to, size, ..] = *registers;
        let Right { kind, rights } = RECEIVES;
        let found = self
            .shared
            .capabilities
            .find_slot(receiver, index, kind, rights)?;
        let port = PortId(found.object());
        let facts = self.system.port(port);
        let needed = u64::from(facts.size);
        if size < needed || !to.is_multiple_of(MESSAGE_ALIGN) {
            return None;
        }
        if !machine.may_access(receiver, GuestPhys(to), needed, true) {
            return None;
        }
        let mut queue = self.shared.ports.of(port).lock();
        // A message that was sent after the capability was taken away is not for this vCPU.
        if !found.is_there() {
            return None;
        }
        let (header, body) = self.shared.messages.entry(facts, queue.oldest()?);
        let (length, sender) = Letter::read_plain(header)?;
        machine
            .store_message((receiver, GuestPhys(to)), length.into(), body)
            .ok()?;
        // A message in its sender's own room is taken the long way.
        queue.leave_oldest(facts);
        queue.server = Some(vcpu);
        drop(queue);
        finish(registers, [length.into(), facts.shown(sender), 0, 0]);
        Some(VcpuSet::EMPTY)
    }
}

impl<A: Arch> ShortCalls<A> for Short<'_, '_, A::Relax> {
    #[inline(always)]
    fn bell(&self, caller: PartitionId, registers: &CallRegisters) -> Option<(PartitionId, VirtualLine)> {
        if self.is_traced {
            return None;
        }
        let [_, index, sides, ..] = *registers;
        let channel = self.find(caller, index, ObjectKind::Channel, Rights::WRITE)?;
        self.system.bell(ChannelId(channel)).other(caller, sides)
    }

    #[inline]
    fn answer(&self, machine: &mut A, vcpu: VcpuId, registers: &mut CallRegisters) -> Option<VcpuSet> {
        if self.is_traced {
            return None;
        }
        let caller = self.system.binding(vcpu).partition;
        let [operation, index, ..] = *registers;
        let results = match operation as u16 {
            SEND | RECEIVE | TRY_RECEIVE if PORTS => {
                return if operation as u16 == SEND {
                    self.send(machine, caller, registers)
                } else {
                    self.receive(machine, vcpu, caller, registers)
                };
            }
            VERSION => [u64::from(ABI_VERSION), 0, 0, 0],
            STATUS => {
                let about = self.find(caller, index, ObjectKind::Partition, Rights::READ)?;
                self.shared.partition(PartitionId(about)).words()
            }
            KICK => {
                // A partition can always show that it is alive, and always has the capability of itself.
                if index != u64::from(SELF_CAPABILITY) {
                    return None;
                }
                self.shared.partition(caller).kick(machine.now());
                [0; 4]
            }
            NOW => {
                self.find(caller, index, ObjectKind::Timer, Rights::READ)?;
                [self.system.time.nanoseconds(machine.now()), 0, 0, 0]
            }
            _ => return None,
        };
        finish(registers, results);
        Some(VcpuSet::EMPTY)
    }

    #[inline(always)]
    fn register(&self, caller: PartitionId, offset: u64, size: u8, stored: Option<u64>) -> Option<u64> {
        // A byte to send has always an effect.
        if self.is_traced
            || stored.is_some() && offset == 0
            || !self.shared.terminal.output.has_room(caller, FIFO_DEPTH)
        {
            return None;
        }
        let mut reader = self.shared.partition(caller).reader.lock();
        reader.uart()?.touch(offset, size, stored)
    }
}

/// Writes the results of a call that has succeeded.
#[inline(always)]
const fn finish(registers: &mut CallRegisters, results: [u64; 4]) {
    let [status, x1, x2, x3, x4, ..] = registers;
    *status = 0;
    [*x1, *x2, *x3, *x4] = results;
}
