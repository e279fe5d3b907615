// SPDX-License-Identifier: Apache-2.0
//! Places: the addresses and lines that a manifest leaves open.
//!
//! [`channels`], [`lending`] and [`services`] choose what a partition sees, before its memory is built.
//! [`memory`] finds the places on the board, when the memory of all partitions is known.
#![deny(clippy::arithmetic_side_effects)]

pub(crate) mod channels;
pub(crate) mod lending;
pub(crate) mod memory;
pub(crate) mod services;
