// SPDX-License-Identifier: Apache-2.0
//! The kernel: the rights of partitions, the choice of the vCPU that runs, and the meaning of a failure.
//!
//! The kernel is plain state machines over ids and ticks. Only [`boot`] and [`dispatch`] are generic over a
//! CPU class ([`bulkhead_arch_api::Arch`]). Everything else takes ids, ticks and slices, and is tested as
//! such.
//!
//! A class binary holds one `static` [`Shared`]. It calls [`boot::primary`] on the boot pCPU,
//! [`boot::secondary`] on every other pCPU, and [`boot::abandon`] from its panic handler. That is the whole
//! interface.
//!
//! Invariants: there is no heap, no recursion, and no panic on anything that a partition or an image says.
//! Every loop is bounded by the length of a table. A partition can cause a reply code, a fault in itself or a
//! health event on itself, and nothing else.
#![no_std]
#![forbid(unsafe_code)]
// A build that lacks a part has no use for the part's code.
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports, unused_variables))]
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

// Tests inside the crate use the test bench of the tests outside, which calls the crate by this name.
#[cfg(test)]
extern crate self as bulkhead_kernel;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

pub mod boot;
pub mod cap;
mod channel;
pub mod command;
pub mod console;
pub mod dispatch;
pub mod event;
pub mod flash;
pub mod function;
pub mod health;
pub mod hypercall;
pub mod input;
mod lent;
pub mod load;
pub mod local;
pub mod lock;
pub mod log;
pub mod mailbox;
pub mod network;
mod orders;
mod outcome;
pub mod partition;
mod parts;
mod policy;
pub mod port;
mod port_id;
mod record;
mod secret;
mod semihosting;
mod service;
mod shared;
mod system;
mod table;
mod task_lines;
mod terminal;
pub mod time;
pub mod trace;
mod untold;
mod upcall;
pub mod wait;

/// The type that a class binary gives to [`boot::primary`] to have all policies of the manifest.
pub use bulkhead_sched::AnyPolicy;

pub use boot::Hooks;
pub use log::LogLine;
pub use shared::Shared;
