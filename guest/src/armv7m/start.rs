// SPDX-License-Identifier: Apache-2.0
//! First instructions of a task on a microcontroller.
//!
//! | register | in | out (to `task_start`) |
//! |---|---|---|
//! | r0 | address of the startup page | unchanged |
//! | sp | end of the task's memory | `__stack_top`: the stack lies below everything else, so one that overflows leaves the memory |

use core::arch::global_asm;

use crate::task::start::task_start;

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
