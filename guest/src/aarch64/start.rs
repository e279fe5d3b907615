// SPDX-License-Identifier: Apache-2.0
//! First instructions of a task on a 64-bit CPU.
//!
//! | register | in | out (to `task_start`) |
//! |---|---|---|
//! | x0 | address of the startup page | unchanged |
//! | sp | end of the task's memory | unchanged |

use core::arch::global_asm;

use crate::task::start::task_start;

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
