// SPDX-License-Identifier: Apache-2.0
//! Messages through ports, calls and their replies.
//!
//! A pCPU that completes a wait of another vCPU writes the outcome into that vCPU's seat, lets all locks go,
//! and wakes the vCPU. The vCPU takes the outcome on its own pCPU, as it takes events ([`crate::dispatch`]).
//!
//! **Donation.** A caller that donates lends its place to the vCPU that serves the port, if both are on this
//! pCPU. That is the vCPU that waits for the message, or the one that received last. If another vCPU takes
//! the message, the loan goes over to that one. The loan ends when the caller's wait ends, for any reason,
//! and when the server stops.

use crate::cap::ReplyIndex;
use crate::dispatch::Pcpu;
use crate::dispatch::basis::{CALLS, RECEIVES};
use crate::lent::line::Mark;
use crate::local::{Activity, Pause};
use crate::parts::{HAS_SEATS, Part, has};
use crate::port::command::{Answering, Buffer, CallMode, Message, PortCommand};
use crate::port::{Basis, CallState, Caller, Letter, Named, Outcome, PortFacts, PortId, Queue, Room};
use bulkhead_abi::Error;
use bulkhead_arch_api::{Arch, Drivers, GuestPhys, PartitionId, Ticks, VcpuId, VcpuSet};
use bulkhead_sched::{PcpuPolicy, PolicyError, Slot};

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
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
                self.receive(slot, vcpu, named(port), (buffer, *waits))
            }
            PortCommand::Call(port, message, buffer, mode) => {
                match self.begin_call(slot, vcpu, named(port), (message, buffer, *mode)) {
                    Ok(()) => self.wait_for_reply(slot, vcpu, buffer.until),
                    Err(error) => Some(Err(error)),
                }
            }
            PortCommand::ReplyReceive(port, reply, buffer) => {
                self.reply_receive(slot, vcpu, named(port), (reply.as_ref(), buffer))
            }
            PortCommand::Resume(until) => self.resume_call(slot, vcpu, *until),
        }
    }

    fn send(&mut self, vcpu: VcpuId, port: PortId, message: &Message) -> Result<(), Error> {
        let sender = self.system.binding(vcpu).partition;
        self.check_message(sender, message, self.system.port(port).size)?;
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
        (buffer, waits): (&Buffer, bool),
    ) -> Option<Outcome> {
        let taken = self
            .check_receive(vcpu, at.it, buffer)
            .and_then(|()| self.take_message(slot, vcpu, at, (buffer, waits)));
        match taken {
            Ok(Some(results)) => Some(Ok(results)),
            Ok(None) => self.wait_for_message(slot, vcpu, at.it, buffer),
            Err(error) => Some(Err(error)),
        }
    }

    /// Goes on to wait for a reply.
    fn resume_call(&mut self, slot: Slot, vcpu: VcpuId, until: Option<u64>) -> Option<Outcome> {
        let (state, server, port, donates) = {
            let mut seat = self.shared.seats.of(vcpu).lock();
            let call = &mut seat.call;
            call.waits = true;
            (call.state, call.server, call.at.it, call.donates)
        };
        if state == CallState::None {
            return Some(Err(Error::WrongState));
        }
        let server = server.or_else(|| self.only_server(port));
        // A wait whose time is over ends, so it closes no circle.
        let waits = self.deadline_of(until) > self.machine.now();
        if let Some(server) = server
            && state == CallState::Open
            && waits
        {
            if self.closes_circle(vcpu, server) {
                self.shared.seats.of(vcpu).lock().call.waits = false;
                return Some(Err(Error::DonationCycle));
            }
            if donates {
                // A cycle only means that there is no loan: the message is on its way.
                let _without = self.lend_to(slot, server);
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
        (reply, buffer): (Option<&(Answering, Message)>, &Buffer),
    ) -> Option<Outcome> {
        let replied = self
            .check_receive(vcpu, at.it, buffer)
            .and_then(|()| match reply {
                Some((answering, message)) => self.reply_to(vcpu, *answering, message),
                None => Ok(()),
            });
        match replied {
            Ok(()) => self.receive(slot, vcpu, at, (buffer, true)),
            Err(error) => Some(Err(error)),
        }
    }

    /// Sends the reply to a call, by a capability that was found.
    fn reply_to(&mut self, vcpu: VcpuId, answering: Answering, message: &Message) -> Result<(), Error> {
        let replier = self.system.binding(vcpu).partition;
        let Answering { caller, index } = answering;
        let receiver = self.system.binding(caller).partition;
        self.check_message(replier, message, u16::MAX)?;
        let shared = self.shared;
        let fits;
        {
            let mut seat = shared.seats.of(caller).lock();
            let call = &mut seat.call;
            if call.state != CallState::Open || call.reply != Some((replier, index)) {
                // The call has ended, and the slot may have the capability for another one.
                return Err(Error::Revoked);
            }
            // The caller has chosen the size. A reply that is too long is no fault of the replier, and no
            // reason to keep the call: a caller that chooses a small size would fill the replier's space with
            // calls.
            fits = message.length <= call.size;
            call.state = CallState::Done(if fits {
                let (from, to) = ((replier, message.from), (receiver, call.buffer));
                let passed = self.machine.pass_message(from, to, usize::from(message.length));
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
            shared.capabilities.take_reply((replier, index), caller);
        }
        self.wake_all(VcpuSet::of(caller));
        fits.then_some(()).ok_or(Error::NoSpace)
    }

    /// Destroys a capability to reply by, and ends the call. Returns `None` if the index names
    /// another kind.
    #[inline]
    pub(crate) fn delete_reply(&mut self, holder: PartitionId, index: u64) -> Option<Outcome> {
        let index = ReplyIndex::of(index)?;
        let was_its = self.refuse_reply(holder, index.caller(), Some(index));
        Some(was_its.then_some([0; 4]).ok_or(Error::Revoked))
    }

    /// Ends the call of `caller` if `holder` has the capability to reply to it, with this index if one is
    /// given. Returns whether that was so.
    fn refuse_reply(&mut self, holder: PartitionId, caller: VcpuId, index: Option<ReplyIndex>) -> bool {
        let mut seat = self.shared.seats.of(caller).lock();
        let held = seat.call.reply;
        let Some(reply) = held.filter(|held| held.0 == holder && index.is_none_or(|index| held.1 == index))
        else {
            return false;
        };
        seat.call.reply = None;
        if seat.call.state == CallState::Open {
            seat.call.state = CallState::Done(Err(Error::Revoked));
        }
        self.shared.capabilities.take_reply(reply, caller);
        drop(seat);
        self.wake_all(VcpuSet::of(caller));
        true
    }

    /// Ends the calls that a partition has received and has not answered. None of its vCPUs runs. Bounded by
    /// the slots of a capability space.
    pub(crate) fn refuse_replies(&mut self, partition: PartitionId) {
        if !has(Part::Ports) {
            return;
        }
        let shared = self.shared;
        for caller in shared.capabilities.replies(partition) {
            self.refuse_reply(partition, caller, None);
        }
    }

    /// Ends all waits of the vCPU at ports and locks, and takes its locks: the vCPU is being switched off.
    /// Requires: settled, or the vCPU is not running.
    #[inline]
    pub(crate) fn leave_ports(&mut self, slot: Slot, vcpu: VcpuId) {
        if HAS_SEATS && self.local.is_any_engaged() {
            self.leave_engaged(slot, vcpu);
        }
    }

    #[inline(never)]
    fn leave_engaged(&mut self, slot: Slot, vcpu: VcpuId) {
        let now = self.machine.now();
        self.local.end_loans(slot, now);
        if !self.local.disengage(slot) {
            return;
        }
        let activity = self.local.slot(slot).activity;
        if let Activity::Blocked(Pause::Port(port, ..)) | Activity::Looking(Pause::Port(port, ..)) = activity
        {
            self.shared.ports.of(port).lock().leave(vcpu);
        }
        self.end_call(vcpu);
        self.leave_locks(vcpu, activity);
    }

    /// Ends the call of a vCPU. Its capability to reply by is gone then.
    fn end_call(&self, vcpu: VcpuId) {
        let mut seat = self.shared.seats.of(vcpu).lock();
        seat.call.state = CallState::None;
        if let Some(held) = seat.call.reply.take() {
            self.shared.capabilities.take_reply(held, vcpu);
        }
    }

    /// Returns the outcome of a wait for a message that was completed.
    pub(crate) fn received(&self, vcpu: VcpuId) -> Option<Outcome> {
        let (outcome, basis) = {
            let mut seat = self.shared.seats.of(vcpu).lock();
            (seat.received.take(), seat.basis)
        };
        if outcome == Some(Err(Error::Revoked))
            && let Basis::Port(Named { index, .. }) | Basis::Lock(Named { index, .. }) = basis
        {
            self.meet_revoked(vcpu, index);
        }
        outcome
    }

    /// Returns the outcome of the vCPU's call, if the call is done. There is no call then.
    pub(crate) fn replied(&self, vcpu: VcpuId) -> Option<Outcome> {
        let mut seat = self.shared.seats.of(vcpu).lock();
        let CallState::Done(outcome) = seat.call.state else {
            return None;
        };
        seat.call.state = CallState::None;
        let index = seat.call.at.index;
        drop(seat);
        if outcome == Err(Error::Revoked) {
            // Also if the receiver has ended the call: then the slot has its capability, and keeps it.
            self.meet_revoked(vcpu, index);
        }
        Some(outcome)
    }

    /// Takes the vCPU from the waiters of a port. Returns `error`, unless a message has come meanwhile.
    pub(crate) fn give_up_message(&self, vcpu: VcpuId, port: PortId, error: Error) -> Outcome {
        if self.shared.ports.of(port).lock().leave(vcpu) {
            return Err(error);
        }
        self.received(vcpu).unwrap_or(Err(error))
    }

    /// Ends the wait for a reply. Returns `error`, unless the reply has come meanwhile. An interrupt leaves
    /// the call open.
    pub(crate) fn give_up_reply(&self, vcpu: VcpuId, error: Error) -> Outcome {
        if let Some(outcome) = self.replied(vcpu) {
            return outcome;
        }
        if error == Error::Interrupted {
            self.shared.seats.of(vcpu).lock().call.waits = false;
        } else {
            self.end_call(vcpu);
        }
        Err(error)
    }

    /// Checks that the sender itself may read the message, and that the message is no longer than `most`.
    fn check_message(&self, sender: PartitionId, message: &Message, most: u16) -> Result<(), Error> {
        let length = u64::from(message.length);
        let is_right = message.length <= most && self.machine.may_access(sender, message.from, length, false);
        is_right.then_some(()).ok_or(Error::InvalidArgument)
    }

    /// Checks that the vCPU's partition itself may write `least` bytes of the buffer, and that the buffer has
    /// as many.
    fn check_buffer(&self, vcpu: VcpuId, buffer: &Buffer, least: u16) -> Result<(), Error> {
        let partition = self.system.binding(vcpu).partition;
        let is_right = buffer.size >= least
            && self
                .machine
                .may_access(partition, buffer.to, u64::from(least), true)
            && !self.can_be_taken(partition, buffer.to, least.into());
        is_right.then_some(()).ok_or(Error::InvalidArgument)
    }

    fn check_receive(&self, vcpu: VcpuId, port: PortId, buffer: &Buffer) -> Result<(), Error> {
        self.check_buffer(vcpu, buffer, self.system.port(port).size)
    }

    /// Opens a call and sends its message. After an error nothing has changed.
    fn begin_call(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        at: Named<PortId>,
        (message, buffer, mode): (&Message, &Buffer, CallMode),
    ) -> Result<(), Error> {
        let port = at.it;
        let sender = self.system.binding(vcpu).partition;
        self.check_message(sender, message, self.system.port(port).size)?;
        self.check_buffer(vcpu, buffer, buffer.size)?;
        self.local.engage(slot);
        let number = {
            let mut seat = self.shared.seats.of(vcpu).lock();
            // The capability may have been taken away since the check. The lock of the seat orders this look
            // and the look of the pCPU that takes the capability away.
            if !self.stands(vcpu, at.index, CALLS, port.0) {
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
        if let Some(server) = self.only_server(port)
            && self.closes_circle(vcpu, server)
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
            self.end_loan(slot);
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
        let (shared, system, from) = (self.shared, self.system, message.from);
        let facts = system.port(port);
        let length = usize::from(letter.length);
        let mut queue = shared.ports.of(port).lock();
        if let (Some(donor), Some(server)) = (donor, queue.waiter().or(queue.server)) {
            self.lend_to(donor, server)?;
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
            let left = self.leave_message(&mut queue, facts, (from, letter));
            told = facts.told.filter(|_| left.is_ok());
            left
        });
        drop(queue);
        self.wake_all(woken);
        if let Some((partition, events)) = told {
            self.raise(partition, events);
        }
        result
    }

    /// Leaves a message in a port: in place of a call that the same caller has given up, or else after the
    /// last one. So the calls in a port that no caller waits for are as few as the vCPUs that call there.
    fn leave_message(
        &self,
        queue: &mut Queue,
        facts: &PortFacts,
        (from, letter): (GuestPhys, &Letter),
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
        let (header, body) = self.shared.messages.entry(facts, position);
        self.machine
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

    /// Raises the events of messages that wait in ports for a partition which begins a new life: the events
    /// of its last life are gone. Bounded by the ports.
    pub(crate) fn raise_for_messages(&mut self, partition: PartitionId) {
        if !has(Part::Ports) {
            return;
        }
        for (_, number) in self.system.image.ports().iter().zip(0_u8..) {
            let port = PortId(number);
            if let Some((receiver, events)) = self.system.port(port).told
                && receiver == partition
                && self.shared.ports.of(port).lock().oldest().is_some()
            {
                self.raise(partition, events);
            }
        }
    }

    /// Returns the position of an earlier call of the same vCPU, which has given the call up: it begins
    /// another one. Bounded by the depth of the port.
    #[cold]
    fn given_up(&self, queue: &Queue, facts: &PortFacts, vcpu: VcpuId) -> Option<u16> {
        queue.positions(facts).find(|position| {
            let (header, _) = self.shared.messages.entry(facts, *position);
            Letter::is_call_of(header, vcpu)
        })
    }

    /// Drops the oldest message of a port if `sender` has sent it, and no vCPU waits for an answer to it. A
    /// sender never takes the place of another one.
    fn drop_own(&self, queue: &mut Queue, facts: &PortFacts, sender: PartitionId) {
        let Some(position) = queue.oldest() else { return };
        let (header, _) = self.shared.messages.entry(facts, position);
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
        (buffer, waits): (&Buffer, bool),
    ) -> Result<Option<[u64; 4]>, Error> {
        let (shared, system, port) = (self.shared, self.system, at.it);
        let (facts, own) = (system.port(port), system.binding(vcpu).partition);
        let mut queue = shared.ports.of(port).lock();
        // A message that was sent after the capability was taken away is not for this vCPU. The sender had
        // the lock of the port before.
        if queue.oldest().is_some() && !self.stands(vcpu, at.index, RECEIVES, port.0) {
            return Err(Error::Revoked);
        }
        while let Some(position) = queue.oldest() {
            let (header, body) = shared.messages.entry(facts, position);
            if let Some(mark) = Mark::read(header) {
                if shared.lines.is_queued(mark) {
                    self.machine
                        .store_message((own, buffer.to), 8, body)
                        .map_err(|_| Error::InvalidArgument)?;
                    queue.pop(facts, header);
                    return Ok(Some(self.line_received(mark, vcpu, &mut queue)));
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
        self.local.engage(slot);
        self.sit_down(vcpu, at, buffer.to);
        if !self.stands(vcpu, at.index, RECEIVES, port.0) {
            return Err(Error::Revoked);
        }
        queue.wait(vcpu);
        Ok(None)
    }

    /// Gives a receiver the capability that comes with a message. Returns the results of the receive.
    fn contents(&self, receiver: VcpuId, facts: &PortFacts, letter: &Letter, reply: u64) -> [u64; 4] {
        let partition = self.system.binding(receiver).partition;
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
    /// `Revoked` if the caller has given up. The error of `put_reply` if the receiver's space is full: then the
    /// call has ended with this error. In both cases the receiver must not get the message.
    fn give_reply(&self, receiver: VcpuId, letter: &Letter) -> Result<u64, Error> {
        let Some(caller) = letter.caller else { return Ok(0) };
        let partition = self.system.binding(receiver).partition;
        let mut seat = self.shared.seats.of(caller.vcpu).lock();
        let call = &mut seat.call;
        if !call.is_open(caller.number) {
            return Err(Error::Revoked);
        }
        let spaces = &self.shared.capabilities;
        let put = spaces.put_reply(partition, (caller.vcpu, caller.number), call.reply_rights);
        match put {
            Ok(index) => (call.reply, call.server) = (Some((partition, index)), Some(receiver)),
            Err(error) => call.state = CallState::Done(Err(error)),
        }
        put.map(|index| u64::from(index.0))
    }

    /// Takes the capability to reply to a message back: the receiver has not got the message.
    #[cold]
    fn take_reply_back(&self, letter: &Letter) {
        if let Some(Caller { vcpu, .. }) = letter.caller {
            let held = self.shared.seats.of(vcpu).lock().call.reply.take();
            if let Some(held) = held {
                self.shared.capabilities.take_reply(held, vcpu);
            }
        }
    }

    /// Has the caller of a message that nobody gets look at its call.
    #[cold]
    fn wake_caller(&mut self, letter: &Letter) {
        if let Some(Caller { vcpu, .. }) = letter.caller {
            self.wake_all(VcpuSet::of(vcpu));
        }
    }

    /// Gives a partition the capability that comes with a message. Returns its index, 0 if there is none:
    /// none was sent, the sender does not have it any more, or the receiver's space is full.
    fn give(&self, receiver: PartitionId, letter: &Letter) -> u64 {
        let Some(gift) = letter.gift else { return 0 };
        let from = (letter.sender, gift.index);
        self.shared
            .capabilities
            .derive_same(from, gift.capability, receiver, gift.rights)
            .map_or(0, u64::from)
    }

    /// Blocks a vCPU that is a waiter of a port.
    fn wait_for_message(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        port: PortId,
        buffer: &Buffer,
    ) -> Option<Outcome> {
        let until = self.deadline_of(buffer.until);
        let Some(own) = self.interruption(vcpu) else {
            return Some(self.give_up_message(vcpu, port, Error::Interrupted));
        };
        self.local
            .block(slot, Activity::Blocked(Pause::Port(port, until, own)));
        None
    }

    /// Blocks a vCPU that has a call, unless the call is done.
    fn wait_for_reply(&mut self, slot: Slot, vcpu: VcpuId, until: Option<u64>) -> Option<Outcome> {
        let mut outcome = self.replied(vcpu);
        if outcome.is_none() {
            let until = self.deadline_of(until);
            if let Some(own) = self.interruption(vcpu) {
                self.local
                    .block(slot, Activity::Blocked(Pause::Reply(until, own)));
                return None;
            }
            outcome = Some(self.give_up_reply(vcpu, Error::Interrupted));
        }
        self.end_loan(slot);
        outcome
    }

    pub(crate) fn deadline_of(&self, until: Option<u64>) -> Ticks {
        until.map_or(Ticks::NEVER, |nanoseconds| self.system.time.at(nanoseconds))
    }

    /// Lends the place of `donor`, which is running or waits, to a vCPU that serves it. Without an error
    /// there may be no loan: the vCPU is elsewhere, it does not run, or the policy has no donation.
    ///
    /// # Errors
    /// [`Error::DonationCycle`].
    pub(crate) fn lend_to(&mut self, donor: Slot, server: VcpuId) -> Result<(), Error> {
        let there = self.system.binding(server);
        if !self.is_here(there.pcpu) || !self.local.can_borrow(there.slot) {
            return Ok(());
        }
        let now = self.machine.now();
        match self.local.lend(donor, there.slot, now) {
            Err(PolicyError::DonationCycle) => Err(Error::DonationCycle),
            _ => Ok(()),
        }
    }

    /// Lets a vCPU that has taken the message of a caller have the caller's place, if the caller donates.
    fn take_loan(&mut self, caller: VcpuId, slot: Slot) {
        let there = self.system.binding(caller);
        if !self.is_here(there.pcpu) || !self.shared.seats.of(caller).lock().call.donates {
            return;
        }
        let waits = matches!(
            self.local.slot(there.slot).activity,
            Activity::Blocked(Pause::Reply(..))
        );
        if waits {
            let now = self.machine.now();
            self.local.lend_on(there.slot, slot, now);
        }
    }

    /// Returns the vCPU that a vCPU with an open call lends its place to, if it donates.
    fn server_of(&self, vcpu: VcpuId) -> Option<VcpuId> {
        let (port, server) = {
            let seat = self.shared.seats.of(vcpu).lock();
            let call = &seat.call;
            if call.state != CallState::Open || !call.donates {
                return None;
            }
            (call.at.it, call.server)
        };
        server.or_else(|| self.shared.ports.of(port).lock().server)
    }

    /// Lets a slot, which is switched on or loads its partition, have the places of the callers of this pCPU
    /// that wait for its vCPU, or for any vCPU of its partition if it loads. Bounded by the slots in use.
    #[inline]
    pub(crate) fn relend_to(&mut self, slot: Slot) {
        if HAS_SEATS && self.local.is_any_engaged() {
            self.relend_callers(slot);
        }
    }

    #[inline(never)]
    fn relend_callers(&mut self, slot: Slot) {
        let state = *self.local.slot(slot);
        let partition = self.system.binding(state.vcpu).partition;
        let loads = matches!(state.activity, Activity::Loading(_));
        for from in self.local.all() {
            let caller = *self.local.slot(from);
            if !matches!(caller.activity, Activity::Blocked(Pause::Reply(..))) {
                continue;
            }
            let is_its = |server: VcpuId| {
                server == state.vcpu || loads && self.system.binding(server).partition == partition
            };
            if self.server_of(caller.vcpu).is_some_and(is_its) {
                let now = self.machine.now();
                self.local.lend_on(from, slot, now);
            }
        }
    }

    /// Lends the place of a caller that waits on, after a look at why it was woken.
    pub(crate) fn relend_call(&mut self, slot: Slot) {
        if let Some(server) = self.server_of(self.local.slot(slot).vcpu) {
            let _without = self.lend_to(slot, server);
        }
    }

    /// Ends the loan of a slot whose vCPU goes on.
    pub(crate) fn end_loan(&mut self, slot: Slot) {
        if self.local.is_lending(slot) {
            let now = self.machine.now();
            self.local.end_loan(slot, now);
        }
    }
}
