// SPDX-License-Identifier: Apache-2.0
//! The switch between processes of a task of class `x86_64`. RFLAGS, RAX, RCX, RDX, RSI, RDI and R8 to R11 of
//! a saved process are in its context, or do not count; RBX, RBP and R12 to R15 are on its stack, below the
//! red zone (System V ABI, AMD64 supplement, 3.2.2).
//!
//! | entry | in | out |
//! |---|---|---|
//! | `_task_upcall` | rdi = context of the interrupted process, all others its own | calls `upcall` with rdi |
//! | `_task_switch` | rdi = context to save into, rsi = context to go on with, edx = gate, rcx = wish | returns when the first goes on |
//! | `_task_resume` | rdi = context, esi = gate, rdx = wish | does not return |
//! | `_task_begin` | rdi = entry of a process | calls `ended` |

use core::arch::global_asm;

use super::SAVED;
use crate::task::context::{CHOOSER, CHOOSER_STACK, STACK_OFFSET};
use crate::task::process::{ended, upcall};
use bulkhead_abi::Operation;
use bulkhead_abi::hypercall::function_id;

global_asm!(
    ".macro save_registers",
    "lea rsp, [rsp - {saved}]",
    "mov [rsp], rbx",
    "mov [rsp + 8], rbp",
    "mov [rsp + 16], r12",
    "mov [rsp + 24], r13",
    "mov [rsp + 32], r14",
    "mov [rsp + 40], r15",
    "mov [rdi + {stack}], rsp",
    ".endm",
    ".pushsection .text.task_switch, \"ax\"",
    "_task_upcall:",
    "save_registers",
    "lea rsp, [rip + {chooser} + {chooser_size}]",
    "xor ebp, ebp",
    "call {upcall}",
    "ud2",
    "_task_switch:",
    "save_registers",
    "lea rax, [rip + 2f]",
    "mov [rdi], rax",
    "mov qword ptr [rdi + 8], 0",
    "mov rdi, rsi",
    "mov esi, edx",
    "mov rdx, rcx",
    "_task_resume:",
    "mov r8, [rdx + 8]",
    "mov rdx, [rdx]",
    "mov rcx, rdi",
    "mov edi, esi",
    "mov rsi, rcx",
    "mov rsp, [rcx + {stack}]",
    "mov rbx, [rsp]",
    "mov rbp, [rsp + 8]",
    "mov r12, [rsp + 16]",
    "mov r13, [rsp + 24]",
    "mov r14, [rsp + 32]",
    "mov r15, [rsp + 40]",
    "lea rsp, [rsp + {saved}]",
    "mov eax, {function}",
    // rdi = gate, rsi = where to go on, rdx = entry, rcx = where to save, r8 = until.
    "vmmcall",
    // Only if the hypervisor refused.
    "ud2",
    "2: ret",
    "_task_begin:",
    "call rdi",
    "call {ended}",
    "ud2",
    ".popsection",
    saved = const SAVED,
    stack = const STACK_OFFSET,
    chooser = sym CHOOSER,
    chooser_size = const CHOOSER_STACK,
    upcall = sym upcall,
    ended = sym ended,
    function = const function_id(Operation::EventUpcall),
);
