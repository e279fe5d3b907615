// SPDX-License-Identifier: Apache-2.0
//! The guest's own translation tables (AMD APM volume 2, chapter 5), for the hypervisor's look at an
//! instruction. Rights are not looked at: the processor has just fetched the instruction.

/// CR0.PG.
const PAGING: u64 = 1 << 31;
/// CR4.PSE, PAE.
const PAGE_SIZE_EXTENSION: u64 = 1 << 4;
const PAE: u64 = 1 << 5;
/// EFER.LMA.
const LONG_MODE: u64 = 1 << 10;
const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
/// Bits 51:12.
const ADDRESS: u64 = 0x000F_FFFF_FFFF_F000;

/// The registers that say how a guest translates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paging {
    /// CR0.
    pub cr0: u64,
    /// CR3.
    pub cr3: u64,
    /// CR4.
    pub cr4: u64,
    /// EFER.
    pub efer: u64,
}

impl Paging {
    /// Returns the guest-physical address of a linear address. `load` reads a word of 8 bytes of the guest's
    /// memory. At most four words are read.
    pub fn translate(&self, linear: u64, load: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
        if self.cr0 & PAGING == 0 {
            return Some(linear & 0xFFFF_FFFF);
        }
        if self.efer & LONG_MODE != 0 {
            return long(self.cr3 & ADDRESS, 4, linear, load);
        }
        if self.cr4 & PAE != 0 {
            return self.extended(linear & 0xFFFF_FFFF, load);
        }
        self.legacy(linear & 0xFFFF_FFFF, load)
    }

    fn extended(&self, linear: u64, mut load: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
        let at = (self.cr3 & 0xFFFF_FFE0) | (linear >> 30) << 3;
        let entry = load(at).filter(|entry| entry & PRESENT != 0)?;
        long(entry & ADDRESS, 2, linear, load)
    }

    fn legacy(&self, linear: u64, mut load: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
        let mut word = |at: u64| {
            let pair = load(at & !7)?;
            let entry = if at & 4 == 0 {
                pair & 0xFFFF_FFFF
            } else {
                pair >> 32
            };
            (entry & PRESENT != 0).then_some(entry)
        };
        let entry = word((self.cr3 & 0xFFFF_F000) | (linear >> 22) << 2)?;
        if entry & LARGE != 0 && self.cr4 & PAGE_SIZE_EXTENSION != 0 {
            return Some(entry & 0xFFC0_0000 | linear & 0x3F_FFFF);
        }
        let entry = word((entry & 0xFFFF_F000) | (linear >> 12 & 0x3FF) << 2)?;
        Some(entry & 0xFFFF_F000 | linear & 0xFFF)
    }
}

/// Walks so many levels of tables with 512 entries.
fn long(root: u64, levels: u32, linear: u64, mut load: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    let mut table = root;
    for level in (0..levels).rev() {
        let shift = level.wrapping_mul(9).wrapping_add(12);
        let index = linear.wrapping_shr(shift) & 0x1FF;
        let entry = load(table | index << 3).filter(|entry| entry & PRESENT != 0)?;
        let offset = 1_u64.wrapping_shl(shift).wrapping_sub(1);
        if level == 0 || entry & LARGE != 0 && level < 3 {
            return Some(entry & ADDRESS & !offset | linear & offset);
        }
        table = entry & ADDRESS;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn long_mode_has_four_levels_and_large_pages() {
        let memory: BTreeMap<u64, u64> = [
            (0x1008, 0x2003),
            (0x2000, 0x3003),
            (0x2008, 0x4000_0083),
            (0x3000, 0x4003),
            (0x3008, 0x20_0083),
            (0x4010, 0x8000_0000_0000_9003),
        ]
        .into();
        let paging = Paging {
            cr0: PAGING,
            cr3: 0x1000,
            cr4: PAE,
            efer: LONG_MODE,
        };
        let walk = |linear| paging.translate(linear, |at| memory.get(&at).copied());
        let base = 1 << 39;
        assert_eq!(walk(base + 0x2345), Some(0x9345));
        assert_eq!(walk(base + 0x20_1234), Some(0x20_1234));
        assert_eq!(walk(base + 0x4012_3456), Some(0x4012_3456));
        assert_eq!(walk(base + 0x1000), None);
        assert_eq!(walk(0), None);
    }

    #[test]
    fn legacy_modes() {
        let memory: BTreeMap<u64, u64> = [(0x1000, 0x40_0083_0000_2003), (0x2008, 0x7003_0000_0000)].into();
        let mut paging = Paging {
            cr0: PAGING,
            cr3: 0x1000,
            cr4: PAGE_SIZE_EXTENSION,
            efer: 0,
        };
        let walk = |paging: &Paging, linear| paging.translate(linear, |at| memory.get(&at).copied());
        assert_eq!(walk(&paging, 0x3ABC), Some(0x7ABC));
        assert_eq!(walk(&paging, 0x40_0ABC), Some(0x40_0ABC));
        paging.cr0 = 0;
        assert_eq!(walk(&paging, 0x1_0000_0ABC), Some(0xABC));
    }
}
