// SPDX-License-Identifier: Apache-2.0
//! The addresses of this program, and what it leaves out of its output: on a board of class armv7m, nothing.

/// The addresses at which the linker script puts the program and its RAM.
pub const CODE: u32 = 0x0005_0000;
pub const RAM: u32 = 0x2002_0000;
/// An address at which no device answers.
pub const NOWHERE: u32 = 0x5000_0000;
/// Registers of addresses of faults: MMFAR and BFAR.
pub const FAULT_ADDRESSES: u32 = 2;
/// Priorities of 32 lines of this program's own.
pub const PRIORITIES: u32 = 0xE000_E400;
/// The first 32 lines, but those that are not this program's own.
pub const LINES: u32 = u32::MAX;
/// BusFault and NMI are this program's own.
pub const HAS_ALL_FAULTS: bool = true;

/// Returns the bits of a register that are not printed.
pub const fn hidden(_register: u32) -> u32 {
    0
}
