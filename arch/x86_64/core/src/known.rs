// SPDX-License-Identifier: Apache-2.0
//! Instructions of a guest that were looked up and decoded once, and what shows that they are still the same.
//!
//! A processor without decode assists hands over no bytes of an instruction that leaves the guest. To find
//! them takes a walk of the guest's tables, and to decode them takes more. But a system reaches the registers
//! of a device by few instructions. The findings of one are kept with all that they rest on: the address, the
//! root of the tables, and every word that was read, entries of tables and code. At the next use all of these
//! words are read again. If one differs, nothing is known. So the outcome is always the outcome of a new
//! look, even if any of the words was written meanwhile.
//!
//! Only instructions of 64-bit mode are kept. There the address and the root are all of the guest's registers
//! that a look depends on.

use crate::decode::{self, Access, MAX_LENGTH, Mode};
use crate::walk::Paging;

/// Words that are kept: four levels of tables, and an instruction that is in two words.
const KEPT: usize = 6;
/// Words of code that a look reads.
const CODE: usize = 3;

/// The address of no instruction of 64-bit mode: bits 63 to 47 of an address are equal.
const NOWHERE: u64 = 1 << 63;

/// An instruction that was decoded. `W` is the place of a word of the guest's memory.
#[derive(Clone, Copy, Debug)]
pub struct Known<W> {
    start: u64,
    root: u64,
    words: [(W, u64); KEPT],
    access: Access,
}

impl<W: Copy> Known<W> {
    /// Tells whether this is still the instruction at `start`. `read` reads a word. Requires: the guest is in
    /// 64-bit mode.
    #[inline(always)]
    pub fn is_still(&self, start: u64, root: u64, read: impl Fn(W) -> u64) -> bool {
        let is_same = |(place, word): &(W, u64)| read(*place) == *word;
        self.start == start && self.root == root && self.words.iter().all(is_same)
    }

    /// Returns the access that the instruction makes.
    #[inline(always)]
    pub const fn access(&self) -> &Access {
        &self.access
    }
}

/// The bytes from a guest's instruction on, and where they were found.
#[derive(Clone, Copy, Debug)]
pub struct Code<W> {
    bytes: [u8; 16],
    used: usize,
    start: u64,
    trail: Trail<W>,
    /// The number of words that had been read when each word of code had been.
    ends: [usize; CODE],
}

/// The first words that a look has read, and the number of all.
#[derive(Clone, Copy, Debug)]
struct Trail<W> {
    words: Option<[(W, u64); KEPT]>,
    count: usize,
}

impl<W: Copy> Trail<W> {
    #[inline(always)]
    fn note(&mut self, place: W, word: u64) {
        match &mut self.words {
            None => self.words = Some([(place, word); KEPT]),
            Some(words) => {
                if let Some(noted) = words.get_mut(self.count) {
                    *noted = (place, word);
                }
            }
        }
        self.count = self.count.saturating_add(1);
    }
}

impl<W: Copy> Code<W> {
    /// Looks at the guest's memory from the linear address `start` on. `place` finds the word at a
    /// guest-physical address, and `read` reads it.
    #[inline(always)]
    pub fn fetch(
        paging: &Paging,
        start: u64,
        place: impl Fn(u64) -> Option<W>,
        read: impl Fn(W) -> u64,
    ) -> Self {
        let mut trail = Trail {
            words: None,
            count: 0,
        };
        let mut load = |at: u64| {
            let place = place(at)?;
            let word = read(place);
            trail.note(place, word);
            Some((word, trail.count))
        };
        let mut ends = [usize::MAX; CODE];
        let (first, skipped) = (start & !7, (start & 7) as usize);
        let mut code = [0; CODE];
        let mut found = 0_usize;
        let mut physical = 0_u64;
        for (index, (word, end)) in (0_u64..).zip(code.iter_mut().zip(&mut ends)) {
            let linear = first.wrapping_add(index << 3);
            // Words of a page have one translation.
            let is_new = index == 0 || linear & 0xFFF == 0;
            let at = if is_new {
                paging.translate(linear, |at| load(at).map(|(word, _)| word))
            } else {
                Some(physical.wrapping_add(8))
            };
            let Some((at, (loaded, count))) = at.and_then(|at| Some((at, load(at)?))) else {
                break;
            };
            (physical, *word, *end) = (at, loaded, count);
            found = found.saturating_add(8);
        }
        Self {
            bytes: shifted(code, skipped),
            used: usize::min(MAX_LENGTH, found.saturating_sub(skipped)),
            start,
            trail,
            ends,
        }
    }

    /// Returns the bytes from the instruction on, as many as there are.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or(&[])
    }

    /// Decodes the access to memory that the instruction makes. If that is an instruction of 64-bit mode with
    /// few words, it is known from now on.
    #[inline(always)]
    pub fn access(&self, root: u64, mode: Mode) -> Option<Known<W>> {
        let access = decode::access(self.bytes(), mode)?;
        let mut words = self.trail.words?;
        let past = (self.start & 7).saturating_add(access.length.into());
        let last = past.saturating_sub(1) >> 3;
        let count = self.ends.get(last as usize).copied()?;
        // A word after the instruction does not matter.
        let [entry, ..] = words;
        for word in words.iter_mut().skip(count) {
            *word = entry;
        }
        let may_keep = mode == Mode::Bits64 && count <= KEPT;
        Some(Known {
            start: if may_keep { self.start } else { NOWHERE },
            root,
            words,
            access,
        })
    }
}

/// Returns the bytes of three words without the first ones.
fn shifted([low, middle, high]: [u64; CODE], skipped: usize) -> [u8; 16] {
    let shift = ((skipped & 7) as u32) << 3;
    let wide = (u128::from(middle) << 64 | u128::from(low)) >> shift;
    let wide = if shift == 0 {
        wide
    } else {
        wide | u128::from(high).wrapping_shl(128_u32.wrapping_sub(shift))
    };
    wide.to_le_bytes()
}
