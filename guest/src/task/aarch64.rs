// SPDX-License-Identifier: Apache-2.0
//! First instructions of a task on a 64-bit CPU, and the instructions it makes faults with.
//!
//! | register | in | out (to `task_start`) |
//! |---|---|---|
//! | x0 | address of the startup page | unchanged |
//! | sp | end of the task's memory | unchanged |

use core::arch::{asm, global_asm};

use super::start::task_start;

global_asm!(
    ".pushsection .text.start.task, \"ax\"",
    ".global _task_start",
    "_task_start:",
    "mov x29, xzr",
    "mov x30, xzr",
    "adrp x1, __bss_start",
    "add x1, x1, :lo12:__bss_start",
    "adrp x2, __bss_end",
    "add x2, x2, :lo12:__bss_end",
    "1: cmp x1, x2",
    "b.hs 2f",
    "stp xzr, xzr, [x1], #16",
    "b 1b",
    "2: bl {start}",
    ".popsection",
    start = sym task_start,
);

/// Ends the task with a health event of class `task`, unless the health action lets it go on.
pub(super) fn trap() {
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
