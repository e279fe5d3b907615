// SPDX-License-Identifier: Apache-2.0
//! Registers of the board's devices, by address.

use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

/// Bus addresses that hold device registers on an MPS2 board (Arm DAI 0386D, section 4.2): the only ones these functions
/// touch. Devices of the board access no memory by themselves, so no access to them can break what Rust promises.
const DEVICES: [(usize, usize); 3] = [
    (0x4000_0000, 0x4003_0000),
    (0x4020_0000, 0x4021_0000),
    (0xa000_0000, 0xa001_0000),
];

fn is_device(address: usize) -> bool {
    address.is_multiple_of(4)
        && DEVICES
            .iter()
            .any(|(start, end)| (*start..*end).contains(&address))
}

/// Reads a register; 0 where there is none.
#[must_use]
pub fn read(address: usize) -> u32 {
    if !is_device(address) {
        return 0;
    }
    // SAFETY: `is_device` has found an aligned address of the device space, where there is no memory of Rust's; a
    // read without a device there is a bus fault, not undefined behaviour.
    unsafe { with_exposed_provenance::<u32>(address).read_volatile() }
}

/// Writes a register, if there is one.
pub fn write(address: usize, value: u32) {
    if is_device(address) {
        // SAFETY: as for `read`; and no device there accesses memory by itself.
        unsafe { with_exposed_provenance_mut::<u32>(address).write_volatile(value) }
    }
}
