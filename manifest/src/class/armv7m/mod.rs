// SPDX-License-Identifier: Apache-2.0
//! Class `armv7m`: nothing is translated, programs are executed where they are linked, and their sensitive
//! instructions are replaced.

mod disassemble;
mod instructions;
mod mask_words;
mod reread;
mod rewrite;

use bulkhead_arch_api::class::ARMV7M;

use super::Host;
use super::microcontroller::Microcontroller;
use crate::driver::{CMSDK_UART, DUAL_TIMER, LAN9118, NVIC};
use crate::in_place::board;
use crate::in_place::protection::Parts;
use crate::in_place::regions::Regions;
use instructions::T32;

/// The answers of the class.
pub(super) const HOST: &dyn Host = &Microcontroller {
    facts: &ARMV7M,
    drivers: &[&CMSDK_UART, &NVIC, &DUAL_TIMER, &LAN9118],
    parts: Parts {
        instructions: Some(&T32),
        protection: &Regions,
    },
    foreign: &[(
        "trusted-dma",
        "no device of these boards accesses memory by itself",
    )],
    reset_alias: None,
    binary_reserve: 104 << 10,
    uart_line: board::console_line,
    settle: |_, _| (),
    check_board: |_, _| (),
    check: |_, _, _| (),
};
