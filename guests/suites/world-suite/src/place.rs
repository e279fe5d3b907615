// SPDX-License-Identifier: Apache-2.0
//! The addresses of this program, and what it leaves out of its output (docs/armv8m.md, Limits): BusFault,
//! HardFault and NMI are the Secure world's where a hypervisor is.

/// The address at which the linker script puts the RAM of the program.
pub const RAM: u32 = 0x2807_0000;
/// A Non-secure address at which no device answers.
pub const NOWHERE: u32 = 0x2F00_0000;
/// Registers of addresses of faults: MMFAR.
pub const FAULT_ADDRESSES: u32 = 1;
/// Priorities of 32 lines that the program does not have.
pub const PRIORITIES: u32 = 0xE000_E440;
/// The lines that a VM without devices has.
pub const LINES: u32 = !0xFF;
/// BusFault and NMI are the Secure world's, not this program's own.
pub const HAS_ALL_FAULTS: bool = false;

/// Returns the bits of a register that are not printed.
pub const fn hidden(register: u32) -> u32 {
    match register {
        // The registers of NVIC with a bit for each line.
        0xE000_E100 | 0xE000_E180 | 0xE000_E200 | 0xE000_E300 => !LINES,
        // Lines of others.
        0xE000_E104 | 0xE000_E400 | 0xE000_E404 | 0xE000_E420 => u32::MAX,
        // CCR.BFHFNMIGN.
        0xE000_ED14 => 1 << 8,
        // SHPR1: BusFault.
        0xE000_ED18 => 0xFF00,
        // AIRCR.BFHFNMINS.
        0xE000_ED0C => 1 << 13,
        // SHCSR: BusFault, HardFault and NMI.
        0xE000_ED24 => 1 << 1 | 1 << 2 | 1 << 5 | 1 << 14 | 1 << 17 | 1 << 21,
        // HFSR and BFAR. CFSR is clear after a switch.
        0xE000_ED28 | 0xE000_ED2C | 0xE000_ED38 => u32::MAX,
        _ => 0,
    }
}
