// SPDX-License-Identifier: Apache-2.0
//! Interrupts that wake the CPU and do no more.
//!
//! With PRIMASK set, WFI ends when an enabled interrupt is pending, and no handler runs (Arm DDI 0403E,
//! B1.5.19).

use crate::interrupts::{Line, enable};
use cortex_m::peripheral::NVIC;

/// An interrupt that is enabled while PRIMASK is set.
#[derive(Debug)]
pub struct Wake(Line);

impl Wake {
    /// Enables the line and masks interrupts: from here on no handler runs, not even the one of SysTick.
    #[must_use]
    pub fn by(line: Line) -> Self {
        cortex_m::interrupt::disable();
        enable(line);
        Self(line)
    }

    /// Sleeps until the line interrupts, or has since the last call.
    pub fn wait(&self) {
        cortex_m::asm::wfi();
        NVIC::unpend(self.0);
    }
}
