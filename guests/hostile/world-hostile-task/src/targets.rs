// SPDX-License-Identifier: Apache-2.0
//! The addresses that attacks are made with.

/// The addresses that this program is linked to (`memory.x`).
const CODE: u32 = 0x000B_0000;
pub const RAM: u32 = 0x2803_D000;
/// Borders that the hypervisor may have wrong: of its memory, of this task, and of the VMs of the test.
pub const BORDERS: [u32; 19] = [
    0,
    0x0002_8000,
    0x0003_0000,
    0x000A_4000,
    CODE,
    CODE + 0x4000,
    0x003D_6000,
    0x0040_0000,
    0x2000_0000,
    0x2800_C000,
    0x2801_0000,
    0x2803_9000,
    RAM,
    RAM + 0x1000,
    0x283F_8000,
    0x4000_0000,
    0x4000_4000,
    0xE000_0000,
    0xFFFF_FF00,
];
