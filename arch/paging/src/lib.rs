// SPDX-License-Identifier: Apache-2.0
//! Translation tables as radix trees: one algorithm for every CPU whose tables have 512 entries of 64 bits.
//!
//! [`Tree`] maps, protects and translates. It is generic over two things. A [`Format`] knows the bits of an
//! entry (stage 2 and EL2 stage 1 of the Armv8-A VMSA here, [`vmsa`]). A [`TableMemory`] knows how to read
//! and write an entry, where new tables come from, and how to make the CPUs forget an entry. So the algorithm
//! runs unchanged on a `Vec` in the tests and on physical memory in a backend, and it needs no unsafe code.
//!
//! Invariants:
//! - A mapping is made of the largest blocks that its alignment allows.
//! - A valid entry is never changed into another valid entry, but for its rights, and the CPUs forget it then
//!   (Arm DDI 0487 chapter D8, "Using break-before-make when updating translation table entries").
//! - A table is complete before the entry that leads to it is written.
//! - Tables are never given back: a mapping that is taken apart at run time leaves its tables where they are.
//!
//! No recursion: every step walks down from the root, four reads at most, because a loop whose bound can be
//! read off the size of the region is worth more than the reads it saves.
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

mod estimate;
mod format;
mod geometry;
pub mod long_mode;
mod memory;
mod tree;
pub mod vmsa;

/// The most tables of the hypervisor's own translation on class `aarch64`, the root included.
pub const OWN_TABLES_AARCH64: usize = 32;
/// The most tables of the hypervisor's own translation on class `x86_64`, the root included.
pub const OWN_TABLES_X86_64: usize = 40;

pub use estimate::tables_needed;
pub use format::{Attributes, Entry, Format};
pub use geometry::{ENTRIES, Geometry, GeometryError, LAST_LEVEL, PAGE_SIZE, span_of};
pub use memory::TableMemory;
pub use tree::{MapError, Mapping, Translation, Tree};
