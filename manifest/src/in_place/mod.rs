// SPDX-License-Identifier: Apache-2.0
//! Code in place: a class that translates no address executes code where it is linked.
//!
//! [`firmware`] takes a program apart, and lets the [`Instructions`](section::Instructions) of the class
//! replace what does not trap. [`vm`] and [`task`] build the memory of a partition of it. [`places`] checks
//! that the memory of all partitions is apart, and [`regions`] that the MPU has enough regions for each.
//!
//! Nothing here is about one class. A class of microcontrollers gives its instructions and its own rules.

pub(crate) mod firmware;
pub(crate) mod memory;
pub(crate) mod places;
pub(crate) mod regions;
pub(crate) mod section;
pub(crate) mod task;
mod untold;
pub(crate) mod vm;
