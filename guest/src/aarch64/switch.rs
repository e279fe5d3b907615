// SPDX-License-Identifier: Apache-2.0
//! The switch between processes of a task on a 64-bit CPU. x0 to x9 of a saved process are in its context, or
//! do not count; x10 to x30 are on its stack.
//!
//! | entry | in | out |
//! |---|---|---|
//! | `_task_upcall` | x0 = context of the interrupted process, all others its own | calls `upcall` with x0 |
//! | `_task_switch` | x0 = context to save into, x1 = context to go on with, w2 = gate, x3 = wish | returns when the first goes on |
//! | `_task_resume` | x0 = context, w1 = gate, x2 = wish | does not return |
//! | `_task_begin` | x0 = entry of a process | calls `ended` |

use core::arch::global_asm;

use super::SAVED;
use crate::task::context::{CHOOSER, CHOOSER_STACK, STACK_OFFSET};
use crate::task::process::{ended, upcall};
use bulkhead_abi::Operation;
use bulkhead_abi::hypercall::function_id;

global_asm!(
    ".macro save_registers",
    "sub sp, sp, #{saved}",
    "stp x10, x11, [sp]",
    "stp x12, x13, [sp, #16]",
    "stp x14, x15, [sp, #32]",
    "stp x16, x17, [sp, #48]",
    "stp x18, x19, [sp, #64]",
    "stp x20, x21, [sp, #80]",
    "stp x22, x23, [sp, #96]",
    "stp x24, x25, [sp, #112]",
    "stp x26, x27, [sp, #128]",
    "stp x28, x29, [sp, #144]",
    "str x30, [sp, #160]",
    "mov x9, sp",
    "str x9, [x0, #{stack}]",
    ".endm",
    ".pushsection .text.task_switch, \"ax\"",
    "_task_upcall:",
    "save_registers",
    "adrp x1, {chooser}",
    "add x1, x1, :lo12:{chooser}",
    "add sp, x1, #{chooser_size}",
    "mov x29, xzr",
    "mov x30, xzr",
    "bl {upcall}",
    "_task_switch:",
    "save_registers",
    "adr x9, 1f",
    "stp x9, xzr, [x0]",
    "mov x0, x1",
    "mov w1, w2",
    "mov x2, x3",
    "_task_resume:",
    "ldr x3, [x2]",
    "ldr x5, [x2, #8]",
    "mov x2, x0",
    "mov x4, x0",
    "ldr x9, [x0, #{stack}]",
    "mov sp, x9",
    "ldp x10, x11, [sp]",
    "ldp x12, x13, [sp, #16]",
    "ldp x14, x15, [sp, #32]",
    "ldp x16, x17, [sp, #48]",
    "ldp x18, x19, [sp, #64]",
    "ldp x20, x21, [sp, #80]",
    "ldp x22, x23, [sp, #96]",
    "ldp x24, x25, [sp, #112]",
    "ldp x26, x27, [sp, #128]",
    "ldp x28, x29, [sp, #144]",
    "ldr x30, [sp, #160]",
    "add sp, sp, #{saved}",
    "ldr w0, =({function})",
    // x1 = gate, x2 = where to go on, x3 = entry, x4 = where to save, x5 = until.
    "svc #0",
    // Only if the hypervisor refused.
    "brk #2",
    "1: ret",
    "_task_begin:",
    "blr x0",
    "bl {ended}",
    ".ltorg",
    ".popsection",
    saved = const SAVED,
    stack = const STACK_OFFSET,
    chooser = sym CHOOSER,
    chooser_size = const CHOOSER_STACK,
    upcall = sym upcall,
    ended = sym ended,
    function = const function_id(Operation::EventUpcall),
);
