// SPDX-License-Identifier: Apache-2.0
//! The local APIC of the processor, and the I/O APIC (Intel SDM 3A, chapter 11).
//!
//! The local APIC is an x2APIC where the processor has one, as a VM's does; else its registers are in memory,
//! as on the emulator's bare PC.

use core::sync::atomic::{AtomicBool, Ordering};

use super::cpu::{counter, cpuid, load, read_msr, store, write_msr};

const BASE: u32 = 0x1B;
const ENABLED: u64 = 1 << 11;
const EXTENDED: u64 = 1 << 10;
const X2APIC: u32 = 0x800;
/// Where the registers of an xAPIC are, 16 bytes apart.
pub const ADDRESS: u64 = 0xFEE0_0000;
/// Registers by their numbers.
pub const ID: u32 = 0x02;
/// Task priority.
pub const TASK_PRIORITY: u32 = 0x08;
/// End of interrupt.
pub const END: u32 = 0x0B;
/// Spurious vector, and the switch of the APIC.
pub const SPURIOUS: u32 = 0x0F;
/// Interrupt command.
pub const COMMAND: u32 = 0x30;
/// The upper half of it in memory.
const COMMAND_HIGH: u32 = 0x31;
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
/// The divider that divides by 1.
const BY_ONE: u64 = 0xB;
/// Leaf 1 of CPUID, ECX: x2APIC; TSC deadline.
const HAS_X2APIC: u32 = 1 << 21;
const HAS_DEADLINE: u32 = 1 << 24;
/// The shorthand for the processor itself in the interrupt command.
const TO_SELF: u32 = 1 << 18;
const IO: u64 = 0xFEC0_0000;

/// The registers are in memory.
static IN_MEMORY: AtomicBool = AtomicBool::new(false);
/// The timer knows TSC deadlines.
static BY_TSC: AtomicBool = AtomicBool::new(false);

fn has(feature: u32) -> bool {
    let [_, _, features, _] = cpuid(1, 0);
    features & feature != 0
}

/// Reads a register.
#[must_use]
pub fn read(register: u32) -> u64 {
    if IN_MEMORY.load(Ordering::Relaxed) {
        load(ADDRESS + u64::from(register) * 16).into()
    } else {
        read_msr(X2APIC + register)
    }
}

/// Writes a register.
pub fn write(register: u32, value: u64) {
    if IN_MEMORY.load(Ordering::Relaxed) {
        store(ADDRESS + u64::from(register) * 16, value as u32);
    } else {
        write_msr(X2APIC + register, value);
    }
}

/// Switches the APIC on, in x2APIC mode if the processor has it.
pub fn enable() {
    let in_memory = !has(HAS_X2APIC);
    IN_MEMORY.store(in_memory, Ordering::Relaxed);
    BY_TSC.store(has(HAS_DEADLINE), Ordering::Relaxed);
    if !in_memory {
        write_msr(BASE, read_msr(BASE) | EXTENDED);
    }
    write(SPURIOUS, 0x1FF);
}

/// Switches the APIC off and on again, with its registers in memory.
pub fn enable_in_memory() {
    let base = read_msr(BASE) & !(ENABLED | EXTENDED);
    write_msr(BASE, base);
    write_msr(BASE, base | ENABLED);
    IN_MEMORY.store(true, Ordering::Relaxed);
    write(SPURIOUS, 0x1FF);
}

/// Lets the timer interrupt with this vector when the counter is at `deadline`; 0 stops it. A processor
/// without a TSC deadline has a timer that counts as fast as the counter: the emulator's does.
pub fn set_deadline(vector: u8, deadline: u64) {
    if BY_TSC.load(Ordering::Relaxed) {
        write(TIMER, BY_DEADLINE | u64::from(vector));
        write_msr(DEADLINE, deadline);
    } else {
        write(TIMER, vector.into());
        write(DIVIDE, BY_ONE);
        write(INITIAL, deadline.saturating_sub(counter()));
    }
}

/// Writes the interrupt command, for processor `target`.
pub fn command(target: u32, command: u32) {
    if IN_MEMORY.load(Ordering::Relaxed) {
        write(COMMAND_HIGH, u64::from(target) << 24);
        write(COMMAND, command.into());
    } else {
        write(COMMAND, u64::from(target) << 32 | u64::from(command));
    }
}

/// Interrupts the processor itself.
pub fn command_self(vector: u8) {
    write(COMMAND, u64::from(TO_SELF | u32::from(vector)));
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
