// SPDX-License-Identifier: Apache-2.0
//! The ends of a task on a microcontroller, and the instructions that it makes faults with.

use core::arch::asm;

/// Ends a VM. VMs of microcontrollers have runtime libraries of their own, so no code calls it.
pub(crate) fn end_vm() -> ! {
    loop {
        trap();
    }
}

/// Ends the task with a health event of class `task`, unless the health action lets it go on.
pub(crate) fn trap() {
    undefined_instruction();
}

/// Executes an instruction that the architecture leaves permanently undefined.
pub fn undefined_instruction() {
    // SAFETY: UDF only raises an exception, which is not the task's to handle.
    unsafe { asm!("udf #0", options(nomem, nostack)) }
}

/// Reads a byte that is not the task's own. Returns if the health action lets it.
pub fn read_foreign(address: u64) -> u8 {
    let value: u32;
    let address = address as u32;
    // SAFETY: a load changes no memory; the address is outside the task by the caller's intent, and the
    // worst outcome is the end of the task.
    unsafe { asm!("ldrb {0}, [{1}]", out(reg) value, in(reg) address, options(readonly, nostack)) }
    value as u8
}
