// SPDX-License-Identifier: Apache-2.0
//! Bits of CFSR (Arm DDI 0403E.e, B3.2.15).

/// An instruction was fetched from where nothing may be executed.
pub const IACCVIOL: u32 = 1;
/// The protection unit refused a load or store.
pub const DACCVIOL: u32 = 1 << 1;
/// The protection unit refused to let a frame be popped.
pub const MUNSTKERR: u32 = 1 << 3;
/// The protection unit refused to let a frame be pushed.
pub const MSTKERR: u32 = 1 << 4;
/// MMFAR holds an address.
pub const MMARVALID: u32 = 1 << 7;
/// The bus refused an instruction fetch.
pub const IBUSERR: u32 = 1 << 8;
/// The bus refused a load or store at once.
pub const PRECISERR: u32 = 1 << 9;
/// The bus refused a store some instructions later.
pub const IMPRECISERR: u32 = 1 << 10;
/// The bus refused to let a frame be popped.
pub const UNSTKERR: u32 = 1 << 11;
/// The bus refused to let a frame be pushed.
pub const STKERR: u32 = 1 << 12;
/// BFAR holds an address.
pub const BFARVALID: u32 = 1 << 15;
/// An undefined instruction.
pub const UNDEFINSTR: u32 = 1 << 16;
