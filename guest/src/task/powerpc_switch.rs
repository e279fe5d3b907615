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

use super::process::{CHOOSER, CHOOSER_STACK, Context, Entry, STACK_OFFSET, Wish, ended, upcall};
use bulkhead_abi::Operation;
use bulkhead_abi::hypercall::{UPCALL_WORDS, function_id};

/// Bytes of the registers on the stack, after a back chain and a word for the LR of a called function.
const SAVED: usize = 112;
/// Bytes of the first frame on a stack (System V ABI, PowerPC supplement, section 3): a function stores LR
/// in the frame of its caller.
const FIRST_FRAME: usize = 16;

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

unsafe extern "C" {
    fn _task_upcall();
    fn _task_begin();
    fn _task_switch(from: *mut Context, to: *mut Context, gate: u32, wish: *const Wish);
    fn _task_resume(context: *mut Context, gate: u32, wish: *const Wish) -> !;
}

/// Returns the first instruction of every upcall.
pub(super) fn upcall_entry() -> u64 {
    _task_upcall as *const () as usize as u64
}

/// Returns a process before its first instruction.
pub(super) fn first_context(entry: Entry, stack_end: usize) -> Context {
    let mut place = [0; UPCALL_WORDS];
    let [pc, _, first, ..] = &mut place;
    *pc = _task_begin as *const () as usize as u64;
    *first = entry as *const () as usize as u64;
    // The stack holds first values of registers that the program writes before it reads them.
    let stack = stack_end - FIRST_FRAME - SAVED;
    Context { place, stack }
}

/// Goes on with a process.
///
/// # Safety
/// The process was saved, or [`first_context`] has made it, and it does not run.
pub(super) unsafe fn resume(context: *mut Context, gate: u32, wish: *const Wish) -> ! {
    // SAFETY: as the caller promises.
    unsafe { _task_resume(context, gate, wish) }
}

/// Saves the caller and goes on with another process.
///
/// # Safety
/// As [`resume`] for `to`; `from` is where the caller is saved, and no saved process is there.
pub(super) unsafe fn switch(from: *mut Context, to: *mut Context, gate: u32, wish: *const Wish) {
    // SAFETY: as the caller promises; the function keeps the registers that a call keeps.
    unsafe { _task_switch(from, to, gate, wish) }
}
