// SPDX-License-Identifier: Apache-2.0
//! The addresses that attacks are made with.

/// The addresses that this program is linked to (`memory.x`).
const CODE: u32 = 0x000B_0000;
pub const RAM: u32 = 0x2003_D000;
/// Borders that may be wrong in the hypervisor.
pub const BORDERS: [u32; 21] = [
    0,
    0x0002_0000,
    0x0002_8000,
    0x0005_0000,
    CODE,
    CODE + 0x4000,
    0x003D_6000,
    0x0040_0000,
    0x2000_0000,
    0x2000_7000,
    0x2000_8000,
    0x2002_0000,
    RAM,
    RAM + 0x1000,
    0x60FF_A000,
    0x2200_0000,
    0x4000_0000,
    0x4000_4000,
    0x4002_8000,
    0xE000_0000,
    0xFFFF_FF00,
];
