// SPDX-License-Identifier: Apache-2.0
//! The traits of the crate `a653rs`, the Rust interface of ARINC 653 partitions, for partitions on Bulkhead.
//!
//! A partition that is written against `a653rs` names [`Bulkhead`] as its hypervisor and runs unchanged. Its
//! `main` calls `bulkhead_apex::task::run` with the partition's configuration, and the partition
//! itself is the
//! initialisation.
//!
//! Not here: memory blocks, and the services for several cores, which a partition of ours does not have. Of
//! the latter those that `a653rs` asks for answer as a partition with one core does.
#![no_std]
#![deny(missing_docs)]

#[cfg(target_os = "none")]
mod convert;
#[cfg(target_os = "none")]
mod messages;
#[cfg(target_os = "none")]
mod objects;
#[cfg(target_os = "none")]
mod partition;
#[cfg(target_os = "none")]
mod process;

/// The hypervisor, for the partitions of `a653rs`.
#[derive(Clone, Copy, Debug)]
pub struct Bulkhead;
