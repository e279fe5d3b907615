// SPDX-License-Identifier: Apache-2.0
//! The kernel: who may, who runs, what a failure means.
//!
//! Plain state machines over ids and ticks. Only [`boot`] and [`dispatch`] are generic over a CPU class
//! ([`bulkhead_arch_api::Arch`]); everything else takes ids, ticks and slices and is tested as such.
//!
//! A class binary holds one `static` [`Shared`], and calls [`boot::primary`] on the boot pCPU,
//! [`boot::secondary`] on every other, and [`boot::abandon`] from its panic handler. That is the whole
//! interface.
//!
//! Invariants: no heap, no recursion, no panic on anything a partition or an image says; every loop is
//! bounded by the length of a table; a partition can cause a reply code, a fault in itself or a
//! health event on itself, nothing else.
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

#[cfg(test)]
extern crate std;

pub mod boot;
pub mod cap;
pub mod console;
pub mod dispatch;
pub mod event;
pub mod health;
pub mod hypercall;
pub mod input;
pub mod load;
pub mod local;
pub mod log;
pub mod mailbox;
pub mod network;
pub mod partition;
mod policy;
mod record;
mod shared;
mod system;
mod table;
mod terminal;
pub mod time;
pub mod trace;

/// What a class binary gives [`boot::primary`] to have all policies of the manifest.
pub use bulkhead_sched::AnyPolicy;

pub use boot::Hooks;
pub use log::Line;
pub use shared::Shared;
