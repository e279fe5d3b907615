// SPDX-License-Identifier: Apache-2.0
//! The addresses and values that attacks are made with.

use core::arch::asm;

use crate::cpu::{barrier, store};
use crate::{below, draw};

/// The addresses that this program is linked to.
pub const CODE: u32 = 0x0006_0000;
pub const RAM: u32 = 0x2003_0000;
/// RAM of this program that nothing else uses.
pub const SCRATCH: u32 = RAM + 0x9000;
/// The program's own faults, as SHCSR enables them: all.
pub const FAULTS: u32 = 7 << 16;
const SCRATCH_SIZE: u32 = 0x4000;

/// Draws an address: somewhere, or near a border that may be wrong in the hypervisor.
pub fn address() -> u32 {
    const BORDERS: [u32; 14] = [
        0,
        0x003D_6000,
        0x0005_0000,
        CODE,
        0x0007_0000,
        0x2000_0000,
        0x60FF_A000,
        0x2002_0000,
        RAM,
        0x60FF_B000,
        0x2200_0000,
        0x4000_0000,
        0x4000_4000,
        0xE000_0000,
    ];
    match below(5) {
        0 => draw(),
        1 => 0x2000_0000 | draw() & 0x0007_FFFF,
        // The hypervisor's RAM on the MPS2 with AN500, and what is below it.
        2 => 0x60FF_8000 | draw() & 0x7FFF,
        _ => BORDERS[below(14) as usize]
            .wrapping_add(below(512))
            .wrapping_sub(256),
    }
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

/// Draws a value that ends an exception, or looks like one.
pub fn return_value() -> u32 {
    const VALUES: [u32; 6] = [
        0xFFFF_FFF1,
        0xFFFF_FFF9,
        0xFFFF_FFFD,
        0xFFFF_FFE1,
        0xFFFF_FFE9,
        0xFFFF_FFED,
    ];
    match below(8) {
        0 => 0xF000_0000 | draw(),
        1 => 0xFFFF_FF00 | draw(),
        _ => VALUES[below(6) as usize],
    }
}

/// Does nothing: the partition has its code for reading only.
pub fn protect() {}

/// Gives the next frame room for floating-point registers.
pub fn floating_point() {
    store(0xE000_ED88, 0xF << 20);
    barrier();
    // SAFETY: `vmov.f32 s0, s0`, which changes no register.
    unsafe { asm!(".inst.w 0xEEB00A40") }
}
