// SPDX-License-Identifier: Apache-2.0
//! How large the tables of a class are.
//!
//! Microcontrollers (32-bit Arm without translation) have a few hundred kilobytes of memory for everybody, so the limits of
//! the hypervisor built for them are lower. Each limit is one constant where it belongs, of two values; the host tool,
//! which serves all classes, has the larger ones and takes those of a class from its `ArchCaps`.

/// Whether this is built for a microcontroller.
pub const IS_SMALL: bool = cfg!(all(target_arch = "arm", target_os = "none"));

/// Whether this runs on a board: then it serves one class, and what another one has is not in it.
pub const IS_TARGET: bool = cfg!(target_os = "none");

/// A number that the places of a class's longest tables have.
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub type Place = u8;
/// A number that the places of a class's longest tables have.
#[cfg(not(all(target_arch = "arm", target_os = "none")))]
pub type Place = u16;

/// A register of the class's guests, as far as reports show it.
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub type Register = u32;
/// A register of the class's guests, as far as reports show it.
#[cfg(not(all(target_arch = "arm", target_os = "none")))]
pub type Register = u64;

/// The limit for this build: `small` on a microcontroller, else `large`.
#[must_use]
pub const fn limit(small: usize, large: usize) -> usize {
    if IS_SMALL { small } else { large }
}
