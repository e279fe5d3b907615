// SPDX-License-Identifier: Apache-2.0
//! The way back from wherever an attack has led.

use core::arch::global_asm;

use crate::cpu::{set_basepri, set_control, set_faultmask, set_primask, store, store_byte};

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

const ALL_FAULTS: u32 = 7 << 16;

/// Puts the processor into its state after a reset, as far as a thread can do that.
pub fn restore() {
    set_primask(1);
    // MPU, SysTick, lines, pending states, vector table, configuration.
    for (register, value) in [
        (0xE000_ED94_u32, 0_u32),
        // An attack that does nothing else for a tenth of a millisecond is over.
        (0xE000_E014, 2_500),
        (0xE000_E018, 0),
        (0xE000_E010, 7),
        (0xE000_E180, u32::MAX),
        (0xE000_E280, u32::MAX),
        (0xE000_ED04, 1 << 27 | 1 << 25),
        (0xE000_ED08, crate::targets::CODE),
        (0xE000_ED0C, 0x05FA_0000),
        (0xE000_ED10, 0),
        (0xE000_ED14, 0x201),
        (0xE000_ED24, ALL_FAULTS),
        (0xE000_ED28, u32::MAX),
        (0xE000_ED2C, u32::MAX),
        (0xE000_ED88, 0xF0_0000),
    ] {
        store(register, value);
    }
    for exception in [4, 5, 6, 11, 12, 14] {
        store_byte(0xE000_ED14 + exception, 0x80);
    }
    store_byte(0xE000_ED23, 0);
    set_faultmask(0);
    set_basepri(0);
    set_control(0);
    set_primask(0);
}

/// Allows the next step to take longer than an attack.
pub fn without_end() {
    store(0xE000_E010, 0);
}
