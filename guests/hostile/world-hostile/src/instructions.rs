// SPDX-License-Identifier: Apache-2.0
//! Instructions that only Armv8-M has, as code of which each can be called.

use core::arch::global_asm;

// Each is an encoding, and each but the first has a return after it: BXNS r0, BLXNS r0, BXNS lr, SG, VLSTM
// and VLLDM of r0 (floating-point registers of a Secure function), MRS of MSP_NS, and MSR of PSP_NS,
// MSPLIM_NS, CONTROL_NS and SP_NS, which are registers of the other world.
global_asm!(
    ".section .text.hostile_worlds, \"ax\"",
    ".syntax unified",
    ".balign 8",
    ".global hostile_worlds",
    ".thumb_func",
    "hostile_worlds:",
    ".inst.n 0x4704",
    ".balign 8",
    ".inst.n 0x4784",
    "bx lr",
    ".balign 8",
    ".inst.n 0x4774",
    "bx lr",
    ".balign 8",
    ".inst.w 0xe97fe97f",
    "bx lr",
    ".balign 8",
    ".inst.w 0xec200a00",
    "bx lr",
    ".balign 8",
    ".inst.w 0xec300a00",
    "bx lr",
    ".balign 8",
    ".inst.w 0xf3ef8088",
    "bx lr",
    ".balign 8",
    ".inst.w 0xf3808889",
    "bx lr",
    ".balign 8",
    ".inst.w 0xf380888a",
    "bx lr",
    ".balign 8",
    ".inst.w 0xf3808894",
    "bx lr",
    ".balign 8",
    ".inst.w 0xf3808898",
    "bx lr",
    ".balign 8",
    ".global hostile_worlds_end",
    "hostile_worlds_end:",
);

/// Values that end an exception or a call from Secure code: Non-secure ones with and without floating point,
/// Secure ones, and returns from functions.
pub const RETURNS: [u32; 16] = [
    0xFFFF_FFB0,
    0xFFFF_FFB8,
    0xFFFF_FFBC,
    0xFFFF_FFA0,
    0xFFFF_FFA8,
    0xFFFF_FFAC,
    0xFFFF_FFB1,
    0xFFFF_FFB9,
    0xFFFF_FFBD,
    0xFFFF_FFF1,
    0xFFFF_FFF9,
    0xFFFF_FFFD,
    0xFFFF_FFED,
    0xFFFF_FF9C,
    0xFEFF_FFFF,
    0xFEFF_FFFE,
];

unsafe extern "C" {
    fn hostile_worlds();
    static hostile_worlds_end: u8;
}

/// Returns the number of instructions.
pub fn count() -> u32 {
    ((&raw const hostile_worlds_end) as u32 - (at(0) & !1)) / 8
}

/// Returns the address of an instruction, with bit 0 set.
pub fn at(number: u32) -> u32 {
    hostile_worlds as *const () as u32 + 8 * number
}
