// SPDX-License-Identifier: Apache-2.0
//! The common entry of all exceptions.

use core::arch::global_asm;

// `suite_exception` gets
//   r0  EXC_RETURN
//   r1  address of the exception frame, on whichever stack it is
// and returns in r0 the EXC_RETURN value to leave with.
global_asm!(
    ".section .text.guest_entry, \"ax\"",
    ".global guest_entry",
    ".thumb_func",
    "guest_entry:",
    "tst lr, #4",
    "ite eq",
    "mrseq r1, msp",
    "mrsne r1, psp",
    "push {{r4-r11}}",
    "mov r0, lr",
    "bl suite_exception",
    "pop {{r4-r11}}",
    "bx r0",
    ".ltorg",
    // This code is alone in a region of the memory protection unit, the smallest that there can be.
    ".balign 32",
    ".thumb_func",
    ".global suite_closed_code",
    "suite_closed_code:",
    "bx lr",
    ".balign 32",
);

unsafe extern "C" {
    /// Returns at once. The function has its 32 bytes for itself.
    #[link_name = "suite_closed_code"]
    pub fn closed_code();
}
