// SPDX-License-Identifier: Apache-2.0
//! First instructions of a task on a PowerPC 405.
//!
//! | register | in | out (to `task_start`) |
//! |---|---|---|
//! | r3 | address of the startup page | unchanged |
//! | r1 | a first frame at the end of the task's memory | unchanged |

use core::arch::global_asm;

use crate::task::start::task_start;

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
