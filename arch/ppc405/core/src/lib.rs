// SPDX-License-Identifier: Apache-2.0
//! The behaviour of a PowerPC 405, as far as a guest in problem state cannot have it from the CPU itself.
//!
//! The CPU has no support for virtual machines. A guest always runs in problem state with both translations
//! on. Each of its privileged instructions is a program interrupt, and the code here says what a processor of
//! its own would have done. Nothing here needs a register of the real CPU, so the host tests all of it.
//!
//! - [`decode`]: the privileged instructions. [`emulate`]: the effect of each of them.
//! - [`registers`]: the guest's processor. [`tlb`], [`mmu`]: its memory management unit. [`timers`], [`uic`]:
//!   its timers and its interrupt controller. [`exception`]: its interrupts.
//! - [`fill`]: the entry of the real translation buffer that a translation of the guest becomes.
//! - [`transfer`]: loads and stores that no memory answers. [`hypercall`]: calls of the hypervisor.
//!
//! References are to the PowerPC 405 Embedded Processor Core User's Manual (SA14-2339-04) and to the
//! PPC405EP User's Manual, here and everywhere in this class.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod decode;
pub mod emulate;
pub mod exception;
pub mod fill;
pub mod hypercall;
pub mod mmu;
pub mod registers;
pub mod timers;
pub mod tlb;
pub mod transfer;
pub mod uic;
