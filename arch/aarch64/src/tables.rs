// SPDX-License-Identifier: Apache-2.0
//! (interim)

pub(crate) const PAGE: u64 = 4096;
pub(crate) struct Pool<'p> { pub(crate) base: u64, pub(crate) count: usize, pub(crate) next: &'p mut usize }
pub(crate) struct Radix<'p> { pub(crate) root: u64, pub(crate) first_level: u32, pub(crate) pool: Pool<'p> }
impl Pool<'_> {
    fn take(&mut self) -> Option<u64> {
        if *self.next >= self.count { return None; }
        let t = self.base + *self.next as u64 * PAGE;
        *self.next += 1;
        for i in 0..512 {
            // SAFETY: interim
            unsafe { bulkhead_arch_support::physical::write_word((t + i * 8) as usize, 0) }
        }
        Some(t)
    }
}
impl Radix<'_> {
    pub(crate) fn map(&mut self, mut va: u64, mut pa: u64, size: u64, attr: u64) -> bool {
        let end = va + size;
        while va < end {
            let mut table = self.root;
            let mut level = self.first_level;
            loop {
                let shift = 39 - 9 * level;
                let span = 1u64 << shift;
                let index = if level == self.first_level { va >> shift } else { va >> shift & 511 };
                let slot = (table + index * 8) as usize;
                let fits = level >= 1 && (va | pa) & (span - 1) == 0 && end - va >= span;
                // SAFETY: interim
                let entry = unsafe { bulkhead_arch_support::physical::read_word(slot) };
                if (fits && entry & 1 == 0) || level == 3 {
                    if entry & 1 == 0 {
                        let leaf = pa | attr | if level == 3 { 3 } else { 1 };
                        // SAFETY: interim
                        unsafe { bulkhead_arch_support::physical::write_word(slot, leaf) }
                    }
                    va += span;
                    pa += span;
                    break;
                }
                if entry & 3 == 1 { va += span - (va & (span - 1)); pa = pa.wrapping_add(span - (pa & (span - 1))); break; }
                table = if entry & 1 == 0 {
                    let Some(t) = self.pool.take() else { return false };
                    // SAFETY: interim
                    unsafe { bulkhead_arch_support::physical::write_word(slot, t | 3) }
                    t
                } else { entry & 0xFFFF_FFFF_F000 };
                level += 1;
            }
        }
        true
    }
    pub(crate) fn translate(root: u64, first_level: u32, va: u64) -> Option<(u64, u64)> {
        let mut table = root;
        let mut level = first_level;
        loop {
            let shift = 39 - 9 * level;
            let index = if level == first_level { va >> shift } else { va >> shift & 511 };
            // SAFETY: interim
            let entry = unsafe { bulkhead_arch_support::physical::read_word((table + index * 8) as usize) };
            if entry & 1 == 0 { return None; }
            if level == 3 || entry & 2 == 0 {
                let span = 1u64 << shift;
                return Some((entry & 0xFFFF_FFFF_F000 & !(span - 1) | va & (span - 1), entry));
            }
            table = entry & 0xFFFF_FFFF_F000;
            level += 1;
        }
    }
}
