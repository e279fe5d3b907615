// SPDX-License-Identifier: Apache-2.0
//! The rules of class `x86_64` that need no register of the CPU: what an instruction that left the guest asks
//! for, what a guest's processor is said to be, and the interrupt controllers and timers of a PC as state
//! machines.
//!
//! | file | holds |
//! |---|---|
//! | `decode` | instructions that access memory, or a control register |
//! | `known` | instructions that were decoded before |
//! | `walk` | the guest's own translation tables |
//! | `cpuid` | the description of the processor that a guest reads |
//! | `lapic`, `ioapic`, `pic` | interrupt controllers |
//! | `pit`, `rtc`, `pm` | timers, the clock, and the end of power |
//! | `time` | units of time |
//!
//! Nothing here panics or loops without a bound on anything that a guest can write.
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

pub mod cpuid;
pub mod decode;
pub mod ioapic;
pub mod known;
pub mod lapic;
pub mod pic;
pub mod pit;
pub mod pm;
pub mod rtc;
pub mod time;
pub mod walk;
