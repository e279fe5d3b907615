// SPDX-License-Identifier: Apache-2.0
//! A partition's regions and the regions its guest asks for, in one unit.
//!
//! The guest may use a byte if the partition may and the guest's own unit says so too. The guest's
//! regions override each other by number, as in its unit; each becomes what it shares with each of the
//! partition's. With the background region on, what none of them covers stays the partition's own.

use crate::MAX_REGIONS;
use crate::region::{Memory, Region, Rights};

/// A region as a guest wrote it into the registers of its virtual unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GuestRegion {
    /// MPU_RBAR: the address.
    pub base: u32,
    /// MPU_RASR: attributes, subregions, size, enable.
    pub attributes: u32,
}

/// The guest's own idea of who may access what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestView<'a> {
    /// Its regions; of those that cover an address the last one counts.
    pub regions: &'a [GuestRegion],
    /// True if memory that no region covers is open to it.
    pub background: bool,
    /// True if it runs privileged.
    pub privileged: bool,
}

impl GuestRegion {
    /// Writes both registers; whether that changes what anybody may access.
    pub fn replace(&mut self, base: u32, attributes: u32) -> bool {
        let old = core::mem::replace(self, Self { base, attributes });
        old != *self && (old.is_enabled() || self.is_enabled())
    }

    const fn is_enabled(self) -> bool {
        self.attributes & 1 != 0
    }

    /// Decodes the region, with what it allows code that is privileged or not; `None` if it is not enabled.
    /// A size below the smallest is UNPREDICTABLE; here it is the smallest.
    #[must_use]
    pub const fn decode(self, privileged: bool) -> Option<Region> {
        if !self.is_enabled() {
            return None;
        }
        let coded = (self.attributes >> 1 & 0x1F) as u8;
        let size_log2 = if coded < 4 { 5 } else { coded.wrapping_add(1) };
        let mask = 1_u64.wrapping_shl(size_log2 as u32).wrapping_sub(1) as u32;
        let disabled = if size_log2 >= 8 {
            (self.attributes >> 8) as u8
        } else {
            0
        };
        // B3.5.9, table B3-15; 0b100 is UNPREDICTABLE and allows nothing here.
        let (read, write) = match (self.attributes >> 24 & 7, privileged) {
            (0b011, _) | (0b001 | 0b010, true) => (true, true),
            (0b110 | 0b111, _) | (0b101, true) | (0b010, false) => (true, false),
            _ => (false, false),
        };
        let execute = read && self.attributes & 1 << 28 == 0;
        Some(Region {
            base: self.base & !mask,
            size_log2,
            disabled,
            rights: Rights { read, write, execute },
            memory: Memory(self.attributes & Memory::MASK),
        })
    }
}

impl GuestView<'_> {
    /// Returns the rights that the guest's unit gives the guest to the byte at `address`.
    #[must_use]
    pub fn rights(&self, address: u32) -> Rights {
        const ALL: Rights = Rights {
            read: true,
            write: true,
            execute: true,
        };
        let elsewhere = if self.background { ALL } else { Rights::NONE };
        let mut last_first = self.regions.iter().rev();
        last_first
            .find_map(|region| {
                region
                    .decode(self.privileged)
                    .filter(|region| region.covers(address))
            })
            .map_or(elsewhere, |region| region.rights)
    }

    /// Tells whether the guest's unit lets the guest execute the instruction at `address`.
    #[must_use]
    pub fn executable(&self, address: u32) -> bool {
        self.rights(address).execute
    }
}

/// Pieces that a combination looks at: more than a unit has regions, because some change nothing.
const MOST: usize = 10;
const _: () = assert!(MOST > MAX_REGIONS);

/// A part of one of the partition's regions, where a region of the guest counts.
#[derive(Clone, Copy, Debug)]
struct Piece {
    region: Region,
    /// The number of the partition's region.
    own: u8,
    /// The number of the guest's region.
    number: u8,
    /// The rights, and whether the memory is a device's: pieces are compared often.
    kind: u8,
}

impl Piece {
    /// All zero, which is made fast.
    const NOTHING: Self = Self {
        region: Region {
            base: 0,
            size_log2: 0,
            disabled: 0,
            rights: Rights::NONE,
            memory: Memory(0),
        },
        own: 0,
        number: 0,
        kind: 0,
    };
}

/// The combination of a partition's regions and its guest's.
///
/// The partition's regions do not overlap, so only pieces of the same one do. The work of a combination grows
/// with the guest's regions times the partition's, and with the square of the pieces, of which there are at
/// most ten.
#[derive(Debug)]
pub struct Combination<'p> {
    partition: &'p [Region],
    /// True if the partition's regions are seen where the guest's unit says nothing.
    background: bool,
    /// The partition's regions that the guest's do not have all of: a bit for each.
    seen: u8,
    /// The pieces above them, the guest's last region first. No piece is within one before.
    pieces: [Piece; MOST],
    count: usize,
    /// Regions of the guest were left out, because there are more pieces.
    is_cut: bool,
}

impl<'p> Combination<'p> {
    /// A combination of nothing. A combination is long, so it is made in its place.
    pub const NOTHING: Self = Self {
        partition: &[],
        background: false,
        seen: 0,
        pieces: [Piece::NOTHING; MOST],
        count: 0,
        is_cut: false,
    };

    /// Combines the regions of a partition, at most [`MAX_REGIONS`], and its guest's in a combination of
    /// nothing.
    pub fn combine(&mut self, partition: &'p [Region], guest: &GuestView<'_>) {
        self.partition = partition;
        self.background = guest.background;
        self.seen = self.all();
        for (number, region) in guest.regions.iter().enumerate().rev() {
            let Some(wanted) = region.decode(guest.privileged) else {
                continue;
            };
            self.seen &= !self.add(&wanted, number as u8);
            if self.is_cut {
                break;
            }
        }
    }

    /// Tells whether the combination needs no more than `available` regions, and has no more pieces than are
    /// looked at.
    #[must_use]
    pub fn fits(&self, available: u8) -> bool {
        self.whole(available.into()).is_some()
    }

    /// Returns the regions for a unit that has `available` ones, the lowest first: as many of the guest's as
    /// there is room for, without those with the lowest numbers if there is not enough. Accesses that only
    /// these allow are then refused: nothing lies below them. Only privileged code with the background region
    /// on gets its partition's rights there instead, which are what it has where its unit says nothing.
    pub fn regions(&self, available: u8) -> impl Iterator<Item = &Region> {
        let available = available.into();
        let whole = self
            .whole(available)
            .map(|chosen| (self.below(self.seen), chosen));
        let (below, chosen) = whole.unwrap_or_else(|| self.cut(available));
        let pieces = self.pieces.iter().enumerate().rev();
        let pieces = pieces.filter_map(move |(index, piece)| chosen.has(index).then_some(&piece.region));
        let background = self.partition.iter().zip(0_u8..);
        let background =
            background.filter_map(move |(region, own)| (below & bit(own) != 0).then_some(region));
        background.chain(pieces)
    }

    /// Adds what a region of the guest shares with the partition's regions that are still seen, where no
    /// later region of the guest counts. Says of which of the partition's regions the guest's has all.
    fn add(&mut self, wanted: &Region, number: u8) -> u8 {
        let before = self.count;
        let mut all = 0;
        for (region, own) in self.partition.iter().zip(0_u8..) {
            if self.seen & bit(own) == 0 {
                continue;
            }
            let Some((block, disabled)) = shared(region, wanted) else {
                continue;
            };
            let (above, rest) = self.pieces.split_at_mut(self.count);
            let Some(piece) = rest.first_mut() else {
                self.count = before;
                self.is_cut = true;
                return 0;
            };
            // A piece is made in its place: copies would be most of the work.
            piece.own = own;
            piece.number = number;
            piece.region.share(region, wanted, block, disabled);
            piece.kind = piece.region.kind();
            let hides = |other: &Piece| other.own == own && within(&piece.region, &other.region);
            if above.iter().any(hides) {
                continue;
            }
            if within(region, &piece.region) {
                all |= bit(own);
            }
            self.count = self.count.wrapping_add(1);
        }
        all
    }

    fn pieces(&self) -> &[Piece] {
        self.pieces.get(..self.count).unwrap_or(&[])
    }

    /// Returns a bit for each region of the partition.
    fn all(&self) -> u8 {
        let others = u8::MAX.checked_shl(self.partition.len() as u32);
        others.map_or(u8::MAX, |others| !others)
    }

    /// Returns the regions of the partition that the background shows.
    const fn below(&self, seen: u8) -> u8 {
        if self.background { seen } else { 0 }
    }

    /// Returns the pieces that make a difference, if there is room for them.
    fn whole(&self, available: usize) -> Option<Chosen> {
        let room = available.checked_sub(self.below(self.seen).count_ones() as usize)?;
        if self.is_cut {
            None
        } else if self.count <= room {
            Some(Chosen::first(self.count))
        } else {
            Some(self.needed()).filter(|needed| needed.count() <= room)
        }
    }

    /// Returns the background, and the pieces of the guest's last regions that there is room for beside it. A
    /// region that is left out may be one that hid the background, so all of the background counts.
    fn cut(&self, available: usize) -> (u8, Chosen) {
        let below = self.below(self.all());
        let room = available.saturating_sub(below.count_ones() as usize);
        let mut kept = room.min(self.count);
        // A region is left out with all of its pieces.
        while let Some([last, next]) = kept
            .checked_sub(1)
            .and_then(|last| self.pieces().get(last..=kept))
            && last.number == next.number
        {
            kept = kept.wrapping_sub(1);
        }
        (below, Chosen::first(kept))
    }

    /// Returns the pieces without which something would be different.
    fn needed(&self) -> Chosen {
        let mut needed = Chosen(0);
        for (index, piece) in self.pieces().iter().enumerate().rev() {
            if self.changes_something(index, piece, needed) {
                needed.add(index);
            }
        }
        needed
    }

    /// Tells whether a piece changes something above the lower pieces that are needed.
    fn changes_something(&self, index: usize, piece: &Piece, needed: Chosen) -> bool {
        let mut at = index;
        for lower in self.pieces.iter().skip(index.wrapping_add(1)) {
            at = at.wrapping_add(1);
            if !needed.has(at) || lower.own != piece.own {
                continue;
            }
            // The first one that says all of the piece, or that is seen there and different.
            if lower.kind != piece.kind {
                if shared(&lower.region, &piece.region).is_some() {
                    return true;
                }
            } else if within(&piece.region, &lower.region) {
                return false;
            }
        }
        match self.partition.get(usize::from(piece.own)) {
            Some(own) if self.below(self.seen) & bit(piece.own) != 0 => own.kind() != piece.kind,
            // Memory that no region gives rights to needs no region that says so.
            _ => !piece.region.rights.is_none(),
        }
    }
}

/// Some of the pieces.
#[derive(Clone, Copy)]
struct Chosen(u32);

impl Chosen {
    const fn first(count: usize) -> Self {
        Self(1_u32.wrapping_shl(count as u32).wrapping_sub(1))
    }

    const fn has(self, index: usize) -> bool {
        self.0.wrapping_shr(index as u32) & 1 != 0
    }

    const fn add(&mut self, index: usize) {
        self.0 |= 1_u32.wrapping_shl(index as u32);
    }

    const fn count(self) -> usize {
        self.0.count_ones() as usize
    }
}

const fn bit(number: u8) -> u8 {
    1_u8.wrapping_shl(number as u32)
}

/// Returns a block that two regions share, with the eighths of the block to leave out.
fn shared<'r>(own: &'r Region, wanted: &'r Region) -> Option<(&'r Region, u8)> {
    let (small, large) = if own.size_log2 <= wanted.size_log2 {
        (own, wanted)
    } else {
        (wanted, own)
    };
    if !large.spans(small.base) {
        return None;
    }
    let (block, disabled) = if large.disabled == 0 {
        (small, small.disabled)
    } else if small.has_eighths() {
        (small, small.disabled | left_out(small, large))
    } else if small.size_log2 > large.granule_log2() {
        // A block without eighths that the larger one cuts through is said with the larger one's eighths.
        (large, large.disabled | !eighths_under(small, large))
    } else if large.disabled & eighths_under(small, large) == 0 {
        (small, 0)
    } else {
        return None;
    };
    (disabled != u8::MAX).then_some((block, disabled))
}

/// Returns the number of the eighth of `outer` that the block of `inner`, which lies in `outer`, begins in.
#[inline(always)]
const fn first_eighth(inner: &Region, outer: &Region) -> u32 {
    inner
        .base
        .wrapping_sub(outer.base)
        .wrapping_shr(outer.granule_log2() as u32)
}

/// Returns the eighths of `outer` that the block of `inner` has something of. The block lies in `outer`, and
/// `outer` has eighths.
#[inline(always)]
const fn eighths_under(inner: &Region, outer: &Region) -> u8 {
    let eighths = match inner.size_log2.checked_sub(outer.granule_log2()) {
        None | Some(0) => 1,
        Some(1) => 0b11,
        Some(2) => 0b1111,
        Some(_) => u8::MAX,
    };
    eighths.wrapping_shl(first_eighth(inner, outer))
}

/// Returns the eighths of `inner` that `outer` leaves out. The block of `inner` lies in `outer`; both have
/// eighths.
#[inline(always)]
const fn left_out(inner: &Region, outer: &Region) -> u8 {
    let outside = outer.disabled.wrapping_shr(first_eighth(inner, outer));
    match outer.size_log2.wrapping_sub(inner.size_log2) {
        0 => outside,
        // An eighth of the outer block is two of the inner one, or four, or all of the inner block.
        1 => {
            let pairs = (outside & 0b11 | (outside & 0b1100) << 2) & 0x33;
            let apart = (pairs & 0x11) | (pairs & 0x22) << 1;
            apart | apart << 1
        }
        2 => match outside & 0b11 {
            0 => 0,
            1 => 0x0F,
            2 => 0xF0,
            _ => u8::MAX,
        },
        _ if outside & 1 == 0 => 0,
        _ => u8::MAX,
    }
}

/// Tells whether every byte of `inner` is one of `outer`: then nothing of `inner` is seen through it. (False
/// for a larger block of which only that part is covered: it stays, which is right as well.)
const fn within(inner: &Region, outer: &Region) -> bool {
    if inner.size_log2 > outer.size_log2 || !outer.spans(inner.base) {
        return false;
    }
    if outer.disabled == 0 {
        true
    } else if inner.has_eighths() {
        left_out(inner, outer) & !inner.disabled == 0
    } else {
        outer.disabled & eighths_under(inner, outer) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guests_own_unit_lets_it_execute() {
        // All may read and write; 1 KiB of which the lowest eighth is left out; the second one executes
        // never.
        let size = 9 << 1 | 1;
        let open = GuestRegion {
            base: 0x2000_0000,
            attributes: 0b011 << 24 | 1 << 8 | size,
        };
        let closed = GuestRegion {
            base: 0x2000_0200,
            attributes: 1 << 28 | 0b011 << 24 | 7 << 1 | 1,
        };
        let (one, other) = ([open, closed], [closed, open]);
        let mut view = GuestView {
            regions: &one,
            background: false,
            privileged: true,
        };
        let answers = |view: &GuestView<'_>| {
            [0x2000_0000, 0x2000_0080, 0x2000_0200, 0x2000_0300, 0x2000_0400]
                .map(|address| view.executable(address))
        };
        assert_eq!(answers(&view), [false, true, false, true, false]);
        view.background = true;
        assert_eq!(answers(&view), [true, true, false, true, true]);
        view.regions = &other;
        assert_eq!(answers(&view), [true, true, true, true, true]);
    }
}
