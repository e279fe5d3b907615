// SPDX-License-Identifier: Apache-2.0
//! The ends of a program of a 64-bit CPU, and the instructions that a task makes faults with.

use core::arch::asm;

pub(crate) use crate::vm::psci::system_off as end_vm;

/// Ends the task with a health event of class `task`, unless the health action lets it go on.
pub(crate) fn trap() {
    // SAFETY: BRK only raises an exception, which is not the task's to handle.
    unsafe { asm!("brk #1", options(nomem, nostack)) }
}

/// Executes an instruction that the architecture leaves permanently undefined.
pub fn undefined_instruction() {
    // SAFETY: UDF only raises an exception, which is not the task's to handle.
    unsafe { asm!("udf #0", options(nomem, nostack)) }
}

/// Reads a byte that is not the task's own. Returns if the health action lets it.
pub fn read_foreign(address: u64) -> u8 {
    let value: u32;
    // SAFETY: a load changes no memory; the address is outside the task by the caller's intent, and the
    // worst outcome is the end of the task.
    unsafe { asm!("ldrb {0:w}, [{1}]", out(reg) value, in(reg) address, options(readonly, nostack)) }
    value as u8
}
