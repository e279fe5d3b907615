// SPDX-License-Identifier: Apache-2.0
//! Regions of the memory protection units of microcontrollers, planned: regions of Armv7-M (PMSAv7; Arm DDI
//! 0403E.e, B3.5), and [`stretches`] of Armv8-M.
//!
//! Model of PMSAv7. A region is a block whose size is a power of two, at a multiple of its size. Each eighth
//! of it can be left out (blocks of 256 bytes and up). Of the regions that cover an address the one with the
//! highest number counts; what none covers is closed to unprivileged code. Partitions run unprivileged
//! always.
//!
//! - [`cover`]: the fewest regions that are exactly a range of memory.
//! - [`plan`]: the regions of a partition, or why they do not fit; [`smallest_fix`]: the smallest change that
//!   makes them fit. The host tool and the backend use the same function, so what was checked is what runs.
//! - [`Combination`]: a partition's regions and those its guest wrote into its own virtual unit: the guest's
//!   can only take rights away. Two blocks are nested or disjoint, so what two regions share is always a
//!   region again.
//!
//! No table, no state: everything is a function of numbers.
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

mod combine;
mod cover;
mod loaded;
mod plan;
mod region;
mod requests;
mod stretches;

pub use combine::{Combination, GuestRegion, GuestView};
pub use cover::{Cover, cover, in_one_region};
pub use loaded::Loaded;
pub use plan::{Fix, Forbidden, Plan, Refusal, Request, plan, smallest_fix};
pub use region::{Memory, Region, Rights, rights_at};
pub use requests::Requests;
pub use stretches::{Stretches, TASK_STRETCHES, Unfit, VM_STRETCHES, stretches};

/// Regions the unit of a supported CPU has, and so the longest plan.
pub const MAX_REGIONS: usize = 8;
/// Ranges a partition may be given: several may share a region, so it is more than there are regions.
pub const MAX_REQUESTS: usize = 24;
/// Size of the smallest region.
pub const SMALLEST: u32 = 32;
