// SPDX-License-Identifier: Apache-2.0
//! First instructions of a task on a PowerPC 405, and the instructions it makes faults with.
//!
//! | register | in | out (to `task_start`) |
//! |---|---|---|
//! | r3 | address of the startup page | unchanged |
//! | r1 | a first frame at the end of the task's memory | unchanged |

use core::arch::{asm, global_asm};

use super::start::task_start;

global_asm!(
    ".pushsection .text.start.task, \"ax\", @progbits",
    ".global _task_start",
    "_task_start:",
    "lis 4, __bss_start@ha",
    "addi 4, 4, __bss_start@l",
    "lis 5, __bss_end@ha",
    "addi 5, 5, __bss_end@l",
    "li 6, 0",
    "1: cmplw 4, 5",
    "bge 2f",
    "stw 6, 0(4)",
    "addi 4, 4, 4",
    "b 1b",
    "2: bl {start}",
    ".popsection",
    start = sym task_start,
);

/// Ends the task with a health event of class `task`, unless the health action lets it go on.
pub(super) fn trap() {
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
