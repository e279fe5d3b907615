// SPDX-License-Identifier: Apache-2.0
//! The handler of every exception.

use core::arch::global_asm;

// A fresh main stack without a limit, with a frame that leads to `hostile_again` in a privileged thread,
// from any depth. No state of the attack is kept. The encodings are MSR of MSPLIM and PSPLIM, which an
// assembler for Armv7-M does not know. EXC_RETURN is for a frame of the Non-secure main stack without
// floating point. If an attack has left a value in `hostile_return`, the handler ends with that value.
global_asm!(
    ".section .text.guest_entry, \"ax\"",
    ".global guest_entry",
    ".thumb_func",
    "guest_entry:",
    "movs r1, #0",
    ".inst.w 0xf381880a",
    ".inst.w 0xf381880b",
    "ldr r0, =0xE000ED94",
    "str r1, [r0]",
    "ldr r0, =hostile_return",
    "ldr r2, [r0]",
    "str r1, [r0]",
    "cbz r2, 1f",
    "bx r2",
    "1: ldr r0, =__main_stack - 32",
    "msr msp, r0",
    "ldr r1, =hostile_again",
    "bic r1, r1, #1",
    "str r1, [r0, #24]",
    "mov.w r1, #0x01000000",
    "str r1, [r0, #28]",
    "movs r1, #0",
    "msr control, r1",
    "isb",
    "mvn lr, #0x47",
    "bx lr",
    ".ltorg",
    ".section .bss.hostile_return, \"aw\", %nobits",
    ".balign 4",
    ".global hostile_return",
    "hostile_return: .space 4",
);
