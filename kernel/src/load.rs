// SPDX-License-Identifier: Apache-2.0
//! The work on a partition's memory before the partition starts, cut into chunks.
//!
//! Every start first puts the capability space back ([`crate::cap`]), and at the end puts the virtual devices
//! into their first state. In between, a cold start clears every RAM mapping that asks for it, except where a
//! payload is copied. Then the cold start copies the payloads of the alternative that is to run. A warm start
//! instead cleans the caches of the memory, because vCPUs start with their caches off.
//!
//! The plan is never written down. A cursor walks the records of the system image and says at each step which
//! chunk is next. Interrupts are taken between chunks. While memory is cleared, an interrupt ends the chunk.
//! So the longest stretch without a look at interrupts is part of every other partition's worst case on that
//! pCPU.

use bulkhead_abi::StartMode;
use bulkhead_abi::status::StartWord;
use bulkhead_arch_api::GuestPhys;
use bulkhead_image::layout::{LoadRecord, MEMORY_CLEAR, MEMORY_DEVICE, MemoryRecord};

/// The bytes that a chunk clears if no interrupt comes meanwhile ([`bulkhead_arch_api::Spaces::clear`]). The
/// walk of the translation tables before the clearing is the reason for the bound. Chunks end at multiples of
/// this number.
pub const CLEAR_CHUNK: u64 = 256 * 1024;
/// The bytes whose caches are cleaned at a time. Chunks end at multiples of this number.
pub const CLEAN_CHUNK: u64 = 16 * 1024;
/// The bytes copied at a time.
pub const COPY_CHUNK: u64 = 4 * 1024;
/// The bytes copied at a time if source and destination differ in their place within a word. Such bytes are
/// copied one by one.
pub const UNALIGNED_CHUNK: u64 = 512;
/// A copy that begins elsewhere first goes up to a multiple of this number, so that the rest goes word by
/// word.
const COPY_ALIGN: usize = 64;
const WORD: usize = 8;

/// An address, or a number of bytes. The rules of the image ensure that both are numbers of the machine.
type Address = usize;

/// The progress of loading a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Cursor {
    mode: StartMode,
    alternative: u8,
    phase: Phase,
    record: u32,
    offset: Address,
    /// While clearing: the address up to which no load is in the way, as far as is known.
    clear_until: Address,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Phase {
    /// Capabilities come first: everything that was granted away in the earlier life ends with that life.
    #[default]
    Capabilities,
    Clear,
    Copy,
    Clean,
    Devices,
    Done,
}

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// Reset the capability space from this slot on, and tell [`Cursor::capabilities_reset`].
    Capabilities(u32),
    /// Clear these bytes, or the first of them, and tell [`Cursor::cleared`].
    Clear {
        /// The first address.
        guest: GuestPhys,
        /// The number of bytes.
        length: u64,
    },
    /// Copy these bytes of a payload.
    Copy {
        /// The first address.
        guest: GuestPhys,
        /// The index of the payload.
        payload: u32,
        /// The first byte within the payload.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
    /// Clean the caches of these bytes.
    Clean {
        /// The first address.
        guest: GuestPhys,
        /// The number of bytes.
        length: u64,
    },
    /// Memory is in place. Put this part of the virtual devices into its first state, and tell
    /// [`Cursor::devices_reset`].
    Devices(u32),
    /// Everything is in place.
    Done,
}

impl Cursor {
    /// Makes a cursor at the beginning of this start.
    #[must_use]
    pub fn new(start: StartWord) -> Self {
        Self {
            mode: start.mode,
            alternative: start.alternative,
            ..Self::default()
        }
    }

    /// Returns the alternative whose payloads are to be copied.
    #[must_use]
    pub const fn alternative(&self) -> u8 {
        self.alternative
    }

    /// Goes to the beginning of a phase of the same start.
    fn enter(&mut self, phase: Phase) {
        *self = Self {
            mode: self.mode,
            alternative: self.alternative,
            phase,
            ..Self::default()
        };
    }

    /// Returns the next chunk for a partition with these mappings and payloads. The work is bounded by the
    /// number of records.
    pub fn advance<'r>(
        &mut self,
        memory: impl Iterator<Item = &'r MemoryRecord>,
        loads: impl Iterator<Item = &'r LoadRecord> + Clone,
    ) -> Chunk {
        // Each phase that has nothing left leads to the next phase. `Clean` and `Clear` exclude each other.
        match self.phase {
            Phase::Capabilities => {
                return Chunk::Capabilities(self.record);
            }
            Phase::Clear => {
                if let Some((guest, length)) =
                    self.next_stretch(memory, is_cleared, CLEAR_CHUNK, loads.clone())
                {
                    return Chunk::Clear { guest, length };
                }
                self.enter(Phase::Copy);
            }
            Phase::Clean => {
                if let Some((guest, length)) =
                    self.next_stretch(memory, is_kept, CLEAN_CHUNK, core::iter::empty())
                {
                    return Chunk::Clean { guest, length };
                }
                self.enter(Phase::Devices);
            }
            Phase::Copy | Phase::Devices => {}
            Phase::Done => return Chunk::Done,
        }
        if self.phase == Phase::Copy
            && let Some(chunk) = self.next_copy(loads)
        {
            return chunk;
        }
        if self.phase == Phase::Copy {
            self.enter(Phase::Devices);
        }
        Chunk::Devices(self.record)
    }

    /// Notes that only the first `done` bytes of a chunk of `length` bytes are cleared.
    pub const fn cleared(&mut self, length: u64, done: u64) {
        self.offset = self.offset.saturating_sub(length.saturating_sub(done) as Address);
    }

    /// Notes that the virtual devices are reset up to part `next`, or entirely.
    pub fn devices_reset(&mut self, next: Option<u32>) {
        match next {
            Some(part) => self.record = part,
            None => self.enter(Phase::Done),
        }
    }

    /// Notes that the capability space is reset up to slot `next`, or entirely.
    pub fn capabilities_reset(&mut self, next: Option<u32>) {
        match next {
            Some(slot) => self.record = slot,
            None => self.enter(match self.mode {
                StartMode::Cold => Phase::Clear,
                StartMode::Warm => Phase::Clean,
            }),
        }
    }

    /// Returns the next stretch of the wanted mappings that no load covers.
    fn next_stretch<'r>(
        &mut self,
        memory: impl Iterator<Item = &'r MemoryRecord>,
        wanted: fn(u32) -> bool,
        limit: u64,
        loads: impl Iterator<Item = &'r LoadRecord> + Clone,
    ) -> Option<(GuestPhys, u64)> {
        for (index, region) in (0..).zip(memory).skip(self.record as usize) {
            if index != self.record {
                self.record = index;
                self.offset = 0;
            }
            if !wanted(region.flags.get()) {
                continue;
            }
            let start = region.guest.get() as Address;
            let end = start.saturating_add(region.size.get() as Address);
            let mut from = start.saturating_add(self.offset);
            if from >= self.clear_until || self.offset == 0 {
                from = skip_loads(from, end, loads.clone());
                if from >= end {
                    continue;
                }
                self.clear_until = next_load(from, end, loads.clone());
            }
            let limit = limit as Address;
            let chunk_end = (from & !limit.wrapping_sub(1)).saturating_add(limit);
            let until = self.clear_until.min(chunk_end);
            self.offset = until.saturating_sub(start);
            return Some((GuestPhys(from as u64), until.saturating_sub(from) as u64));
        }
        None
    }

    fn next_copy<'r>(&mut self, loads: impl Iterator<Item = &'r LoadRecord>) -> Option<Chunk> {
        for (index, load) in (0..).zip(loads).skip(self.record as usize) {
            if index != self.record {
                self.record = index;
                self.offset = 0;
            }
            let rest = (load.size.get() as Address).saturating_sub(self.offset);
            if rest == 0 {
                continue;
            }
            let guest = (load.guest.get() as Address).saturating_add(self.offset);
            let offset = (load.offset.get() as Address).saturating_add(self.offset);
            let length = rest.min(copy_limit(guest, offset));
            let chunk = Chunk::Copy {
                guest: GuestPhys(guest as u64),
                payload: load.payload.get(),
                offset: offset as u64,
                length: length as u64,
            };
            self.offset = self.offset.saturating_add(length);
            return Some(chunk);
        }
        None
    }
}

/// Tells whether a cold start clears a mapping with these flags.
const fn is_cleared(flags: u32) -> bool {
    flags & MEMORY_CLEAR != 0
}

/// Tells whether a warm start finds the partition's earlier contents in a mapping with these flags.
const fn is_kept(flags: u32) -> bool {
    flags & MEMORY_DEVICE == 0
}

/// Returns the number of bytes to copy at once to `guest` from `offset` within a payload. Payloads begin at a
/// page.
const fn copy_limit(guest: Address, offset: Address) -> Address {
    if guest % WORD != offset % WORD {
        return UNALIGNED_CHUNK as Address;
    }
    match guest % COPY_ALIGN {
        0 => COPY_CHUNK as Address,
        beyond => COPY_ALIGN.saturating_sub(beyond),
    }
}

/// Returns the first address from `from` on that no load covers. The loads of a partition are in no order, so
/// one pass may end within a load that the pass looked at before. As many passes as there are loads are
/// enough.
fn skip_loads<'r>(
    from: Address,
    end: Address,
    loads: impl Iterator<Item = &'r LoadRecord> + Clone,
) -> Address {
    let mut at = from;
    for _ in loads.clone() {
        let before = at;
        for load in loads.clone() {
            let first = load.guest.get() as Address;
            let behind = first.saturating_add(load.size.get() as Address);
            if first <= at && at < behind {
                at = behind;
            }
        }
        if at == before || at >= end {
            break;
        }
    }
    at
}

/// Returns the first address in `from..end` at which a load starts, or `end`.
fn next_load<'r>(from: Address, end: Address, loads: impl Iterator<Item = &'r LoadRecord>) -> Address {
    loads
        .filter(|load| load.size.get() != 0)
        .map(|load| load.guest.get() as Address)
        .filter(|first| *first > from)
        .fold(end, Address::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn memory(guest: u64, size: u64, flags: u32) -> MemoryRecord {
        MemoryRecord {
            partition: 0.into(),
            flags: flags.into(),
            guest: guest.into(),
            host: 0.into(),
            size: size.into(),
            manifest_line: 0.into(),
            reserved: 0.into(),
        }
    }

    fn load(guest: u64, size: u64, payload: u32) -> LoadRecord {
        LoadRecord {
            partition: 0.into(),
            payload: payload.into(),
            guest: guest.into(),
            offset: 0.into(),
            size: size.into(),
            alternative: 0.into(),
            reserved: 0.into(),
        }
    }

    /// Returns a cursor after the capabilities.
    fn at_memory() -> Cursor {
        let mut cursor = Cursor::default();
        cursor.capabilities_reset(None);
        cursor
    }

    /// Applies the chunks to a model memory: 0xFF = untouched, 0 = cleared, n + 1 = payload n. Clears no more
    /// than `at_once` bytes before something comes between.
    fn run(base: u64, size: usize, regions: &[MemoryRecord], loads: &[LoadRecord], at_once: u64) -> Vec<u8> {
        let mut model = std::vec![0xFF_u8; size];
        let mut cursor = at_memory();
        let mut steps = 0;
        loop {
            steps += 1;
            assert!(steps < 10_000, "the cursor must come to an end");
            let (guest, length, value) = match cursor.advance(regions.iter(), loads.iter()) {
                Chunk::Clear { guest, length } => {
                    assert!(length <= CLEAR_CHUNK);
                    let done = length.min(at_once);
                    cursor.cleared(length, done);
                    (guest, done, 0)
                }
                Chunk::Copy {
                    guest,
                    length,
                    payload,
                    ..
                } => (guest, length, payload as u8 + 1),
                Chunk::Capabilities(_) => panic!("capabilities come first"),
                Chunk::Devices(0) => break,
                Chunk::Devices(_) => panic!("devices begin at part 0"),
                Chunk::Done => panic!("devices come before the end"),
                Chunk::Clean { .. } => panic!("a cold start keeps nothing"),
            };
            assert!(length > 0);
            let first = (guest.0 - base) as usize;
            for byte in &mut model[first..first + length as usize] {
                assert_eq!(*byte, 0xFF, "each byte is touched once");
                *byte = value;
            }
        }
        cursor.devices_reset(Some(7));
        assert_eq!(cursor.advance(regions.iter(), loads.iter()), Chunk::Devices(7));
        cursor.devices_reset(None);
        assert_eq!(cursor.advance(regions.iter(), loads.iter()), Chunk::Done);
        model
    }

    #[test]
    fn everything_is_cleared_or_copied_once() {
        let regions = [
            memory(0x1000, 0x20_000, MEMORY_CLEAR),
            memory(0x30_000, 0x9000, MEMORY_CLEAR),
        ];
        let loads = [
            load(0x12_345, 0x4321, 0),
            load(0x1000, 0x11_345, 1),
            load(0x38_fff, 1, 2),
        ];
        for at_once in [u64::MAX, 0x800, 0x123] {
            let model = run(0, 0x40_000, &regions, &loads, at_once);
            for (address, byte) in model.iter().enumerate() {
                let expected = match address {
                    0x1000..0x12_345 => 2,
                    0x12_345..0x16_666 => 1,
                    0x38_fff => 3,
                    0x16_666..0x21_000 | 0x30_000..0x38_fff => 0,
                    _ => 0xFF,
                };
                assert_eq!(*byte, expected, "{address:#x}");
            }
        }
    }

    #[test]
    fn memory_that_must_survive_is_left_alone() {
        let regions = [memory(0, 0x8000, 0), memory(0x8000, 0x1000, MEMORY_CLEAR)];
        let model = run(0, 0x9000, &regions, &[], u64::MAX);
        assert!(model[..0x8000].iter().all(|byte| *byte == 0xFF));
        assert!(model[0x8000..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn copies_are_short_and_go_by_words_where_they_can() {
        for (guest, offset, expected) in [
            (0x1000, 0, COPY_CHUNK as usize),
            (0x1004, 4, 60),
            (0x103f, 0x7f, 1),
            (0x1008, 0x10, 56),
            (0x1000, 4, UNALIGNED_CHUNK as usize),
            (0x1001, 0, UNALIGNED_CHUNK as usize),
        ] {
            assert_eq!(copy_limit(guest, offset), expected, "{guest:#x} {offset:#x}");
        }
    }

    #[test]
    fn nothing_to_do_is_done_at_once() {
        let mut cursor = at_memory();
        assert_eq!(cursor.advance([].iter(), [].iter()), Chunk::Devices(0));
        cursor.devices_reset(None);
        assert_eq!(cursor.advance([].iter(), [].iter()), Chunk::Done);
    }

    #[test]
    fn capabilities_come_first_and_slot_by_slot() {
        let mut cursor = Cursor::default();
        for slot in [0, 5, 64] {
            assert_eq!(cursor.advance([].iter(), [].iter()), Chunk::Capabilities(slot));
            cursor.capabilities_reset(if slot == 0 { Some(5) } else { Some(64) });
        }
        cursor.capabilities_reset(None);
        assert_eq!(cursor, at_memory());
    }

    #[test]
    fn a_warm_start_cleans_the_caches_of_all_memory_and_touches_nothing() {
        let regions = [
            memory(0x1000, 0x5000, MEMORY_CLEAR),
            memory(0x10_000, 0x1000, MEMORY_DEVICE),
            memory(0x20_000, 0x1000, 0),
        ];
        let loads = [load(0x1000, 0x2000, 0)];
        let mut cursor = Cursor::new(StartWord {
            mode: StartMode::Warm,
            ..StartWord::default()
        });
        cursor.capabilities_reset(None);
        let chunks: Vec<Chunk> = core::iter::repeat_with(|| cursor.advance(regions.iter(), loads.iter()))
            .take(4)
            .collect();
        let clean = |guest, length| Chunk::Clean {
            guest: GuestPhys(guest),
            length,
        };
        assert_eq!(
            chunks,
            [
                clean(0x1000, 0x3000),
                clean(0x4000, 0x2000),
                clean(0x20_000, 0x1000),
                Chunk::Devices(0),
            ]
        );
    }
}
