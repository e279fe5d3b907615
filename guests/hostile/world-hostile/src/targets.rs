// SPDX-License-Identifier: Apache-2.0
//! The addresses and values that attacks are made with.

use core::arch::asm;

use crate::cpu::{barrier, store};
use crate::instructions::RETURNS;
use crate::{below, draw};

/// The addresses that this program is linked to.
pub const CODE: u32 = 0x0006_0000;
pub const RAM: u32 = 0x2802_0000;
/// RAM of this program that nothing else uses.
pub const SCRATCH: u32 = RAM + 0x9000;
/// The program's own faults, as SHCSR enables them. Its UsageFault would take its hypercalls.
pub const FAULTS: u32 = 3 << 16;
const SCRATCH_SIZE: u32 = 0x4000;
/// The bit of an address that makes it the Secure name of the same place.
pub const SECURE: u32 = 1 << 28;

/// Draws an address: somewhere, or near a border that may be wrong in the hypervisor.
pub fn address() -> u32 {
    const BORDERS: [u32; 14] = [
        0,
        0x003D_6000,
        0x0003_0000,
        CODE,
        0x0007_0000,
        0x2000_0000,
        0x2801_0000,
        RAM,
        0x2803_0000,
        0x2803_9000,
        0x283F_8000,
        0x4000_0000,
        0x4000_4000,
        0xE000_0000,
    ];
    let address = match below(6) {
        0 => draw(),
        1 => 0x2800_0000 | draw() & 0x003F_FFFF,
        // The hypervisor's RAM and code on the MPS2 with AN505.
        2 => 0x283F_8000 | draw() & 0x7FFF,
        3 => 0x003D_6000 + below(0x2_A000),
        _ => BORDERS[below(14) as usize]
            .wrapping_add(below(512))
            .wrapping_sub(256),
    };
    if below(6) == 0 { address ^ SECURE } else { address }
}

/// Draws an address outside this program's own memory, but perhaps in its scratch area.
pub fn victim() -> u32 {
    let address = address();
    if address.wrapping_sub(RAM) < 0x1_0000 || address.wrapping_sub(CODE) < 0x1_0000 {
        SCRATCH + (address & (SCRATCH_SIZE - 4))
    } else {
        address
    }
}

/// Draws a register of the processor, more often one that is there.
pub fn private() -> u32 {
    match below(4) {
        0 => 0xE000_0000 + below(0x10_0000),
        1 => 0xE000_E000 + below(0x1000),
        2 => 0xE000_ED00 + below(0x100),
        _ => 0xE000_E100 + below(0x400),
    }
}

/// Draws a value that ends an exception or a call from Secure code, or looks like one.
pub fn return_value() -> u32 {
    match below(8) {
        0 => 0xF000_0000 | draw(),
        1 | 2 => 0xFFFF_FF00 | draw(),
        3 => 0xFEFF_FFF0 | draw() & 0xF,
        _ => RETURNS[below(RETURNS.len() as u32) as usize],
    }
}

/// Makes this program's code read-only by its own protection unit. Nothing else does, and no restart brings
/// back code that an attack has changed.
pub fn protect() {
    for (register, value) in [
        (0xE000_ED98, 7),
        (0xE000_ED9C, CODE | 6),
        (0xE000_EDA0, (CODE + 0xFFE0) | 1),
        (0xE000_ED94, 7),
    ] {
        store(register, value);
    }
}

/// Gives the next frame room for floating-point registers.
pub fn floating_point() {
    store(0xE000_ED88, 0xF << 20);
    barrier();
    // SAFETY: `vmov.f32 s0, s0`, which changes no register.
    unsafe { asm!(".inst.w 0xEEB00A40") }
}
