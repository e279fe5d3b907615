// SPDX-License-Identifier: Apache-2.0
//! The local APIC of the processor as x2APIC, and the I/O APIC (Intel SDM 3A, chapter 11).

use super::cpu::{load, read_msr, store, write_msr};

const BASE: u32 = 0x1B;
const EXTENDED: u64 = 1 << 10;
const X2APIC: u32 = 0x800;
/// Registers by their numbers.
pub const ID: u32 = 0x02;
/// End of interrupt.
pub const END: u32 = 0x0B;
/// Spurious vector, and the switch of the APIC.
pub const SPURIOUS: u32 = 0x0F;
/// Interrupt command.
pub const COMMAND: u32 = 0x30;
/// Local vector of the timer.
pub const TIMER: u32 = 0x32;
/// Initial count of the timer.
pub const INITIAL: u32 = 0x38;
/// Divider of the timer.
pub const DIVIDE: u32 = 0x3E;
/// Interrupt for the processor itself.
pub const SELF: u32 = 0x3F;
/// TSC_DEADLINE.
const DEADLINE: u32 = 0x6E0;
const BY_DEADLINE: u64 = 2 << 17;
const IO: u64 = 0xFEC0_0000;

/// Reads a register.
#[must_use]
pub fn read(register: u32) -> u64 {
    read_msr(X2APIC + register)
}

/// Writes a register.
pub fn write(register: u32, value: u64) {
    write_msr(X2APIC + register, value);
}

/// Switches the APIC on, in x2APIC mode.
pub fn enable() {
    write_msr(BASE, read_msr(BASE) | EXTENDED);
    write(SPURIOUS, 0x1FF);
}

/// Lets the timer interrupt with this vector when the counter is at `deadline`; 0 stops it.
pub fn set_deadline(vector: u8, deadline: u64) {
    write(TIMER, BY_DEADLINE | u64::from(vector));
    write_msr(DEADLINE, deadline);
}

/// Ends the interrupt in service.
pub fn end() {
    write(END, 0);
}

/// Lets a pin of the I/O APIC interrupt processor 0 with this vector.
pub fn route(pin: u32, vector: u8, is_level: bool) {
    let low = u32::from(vector) | u32::from(is_level) << 15;
    for (register, value) in [(0x11 + 2 * pin, 0), (0x10 + 2 * pin, low)] {
        store(IO, register);
        store(IO + 0x10, value);
    }
}

/// Returns a register of the I/O APIC.
#[must_use]
pub fn read_io(register: u32) -> u32 {
    store(IO, register);
    load(IO + 0x10)
}
