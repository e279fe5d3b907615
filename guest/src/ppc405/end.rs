// SPDX-License-Identifier: Apache-2.0
//! The ends of a program of a PowerPC 405, and the instructions that a task makes faults with.

use core::arch::asm;

use super::call::call;
use bulkhead_abi::Operation;
use bulkhead_abi::hypercall::{SELF_CAPABILITY, function_id};

/// Ends the program: the partition stops itself. The bare board is reset, which an emulator takes for the
/// end.
pub fn end_vm() -> ! {
    let own = [u64::from(SELF_CAPABILITY), 0, 0, 0, 0, 0];
    call(u64::from(function_id(Operation::PartitionStop)), own);
    loop {
        // SAFETY: DBCR0 = system reset (User's Manual, section 8.5.1).
        unsafe { asm!("mtspr 1010, {}", in(reg) 0x3000_0000_u32, options(nomem, nostack)) }
    }
}

/// Ends the task with a health event of class `task`, unless the health action lets it go on.
pub(crate) fn trap() {
    // SAFETY: a trap instruction only raises an interrupt, which is not the task's to handle.
    unsafe { asm!("trap", options(nomem, nostack)) }
}

/// Executes an instruction that the architecture leaves undefined.
pub fn undefined_instruction() {
    // SAFETY: the word 0 only raises an interrupt, which is not the task's to handle.
    unsafe { asm!(".long 0", options(nomem, nostack)) }
}

/// Reads a byte that is not the task's own. Returns if the health action lets it.
pub fn read_foreign(address: u64) -> u8 {
    let value: u32;
    let address = address as u32;
    // SAFETY: a load changes no memory; the address is outside the task by the caller's intent, and the
    // worst outcome is the end of the task.
    unsafe { asm!("lbz {0}, 0({1})", out(reg) value, in(reg_nonzero) address, options(readonly, nostack)) }
    value as u8
}
