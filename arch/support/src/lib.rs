// SPDX-License-Identifier: Apache-2.0
//! The unsafe toolbox that every backend shares.
//!
//! Four things a hypervisor cannot say in safe Rust, each with the smallest interface that keeps
//! the rest of a backend honest:
//!
//! - [`Mmio`]: a window of device registers, made once by the code that knows that it is one;
//! - [`ClaimTable`]: static storage whose slots are each handed to exactly one owner at boot;
//! - [`SetOnce`]: a value that is set once at boot, without code to wait for it;
//! - [`physical`]: loads and stores of bus addresses that partitions may change at any moment, which
//!   is why they are never Rust references.
//!
//! and what every backend's end needs: [`crash`], [`tell_panic`], and [`last_words`], which gets a line to
//! the console.
//!
//! It is written to compile and to be tested on the host as well.
#![cfg_attr(not(test), no_std)]

mod claim;
pub mod crash;
mod last_words;
mod mmio;
pub mod physical;
mod set_once;

pub use claim::ClaimTable;
pub use last_words::{last_words, since_boot, tell_panic};
pub use mmio::Mmio;
pub use set_once::SetOnce;

/// Takes one turn of a spin loop: lets the other CPUs go on, on a core with hardware threads and in an
/// emulator.
#[inline]
pub fn relax() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: `yield` is a hint without any other effect (Arm DDI 0487 C6.2.458).
    unsafe {
        core::arch::asm!("yield", options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    core::hint::spin_loop();
}
