// SPDX-License-Identifier: Apache-2.0
//! Registers of the board's devices, by address.

use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

/// Bus addresses that hold device registers on an MPS2 board (Arm DAI 0386D, section 4.2): the only ones
/// these functions touch. Devices of the board access no memory by themselves, so no access to them can break
/// what Rust promises.
const DEVICES: [(usize, usize); 3] = [
    (0x4000_0000, 0x4003_0000),
    (0x4020_0000, 0x4021_0000),
    (0xa000_0000, 0xa001_0000),
];

fn is_device(address: usize) -> bool {
    address.is_multiple_of(4) && is_place(address)
}

fn is_place(address: usize) -> bool {
    DEVICES
        .iter()
        .any(|(start, end)| (*start..*end).contains(&address))
}

/// Reads a register; 0 where there is none.
#[must_use]
pub fn read(address: usize) -> u32 {
    if !is_device(address) {
        return 0;
    }
    // SAFETY: `is_device` has found an aligned address of the device space, where there is no memory of
    // Rust's; a read without a device there is a bus fault, not undefined behaviour.
    unsafe { with_exposed_provenance::<u32>(address).read_volatile() }
}

/// Writes a register, if there is one.
pub fn write(address: usize, value: u32) {
    if is_device(address) {
        // SAFETY: as for `read`; and no device there accesses memory by itself.
        unsafe { with_exposed_provenance_mut::<u32>(address).write_volatile(value) }
    }
}

/// Reads a byte of a register; 0 where there is none.
#[must_use]
pub fn read8(address: usize) -> u8 {
    if !is_place(address) {
        return 0;
    }
    // SAFETY: an address of the device space, as for `read`.
    unsafe { with_exposed_provenance::<u8>(address).read_volatile() }
}

/// Reads a halfword of a register; 0 where there is none.
#[must_use]
pub fn read16(address: usize) -> u16 {
    if !is_place(address) || !address.is_multiple_of(2) {
        return 0;
    }
    // SAFETY: an aligned address of the device space, as for `read`.
    unsafe { with_exposed_provenance::<u16>(address).read_volatile() }
}

/// Writes a byte of a register, if there is one.
pub fn write8(address: usize, value: u8) {
    if is_place(address) {
        // SAFETY: as for `write`.
        unsafe { with_exposed_provenance_mut::<u8>(address).write_volatile(value) }
    }
}

/// Writes a halfword of a register, if there is one.
pub fn write16(address: usize, value: u16) {
    if is_place(address) && address.is_multiple_of(2) {
        // SAFETY: as for `write`.
        unsafe { with_exposed_provenance_mut::<u16>(address).write_volatile(value) }
    }
}

/// Reads four registers that follow each other with one instruction (LDM); zeros where there are none.
#[must_use]
pub fn read_four(address: usize) -> [u32; 4] {
    if !is_device(address) || !is_device(address + 12) {
        return [0; 4];
    }
    let (a, b, c, d);
    // SAFETY: aligned addresses of the device space, as for `read`.
    unsafe {
        core::arch::asm!(
            "ldmia {place}, {{r1, r2, r3, r5}}",
            place = in(reg) address,
            out("r1") a, out("r2") b, out("r3") c, out("r5") d,
            options(nostack, preserves_flags),
        );
    }
    [a, b, c, d]
}

/// Writes four registers that follow each other with one instruction (STM), if there are such.
pub fn write_four(address: usize, [a, b, c, d]: [u32; 4]) {
    if is_device(address) && is_device(address + 12) {
        // SAFETY: aligned addresses of the device space, as for `write`.
        unsafe {
            core::arch::asm!(
                "stmia {place}, {{r1, r2, r3, r5}}",
                place = in(reg) address,
                in("r1") a, in("r2") b, in("r3") c, in("r5") d,
                options(nostack, preserves_flags),
            );
        }
    }
}
