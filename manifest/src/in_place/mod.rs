// SPDX-License-Identifier: Apache-2.0
//! Code in place: a class that translates no address executes code where it is linked.
//!
//! [`board`] has the memory of a board, [`rules`] the rules for a manifest, and [`flash`] the flashable file.
//!
//! [`program`] reads the file of a program: [`firmware`] takes an ELF file apart, and [`flat`] the files
//! that have no program headers. Both let the [`Instructions`](section::Instructions) of the class replace
//! what does not trap. [`moved`] moves a position-independent program. [`vm`] and [`task`] build the memory
//! of a partition of it. [`places`] checks that the memory of all partitions is apart. The
//! [`Protection`](protection::Protection) of the class says what memory a partition can have, and whether
//! there is enough of the hardware: [`regions`] for Armv7-M, [`stretches`] for Armv8-M.

pub(crate) mod board;
pub(crate) mod firmware;
pub(crate) mod flash;
mod flat;
pub(crate) mod memory;
mod moved;
pub(crate) mod places;
mod program;
pub(crate) mod protection;
pub(crate) mod regions;
pub(crate) mod rules;
pub(crate) mod section;
pub(crate) mod stretches;
pub(crate) mod task;
mod untold;
pub(crate) mod vm;
