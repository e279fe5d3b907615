// SPDX-License-Identifier: Apache-2.0
//! The switch between processes of a task on a microcontroller. r0 to r9 of a saved process are in its
//! context, or do not count; r4 to r12 and lr are on its stack.
//!
//! | entry | in | out |
//! |---|---|---|
//! | `_task_upcall` | r0 = context of the interrupted process, all others its own | calls `upcall` with r0 |
//! | `_task_switch` | r0 = context to save into, r1 = context to go on with, r2 = gate, r3 = wish | returns when the first goes on |
//! | `_task_resume` | r0 = context, r1 = gate, r2 = wish | does not return |
//! | `_task_begin` | r0 = entry of a process | calls `ended` |

use core::arch::global_asm;

use super::FIRST_STATE;
use crate::task::context::{CHOOSER, CHOOSER_STACK, STACK_OFFSET};
use crate::task::process::{ended, upcall};
use bulkhead_abi::Operation;
use bulkhead_abi::hypercall::function_id;

global_asm!(
    ".pushsection .text.task_switch, \"ax\"",
    ".syntax unified",
    ".thumb",
    ".type _task_upcall, %function",
    ".thumb_func",
    "_task_upcall:",
    "push {{r10, r11, r12, lr}}",
    "mov r1, sp",
    "str r1, [r0, #{stack}]",
    "ldr r1, ={chooser}",
    "ldr r2, ={chooser_size}",
    "add r1, r2",
    "mov sp, r1",
    "bl {upcall}",
    ".type _task_switch, %function",
    ".thumb_func",
    "_task_switch:",
    // r4 to r9 are the caller's, and the place has them.
    "push {{r10, r11, r12, lr}}",
    "mov r12, sp",
    "str r12, [r0, #{stack}]",
    "adr r12, 1f",
    "str r12, [r0]",
    "mov r12, #{thumb}",
    "str r12, [r0, #8]",
    "str r4, [r0, #48]",
    "str r5, [r0, #56]",
    "str r6, [r0, #64]",
    "str r7, [r0, #72]",
    "str r8, [r0, #80]",
    "str r9, [r0, #88]",
    "mov r0, r1",
    "mov r1, r2",
    "mov r2, r3",
    ".type _task_resume, %function",
    ".thumb_func",
    "_task_resume:",
    "ldrd r4, r5, [r2]",
    "ldrd r8, r9, [r2, #8]",
    "mov r2, r0",
    "movs r3, #0",
    "mov r6, r0",
    "movs r7, #0",
    "ldr r0, [r6, #{stack}]",
    "mov sp, r0",
    "pop {{r10, r11, r12, lr}}",
    "ldr r0, =({function})",
    // r1 = gate, r2:r3 = where to go on, r4:r5 = entry, r6:r7 = where to save, r8:r9 = until.
    "svc #0",
    // Only if the hypervisor refused.
    "udf #2",
    ".balign 4",
    "1: bx lr",
    ".type _task_begin, %function",
    ".thumb_func",
    "_task_begin:",
    "blx r0",
    "bl {ended}",
    ".ltorg",
    ".popsection",
    stack = const STACK_OFFSET,
    thumb = const FIRST_STATE,
    chooser = sym CHOOSER,
    chooser_size = const CHOOSER_STACK,
    upcall = sym upcall,
    ended = sym ended,
    function = const function_id(Operation::EventUpcall),
);
