// SPDX-License-Identifier: Apache-2.0
//! Ports: the queues of messages, and the vCPUs that wait for one.
//!
//! **Queue.** Each port has a short lock of its own. The lock guards the messages that wait, in their order,
//! and the vCPUs that wait for a message. One of the two is always empty. A message to a port where a vCPU
//! waits is copied once, from the memory of the sender into the memory of the receiver. Any other message is
//! copied into the port, if the port has room, and later out of the port.
//!
//! **Room.** A port keeps room for some messages of each sender, by the manifest. The rest is for all. So a
//! sender that fills the port leaves the others their own room. A message says whose room it has. A call that
//! was given up leaves its message in the port. If its caller calls again and the port is full, the new call
//! takes the place of that message.
//!
//! **Seat.** Each vCPU has a seat, with a lock of its own. The seat holds the waits of the vCPU: the buffer
//! for a message, the buffer for a reply, and their outcome. The one who completes a wait writes the outcome
//! and wakes the vCPU. The vCPU finds the outcome on its own pCPU. So a wait is completed from any pCPU, and
//! nothing of another pCPU's own state is touched.
//!
//! **Order of locks.** A port, then a seat, then the capability spaces. No two ports and no two seats are
//! ever held together. A message is copied with the port's lock held, or with the seat's for a reply. So no
//! vCPU that has left its wait finds its memory written later.
//!
//! **Work bounds.** A send and a receive copy one message of at most
//! [`MAX_MESSAGE`](bulkhead_abi::hypercall::MAX_MESSAGE) bytes. A receive may skip requests whose callers
//! have given up: at most as many as the port holds, each in constant time.

pub(crate) mod command;
pub(crate) mod decode;
mod hand_over;
mod life;
mod message;
mod wait;

use crate::cap::{Capability, HeldReply, Named};
use crate::lent::line::Mark;
use crate::lock::LockId;
use crate::outcome::Outcome;
use crate::parts::PORTS;
use crate::port::command::Gift;
pub(crate) use crate::port_id::PORT_ENTRIES;
pub use crate::port_id::{MAX_PORTS, PerPort, PortId};
use bulkhead_abi::atomic::AtomicU64;
use bulkhead_abi::size::IS_SMALL;
use bulkhead_abi::{ObjectKind, Operation, Rights};
use bulkhead_arch_api::{GuestPhys, MAX_PARTITIONS, PartitionId, VcpuId, VcpuSet};
use bulkhead_image::layout::{PORT_IDENTIFIES, PortRecord};
use bulkhead_image::{MESSAGE_HEADER_WORDS, MESSAGE_WORDS};
use core::sync::atomic::Ordering;
use spin::RelaxStrategy;
use spin::mutex::TicketMutex;

const HEADER: usize = MESSAGE_HEADER_WORDS as usize;

const CALL: u16 = Operation::PortSendReceiveDonate as u16;
const REPLY_RECEIVE: u16 = Operation::PortReceiveDonate as u16;

/// Tells whether this operation may take the short way. Where size counts, none does.
#[inline(always)]
pub(crate) const fn is_handed_over(operation: u16) -> bool {
    !IS_SMALL && PORTS && (operation == CALL || operation == REPLY_RECEIVE)
}

/// The facts of a port.
#[derive(Clone, Copy, Debug)]
pub struct PortFacts {
    /// Bytes of the longest message.
    pub size: u16,
    /// The length from which on a message is not sent the short way. It is 0 if messages raise events.
    pub short_end: u16,
    /// The first vCPU that may receive, by the manifest.
    pub receiver: Option<VcpuId>,
    /// True if by the manifest no other vCPU may receive.
    pub has_one_receiver: bool,
    /// The partition at whose gate a message that has to wait raises an event, and the events.
    pub told: Option<(PartitionId, u64)>,
    /// True if receivers learn who sent a message.
    identifies: bool,
    /// The messages that can wait.
    depth: u16,
    /// The first word of the memory for these messages.
    first: u16,
    /// The words for each of them.
    words: u16,
}

impl PortFacts {
    /// No port.
    pub const NOTHING: Self = Self {
        size: 0,
        short_end: 0,
        receiver: None,
        has_one_receiver: false,
        told: None,
        identifies: false,
        depth: 0,
        first: 0,
        words: 0,
    };

    /// Returns the facts of a port whose memory starts with word `first`. The check of the image has bounded
    /// all numbers.
    #[must_use]
    pub const fn new(record: &PortRecord, first: u32) -> Self {
        Self {
            size: record.message_size.get() as u16,
            short_end: (record.message_size.get() as u16).saturating_add(1),
            identifies: record.flags.get() & PORT_IDENTIFIES != 0,
            depth: record.depth.get() as u16,
            first: first as u16,
            words: record.words_of_message() as u16,
            ..Self::NOTHING
        }
    }

    /// Takes note that a message which has to wait raises these events at a partition's gate.
    pub const fn tells(&mut self, partition: PartitionId, events: u64) {
        (self.told, self.short_end) = (Some((partition, events)), 0);
    }

    /// Takes note that the vCPUs of a partition, the first one and how many, may receive.
    pub fn receives(&mut self, first: VcpuId, count: u8) {
        self.has_one_receiver = self.receiver.is_none() && count == 1 || self.receiver == Some(first);
        self.receiver = self.receiver.or(Some(first));
    }

    /// Returns what a receiver learns of the sender.
    pub const fn shown(&self, sender: PartitionId) -> u64 {
        if self.identifies {
            (sender.0 as u64).wrapping_add(1)
        } else {
            0
        }
    }
}

/// A call: the vCPU that waits for the reply, and which of its calls this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The vCPU.
    pub vcpu: VcpuId,
    /// The number of its call.
    pub number: u32,
}

/// The facts of a message besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The number of bytes.
    pub length: u16,
    /// The sender.
    pub sender: PartitionId,
    /// The call that the message is.
    pub caller: Option<Caller>,
    /// The capability that goes with the message.
    pub gift: Option<Gift>,
}

const HAS_CALLER: u64 = 1 << 32;
const HAS_GIFT: u64 = 1 << 33;
const IS_LINE: u64 = 1 << 34;
const IS_IN_OWN_ROOM: u64 = 1 << 35;

/// The room of a message in a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The room that the port keeps for its sender.
    Own,
    /// The room that all senders share.
    Common,
}

impl Room {
    /// Returns the room of a message with these words before it.
    #[must_use]
    pub fn read(header: &[AtomicU64]) -> Self {
        match header.first() {
            Some(first) if first.load(Ordering::Relaxed) & IS_IN_OWN_ROOM != 0 => Self::Own,
            _ => Self::Common,
        }
    }

    #[inline]
    const fn bits(self) -> u64 {
        match self {
            Self::Own => IS_IN_OWN_ROOM,
            Self::Common => 0,
        }
    }
}

impl Mark {
    /// Writes the mark of a line's message of 8 bytes into the words before the message.
    pub fn write(self, header: &[AtomicU64]) {
        let words = [8 | IS_LINE, u64::from(self.number), u64::from(self.device)];
        for (word, value) in header.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Returns the mark in the words before a message, if the message is a line's.
    #[inline]
    #[must_use]
    pub fn read(header: &[AtomicU64]) -> Option<Self> {
        let [first, number, device, ..] = header else {
            return None;
        };
        let is_line = first.load(Ordering::Relaxed) & IS_LINE != 0;
        is_line.then(|| Self {
            device: device.load(Ordering::Relaxed) as u8,
            number: number.load(Ordering::Relaxed) as u32,
        })
    }
}

impl Letter {
    /// Returns the letter of a message that is no call and has no capability with it.
    #[inline]
    #[must_use]
    pub const fn plain(length: u16, sender: PartitionId) -> Self {
        Self {
            length,
            sender,
            caller: None,
            gift: None,
        }
    }

    /// Returns length and sender from the words before a message, if it is no call, has no capability with
    /// it, and is in the room of all.
    #[inline]
    #[must_use]
    pub fn read_plain(header: &[AtomicU64]) -> Option<(u16, PartitionId)> {
        let first = header.first()?.load(Ordering::Relaxed);
        let is_plain = first & (HAS_CALLER | HAS_GIFT | IS_LINE | IS_IN_OWN_ROOM) == 0;
        is_plain.then_some((first as u16, PartitionId((first >> 16) as u8)))
    }

    /// Returns the letter as the words before a message that waits.
    fn encode(&self) -> [u64; HEADER] {
        let mut first = u64::from(self.length) | u64::from(self.sender.0) << 16;
        let (mut number, mut gift) = (0, 0);
        if let Some(caller) = self.caller {
            first |= HAS_CALLER | u64::from(caller.vcpu.0) << 24;
            number = u64::from(caller.number);
        }
        if let Some(given) = self.gift {
            first |= HAS_GIFT;
            let Capability { kind, object, rights } = given.capability;
            let bytes = [given.index, given.rights.0, kind as u8, object, rights.0, 0, 0, 0];
            gift = u64::from_le_bytes(bytes);
        }
        [first, number, gift]
    }

    /// Writes the letter into the words before its message, which has this room.
    #[inline]
    pub fn write(&self, header: &[AtomicU64], room: Room) {
        let [first, number, gift] = self.encode();
        for (word, value) in header.iter().zip([first | room.bits(), number, gift]) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Tells whether the message after these words is a call of `vcpu`.
    #[inline]
    #[must_use]
    pub fn is_call_of(header: &[AtomicU64], vcpu: VcpuId) -> bool {
        let first = header.first().map_or(0, |word| word.load(Ordering::Relaxed));
        first & HAS_CALLER != 0 && (first >> 24) as u8 == vcpu.0
    }

    /// Returns the letter in the words before its message.
    #[inline]
    pub fn read(header: &[AtomicU64]) -> Self {
        let mut words = [0; HEADER];
        for (value, word) in words.iter_mut().zip(header) {
            *value = word.load(Ordering::Relaxed);
        }
        Self::decode(words)
    }

    fn decode([first, number, gift]: [u64; HEADER]) -> Self {
        let caller = Caller {
            vcpu: VcpuId((first >> 24) as u8),
            number: number as u32,
        };
        let [index, rights, kind, object, held, ..] = gift.to_le_bytes();
        let gift = ObjectKind::from_number(kind).map(|kind| Gift {
            index,
            rights: Rights(rights),
            capability: Capability {
                kind,
                object,
                rights: Rights(held),
            },
        });
        Self {
            length: first as u16,
            sender: PartitionId((first >> 16) as u8),
            caller: (first & HAS_CALLER != 0).then_some(caller),
            gift: gift.filter(|_| first & HAS_GIFT != 0),
        }
    }
}

/// The part of a port that changes.
#[derive(Debug)]
pub struct Queue {
    /// The position of the oldest message.
    head: u16,
    /// The messages that wait.
    count: u16,
    /// The room that is kept: a message each for lines that are bound and have none here, and the room that
    /// senders have by the manifest and do not use.
    kept: u16,
    /// By sender: the part of `kept` that is its own.
    left: [u8; MAX_PARTITIONS],
    /// The vCPUs that wait for a message.
    waiters: VcpuSet,
    /// The vCPUs with a call that waits here, given up or not: one each.
    callers: VcpuSet,
    /// The vCPU that received last, or the only one that may.
    pub server: Option<VcpuId>,
}

impl Queue {
    const fn new() -> Self {
        Self {
            head: 0,
            count: 0,
            kept: 0,
            left: [0; MAX_PARTITIONS],
            waiters: VcpuSet::EMPTY,
            callers: VcpuSet::EMPTY,
            server: None,
        }
    }

    /// Returns the waiter whose turn it is: the first one after the vCPU that received last.
    pub fn waiter(&self) -> Option<VcpuId> {
        if self.waiters.is_empty() {
            return None;
        }
        let turned = self.server.map_or(0, |last| u32::from(last.0).wrapping_add(1));
        let behind = self.waiters.0.rotate_right(turned).trailing_zeros();
        Some(VcpuId((behind.wrapping_add(turned) & 63) as u8))
    }

    /// Tells whether a vCPU waits for a message.
    #[inline]
    pub const fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Makes `vcpu` a waiter.
    pub const fn wait(&mut self, vcpu: VcpuId) {
        self.waiters.insert_all(VcpuSet::of(vcpu));
    }

    /// Takes `vcpu` from the waiters. Returns whether it was one.
    pub const fn leave(&mut self, vcpu: VcpuId) -> bool {
        let was = self.waiters.contains(vcpu);
        self.waiters.0 &= !VcpuSet::of(vcpu).0;
        was
    }

    /// Tells whether no other message has room that is kept for no sender.
    pub const fn is_full(&self, facts: &PortFacts) -> bool {
        self.count.saturating_add(self.kept) >= facts.depth
    }

    /// Keeps room for `count` messages of a sender. Only the boot calls this.
    pub fn keep_for(&mut self, sender: PartitionId, count: u8) {
        if let Some(left) = self.left.get_mut(usize::from(sender.0)) {
            self.kept = self.kept.saturating_add(count.into());
            *left = left.saturating_add(count);
        }
    }

    /// Returns the room for another message of a sender, if there is any: the common room before its own.
    pub fn room_for(&self, facts: &PortFacts, sender: PartitionId) -> Option<Room> {
        if !self.is_full(facts) {
            return Some(Room::Common);
        }
        let left = self.left.get(usize::from(sender.0))?;
        (*left != 0).then_some(Room::Own)
    }

    /// Counts the message of a sender after the last one in. The message has this room.
    #[inline]
    pub fn push_from(&mut self, sender: PartitionId, room: Room) {
        if room == Room::Own {
            if let Some(left) = self.left.get_mut(usize::from(sender.0)) {
                *left = left.saturating_sub(1);
            }
            self.let_go();
        }
        self.push();
    }

    /// Notes that the message after the last one is a call of `vcpu`.
    pub const fn note_call(&mut self, vcpu: VcpuId) {
        self.callers.insert_all(VcpuSet::of(vcpu));
    }

    /// Takes the oldest message out, which is a call of `caller` if there is one, and has these words before
    /// it.
    pub fn pop_call(&mut self, facts: &PortFacts, header: &[AtomicU64], caller: Option<Caller>) {
        if let Some(Caller { vcpu, .. }) = caller {
            self.callers.0 &= !VcpuSet::of(vcpu).0;
        }
        self.pop(facts, header);
    }

    /// Tells whether a call of `vcpu` waits, given up or not.
    #[inline]
    pub const fn has_call_of(&self, vcpu: VcpuId) -> bool {
        self.callers.contains(vcpu)
    }

    /// Keeps room for a message of one more line. Returns false if there is none.
    pub const fn keep(&mut self, facts: &PortFacts) -> bool {
        let has_room = !self.is_full(facts);
        if has_room {
            self.keep_again();
        }
        has_room
    }

    /// Keeps the room that the message of a line has just left.
    pub const fn keep_again(&mut self) {
        self.kept = self.kept.saturating_add(1);
    }

    /// Keeps room for one line less.
    pub const fn let_go(&mut self) {
        self.kept = self.kept.saturating_sub(1);
    }

    /// Counts the message after the last one in.
    pub const fn push(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// Takes the oldest message out, which has these words before it.
    #[inline]
    pub fn pop(&mut self, facts: &PortFacts, header: &[AtomicU64]) {
        let first = header.first().map_or(0, |word| word.load(Ordering::Relaxed));
        if first & IS_IN_OWN_ROOM != 0 {
            let sender = (first >> 16) as u8;
            if let Some(left) = self.left.get_mut(usize::from(sender)) {
                *left = left.saturating_add(1);
            }
            self.keep_again();
        }
        self.leave_oldest(facts);
    }

    /// Takes the oldest message out, which is in nobody's own room.
    pub const fn leave_oldest(&mut self, facts: &PortFacts) {
        let next = self.head.wrapping_add(1);
        self.head = if next >= facts.depth { 0 } else { next };
        self.count = self.count.saturating_sub(1);
    }

    /// Returns the position of the oldest message, if there is one.
    pub const fn oldest(&self) -> Option<u16> {
        if self.count == 0 { None } else { Some(self.head) }
    }

    /// Returns the positions of all messages, the oldest one first.
    pub fn positions(&self, facts: &PortFacts) -> impl Iterator<Item = u16> + use<> {
        let (head, depth) = (self.head, facts.depth);
        (0..self.count).map(move |step| {
            let at = head.wrapping_add(step);
            if at >= depth { at.wrapping_sub(depth) } else { at }
        })
    }

    /// Returns the position after the last message.
    pub const fn end(&self, facts: &PortFacts) -> u16 {
        let end = self.head.wrapping_add(self.count);
        if end >= facts.depth {
            end.wrapping_sub(facts.depth)
        } else {
            end
        }
    }
}

/// A port.
pub type Port<R> = TicketMutex<Queue, R>;

/// Makes a port in which nothing waits.
pub const fn port<R: RelaxStrategy>() -> Port<R> {
    TicketMutex::new(Queue::new())
}

/// The memory for messages that wait. Each port has a part of its own, which its lock guards.
#[derive(Debug)]
pub struct Messages {
    words: [AtomicU64; MESSAGE_WORDS],
}

impl Default for Messages {
    fn default() -> Self {
        Self::new()
    }
}

impl Messages {
    /// Makes empty memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            words: [const { AtomicU64::new(0) }; MESSAGE_WORDS],
        }
    }

    /// Returns the words for the message at a position: the words of its letter, and the words of its bytes.
    #[inline]
    pub fn entry(&self, facts: &PortFacts, position: u16) -> (&[AtomicU64], &[AtomicU64]) {
        let words = usize::from(facts.words);
        let start = usize::from(position)
            .saturating_mul(words)
            .saturating_add(usize::from(facts.first));
        let end = start.saturating_add(words);
        let entry = self.words.get(start..end).unwrap_or(&[]);
        entry.split_at_checked(HEADER).unwrap_or((&[], &[]))
    }
}

/// A wait for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageWait {
    /// The port.
    pub port: PortId,
}

/// A wait for the reply to the call of the vCPU. The seat has all facts of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyWait;

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallState {
    /// There is none.
    None,
    /// The reply has not come.
    Open,
    /// The reply has come, or the call has ended otherwise. The vCPU has not been told.
    Done(Outcome),
}

/// The object that a vCPU waits at, or waited at last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Nothing.
    Nothing,
    /// A port, for a message.
    Port(Named<PortId>),
    /// A lock.
    Lock(Named<LockId>),
}

/// A call of a vCPU.
#[derive(Debug)]
pub struct Call {
    /// The state.
    pub state: CallState,
    /// The number of the present call, or of the last one.
    pub number: u32,
    /// The buffer for the reply.
    pub buffer: GuestPhys,
    /// The bytes of the buffer.
    pub size: u16,
    /// True if the vCPU waits for the reply, and takes no interrupt meanwhile.
    pub waits: bool,
    /// The port that the call was sent to, and the slot of the capability by which it was.
    pub at: Named<PortId>,
    /// True if the receiver runs in the place of the vCPU.
    pub donates: bool,
    /// The rights of the capability to reply by.
    pub reply_rights: Rights,
    /// The capability to reply by, if the call was received.
    pub reply: Option<HeldReply>,
    /// The vCPU that received the call.
    pub server: Option<VcpuId>,
}

impl Call {
    /// Tells whether this call still waits.
    pub fn is_open(&self, number: u32) -> bool {
        self.state == CallState::Open && self.number == number
    }
}

/// The waits of a vCPU at ports.
#[derive(Debug)]
pub struct Seat {
    /// The buffer for a message. It counts while the vCPU is a waiter of a port.
    pub buffer: GuestPhys,
    /// The outcome of the wait for a message, or for a lock.
    pub received: Option<Outcome>,
    /// The object of that wait. It counts while the vCPU is a waiter.
    pub basis: Basis,
    /// The number of the present wait for a lock, or of the last one.
    pub turn: u32,
    /// The locks that the vCPU owns, as a bitmap.
    pub owned: u32,
    /// The call.
    pub call: Call,
}

impl Seat {
    /// Makes the seat of a vCPU that waits for nothing.
    pub const fn new() -> Self {
        Self {
            buffer: GuestPhys(0),
            received: None,
            basis: Basis::Nothing,
            turn: 0,
            owned: 0,
            call: Call {
                state: CallState::None,
                number: 0,
                buffer: GuestPhys(0),
                size: 0,
                waits: false,
                at: Named {
                    it: PortId(0),
                    index: 0,
                },
                donates: false,
                reply_rights: Rights::NONE,
                reply: None,
                server: None,
            },
        }
    }
}

impl Default for Seat {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_survives_the_queue() {
        let gift = Gift {
            index: 7,
            rights: Rights::READ,
            capability: Capability {
                kind: ObjectKind::Console,
                object: 200,
                rights: Rights::ALL,
            },
        };
        let caller = Caller {
            vcpu: VcpuId(63),
            number: u32::MAX,
        };
        for (caller, gift) in [
            (None, None),
            (Some(caller), None),
            (None, Some(gift)),
            (Some(caller), Some(gift)),
        ] {
            let letter = Letter {
                length: 1024,
                sender: PartitionId(31),
                caller,
                gift,
            };
            assert_eq!(Letter::decode(letter.encode()), letter);
        }
    }

    #[test]
    fn waiters_take_turns() {
        let mut queue = Queue::new();
        assert_eq!(queue.waiter(), None);
        for vcpu in [3, 63, 10] {
            queue.wait(VcpuId(vcpu));
        }
        for expected in [3, 10, 63, 3] {
            let waiter = queue.waiter().unwrap();
            assert_eq!(waiter, VcpuId(expected));
            queue.server = Some(waiter);
        }
        assert!(queue.leave(VcpuId(10)) && !queue.leave(VcpuId(10)));
        assert_eq!(queue.waiter(), Some(VcpuId(63)));
    }

    #[test]
    fn positions_go_round() {
        let facts = PortFacts {
            size: 8,
            depth: 3,
            words: 4,
            ..PortFacts::NOTHING
        };
        let mut queue = Queue::new();
        for _ in 0..3 {
            queue.push();
        }
        assert!(queue.is_full(&facts));
        queue.leave_oldest(&facts);
        assert_eq!((queue.oldest(), queue.end(&facts)), (Some(1), 0));
        queue.push();
        queue.leave_oldest(&facts);
        queue.leave_oldest(&facts);
        assert_eq!((queue.oldest(), queue.end(&facts)), (Some(0), 1));
        queue.leave_oldest(&facts);
        assert_eq!(queue.oldest(), None);
    }
}
