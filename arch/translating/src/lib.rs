// SPDX-License-Identifier: Apache-2.0
//! The halves that backends of classes share whose hardware translates addresses: `aarch64` and `x86_64`.
//!
//! Their class binaries have the same parts in the same order ([`layout`]). Their hypervisor has
//! translation tables of its own, which are filled in the same steps ([`own_map`]), and their partitions have
//! trees of tables, which are built and read the same way ([`space`]). Their CPUs predict branches
//! ([`Predictions`]). The bits of an entry, the barriers
//! around a store to it and the registers that lead to a tree stay in each backend.
#![no_std]

pub mod layout;
mod log;
pub mod own_map;
mod predictions;
mod relax;
pub mod space;

pub use log::log_area;
pub use predictions::Predictions;
pub use relax::Relax;
