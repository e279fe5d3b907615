// SPDX-License-Identifier: Apache-2.0
//! The way back from wherever an attack has led.

use crate::cpu::{set_basepri, set_control, set_faultmask, set_primask, store, store_byte};
use crate::targets::{CODE, FAULTS, protect};

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
        (0xE000_ED08, CODE),
        (0xE000_ED0C, 0x05FA_0000),
        (0xE000_ED10, 0),
        (0xE000_ED14, 0x201),
        (0xE000_ED24, FAULTS),
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
    protect();
    set_faultmask(0);
    set_basepri(0);
    set_control(0);
    set_primask(0);
}

/// Allows the next step to take longer than an attack.
pub fn without_end() {
    store(0xE000_E010, 0);
}
