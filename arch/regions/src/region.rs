// SPDX-License-Identifier: Apache-2.0
//! One region, and how the unit's registers say it (Arm DDI 0403E.e, B3.5.8 and B3.5.9).

/// The rights of unprivileged code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Rights {
    /// Loads.
    pub read: bool,
    /// Stores; the unit cannot express them without loads.
    pub write: bool,
    /// Instruction fetches; likewise.
    pub execute: bool,
}

impl Rights {
    /// None.
    pub const NONE: Self = Self {
        read: false,
        write: false,
        execute: false,
    };

    /// Returns what both allow.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            read: self.read && other.read,
            write: self.write && other.write,
            execute: self.execute && other.execute,
        }
    }

    /// Tells whether nothing is allowed.
    #[must_use]
    pub const fn is_none(self) -> bool {
        !self.read && !self.write && !self.execute
    }
}

/// The kind of memory: the bits TEX, S, C and B of MPU_RASR, in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory(pub u32);

impl Memory {
    /// Normal memory, write-back, write-allocate.
    pub const NORMAL: Self = Self(1 << 19 | 1 << 17 | 1 << 16);
    /// Registers of a device.
    pub const DEVICE: Self = Self(1 << 18 | 1 << 16);
    /// The bits that say it.
    pub const MASK: u32 = 0x003F_0000;

    /// Tells whether it is device or strongly-ordered memory: TEX 0 with C 0, or TEX 2 with C and B 0
    /// (B3.5.9, table B3-14).
    #[must_use]
    pub const fn is_device(self) -> bool {
        let texture = self.0 >> 19 & 7;
        let cached = self.0 >> 16 & 3;
        texture == 0 && cached < 2 || texture == 2 && cached == 0
    }
}

/// A region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address of the block: a multiple of its size.
    pub base: u32,
    /// Binary logarithm of the block's size: 5 to 32.
    pub size_log2: u8,
    /// The eighths that are left out: bit 0 is the lowest. 0 for blocks below 256 bytes.
    pub disabled: u8,
    /// The rights of unprivileged code there. The hypervisor may read and write always.
    pub rights: Rights,
    /// The kind of memory there.
    pub memory: Memory,
}

/// MPU_RBAR.VALID: the number in its low bits selects the region.
const VALID: u32 = 1 << 4;
/// MPU_RASR: ENABLE and XN.
const ENABLE: u32 = 1;
const NEVER_EXECUTED: u32 = 1 << 28;

impl Region {
    /// Returns MPU_RBAR for this region as number `slot`.
    #[must_use]
    pub const fn rbar(&self, slot: u8) -> u32 {
        self.base | VALID | slot as u32 & 0xF
    }

    /// Returns MPU_RBAR if number `slot` is to be no region.
    pub(crate) const fn nothing_in(slot: u8) -> u32 {
        VALID | slot as u32 & 0xF
    }

    /// Returns MPU_RASR.
    #[must_use]
    pub const fn rasr(&self) -> u32 {
        let access: u32 = match (self.rights.read, self.rights.write) {
            (_, true) => 0b011,
            (true, false) => 0b010,
            (false, false) => 0b001,
        };
        let never_executed = if self.rights.execute { 0 } else { NEVER_EXECUTED };
        never_executed
            | access << 24
            | self.memory.0 & Memory::MASK
            | (self.disabled as u32) << 8
            | (self.size_log2.wrapping_sub(1) as u32 & 0x1F) << 1
            | ENABLE
    }

    /// Returns the region that these registers say, if it is enabled.
    #[must_use]
    pub const fn said_by(rbar: u32, rasr: u32) -> Option<Self> {
        if rasr & ENABLE == 0 {
            return None;
        }
        let access = rasr >> 24 & 0b111;
        Some(Self {
            base: rbar & !(VALID | 0xF),
            size_log2: ((rasr >> 1 & 0x1F) as u8).saturating_add(1),
            disabled: (rasr >> 8) as u8,
            rights: Rights {
                read: access != 0b001,
                write: access == 0b011,
                execute: rasr & NEVER_EXECUTED == 0,
            },
            memory: Memory(rasr & Memory::MASK),
        })
    }

    /// Returns the size of the block in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        1_u64.wrapping_shl(self.size_log2 as u32)
    }

    /// Makes this region a block that two others share, with the rights that both give.
    #[inline]
    pub(crate) fn share(&mut self, own: &Self, wanted: &Self, block: &Self, disabled: u8) {
        self.base = block.base;
        self.size_log2 = block.size_log2;
        self.disabled = disabled;
        self.rights = own.rights.and(wanted.rights);
        self.memory = if own.memory.is_device() {
            own.memory
        } else {
            wanted.memory
        };
    }

    /// Returns a number for the rights and for whether the memory is a device's.
    #[inline]
    pub(crate) const fn kind(&self) -> u8 {
        let Rights { read, write, execute } = self.rights;
        read as u8 | (write as u8) << 1 | (execute as u8) << 2 | (self.memory.is_device() as u8) << 3
    }

    /// Tells whether eighths of the block can be left out.
    #[inline]
    pub(crate) const fn has_eighths(&self) -> bool {
        self.size_log2 >= 8
    }

    /// Returns the binary logarithm of the size of an eighth, of the block itself if it has none.
    #[must_use]
    pub const fn granule_log2(&self) -> u8 {
        if self.has_eighths() {
            self.size_log2.wrapping_sub(3)
        } else {
            self.size_log2
        }
    }

    /// Returns the size of an eighth, of the block itself if it has none.
    #[must_use]
    pub const fn granule(&self) -> u64 {
        1_u64.wrapping_shl(self.granule_log2() as u32)
    }

    /// Returns the first address after the block.
    #[must_use]
    pub const fn end(&self) -> u64 {
        (self.base as u64).wrapping_add(self.size())
    }

    /// Returns the eighths that any of these bytes are in, lowest first; the lowest stands for the block if
    /// it has none.
    #[must_use]
    pub fn eighths_in(&self, start: u64, bytes: u64) -> u8 {
        let end = start.saturating_add(bytes);
        let eighths = if self.has_eighths() { 8 } else { 1 };
        let has_some = |eighth: &u32| {
            let first = u64::from(self.base).saturating_add(self.granule().saturating_mul((*eighth).into()));
            start < first.saturating_add(self.granule()) && first < end
        };
        (0..eighths)
            .filter(has_some)
            .fold(0, |bits, eighth| bits | 1_u8.wrapping_shl(eighth))
    }

    /// Tells whether `address` is inside the block.
    #[inline]
    #[must_use]
    pub const fn spans(&self, address: u32) -> bool {
        // A block of 2^32 bytes has every address.
        match u32::MAX.checked_shl(self.size_log2 as u32) {
            Some(mask) => address & mask == self.base,
            None => true,
        }
    }

    /// Tells whether the region covers `address`.
    #[inline]
    #[must_use]
    pub const fn covers(&self, address: u32) -> bool {
        if !self.spans(address) {
            return false;
        }
        if self.disabled == 0 {
            return true;
        }
        let inside = address.wrapping_sub(self.base);
        // A block with eighths has 256 bytes or more, so this is at most 7.
        let eighth = inside.wrapping_shr(self.size_log2.wrapping_sub(3) as u32);
        self.disabled & 1_u8.wrapping_shl(eighth) == 0
    }
}

/// Returns the rights `address` has under these regions; of those that cover it the last one counts.
#[must_use]
pub fn rights_at(regions: &[Region], address: u32) -> Rights {
    regions
        .iter()
        .rev()
        .find(|region| region.covers(address))
        .map_or(Rights::NONE, |region| region.rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registers_say_what_the_manual_says() {
        let region = Region {
            base: 0x2000_8000,
            size_log2: 15,
            disabled: 0b1100_0000,
            rights: Rights {
                read: true,
                write: true,
                execute: false,
            },
            memory: Memory::NORMAL,
        };
        assert_eq!(region.rbar(3), 0x2000_8013);
        assert_eq!(region.rasr(), 0x130B_C01D);
        assert_eq!(Region::said_by(region.rbar(3), region.rasr()), Some(region));
        assert_eq!(Region::said_by(region.rbar(3), region.rasr() & !1), None);
        assert!(region.covers(0x2000_DFFF));
        assert!(!region.covers(0x2000_E000));
        assert!(!region.covers(0x2001_0000));
        let all = Region {
            base: 0,
            size_log2: 32,
            disabled: 0,
            rights: Rights::NONE,
            memory: Memory::DEVICE,
        };
        assert_eq!(all.rasr(), 0x1105_003F);
        assert!(all.covers(u32::MAX));
    }
}
