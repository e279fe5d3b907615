// SPDX-License-Identifier: Apache-2.0
//! Rules of class `armv8m` that need no register of the CPU, tested on the host.
//!
//! - [`Stretches`]: the memory and devices of a partition, as the security attribution unit and the memory
//!   protection unit want them.
//! - [`blocks`]: the same as blocks of a memory protection controller.
//! - [`Transfer`](transfer::Transfer): the load or store that a virtual device answers.
//! - [`unwind`]: frames that lead out of the handlers of a VM, so that another VM can run.
//! - [`status`]: the causes of a SecureFault.
//!
//! References are to the Armv8-M Architecture Reference Manual, Arm DDI 0553B.
#![no_std]
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

pub mod blocks;
pub mod status;
mod stretches;
pub mod transfer;
pub mod unwind;

pub use stretches::{MAX_STRETCHES, Stretch, Stretches};
