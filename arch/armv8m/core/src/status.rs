// SPDX-License-Identifier: Apache-2.0
//! Bits of SFSR (D1.2.232).

/// Non-secure code branched to Secure memory, and not to an SG instruction.
pub const INVEP: u32 = 1;
/// The integrity signature of a frame is missing.
pub const INVIS: u32 = 1 << 1;
/// EXC_RETURN asks for a return that is not possible.
pub const INVER: u32 = 1 << 2;
/// A load, a store or a frame was refused by the security attribution unit.
pub const AUVIOL: u32 = 1 << 3;
/// Secure code branched to Non-secure memory without saying so.
pub const INVTRAN: u32 = 1 << 4;
/// Floating-point registers that were to be stored late went to memory that refused them.
pub const LSPERR: u32 = 1 << 5;
/// SFAR has the address.
pub const SFARVALID: u32 = 1 << 6;
/// Floating-point registers that are stored late are in a wrong state.
pub const LSERR: u32 = 1 << 7;
