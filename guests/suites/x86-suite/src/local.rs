// SPDX-License-Identifier: Apache-2.0
//! Registers of the local APIC: priorities, and bits and registers that are not there.

use crate::taken;
use bulkhead_guest::pc::{apic, attempt, cpu};
use bulkhead_guest::println;

const BASE: u32 = 0x1B;
/// Address and switch of the local APIC.
const PLACE: u64 = 0xFEE0_0800;
/// x2APIC: the first register, and its bit of leaf 1, ECX.
const X2APIC: u32 = 0x800;
const HAS_X2APIC: u32 = 1 << 21;
const PROTECTION: u8 = 13;
const VERSION: u32 = 0x03;
const LOGICAL: u32 = 0x0D;
const ERROR: u32 = 0x28;
const LINT1: u32 = 0x36;
const ERROR_VECTOR: u32 = 0x37;
/// Registers that no local APIC of the time has. A store to the first one would be a message on a bare PC.
const RESERVED: [u32; 4] = [0x04, 0x0C, 0x2A, 0x3F];
const VECTOR: u8 = 0x52;

/// Looks at what a PC starts with, before anything is changed.
pub(crate) fn at_reset() {
    println!("local: base {:#x}", cpu::read_msr(BASE));
    for register in [apic::ID, VERSION, apic::TASK_PRIORITY, LOGICAL, apic::TIMER] {
        println!("local: {register:#x} is {:#x}", load(register));
    }
    let written = attempt::write_msr(BASE, PLACE);
    println!("base without BSP: {written:?}, {:#x}", cpu::read_msr(BASE));
}

/// Loads a register in memory.
fn load(register: u32) -> u32 {
    cpu::load(apic::ADDRESS + u64::from(register) * 16)
}

fn store(register: u32, value: u32) {
    cpu::store(apic::ADDRESS + u64::from(register) * 16, value);
}

/// Shows that a vector stays pending while its class is not above the task priority.
pub(crate) fn priorities() {
    for above in [0x60, 0x50, 0x52, 0x4F, 0x40] {
        apic::write(apic::TASK_PRIORITY, above);
        apic::command_self(VECTOR);
        cpu::open();
        let held = taken();
        apic::write(apic::TASK_PRIORITY, 0);
        cpu::open();
        println!("priority {above:#x}: {held} taken, then {}", taken());
    }
    for above in [6, 5, 4] {
        let _set = attempt::write_control(8, above);
        apic::command_self(VECTOR);
        cpu::open();
        let held = taken();
        let _set = attempt::write_control(8, 0);
        cpu::open();
        println!("CR8 {above}: {held} taken, then {}", taken());
    }
    println!("CR8 16: {:?}", attempt::write_control(8, 16));
}

/// Looks at accesses that a local APIC refuses or ignores.
pub(crate) fn registers() {
    println!("x2APIC: {} wrong", if has_extended() { extended() } else { 0 });
    if has_extended() {
        apic::enable_in_memory();
    }
    for register in RESERVED {
        store(ERROR, 0);
        let value = load(register);
        store(ERROR, 0);
        let loaded = load(ERROR);
        store(register, 0xFFFF_FFFF);
        store(ERROR, 0);
        println!(
            "reserved {register:#x}: {value:#x}, ESR {loaded:#x}, {:#x}",
            load(ERROR)
        );
    }
    if has_extended() {
        apic::enable();
    }
}

fn has_extended() -> bool {
    let [_, _, features, _] = cpu::cpuid(1, 0);
    features & HAS_X2APIC != 0
}

/// Returns how many accesses to x2APIC are not answered as Intel's manual says (SDM 3A, 11.12.1): #GP for
/// registers that are not there, for stores to those that can only be read, and for reserved bits.
fn extended() -> u32 {
    let refused = [
        (apic::END, 5),
        (apic::TASK_PRIORITY, 0x100),
        (apic::ID, 0),
        (VERSION, 0),
        (0x0A, 0),
        (LOGICAL, 0),
        (0x0E, u64::from(u32::MAX)),
        (apic::SPURIOUS, 0x1_01FF),
        (0x10, 0),
        (0x27, 0),
        (ERROR, 1),
        (0x31, 0),
        (apic::TIMER, 0x8_0040),
        (LINT1, 1 << 32),
        (ERROR_VECTOR, 0x1_0700),
        (apic::INITIAL, 1 << 32),
        (0x39, 0),
        (apic::DIVIDE, 4),
        (apic::SELF, 0x140),
        (0x04, 0),
        (0x40, 0),
    ];
    let mut wrong = 0;
    for (register, value) in refused {
        if attempt::write_msr(X2APIC + register, value) != Err(PROTECTION) {
            println!("x2APIC: store of {value:#x} to {register:#x} is taken");
            wrong += 1;
        }
    }
    // The end of interrupt and the interrupt for itself can only be written.
    for register in [apic::END, apic::SELF, 0x0E, 0x31, 0x04, 0x40, 0xFF] {
        if attempt::read_msr(X2APIC + register) != Err(PROTECTION) {
            println!("x2APIC: load of {register:#x} is answered");
            wrong += 1;
        }
    }
    for (register, value) in [
        (apic::END, 0),
        (apic::TASK_PRIORITY, 0x35),
        (apic::TASK_PRIORITY, 0),
        (ERROR, 0),
    ] {
        wrong += u32::from(attempt::write_msr(X2APIC + register, value).is_err());
    }
    wrong
}
