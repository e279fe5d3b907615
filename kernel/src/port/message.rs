// SPDX-License-Identifier: Apache-2.0
//! Messages through ports, calls and their replies.
//!
//! A pCPU that completes a wait of another vCPU writes the outcome into that vCPU's seat, lets all locks go,
//! and wakes the vCPU. The vCPU takes the outcome on its own pCPU, as it takes events ([`crate::dispatch`]).

use crate::cap::{HeldReply, Named};
use crate::dispatch::basis::{CALLS, RECEIVES};
use crate::lent::line::Mark;
use crate::port::command::{Answering, Buffer, CallMode, Message, PortCommand};
use crate::port::life::Ports;
use crate::port::{CallState, Caller, Letter, PortFacts, PortId, Queue, Room};
use crate::wait::Outcome;
use bulkhead_abi::Error;
use bulkhead_arch_api::{Arch, Drivers, GuestPhys, PartitionId, VcpuId, VcpuSet};
use bulkhead_sched::{PcpuPolicy, Slot};

/// A call as a vCPU asks for it.
struct Request<'c> {
    message: &'c Message,
    /// The buffer for the reply.
    buffer: &'c Buffer,
    mode: CallMode,
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Ports<'_, '_, '_, A, D, P> {
    /// Carries out a hypercall about ports and replies. Returns the answer, or `None` if the vCPU waits.
    #[inline(never)]
    pub(crate) fn call_at_port(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        index: u8,
        command: &PortCommand,
    ) -> Option<Outcome> {
        let named = |it: &PortId| Named { it: *it, index };
        match command {
            PortCommand::Send(port, message) => Some(self.send(vcpu, *port, message).map(|()| [0; 4])),
            PortCommand::Reply(answering, message) => {
                Some(self.reply_to(vcpu, *answering, message).map(|()| [0; 4]))
            }
            PortCommand::Receive(port, buffer, waits) => {
                self.receive(slot, vcpu, named(port), buffer, *waits)
            }
            PortCommand::Call(port, message, buffer, mode) => {
                match self.begin_call(
                    slot,
                    vcpu,
                    named(port),
                    &Request {
                        message,
                        buffer,
                        mode: *mode,
                    },
                ) {
                    Ok(()) => self.wait_for_reply(slot, vcpu, buffer.until),
                    Err(error) => Some(Err(error)),
                }
            }
            PortCommand::ReplyReceive(port, reply, buffer) => {
                self.reply_receive(slot, vcpu, named(port), reply.as_ref(), buffer)
            }
            PortCommand::Resume(until) => self.resume_call(slot, vcpu, *until),
        }
    }

    fn send(&mut self, vcpu: VcpuId, port: PortId, message: &Message) -> Result<(), Error> {
        let sender = self.pcpu.system.binding(vcpu).partition;
        self.check_message(sender, message, self.pcpu.system.port(port).size)?;
        let letter = Letter {
            length: message.length,
            sender,
            caller: None,
            gift: message.gift,
        };
        self.put(port, message, &letter, None)
    }

    /// Takes a message, and waits for one if `waits`.
    fn receive(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        at: Named<PortId>,
        buffer: &Buffer,
        waits: bool,
    ) -> Option<Outcome> {
        let taken = self
            .check_receive(vcpu, at.it, buffer)
            .and_then(|()| self.take_message(slot, vcpu, at, buffer, waits));
        match taken {
            Ok(Some(results)) => Some(Ok(results)),
            Ok(None) => self.wait_for_message(slot, vcpu, at.it, buffer),
            Err(error) => Some(Err(error)),
        }
    }

    /// Goes on to wait for a reply.
    fn resume_call(&mut self, slot: Slot, vcpu: VcpuId, until: Option<u64>) -> Option<Outcome> {
        let (state, server, port, donates) = {
            let mut seat = self.pcpu.shared.seats.of(vcpu).lock();
            let call = &mut seat.call;
            call.waits = true;
            (call.state, call.server, call.at.it, call.donates)
        };
        if state == CallState::None {
            return Some(Err(Error::WrongState));
        }
        let server = server.or_else(|| self.pcpu.only_server(port));
        // A wait whose time is over ends, so it closes no circle.
        let waits = self.pcpu.deadline_of(until) > self.pcpu.machine.now();
        if let Some(server) = server
            && state == CallState::Open
            && waits
        {
            if self.pcpu.closes_circle(vcpu, server) {
                self.pcpu.shared.seats.of(vcpu).lock().call.waits = false;
                return Some(Err(Error::DonationCycle));
            }
            if donates {
                // A cycle only means that there is no loan: the message is on its way.
                let _without = self.pcpu.lend_to(slot, server);
            }
        }
        self.wait_for_reply(slot, vcpu, until)
    }

    /// Replies if there is a reply, then takes a message.
    fn reply_receive(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        at: Named<PortId>,
        reply: Option<&(Answering, Message)>,
        buffer: &Buffer,
    ) -> Option<Outcome> {
        let replied = self
            .check_receive(vcpu, at.it, buffer)
            .and_then(|()| match reply {
                Some((answering, message)) => self.reply_to(vcpu, *answering, message),
                None => Ok(()),
            });
        match replied {
            Ok(()) => self.receive(slot, vcpu, at, buffer, true),
            Err(error) => Some(Err(error)),
        }
    }

    /// Sends the reply to a call, by a capability that was found.
    fn reply_to(&mut self, vcpu: VcpuId, answering: Answering, message: &Message) -> Result<(), Error> {
        let replier = self.pcpu.system.binding(vcpu).partition;
        let Answering { caller, index } = answering;
        let receiver = self.pcpu.system.binding(caller).partition;
        self.check_message(replier, message, u16::MAX)?;
        let shared = self.pcpu.shared;
        let fits;
        {
            let mut seat = shared.seats.of(caller).lock();
            let call = &mut seat.call;
            let held = HeldReply {
                holder: replier,
                index,
            };
            if call.state != CallState::Open || call.reply != Some(held) {
                // The call has ended, and the slot may have the capability for another one.
                return Err(Error::Revoked);
            }
            // The caller has chosen the size. A reply that is too long is no fault of the replier, and no
            // reason to keep the call: a caller that chooses a small size would fill the replier's space with
            // calls.
            fits = message.length <= call.size;
            call.state = CallState::Done(if fits {
                let (from, to) = ((replier, message.from), (receiver, call.buffer));
                let passed = self
                    .pcpu
                    .machine
                    .pass_message(from, to, usize::from(message.length));
                let letter = Letter {
                    length: message.length,
                    sender: replier,
                    caller: None,
                    gift: message.gift,
                };
                match passed {
                    Ok(()) => Ok([u64::from(message.length), 0, 0, self.give(receiver, &letter)]),
                    Err(_) => Err(Error::InvalidArgument),
                }
            } else {
                Err(Error::NoSpace)
            });
            call.reply = None;
            shared.capabilities.take_reply(held, caller);
        }
        self.pcpu.wake_all(VcpuSet::of(caller));
        fits.then_some(()).ok_or(Error::NoSpace)
    }

    /// Checks that the sender itself may read the message, and that the message is no longer than `most`.
    fn check_message(&self, sender: PartitionId, message: &Message, most: u16) -> Result<(), Error> {
        let length = u64::from(message.length);
        let is_right =
            message.length <= most && self.pcpu.machine.may_access(sender, message.from, length, false);
        is_right.then_some(()).ok_or(Error::InvalidArgument)
    }

    /// Checks that the vCPU's partition itself may write `least` bytes of the buffer, and that the buffer has
    /// as many.
    fn check_buffer(&mut self, vcpu: VcpuId, buffer: &Buffer, least: u16) -> Result<(), Error> {
        let partition = self.pcpu.system.binding(vcpu).partition;
        let is_right = buffer.size >= least
            && self
                .pcpu
                .machine
                .may_access(partition, buffer.to, u64::from(least), true)
            && !self.pcpu.may_take(partition, buffer.to, least.into());
        is_right.then_some(()).ok_or(Error::InvalidArgument)
    }

    fn check_receive(&mut self, vcpu: VcpuId, port: PortId, buffer: &Buffer) -> Result<(), Error> {
        self.check_buffer(vcpu, buffer, self.pcpu.system.port(port).size)
    }

    /// Opens a call and sends its message. After an error nothing has changed.
    fn begin_call(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        at: Named<PortId>,
        request: &Request<'_>,
    ) -> Result<(), Error> {
        let Request {
            message,
            buffer,
            mode,
        } = *request;
        let port = at.it;
        let sender = self.pcpu.system.binding(vcpu).partition;
        self.check_message(sender, message, self.pcpu.system.port(port).size)?;
        self.check_buffer(vcpu, buffer, buffer.size)?;
        self.pcpu.local.loans.engage(slot);
        let number = {
            let mut seat = self.pcpu.shared.seats.of(vcpu).lock();
            // The capability may have been taken away since the check. The lock of the seat orders this look
            // and the look of the pCPU that takes the capability away.
            if !self.pcpu.stands(vcpu, at.index, CALLS, port.0) {
                return Err(Error::Revoked);
            }
            let call = &mut seat.call;
            if call.state != CallState::None {
                return Err(Error::WrongState);
            }
            call.state = CallState::Open;
            call.number = call.number.wrapping_add(1);
            (call.buffer, call.size) = (buffer.to, buffer.size);
            (call.donates, call.reply_rights) = (mode.donates, mode.reply_rights);
            (call.reply, call.server, call.at, call.waits) = (None, None, at, true);
            call.number
        };
        if let Some(server) = self.pcpu.only_server(port)
            && self.pcpu.closes_circle(vcpu, server)
        {
            self.end_call(vcpu);
            return Err(Error::DonationCycle);
        }
        let letter = Letter {
            length: message.length,
            sender,
            caller: Some(Caller { vcpu, number }),
            gift: None,
        };
        let donor = mode.donates.then_some(slot);
        let result = self.put(port, message, &letter, donor);
        if result.is_err() {
            self.end_call(vcpu);
            self.pcpu.end_loan(slot);
        }
        result
    }

    /// Hands a message to a vCPU that waits for one, or leaves it in the port. The slot `donor` lends its
    /// place to the one that serves the port.
    fn put(
        &mut self,
        port: PortId,
        message: &Message,
        letter: &Letter,
        donor: Option<Slot>,
    ) -> Result<(), Error> {
        let (shared, system, from) = (self.pcpu.shared, self.pcpu.system, message.from);
        let facts = system.port(port);
        let length = usize::from(letter.length);
        let mut queue = shared.ports.of(port).lock();
        if let (Some(donor), Some(server)) = (donor, queue.waiter().or(queue.server)) {
            self.pcpu.lend_to(donor, server)?;
        }
        let mut woken = VcpuSet::EMPTY;
        let mut result = None;
        // Mostly the first one gets the message. Each of them is a waiter once.
        while let Some(waiter) = queue.waiter() {
            let reply = match self.give_reply(waiter, letter) {
                Ok(reply) => reply,
                Err(error) => {
                    result = Some(Err(error));
                    break;
                }
            };
            queue.leave(waiter);
            woken.insert_all(VcpuSet::of(waiter));
            let receiver = system.binding(waiter).partition;
            let to = shared.seats.of(waiter).lock().buffer;
            let passed = self
                .pcpu
                .machine
                .pass_message((letter.sender, from), (receiver, to), length);
            let outcome = match passed {
                Ok(()) => Ok(self.contents(waiter, facts, letter, reply)),
                Err(_) => {
                    self.take_reply_back(letter);
                    Err(Error::InvalidArgument)
                }
            };
            shared.seats.of(waiter).lock().received = Some(outcome);
            if passed.is_ok() {
                queue.server = Some(waiter);
                result = Some(Ok(()));
                break;
            }
        }
        let mut told = None;
        let result = result.unwrap_or_else(|| {
            if message.replaces && queue.room_for(facts, letter.sender).is_none() {
                self.drop_own(&mut queue, facts, letter.sender);
            }
            let left = self.leave_message(&mut queue, facts, from, letter);
            told = facts.told.filter(|_| left.is_ok());
            left
        });
        drop(queue);
        self.pcpu.wake_all(woken);
        if let Some((partition, events)) = told {
            self.pcpu.raise(partition, events);
        }
        result
    }

    /// Leaves a message in a port: in place of a call that the same caller has given up, or else after the
    /// last one. So the calls in a port that no caller waits for are as few as the vCPUs that call there.
    fn leave_message(
        &self,
        queue: &mut Queue,
        facts: &PortFacts,
        from: GuestPhys,
        letter: &Letter,
    ) -> Result<(), Error> {
        let sender = letter.sender;
        let given_up = letter
            .caller
            .filter(|caller| queue.has_call_of(caller.vcpu))
            .and_then(|caller| self.given_up(queue, facts, caller.vcpu));
        let room = match given_up {
            Some(_) => None,
            None => Some(queue.room_for(facts, sender).ok_or(Error::NoSpace)?),
        };
        let position = given_up.unwrap_or_else(|| queue.end(facts));
        let (header, body) = self.pcpu.shared.messages.entry(facts, position);
        self.pcpu
            .machine
            .load_message((sender, from), usize::from(letter.length), body)
            .map_err(|_| Error::InvalidArgument)?;
        match room {
            Some(room) => {
                letter.write(header, room);
                queue.push_from(sender, room);
                if let Some(caller) = letter.caller {
                    queue.note_call(caller.vcpu);
                }
            }
            None => letter.write(header, Room::read(header)),
        }
        Ok(())
    }

    /// Returns the position of an earlier call of the same vCPU, which has given the call up: it begins
    /// another one. Bounded by the depth of the port.
    #[cold]
    fn given_up(&self, queue: &Queue, facts: &PortFacts, vcpu: VcpuId) -> Option<u16> {
        queue.positions(facts).find(|position| {
            let (header, _) = self.pcpu.shared.messages.entry(facts, *position);
            Letter::is_call_of(header, vcpu)
        })
    }

    /// Drops the oldest message of a port if `sender` has sent it, and no vCPU waits for an answer to it. A
    /// sender never takes the place of another one.
    fn drop_own(&self, queue: &mut Queue, facts: &PortFacts, sender: PartitionId) {
        let Some(position) = queue.oldest() else { return };
        let (header, _) = self.pcpu.shared.messages.entry(facts, position);
        let letter = Letter::read(header);
        let is_plain = Mark::read(header).is_none() && letter.caller.is_none() && letter.gift.is_none();
        if is_plain && letter.sender == sender {
            queue.pop(facts, header);
        }
    }

    /// Takes the oldest message out of a port. If there is none, the vCPU becomes a waiter (`None`), or gets
    /// an error unless `waits`.
    fn take_message(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        at: Named<PortId>,
        buffer: &Buffer,
        waits: bool,
    ) -> Result<Option<[u64; 4]>, Error> {
        let (shared, system, port) = (self.pcpu.shared, self.pcpu.system, at.it);
        let (facts, own) = (system.port(port), system.binding(vcpu).partition);
        let mut queue = shared.ports.of(port).lock();
        // A message that was sent after the capability was taken away is not for this vCPU. The sender had
        // the lock of the port before.
        if queue.oldest().is_some() && !self.pcpu.stands(vcpu, at.index, RECEIVES, port.0) {
            return Err(Error::Revoked);
        }
        while let Some(position) = queue.oldest() {
            let (header, body) = shared.messages.entry(facts, position);
            if let Some(mark) = Mark::read(header) {
                if shared.lines.is_queued(mark) {
                    self.pcpu
                        .machine
                        .store_message((own, buffer.to), 8, body)
                        .map_err(|_| Error::InvalidArgument)?;
                    queue.pop(facts, header);
                    return Ok(Some(self.pcpu.lent().line_received(mark, vcpu, &mut queue)));
                }
                // The binding has ended.
                queue.pop(facts, header);
                continue;
            }
            let letter = Letter::read(header);
            let Ok(reply) = self.give_reply(vcpu, &letter) else {
                queue.pop_call(facts, header, letter.caller);
                self.wake_caller(&letter);
                continue;
            };
            let length = usize::from(letter.length);
            if self
                .pcpu
                .machine
                .store_message((own, buffer.to), length, body)
                .is_err()
            {
                self.take_reply_back(&letter);
                return Err(Error::InvalidArgument);
            }
            queue.pop_call(facts, header, letter.caller);
            queue.server = Some(vcpu);
            let results = self.contents(vcpu, facts, &letter, reply);
            drop(queue);
            if let Some(caller) = letter.caller {
                self.take_loan(caller.vcpu, slot);
            }
            return Ok(Some(results));
        }
        if !waits {
            return Err(Error::TimedOut);
        }
        self.pcpu.local.loans.engage(slot);
        self.pcpu.sit_down(vcpu, at, buffer.to);
        if !self.pcpu.stands(vcpu, at.index, RECEIVES, port.0) {
            return Err(Error::Revoked);
        }
        queue.wait(vcpu);
        Ok(None)
    }

    /// Gives a receiver the capability that comes with a message. Returns the results of the receive.
    fn contents(&self, receiver: VcpuId, facts: &PortFacts, letter: &Letter, reply: u64) -> [u64; 4] {
        let partition = self.pcpu.system.binding(receiver).partition;
        [
            u64::from(letter.length),
            facts.shown(letter.sender),
            reply,
            self.give(partition, letter),
        ]
    }

    /// Gives a receiver the capability to reply to a call, before the message. Returns its index, 0 if the
    /// message is no call.
    ///
    /// # Errors
    /// `Revoked` if the caller has given up. The error of `put_reply` if the receiver's space is full: then
    /// the call has ended with this error. In both cases the receiver must not get the message.
    fn give_reply(&self, receiver: VcpuId, letter: &Letter) -> Result<u64, Error> {
        let Some(caller) = letter.caller else { return Ok(0) };
        let partition = self.pcpu.system.binding(receiver).partition;
        let mut seat = self.pcpu.shared.seats.of(caller.vcpu).lock();
        let call = &mut seat.call;
        if !call.is_open(caller.number) {
            return Err(Error::Revoked);
        }
        let spaces = &self.pcpu.shared.capabilities;
        let put = spaces.put_reply(partition, caller.vcpu, caller.number, call.reply_rights);
        match put {
            Ok(index) => {
                let holder = partition;
                (call.reply, call.server) = (Some(HeldReply { holder, index }), Some(receiver));
            }
            Err(error) => call.state = CallState::Done(Err(error)),
        }
        put.map(|index| u64::from(index.0))
    }

    /// Takes the capability to reply to a message back: the receiver has not got the message.
    #[cold]
    fn take_reply_back(&self, letter: &Letter) {
        if let Some(Caller { vcpu, .. }) = letter.caller {
            let held = self.pcpu.shared.seats.of(vcpu).lock().call.reply.take();
            if let Some(held) = held {
                self.pcpu.shared.capabilities.take_reply(held, vcpu);
            }
        }
    }

    /// Has the caller of a message that no receiver gets look at its call.
    #[cold]
    fn wake_caller(&mut self, letter: &Letter) {
        if let Some(Caller { vcpu, .. }) = letter.caller {
            self.pcpu.wake_all(VcpuSet::of(vcpu));
        }
    }

    /// Gives a partition the capability that comes with a message. Returns its index, 0 if there is none:
    /// none was sent, the sender does not have it any more, or the receiver's space is full.
    fn give(&self, receiver: PartitionId, letter: &Letter) -> u64 {
        let Some(gift) = letter.gift else { return 0 };
        self.pcpu
            .shared
            .capabilities
            .derive_same(letter.sender, gift.index, gift.capability, receiver, gift.rights)
            .map_or(0, u64::from)
    }
}
