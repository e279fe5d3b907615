// SPDX-License-Identifier: Apache-2.0
//! Thin drivers for the physical devices the hypervisor itself uses.
//!
//! A driver is a handful of register accesses over an [`bulkhead_arch_support::Mmio`] window that the
//! backend made; it never waits, except in a `flush` that says how long. Crates of the field are
//! preferred where they are as small as the job; a full UART driver with baud rates, modem lines and
//! embedded-io traits is not.
#![no_std]
#![forbid(unsafe_code)]

pub mod cadence;
pub mod cmsdk;
pub mod lan9118;
pub mod ns16550;
pub mod pl011;
pub mod uart;
