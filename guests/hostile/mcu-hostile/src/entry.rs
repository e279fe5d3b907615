// SPDX-License-Identifier: Apache-2.0
//! The handler of every exception.

use core::arch::global_asm;

// Every exception: a fresh main stack with a frame that leads to `hostile_again` in a privileged thread, from
// whichever depth (CCR.NONBASETHRDENA, Arm DDI 0403E.e, B3.2.8). No state of the attack is kept.
global_asm!(
    ".section .text.guest_entry, \"ax\"",
    ".global guest_entry",
    ".thumb_func",
    "guest_entry:",
    "ldr r0, =0xE000ED94",
    "movs r1, #0",
    "str r1, [r0]",
    "ldr r0, =0xE000ED14",
    "movw r1, #0x201",
    "str r1, [r0]",
    "ldr r0, =__main_stack - 32",
    "msr msp, r0",
    "ldr r1, =hostile_again",
    "bic r1, r1, #1",
    "str r1, [r0, #24]",
    "mov.w r1, #0x01000000",
    "str r1, [r0, #28]",
    "movs r1, #0",
    "msr control, r1",
    "isb",
    "mvn lr, #6",
    "bx lr",
    ".ltorg",
);
