// SPDX-License-Identifier: Apache-2.0
//! The device side of virtio 1.x: queues, and back ends for drivers that are not trusted.
//!
//! A [`Server`](server::Server) is one device: the register window of `bulkhead-devices`, its queues and a
//! back end ([`device::Device`]). The window says where a driver has put its queues. The queues turn what is
//! in the driver's memory into [`chain::Chain`]s of segments, and the back end serves one chain after the
//! other.
//!
//! **A hostile driver.** The memory of the driver is reached through [`memory::Memory`] only, which checks
//! each range. The driver may change each byte at each time. So each descriptor is read once, into the
//! chain, and all checks are made of that copy. A chain has at most [`chain::MAX_SEGMENTS`] segments, so
//! a loop of descriptors ends. A driver that breaks a rule gets [`broken::Broken`], and the device demands
//! a reset. It can break its own device, and only that.
//!
//! **Work bounds.** One call serves at most as many chains as its caller allows, each with at most
//! [`chain::MAX_SEGMENTS`] segments.
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

pub mod block;
pub mod broken;
pub mod chain;
pub mod console;
pub mod device;
pub mod entropy;
pub mod memory;
pub mod network;
pub mod numbers;
pub mod packed;
pub mod queue;
pub mod server;
pub mod split;
