// SPDX-License-Identifier: Apache-2.0
//! The switch between processes of a task on a PowerPC 405. CR, r0 and r3 to r11 of a saved process are in
//! its context, or do not count; r2, r12 to r31, LR, CTR and XER are on its stack.
//!
//! | entry | in | out |
//! |---|---|---|
//! | `_task_upcall` | r3 = context of the interrupted process, all others its own | calls `upcall` with r3 |
//! | `_task_switch` | r3 = context to save into, r4 = context to go on with, r5 = gate, r6 = wish | returns when the first goes on |
//! | `_task_resume` | r3 = context, r4 = gate, r5 = wish | does not return |
//! | `_task_begin` | r3 = entry of a process | calls `ended` |

use core::arch::global_asm;

use super::{FIRST_FRAME, SAVED};
use crate::task::context::{CHOOSER, CHOOSER_STACK, STACK_OFFSET};
use crate::task::process::{ended, upcall};
use bulkhead_abi::Operation;
use bulkhead_abi::hypercall::function_id;

global_asm!(
    ".macro save_registers",
    "stwu 1, -{saved}(1)",
    "stmw 12, 32(1)",
    "mflr 12",
    "stw 2, 8(1)",
    "stw 12, 12(1)",
    "mfctr 12",
    "stw 12, 16(1)",
    "mfxer 12",
    "stw 12, 20(1)",
    "stw 1, {stack}(3)",
    ".endm",
    ".pushsection .text.task_switch, \"ax\", @progbits",
    "_task_upcall:",
    "save_registers",
    "lis 4, {chooser}@ha",
    "addi 4, 4, {chooser}@l",
    "addi 1, 4, {chooser_size} - {first_frame}",
    "li 4, 0",
    "stw 4, 0(1)",
    "bl {upcall}",
    "_task_switch:",
    "save_registers",
    "lis 12, 1f@ha",
    "addi 12, 12, 1f@l",
    "li 11, 0",
    "mfcr 10",
    "stw 11, 0(3)",
    "stw 12, 4(3)",
    "stw 11, 8(3)",
    "stw 10, 12(3)",
    "mr 3, 4",
    "mr 4, 5",
    "mr 5, 6",
    "_task_resume:",
    "lwz 6, 0(5)",
    "lwz 7, 4(5)",
    "lwz 10, 8(5)",
    "lwz 11, 12(5)",
    "li 8, 0",
    "mr 9, 3",
    "mr 5, 3",
    "mr 3, 4",
    "li 4, 0",
    "lwz 1, {stack}(5)",
    "lwz 0, 12(1)",
    "mtlr 0",
    "lwz 0, 16(1)",
    "mtctr 0",
    "lwz 0, 20(1)",
    "mtxer 0",
    "lwz 2, 8(1)",
    "lmw 12, 32(1)",
    "addi 1, 1, {saved}",
    "lis 0, {function_high}",
    "ori 0, 0, {function_low}",
    // r3 = gate, r4:r5 = where to go on, r6:r7 = entry, r8:r9 = where to save, r10:r11 = until.
    "sc",
    // Only if the hypervisor refused.
    "trap",
    "1: blr",
    "_task_begin:",
    "mtctr 3",
    "bctrl",
    "bl {ended}",
    ".popsection",
    saved = const SAVED,
    first_frame = const FIRST_FRAME,
    stack = const STACK_OFFSET,
    chooser = sym CHOOSER,
    chooser_size = const CHOOSER_STACK,
    upcall = sym upcall,
    ended = sym ended,
    function_high = const function_id(Operation::EventUpcall) >> 16,
    function_low = const function_id(Operation::EventUpcall) & 0xFFFF,
);
