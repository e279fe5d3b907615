// SPDX-License-Identifier: Apache-2.0
//! The ends of a program of class `x86_64`, and the instructions that a task makes faults with.

use core::arch::asm;

pub(crate) use crate::pc::power_off as end_vm;

/// Ends the task with a health event of class `task`, unless the health action lets it go on.
pub(crate) fn trap() {
    undefined_instruction();
}

/// Executes an instruction that the architecture leaves permanently undefined.
pub fn undefined_instruction() {
    // SAFETY: UD2 only raises an exception, which is not the task's to handle.
    unsafe { asm!("ud2", options(nomem, nostack)) }
}

/// Reads a byte that is not the task's own. Returns if the health action lets it.
pub fn read_foreign(address: u64) -> u8 {
    let value: u8;
    // SAFETY: a load changes no memory; the address is outside the task by the caller's intent, and the
    // worst outcome is the end of the task.
    unsafe { asm!("mov {}, [{}]", out(reg_byte) value, in(reg) address, options(readonly, nostack)) }
    value
}
