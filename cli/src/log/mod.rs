// SPDX-License-Identifier: Apache-2.0
//! The log area of a board: its records, and what they say of a run.

pub mod exits;
pub mod log_area;
pub mod log_files;
pub mod names;
pub mod never_ran;
pub mod objects;
pub mod summary;
