// SPDX-License-Identifier: Apache-2.0
//! Entries of the hypervisor's log: facts in numbers, which a reader turns into text ([`super::text`]).
//!
//! The hypervisor stores an entry in a bounded number of instructions, however long its line is. A line is
//! one entry, or several of which all but the last have [`MORE`].

use crate::atomic::AtomicU64;
use core::sync::atomic::Ordering;

/// Words of an entry.
pub const ENTRY_WORDS: usize = 8;
/// Bytes of an entry.
pub const ENTRY_SIZE: usize = 8 * ENTRY_WORDS;
/// Bytes of text of an entry of [`Kind::Text`] at most.
pub const TEXT_LEN: usize = 8 * FACTS;
/// Registers of an entry of [`Kind::Registers`] at most.
pub const REGISTERS: usize = FACTS;
/// Words of an entry that hold its facts.
const FACTS: usize = ENTRY_WORDS - 2;

/// The words of an [`Entry`] in the log.
pub type StoredEntry = [AtomicU64; ENTRY_WORDS];

/// The line goes on with the next entry.
pub const MORE: u8 = 1 << 7;
/// [`Kind::Fault`]: the guest-physical address is known.
pub const HAS_ADDRESS: u8 = 1 << 0;
/// [`Kind::Fault`]: the virtual address is known.
pub const HAS_VIRTUAL: u8 = 1 << 1;
/// A health event: the partition is restarted no more, because it has reached its limit.
pub const LIMIT_REACHED: u8 = 1 << 2;
/// [`Kind::State`]: the partition starts anew, with its memory as it was.
pub const IS_WARM: u8 = 1 << 3;
/// [`Kind::State`]: the facts hold the name of the payloads.
pub const IS_NAMED: u8 = 1 << 4;
/// [`Kind::State`]: the partition was started before.
pub const IS_AGAIN: u8 = 1 << 5;
/// [`Kind::Partition`]: a task.
pub const IS_TASK: u8 = 1 << 0;
/// [`Kind::Partition`]: the partition waits for another partition to start it.
pub const IS_NOT_STARTED: u8 = 1 << 1;

crate::numbered! {
    /// The kind of an entry: the event that the entry tells of.
    Kind {
        /// Text of the hypervisor's own: `detail` bytes in `facts`, the first one lowest.
        Text = 1, "text";
        /// A partition, at boot: its name in facts 0 to 3, the pCPUs of its `detail` vCPUs in fact 4, four
        /// bits each.
        Partition = 2, "partition";
        /// A fault: address, virtual address, PC, syndrome; the class is `detail`.
        Fault = 3, "fault";
        /// A hypercall that was refused: number, capability, error.
        Refused = 4, "refused";
        /// A watchdog that has ended: its period in nanoseconds.
        Watchdog = 5, "watchdog";
        /// A server that did not answer in time: the partition of its client.
        Unanswered = 6, "unanswered";
        /// `detail` registers of the vCPU: their values. `line` has the file in bits 7:0, and the number of
        /// the first of them there in bits 15:8 ([`super::registers`]).
        Registers = 7, "registers";
        /// A report of registers was left out.
        LeftOut = 8, "left out";
        /// A state that the partition has entered: its number and 1 as `detail`, the name of its payloads in
        /// facts 0 to 3, the number of the start in fact 4.
        State = 9, "state";
        /// The partition has failed for the reason `detail` ([`Failure`]), with a number.
        Failed = 10, "failed";
        /// The partition sends frames that do not have its address.
        WrongSender = 11, "wrong sender";
        /// Entries were lost before they were shown: their number.
        Lost = 12, "lost";
        /// A life of the hypervisor begins: its version and class as `detail` bytes in `facts`.
        Begin = 13, "begin";
        /// Lives of the hypervisor that the log holds, this one included: their number.
        Boot = 14, "boot";
        /// An earlier life ended by a crash: its number. Its last words follow as text.
        Crashed = 15, "crashed";
        /// The board: its name in facts 0 to 3, the number of its pCPUs in fact 4.
        Board = 16, "board";
        /// The hypervisor ends the system, for the reason `detail` ([`super::ending::Ending`]).
        Ended = 17, "ended";
    }
}

crate::numbered! {
    /// Why a partition failed through no event of its own.
    Failure {
        /// The backend gave the vCPU up.
        Backend = 1, "backend failure ";
        /// Its payload could not be copied to an address.
        Load = 2, "cannot load at ";
        /// Its program ended with an exit code, through semihosting.
        Exit = 3, "exit code ";
    }
}

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Nanoseconds since boot.
    pub time: u64,
    /// The kind.
    pub kind: Kind,
    /// The partition, by number.
    pub partition: u8,
    /// The vCPU, by its number in the partition.
    pub vcpu: u8,
    /// A number; the kind says which.
    pub detail: u8,
    /// Flags of the kind, and [`MORE`].
    pub flags: u8,
    /// The line of the manifest, or 0. 24 bits are kept.
    pub line: u32,
    /// Numbers; the kind says which.
    pub facts: [u64; FACTS],
}

impl Entry {
    /// Makes an entry without facts.
    #[must_use]
    pub const fn new(kind: Kind, time: u64) -> Self {
        Self {
            time,
            kind,
            partition: 0,
            vcpu: 0,
            detail: 0,
            flags: 0,
            line: 0,
            facts: [0; FACTS],
        }
    }

    /// Makes an entry of the first [`TEXT_LEN`] bytes of `text`.
    #[must_use]
    pub fn text(time: u64, text: &[u8]) -> Self {
        let mut entry = Self::new(Kind::Text, time);
        entry.detail = text.len().min(TEXT_LEN) as u8;
        entry.put_bytes(text);
        entry
    }

    /// Makes an entry that stands for so many others, which were lost.
    #[must_use]
    pub const fn lost(count: u32) -> Self {
        let mut entry = Self::new(Kind::Lost, 0);
        entry.facts = [count as u64, 0, 0, 0, 0, 0];
        entry
    }

    /// Stores bytes as facts, from the first one on. Bytes without room are left out.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        for (fact, bytes) in self.facts.iter_mut().zip(bytes.chunks(8)) {
            *fact = packed(bytes);
        }
    }

    /// Returns the facts as bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; TEXT_LEN] {
        let mut bytes = [0; TEXT_LEN];
        let all = self.facts.iter().flat_map(|fact| fact.to_le_bytes());
        for (place, byte) in bytes.iter_mut().zip(all) {
            *place = byte;
        }
        bytes
    }

    /// Tells whether the line goes on with the next entry.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.flags & MORE != 0
    }

    /// Stores the entry in its place of the log.
    pub fn store(&self, place: &StoredEntry) {
        let [time, head, facts @ ..] = place;
        time.store(self.time, Ordering::Relaxed);
        head.store(self.head(), Ordering::Relaxed);
        for (word, fact) in facts.iter().zip(&self.facts) {
            word.store(*fact, Ordering::Relaxed);
        }
    }

    const fn head(&self) -> u64 {
        self.kind as u64
            | (self.partition as u64) << 8
            | (self.vcpu as u64) << 16
            | (self.detail as u64) << 24
            | (self.flags as u64) << 32
            | (self.line as u64) << 40
    }

    /// Returns the words of the entry, as [`Entry::decode`] takes them.
    #[must_use]
    pub const fn words(&self) -> [u64; ENTRY_WORDS] {
        let [a, b, c, d, e, f] = self.facts;
        [self.time, self.head(), a, b, c, d, e, f]
    }

    /// Reads words back. Returns `None` if the words are no entry.
    #[must_use]
    pub fn decode(words: [u64; ENTRY_WORDS]) -> Option<Self> {
        let [time, head, facts @ ..] = words;
        let [kind, partition, vcpu, detail, flags, ..] = head.to_le_bytes();
        Some(Self {
            time,
            kind: Kind::from_number(kind)?,
            partition,
            vcpu,
            detail,
            flags,
            line: (head >> 40) as u32,
            facts,
        })
    }
}

/// Returns up to eight bytes as a word, the first byte lowest.
#[must_use]
pub const fn packed(bytes: &[u8]) -> u64 {
    let mut word = 0;
    let mut shift = 0;
    let mut rest = bytes;
    while let [byte, behind @ ..] = rest
        && shift < u64::BITS
    {
        word |= (*byte as u64) << shift;
        shift = shift.wrapping_add(u8::BITS);
        rest = behind;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_back_from_its_words() {
        let entry = Entry {
            time: u64::MAX - 1,
            kind: Kind::Fault,
            partition: 31,
            vcpu: 7,
            detail: 3,
            flags: MORE | HAS_ADDRESS,
            line: 0xAB_CDEF,
            facts: [1, 2, 3, 4, 5, 6],
        };
        let place = [const { AtomicU64::new(0) }; ENTRY_WORDS];
        entry.store(&place);
        assert_eq!(
            Entry::decode(place.each_ref().map(|word| word.load(Ordering::Relaxed))),
            Some(entry)
        );
        assert_eq!(Entry::decode([0; ENTRY_WORDS]), None, "what was never written");
        assert_eq!(Entry::decode([u64::MAX; ENTRY_WORDS]), None);
    }

    #[test]
    fn text_has_the_order_of_its_bytes_on_every_cpu() {
        let entry = Entry::text(0, b"partition");
        assert_eq!(entry.facts[0], u64::from_le_bytes(*b"partitio"));
        assert_eq!(&entry.bytes()[..10], b"partition\0");
        assert_eq!(usize::from(Entry::text(0, &[b'x'; 100]).detail), TEXT_LEN);
    }
}
