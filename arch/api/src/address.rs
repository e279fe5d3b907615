// SPDX-License-Identifier: Apache-2.0
//! Addresses that cannot be mixed up.

/// An address as a partition sees it after its own translation: Arm's intermediate physical address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GuestPhys(pub u64);

/// An address on the board's bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPhys(pub u64);

/// An address computation left the 64-bit space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

impl GuestPhys {
    /// Returns `self + bytes`.
    ///
    /// # Errors
    /// [`OutOfRange`] if the sum does not fit 64 bits.
    pub const fn offset(self, bytes: u64) -> Result<Self, OutOfRange> {
        match self.0.checked_add(bytes) {
            Some(sum) => Ok(Self(sum)),
            None => Err(OutOfRange),
        }
    }
}

impl HostPhys {
    /// Returns `self + bytes`.
    ///
    /// # Errors
    /// [`OutOfRange`] if the sum does not fit 64 bits.
    pub const fn offset(self, bytes: u64) -> Result<Self, OutOfRange> {
        match self.0.checked_add(bytes) {
            Some(sum) => Ok(Self(sum)),
            None => Err(OutOfRange),
        }
    }
}
