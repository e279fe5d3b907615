// SPDX-License-Identifier: Apache-2.0
//! The system image: what a manifest becomes before the board is powered.
//!
//! One header, a directory of tables with fixed-size records, then the payloads. All numbers are
//! little-endian; tables start at multiples of 8, payloads at multiples of 4096. Code that lies elsewhere in
//! code memory (class `armv7m`) has a record with its digest. The hypervisor reads it in place through
//! [`Image`], which exists only for bytes whose format, bounds, references and table digest have been
//! checked, so no later access can fail. The payloads' digests are a second step, [`Image::check_payloads`],
//! because it is the long one.
//!
//! There is exactly one place for every table and payload: where the one before it ends. The directory
//! repeats what follows from the counts, and an image that says otherwise is refused, so every
//! byte of an accepted image is a checked record, a digested payload, or zero.
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

#[cfg(feature = "writer")]
extern crate std;

mod check;
mod claimed;
mod digest;
mod error;
pub mod layout;
mod limits;
mod measure;
mod name;
mod number;
mod reader;
mod refused;
mod span;
mod tables;
mod trust;
#[cfg(feature = "writer")]
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "runs on the host only, on its own data"
)]
mod writer;

#[cfg(feature = "writer")]
pub use check::guards::has_gates;
pub use claimed::claimed_console;
pub use digest::{BLOCK, LANES, Portable, Sha256};
pub use error::{Fault, ImageError, Phrase, Table};
pub use limits::{
    MAX_ALTERNATIVES, MAX_ALTERNATIVES_PER_PARTITION, MAX_CAPABILITIES, MAX_CHANNELS, MAX_CONTROLLERS,
    MAX_DOMAINS, MAX_DOMAINS_PER_PCPU, MAX_DURATION_NS, MAX_FUNCTIONS, MAX_HELD, MAX_INTERRUPTS, MAX_LOADS,
    MAX_LOCKS, MAX_LOOKALIKES, MAX_MAP, MAX_MEMORY, MAX_NICS, MAX_PARTITIONS, MAX_PAYLOADS, MAX_PCPUS,
    MAX_PORT_DEPTH, MAX_PORTS, MAX_REGIONS_PER_PARTITION, MAX_REGISTERS, MAX_RESIDENTS, MAX_SCHEDULES,
    MAX_SCHEDULES_PER_PCPU, MAX_SERVED, MAX_SIDES, MAX_TABLES_LEN, MAX_VCPUS, MAX_VCPUS_PER_PARTITION,
    MAX_VCPUS_PER_PCPU, MAX_VIRTUAL_DEVICES, MAX_WATCHES, MAX_WINDOWS, MAX_WINDOWS_PER_PCPU,
    MESSAGE_HEADER_WORDS, MESSAGE_WORDS, MessageLimits, PAGE_SIZE, PcpuLimits, channel_limits,
};
pub use name::NameError;
pub use reader::{HEADER_LEN, Image, claimed_length};
pub use refused::Refused;
pub use trust::{Open, Trust};
#[cfg(feature = "writer")]
pub use writer::{
    ImageBuilder, Payload, claim_twice, move_base, move_controller, name_policy, need_part, seal,
    set_version, sign_tables,
};
