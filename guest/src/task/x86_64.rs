// SPDX-License-Identifier: Apache-2.0
//! First instructions of a task of class `x86_64`, and the instructions it makes faults with.
//!
//! | register | in | out (to `task_start`) |
//! |---|---|---|
//! | rdi | address of the startup page | unchanged |
//! | rsp | end of the task's memory | aligned as the calling convention wants it |

use core::arch::{asm, global_asm};

use super::start::task_start;

global_asm!(
    ".pushsection .text.start.task, \"ax\"",
    ".global _task_start",
    "_task_start:",
    "xor ebp, ebp",
    "mov rdx, rdi",
    "lea rdi, [rip + __bss_start]",
    "lea rcx, [rip + __bss_end]",
    "sub rcx, rdi",
    "xor eax, eax",
    "rep stosb",
    "mov rdi, rdx",
    "and rsp, -16",
    "call {start}",
    "ud2",
    ".popsection",
    start = sym task_start,
);

/// Ends the task with a health event of class `task`, unless the health action lets it go on.
pub(super) fn trap() {
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
