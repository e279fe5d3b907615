// SPDX-License-Identifier: Apache-2.0
//! The real translation buffer: 64 entries, which serve the current guest alone.
//!
//! It is empty when another partition's vCPU becomes the current one. Each entry of the guest's own buffer
//! knows the real ones that were made of it, so a change there makes these invalid. No two entries for the
//! same address are ever valid: some processors stop at that.

use crate::sysreg::{self, PID, ZPR};
use bulkhead_arch_ppc405_core::fill::RealEntry;
use bulkhead_arch_ppc405_core::tlb::ENTRIES;

/// The real process of a guest without translation.
pub(crate) const REAL_MODE: u8 = 255;
/// The real process of a guest that translates either instructions or data.
const MIXED_MODE: u8 = 254;
/// The real process that all the guest's processes from [`FIRST_SHARED`] on have in turn.
const SHARED: u8 = 252;
/// The first of the guest's processes that have no real one of their own.
pub(crate) const FIRST_SHARED: u8 = 251;

/// Returns the real process of a guest's process. Real process 0 belongs to no partition: its entries would
/// serve all.
const fn real_process(process: u8) -> u8 {
    if process < FIRST_SHARED {
        process + 1
    } else {
        SHARED
    }
}

/// Entries that the short path fills (`entry::translation`), for entries of a VM's own buffer with pages of
/// 4K: one for each of those, in turn. The others are for everything else, so that a large page stays.
pub(crate) const DIRECT: usize = 48;
/// The owner of an entry that was not made by the short path.
pub(crate) const NOBODY: u8 = 255;

/// An entry in use.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Used {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) process: u8,
    /// The entry of the guest's that the short path made it of.
    pub(crate) owner: u8,
    /// The guest's entry that [`Buffer::fill`] made it of. The short path leaves the value of an earlier
    /// entry.
    of_guest: u8,
}

impl Used {
    const NOTHING: Self = Self {
        first: 0,
        last: 0,
        process: 0,
        owner: NOBODY,
        of_guest: NOBODY,
    };
}

/// The buffer. PID and ZPR are not kept here: the short path changes them as well.
pub(crate) struct Buffer {
    pub(crate) used: [Used; ENTRIES],
    /// Valid entries. The short path may leave the bit of one that it has made invalid.
    pub(crate) valid: u64,
    /// Entries whose rights fit the guest's present mode.
    of_mode: u64,
    /// Entries of the guest's own buffer, and the real ones made of them, without the entries of the short
    /// path.
    pub(crate) made_of: [u16; ENTRIES],
    /// The entry that the short path made of each of the guest's, if that entry says so, too.
    pub(crate) places: [u8; ENTRIES],
    /// The next entry that the short path overwrites.
    pub(crate) next_direct: u32,
    /// The next entry that is overwritten here.
    next: usize,
    /// The first entry that is overwritten here.
    first: usize,
    /// The guest's process that has [`SHARED`].
    shared: u8,
}

impl Buffer {
    pub(crate) const fn new() -> Self {
        Self {
            used: [Used::NOTHING; ENTRIES],
            valid: 0,
            of_mode: 0,
            made_of: [0; ENTRIES],
            places: [0; ENTRIES],
            next_direct: 0,
            next: 0,
            first: 0,
            shared: FIRST_SHARED,
        }
    }

    /// Makes all entries invalid.
    pub(crate) fn clear(&mut self) {
        sysreg::invalidate_entries();
        self.valid = 0;
        self.of_mode = 0;
        self.made_of = [0; ENTRIES];
        self.used = [Used::NOTHING; ENTRIES];
    }

    /// Keeps the entries of the short path for that path, or gives them to all pages.
    pub(crate) fn keep_direct(&mut self, keeps: bool) {
        self.first = if keeps { DIRECT } else { 0 };
        self.next = self.first;
    }

    /// Makes all entries invalid except for entries of real mode: the guest's own buffer has no part in
    /// these. At most 64 steps.
    pub(crate) fn forget_all(&mut self) {
        let process = sysreg::read_spr::<PID>();
        let mut kept = 0;
        for (number, used) in self.used.iter_mut().enumerate() {
            if used.process == REAL_MODE {
                kept |= 1 << number;
            } else {
                used.owner = NOBODY;
                sysreg::write_entry(number as u32, 0, 0, 0);
            }
        }
        sysreg::write_spr::<PID>(process);
        self.valid &= kept;
        self.of_mode = 0;
        self.made_of = [0; ENTRIES];
    }

    /// Makes these entries invalid. At most 64 steps.
    #[inline(never)]
    fn drop(&mut self, entries: u64) {
        let process = sysreg::read_spr::<PID>();
        let mut rest = entries & self.valid;
        self.valid &= !entries;
        self.of_mode &= !entries;
        while rest != 0 {
            let number = rest.trailing_zeros();
            rest &= rest - 1;
            if let Some(used) = self.used.get_mut(number as usize) {
                used.owner = NOBODY;
            }
            sysreg::write_entry(number, 0, 0, 0);
        }
        sysreg::write_spr::<PID>(process);
    }

    /// Makes the entries invalid that were made of these of the guest's. At most 64 steps.
    pub(crate) fn forget(&mut self, mut guests: u64) {
        let mut all = 0;
        while guests != 0 {
            let number = guests.trailing_zeros() as usize;
            guests &= guests - 1;
            if let Some(made) = self.made_of.get_mut(number) {
                all |= u64::from(core::mem::take(made)) << DIRECT;
            }
            let place = self.places.get(number).copied().unwrap_or(0);
            let used = self.used.get(usize::from(place));
            if used.is_some_and(|used| usize::from(used.owner) == number) {
                all |= 1_u64.wrapping_shl(place.into());
            }
        }
        if all != 0 {
            self.drop(all);
        }
    }

    /// Returns the valid entries for which this holds. At most 64 steps.
    fn matching(&self, is_meant: impl Fn(&Used) -> bool) -> u64 {
        let mut found = 0;
        let mut rest = self.valid;
        while rest != 0 {
            let number = rest.trailing_zeros();
            rest &= rest - 1;
            if self.used.get(number as usize).is_some_and(&is_meant) {
                found |= 1 << number;
            }
        }
        found
    }

    /// Goes to a real process with these zones. Entries that hold for the former mode only become invalid.
    fn go_to(&mut self, process: u8, zones: u32) {
        if self.of_mode != 0 {
            self.drop(self.of_mode);
        }
        if zones != sysreg::read_spr::<ZPR>() {
            sysreg::write_spr::<ZPR>(zones);
            // QEMU 7.2 keeps the old rights until PID changes.
            sysreg::write_spr::<PID>(u32::from(process ^ 1));
        }
        sysreg::write_spr::<PID>(process.into());
    }

    /// Goes to the mode without translation. The zones stay: the hypervisor's own zone is always the same.
    pub(crate) fn go_to_real_mode(&mut self) {
        self.go_to(REAL_MODE, sysreg::read_spr::<ZPR>() & !3 | 1);
    }

    /// Goes to the mode in which either instructions or data are translated, with these real zones: an entry
    /// for all processes serves there, too.
    pub(crate) fn go_to_mixed_mode(&mut self, zones: u32) {
        let others = self.matching(|used| used.process == MIXED_MODE);
        self.drop(others);
        self.go_to(MIXED_MODE, zones);
    }

    /// Goes to a process of the guest, with these real zones.
    pub(crate) fn go_to_process(&mut self, process: u8, zones: u32) {
        if process >= FIRST_SHARED && process != self.shared {
            let others = self.matching(|used| used.process == SHARED);
            self.drop(others);
            self.shared = process;
        }
        self.go_to(real_process(process), zones);
    }

    /// Puts an entry into the buffer, made of this one of the guest's. It is for all processes, or for the
    /// present one.
    pub(crate) fn fill(&mut self, entry: &RealEntry, of_guest: Option<usize>, is_global: bool) {
        let first = entry.address();
        let last = first | ((1_u32 << entry.size).wrapping_sub(1));
        let present = sysreg::read_spr::<PID>();
        let process = if is_global { 0 } else { present as u8 };
        let others = self.matching(|used| {
            let is_same = process == 0 || used.process == 0 || used.process == process;
            is_same && used.first <= last && first <= used.last
        });
        if others != 0 {
            self.drop(others);
        }
        let number = self.next;
        self.next = if number + 1 < ENTRIES {
            number + 1
        } else {
            self.first
        };
        let bit = 1_u64 << number;
        let made_bit = (bit >> DIRECT) as u16;
        if let Some(used) = self.used.get_mut(number) {
            if let Some(made) = self.made_of.get_mut(usize::from(used.of_guest)) {
                *made &= !made_bit;
            }
            *used = Used {
                first,
                last,
                process,
                owner: NOBODY,
                of_guest: of_guest.map_or(NOBODY, |guest| guest as u8),
            };
        }
        self.valid |= bit;
        self.of_mode = if entry.is_of_mode {
            self.of_mode | bit
        } else {
            self.of_mode & !bit
        };
        if let Some(made) = of_guest.and_then(|guest| self.made_of.get_mut(guest)) {
            *made |= made_bit;
        }
        sysreg::write_entry(number as u32, entry.high, entry.low, process.into());
        sysreg::write_spr::<PID>(present);
    }

    /// Tells whether there are entries whose rights fit the guest's present mode.
    pub(crate) fn has_entries_of_mode(&self) -> bool {
        self.of_mode != 0
    }
}
