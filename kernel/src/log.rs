// SPDX-License-Identifier: Apache-2.0
//! The hypervisor's own log: its entries, and lines of text for boot and end.
//!
//! An event that comes while partitions run is told as an [`Entry`](bulkhead_abi::log::Entry): facts in
//! numbers, in a bounded number of instructions. `crate::record` keeps the entries, and [`crate::console`]
//! turns them into text when the transmitter has room. Text of the hypervisor's own ([`LogLine`]) is for
//! boot, when no partition loses time, and for the end.

use bulkhead_abi::log::entry::TEXT_LEN;
use bulkhead_abi::log::line::Line;

/// The most bytes of a line.
pub const LINE_LEN: usize = 256;

const _: () = assert!(LINE_LEN.div_ceil(TEXT_LEN) <= bulkhead_abi::log::LINE_ENTRIES);

/// A line under construction.
pub type LogLine = Line<LINE_LEN>;
