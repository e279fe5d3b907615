// SPDX-License-Identifier: Apache-2.0
//! The bytes that an emulated load or store moves.

/// The way of a load's value into its register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The register.
    pub register: u8,
    /// Bytes.
    pub size: u8,
    /// The sign is extended.
    pub sign_extend: bool,
    /// The register is 64 bits wide; else its upper half becomes 0.
    pub wide: bool,
    /// The bytes come in the other order.
    pub big_endian: bool,
}

impl Load {
    /// Gives the register's new value, when the device has answered `value`.
    #[inline]
    #[must_use]
    pub fn result(self, value: u64) -> u64 {
        let shift = 64 - 8 * u32::from(self.size.clamp(1, 8));
        let aligned = if self.big_endian {
            value.swap_bytes()
        } else {
            value << shift
        };
        let extended = if self.sign_extend {
            (aligned as i64 >> shift) as u64
        } else {
            aligned >> shift
        };
        if self.wide {
            extended
        } else {
            u64::from(extended as u32)
        }
    }
}

/// Gives the value that a store of the low `size` bytes of a register has for the device. Requires: `size` is
/// 1, 2, 4 or 8.
#[inline]
#[must_use]
pub fn stored(register: u64, size: u8, big_endian: bool) -> u64 {
    let shift = 64 - 8 * u32::from(size);
    let value = register << shift;
    if big_endian {
        value.swap_bytes()
    } else {
        value >> shift
    }
}
