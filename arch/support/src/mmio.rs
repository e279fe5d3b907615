// SPDX-License-Identifier: Apache-2.0
//! A window of device registers.

use bulkhead_arch_api::AccessKind;

/// Device registers at a fixed place.
///
/// Offsets outside the window read as zero and ignore writes: a driver's offset is a constant, so a
/// wrong one is found by the first test, and nothing of a driver can reach beyond its own device.
#[derive(Debug, Clone, Copy)]
pub struct Mmio {
    base: usize,
    size: usize,
}

/// A register that has been looked up.
#[derive(Debug, Clone, Copy)]
pub struct Port<T>(*mut T);

impl<T> Port<T> {
    /// Reads the register.
    #[inline(always)]
    #[must_use]
    pub fn read(&self) -> T {
        // SAFETY: `Mmio::register` keeps the access inside the window and aligned; that the window is mapped
        // device memory is the promise made to `Mmio::new`.
        unsafe { self.0.read_volatile() }
    }

    /// Writes the register.
    #[inline(always)]
    pub fn write(&self, value: T) {
        // SAFETY: as for the read above.
        unsafe { self.0.write_volatile(value) }
    }
}

macro_rules! access {
    ($read:ident, $write:ident, $type:ty) => {
        /// Reads the register at `offset`.
        #[inline]
        #[must_use]
        pub fn $read(&self, offset: usize) -> $type {
            match self.register::<$type>(offset) {
                Some(register) => register.read(),
                None => 0,
            }
        }

        /// Writes the register at `offset`.
        #[inline]
        pub fn $write(&self, offset: usize, value: $type) {
            if let Some(register) = self.register(offset) {
                register.write(value);
            }
        }
    };
}

impl Mmio {
    /// Makes a window of the `size` bytes of registers from `base` on.
    ///
    /// # Safety
    /// The range is mapped as device memory for as long as the value, a copy or a port of it is used, and no
    /// write to it changes memory that Rust code refers to.
    #[must_use]
    pub const unsafe fn new(base: usize, size: usize) -> Self {
        Self { base, size }
    }

    /// Returns the address of the register at `offset`, for code that cannot have a window.
    #[must_use]
    pub const fn address(&self, offset: usize) -> usize {
        self.base.wrapping_add(offset)
    }

    /// Reads or writes the only register of the window, which is `size` bytes, for the partition that owns it
    /// ([`bulkhead_arch_api::Spaces::forward`]).
    #[inline(always)]
    #[must_use]
    pub fn forward(&self, size: u8, kind: AccessKind) -> u64 {
        const IS_WIDE: bool = usize::BITS == u64::BITS;
        match (kind, size) {
            (AccessKind::Read, 1) => return self.read8(0).into(),
            (AccessKind::Read, 2) => return self.read16(0).into(),
            (AccessKind::Read, 8) if IS_WIDE => return self.read64(0),
            (AccessKind::Read, _) => return self.read32(0).into(),
            (AccessKind::Write(value), 1) => self.write8(0, value as u8),
            (AccessKind::Write(value), 2) => self.write16(0, value as u16),
            (AccessKind::Write(value), 8) if IS_WIDE => self.write64(0, value),
            (AccessKind::Write(value), _) => self.write32(0, value as u32),
        }
        0
    }

    #[inline]
    fn register<T>(&self, offset: usize) -> Option<Port<T>> {
        let width = size_of::<T>();
        let inside = offset.checked_add(width).is_some_and(|end| end <= self.size);
        let aligned = offset & (width - 1) == 0;
        (inside && aligned).then(|| Port((self.base + offset) as *mut T))
    }

    /// Returns the register of 32 bits at `offset`, for code that accesses it many times: it is looked up
    /// once. None outside the window.
    #[inline]
    #[must_use]
    pub fn port(&self, offset: usize) -> Option<Port<u32>> {
        self.register(offset)
    }

    access!(read8, write8, u8);
    access!(read16, write16, u16);
    access!(read32, write32, u32);
    access!(read64, write64, u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_window_is_reached() {
        let mut memory = [0u64; 4];
        // SAFETY: the window covers the middle half of the array, which outlives it.
        let mmio = unsafe { Mmio::new(memory.as_mut_ptr() as usize + 8, 16) };
        mmio.write64(0, 1);
        mmio.write32(8, 2);
        mmio.write8(15, 3);
        mmio.write64(16, 4);
        mmio.write32(13, 5);
        assert_eq!(mmio.port(8).map(|port| port.read()), Some(2));
        assert!(mmio.port(16).is_none());
        mmio.write64(usize::MAX, 6);
        assert_eq!(
            (mmio.read64(0), mmio.read32(8), mmio.read8(15), mmio.read32(16)),
            (1, 2, 3, 0)
        );
        assert_eq!(memory, [0, 1, 2 | 3 << 56, 0]);
    }
}
