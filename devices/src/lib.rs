// SPDX-License-Identifier: Apache-2.0
//! Virtual devices: what acts like hardware towards a guest, for any CPU.
//!
//! A device is a plain state machine: register accesses and bytes from outside go in, values, bytes and the
//! level of an interrupt line come out. It knows no clock, no address, no partition and no lock; the
//! kernel puts it into a window of a partition's address space and carries out what it decides. That
//! is why every register of every device is tested on the host.
//!
//! Invariants: no panic and no loop on anything a guest writes; reset restores the state of a cold reset.
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

pub mod cmsdk;
pub mod flash;
pub mod ivshmem;
pub mod lan9118;
pub mod nic;
pub mod ns16550;
pub mod pl011;
mod receiver;
pub mod uart;
pub mod virtio_mmio;
