// SPDX-License-Identifier: Apache-2.0
//! Class `armv8m`: nothing is translated, and programs are executed where they are linked, as they are. A VM
//! has the whole non-secure world of the processor while it runs.

mod lines;
mod pair;
mod rules;

use bulkhead_arch_api::class::ARMV8M;

use super::Host;
use super::microcontroller::Microcontroller;
use crate::driver::{CMSDK_UART, DUAL_TIMER, IOTKIT_SECURITY, NVIC, SSE200};
use crate::in_place::protection::Parts;
use crate::in_place::stretches::Stretches;

/// The answers of the class.
pub(super) const HOST: &dyn Host = &Microcontroller {
    facts: &ARMV8M,
    drivers: &[&CMSDK_UART, &NVIC, &DUAL_TIMER, &IOTKIT_SECURITY, &SSE200],
    parts: Parts {
        instructions: None,
        protection: &Stretches,
    },
    foreign: &[],
    // The CPU starts in the secure world, with the vectors of the secure name of the same memory (INITSVTOR,
    // Arm ECM0601256, section 3.2). An emulator reads them there before it has loaded anything.
    reset_alias: Some(rules::SECURE),
    binary_reserve: 104 << 10,
    uart_line: lines::uart_line,
    settle: lines::settle,
    check_board: rules::check_board,
    check: |manifest, board, report| {
        rules::check(manifest, board, report);
        lines::check(manifest, board, report);
        pair::check(manifest, report);
    },
};
