// SPDX-License-Identifier: Apache-2.0
//! The places in the low memory of a VM that more than one file writes or names.

/// Where the command line is.
pub(super) const COMMAND_LINE: u64 = 0x2_0000;
/// Where the ACPI tables are.
pub(super) const ACPI: u64 = 0xE_0000;
/// The end of memory that old devices leave to software.
pub(super) const LOW_END: u64 = 0x9_FC00;
/// Where programs begin.
pub(super) const HIGH: u64 = 0x10_0000;
