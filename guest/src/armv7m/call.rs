// SPDX-License-Identifier: Apache-2.0
//! Hypercalls of a task on a microcontroller: `SVC #0`, twelve registers in, ten out.
//!
//! The compiler keeps r6 and r7 for itself, so they are not operands of inline assembly, and all twelve go
//! through memory.
//!
//! | register | at `bulkhead_supervisor_call` |
//! |---|---|
//! | r0 | address of twelve words: r0 to r11 of the call, and after it |

use core::arch::global_asm;

/// Words of r0 to r11.
const REGISTERS: usize = 12;

global_asm!(
    ".pushsection .text.supervisor_call, \"ax\"",
    ".syntax unified",
    ".thumb",
    ".global bulkhead_supervisor_call",
    ".type bulkhead_supervisor_call, %function",
    ".thumb_func",
    "bulkhead_supervisor_call:",
    "push {{r4-r11, lr}}",
    "mov r12, r0",
    "ldmia r12, {{r0-r11}}",
    "svc #0",
    "stmia r12, {{r0-r11}}",
    "pop {{r4-r11, pc}}",
    ".popsection",
);

unsafe extern "C" {
    fn bulkhead_supervisor_call(registers: *mut [u32; REGISTERS]);
}

/// Makes a call with `identifier` in r0, the first argument in r1, the others in pairs from r2 on; returns r0
/// (as a signed number) and the pairs r2:r3 to r8:r9.
pub(crate) fn call(identifier: u64, arguments: [u64; 6]) -> [u64; 5] {
    let [capability, pairs @ ..] = arguments;
    let mut registers = [0; REGISTERS];
    registers[0] = identifier as u32;
    // A capability that does not fit names none, as on a CPU with longer registers.
    registers[1] = u32::try_from(capability).unwrap_or(u32::MAX);
    for (words, value) in registers[2..].chunks_exact_mut(2).zip(pairs) {
        words[0] = value as u32;
        words[1] = (value >> 32) as u32;
    }
    // SAFETY: the function reads and writes the twelve words and nothing else; the hypervisor changes r0 to
    // r9 only, and no memory of ours (head of `bulkhead-abi`).
    unsafe { bulkhead_supervisor_call(&raw mut registers) }
    let pair = |low: usize| u64::from(registers[low]) | u64::from(registers[low + 1]) << 32;
    let status = i64::from(registers[0].cast_signed()).cast_unsigned();
    [status, pair(2), pair(4), pair(6), pair(8)]
}
