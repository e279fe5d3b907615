// SPDX-License-Identifier: Apache-2.0
//! The end of a pCPU.

/// Stops this pCPU for good.
pub(crate) fn park() -> ! {
    loop {
        // SAFETY: HLT with interrupts masked changes nothing.
        unsafe { core::arch::asm!("cli", "hlt", options(nomem, nostack)) }
    }
}
