// SPDX-License-Identifier: Apache-2.0
//! The system image: what a manifest becomes before the board is powered.
//!
//! One header, a directory of tables with fixed-size records, then the payloads. All numbers are
//! little-endian; tables start at multiples of 8, payloads at multiples of 4096. The hypervisor reads
//! it in place through [`Image`], which exists only for bytes whose format, bounds, references and
//! digests have been checked, so no later access can fail.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "writer")]
extern crate std;

pub mod layout;
