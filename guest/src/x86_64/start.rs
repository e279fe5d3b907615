// SPDX-License-Identifier: Apache-2.0
//! First instructions of a task of class `x86_64`.
//!
//! | register | in | out (to `task_start`) |
//! |---|---|---|
//! | rdi | address of the startup page | unchanged |
//! | rsp | end of the task's memory | aligned as the calling convention wants it |

use core::arch::global_asm;

use crate::task::start::task_start;

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
