// SPDX-License-Identifier: Apache-2.0
//! The guest's translation buffer: 64 entries, each for instructions and data (User's Manual, section 7.3).
//!
//! A search looks at few of them: valid entries are in a set by the low bits of their page, or, if their page
//! is not of 4K, in the last set. The sets are bits, so they are always exact. The backend's short path in
//! assembly keeps them, too.

/// Entries.
pub const ENTRIES: usize = 64;
/// Sets of entries with pages of 4K, by the low six bits of the page's number.
const PAGES: usize = 64;
/// The set of all other entries.
pub const OTHERS: usize = PAGES;

/// High word of an entry: valid.
pub const VALID: u32 = 0x40;
/// High word of an entry: the bits that a guest can set. EPN, SIZE, V, E, U0.
const HIGH_BITS: u32 = 0xFFFF_FFF0;
/// Low word of an entry: instructions can be fetched.
pub const EXECUTE: u32 = 0x200;
/// Low word of an entry: stores are allowed.
pub const WRITE: u32 = 0x100;
/// Low word of an entry: RPN, EX, WR, ZSEL, WIMG.
const LOW_BITS: u32 = 0xFFFF_FFFF;
/// Low word of an entry: the address.
pub const ADDRESS: u32 = 0xFFFF_FC00;

/// High word of an entry: the size, and the value for a page of 4K.
const SIZE_BITS: u32 = 0x380;
const SIZE_4K: u32 = 0x80;

/// An entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Entry {
    /// TLBHI.
    pub high: u32,
    /// TLBLO.
    pub low: u32,
    /// The process that it is for, 0 for any.
    pub process: u8,
}

impl Entry {
    /// Tells whether it is valid.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.high & VALID != 0
    }

    /// Returns the logarithm of its size: 1K, and then four times as much for each number (table 7-1).
    #[must_use]
    pub const fn size(self) -> u32 {
        (self.high >> 7 & 7).wrapping_mul(2).wrapping_add(10)
    }

    /// Returns the bits of an address that are inside the page.
    #[must_use]
    pub const fn offset_bits(self) -> u32 {
        1_u32.wrapping_shl(self.size()).wrapping_sub(1)
    }

    /// Returns the zone, 0 to 15.
    #[must_use]
    pub const fn zone(self) -> u32 {
        self.low >> 4 & 15
    }

    /// Tells whether the entry translates an address of a process.
    #[must_use]
    pub const fn covers(self, address: u32, process: u8) -> bool {
        self.is_valid()
            && (self.process == 0 || self.process == process)
            && (self.high ^ address) & !self.offset_bits() & ADDRESS == 0
    }

    /// Returns the set that it is in if it is valid.
    const fn set(self) -> usize {
        if self.high & SIZE_BITS == SIZE_4K {
            page_set(self.high)
        } else {
            OTHERS
        }
    }

    /// Returns the physical address after one that it covers.
    #[must_use]
    pub const fn physical(self, address: u32) -> u32 {
        let inside = self.offset_bits();
        self.low & ADDRESS & !inside | address & inside
    }
}

/// Returns the set of entries with pages of 4K that an address belongs to.
const fn page_set(address: u32) -> usize {
    (address >> 12) as usize % PAGES
}

/// Returns the bit of an entry in a set: the most significant one is the first entry's.
const fn bit(number: usize) -> u64 {
    (1_u64 << 63).wrapping_shr(number as u32)
}

/// The buffer.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Tlb {
    /// The sets.
    pub sets: [u64; PAGES + 1],
    /// The entries.
    pub entries: [Entry; ENTRIES],
}

impl Default for Tlb {
    fn default() -> Self {
        Self::new()
    }
}

impl Tlb {
    /// Returns a buffer without valid entries.
    #[must_use]
    pub const fn new() -> Self {
        const NOTHING: Entry = Entry {
            high: 0,
            low: 0,
            process: 0,
        };
        Self {
            sets: [0; PAGES + 1],
            entries: [NOTHING; ENTRIES],
        }
    }

    /// Returns an entry. Only the low six bits of a number count.
    #[must_use]
    pub fn entry(&self, number: u32) -> Entry {
        let number = number as usize % ENTRIES;
        self.entries.get(number).copied().unwrap_or_default()
    }

    /// Writes the high word of an entry, which is then of this process.
    pub fn set_high(&mut self, number: u32, value: u32, process: u8) {
        let number = number as usize % ENTRIES;
        let Some(entry) = self.entries.get_mut(number) else {
            return;
        };
        if let Some(set) = self.sets.get_mut(entry.set()) {
            *set &= !bit(number);
        }
        entry.high = value & HIGH_BITS;
        entry.process = process;
        if let Some(set) = self.sets.get_mut(entry.set()).filter(|_| entry.is_valid()) {
            *set |= bit(number);
        }
    }

    /// Writes the low word of an entry.
    pub fn set_low(&mut self, number: u32, value: u32) {
        if let Some(entry) = self.entries.get_mut(number as usize % ENTRIES) {
            entry.low = value & LOW_BITS;
        }
    }

    /// Makes all entries invalid.
    pub fn invalidate(&mut self) {
        for entry in &mut self.entries {
            entry.high &= !VALID;
        }
        self.sets = [0; PAGES + 1];
    }

    /// Returns number and contents of the first entry that translates an address. At most 64 steps: one for
    /// each entry that may.
    #[must_use]
    pub fn find(&self, address: u32, process: u8) -> Option<(usize, Entry)> {
        let set = |number: usize| self.sets.get(number).copied().unwrap_or(0);
        let mut rest = set(page_set(address)) | set(OTHERS);
        while rest != 0 {
            let number = rest.leading_zeros() as usize;
            rest &= !bit(number);
            if let Some(entry) = self
                .entries
                .get(number)
                .filter(|entry| entry.covers(address, process))
            {
                return Some((number, *entry));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_covers_its_page_and_its_process() {
        for size in 0..8_u32 {
            let bytes = 1024_u32 << (2 * size);
            let mut tlb = Tlb::new();
            tlb.set_high(70, 0x4000_0000 | size << 7 | VALID, 5);
            tlb.set_low(6, 0x0800_0000 | WRITE);
            let (number, entry) = tlb.find(0x4000_0000 + bytes - 1, 5).expect("the last byte");
            assert_eq!(
                (number, entry.physical(0x4000_0000 + bytes - 1)),
                (6, 0x0800_0000 + bytes - 1)
            );
            assert!(tlb.find(0x4000_0000 + bytes, 5).is_none());
            assert!(tlb.find(0x4000_0000, 6).is_none());
            tlb.set_high(6, 0x4000_0000 | size << 7 | VALID, 0);
            assert!(tlb.find(0x4000_0000, 6).is_some(), "of every process");
            tlb.invalidate();
            assert!(tlb.find(0x4000_0000, 6).is_none());
        }
    }

    #[test]
    fn a_search_finds_what_a_look_at_every_entry_finds() {
        let mut tlb = Tlb::new();
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        for _ in 0..20_000 {
            let (number, page, size) = (random(), random() % 128, random() % 4);
            let valid = if random() % 4 == 0 { 0 } else { VALID };
            let process = (random() % 3) as u8;
            if random() % 500 == 0 {
                tlb.invalidate();
            }
            tlb.set_high(number, page << 12 | size << 7 | valid, process);
            let address = random() % (128 << 12);
            let mut all = tlb.entries.iter().copied().enumerate();
            let expected = all.find(|(_, entry)| entry.covers(address, process));
            assert_eq!(tlb.find(address, process), expected);
        }
    }
}
