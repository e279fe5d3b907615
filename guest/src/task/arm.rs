// SPDX-License-Identifier: Apache-2.0
//! First instructions of a task on a microcontroller, and the instructions it makes faults with.
//!
//! | register | in | out (to `task_start`) |
//! |---|---|---|
//! | r0 | address of the startup page | unchanged |
//! | sp | end of the task's memory | `__stack_top`: the stack lies below everything else, so one that overflows leaves the memory |

use core::arch::{asm, global_asm};

use super::start::task_start;

global_asm!(
    ".pushsection .text.start.task, \"ax\"",
    ".syntax unified",
    ".thumb",
    ".global _task_start",
    ".type _task_start, %function",
    ".thumb_func",
    "_task_start:",
    "ldr r1, =__stack_top",
    "mov sp, r1",
    "ldr r1, =__data_start",
    "ldr r2, =__data_end",
    "ldr r3, =__data_load",
    "1: cmp r1, r2",
    "ittt lo",
    "ldrlo r4, [r3], #4",
    "strlo r4, [r1], #4",
    "blo 1b",
    "ldr r1, =__bss_start",
    "ldr r2, =__bss_end",
    "movs r3, #0",
    "2: cmp r1, r2",
    "itt lo",
    "strlo r3, [r1], #4",
    "blo 2b",
    "bl {start}",
    ".ltorg",
    ".popsection",
    start = sym task_start,
);

/// Ends the task with a health event of class `task`, unless the health action lets it go on.
pub(super) fn trap() {
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
