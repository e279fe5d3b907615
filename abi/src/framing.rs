// SPDX-License-Identifier: Apache-2.0
//! Console framing: how many consoles share one serial line.
//!
//! Every line (and every switch of console within a line) starts with a tag that reads well without
//! any tool and cannot be forged by a partition, because the control bytes are escaped in its output:
//!
//! ```text
//! RS ["\r\n"] "[" seconds "." microseconds "] " name ": " US text...
//! ```
//!
//! `RS` is 0x1E, `US` is 0x1F. A "\r\n" right after `RS` only ends the unfinished line of another console for
//! human readers; it belongs to the tag, not to any console. If the tag names the console whose line it
//! breaks, that line ends there: these are last words. In text, the bytes RS, US and DLE (0x10) are sent as
//! DLE followed by the byte exclusive-or 0x40. The hypervisor's own log is the console named
//! [`HYPERVISOR_CONSOLE`].
//!
//! The hypervisor's last words, when it crashes, may have no time: `RS "\r\n" "bulkhead: " US text`.
//!
//! In the other direction `RS name US` directs the following input bytes to that console; the same
//! escape applies.

/// Starts a tag.
pub const RS: u8 = 0x1E;
/// Ends a tag.
pub const US: u8 = 0x1F;
/// Escapes a control byte in text: the next byte is exclusive-or [`ESCAPE_MASK`].
pub const DLE: u8 = 0x10;
/// Mask of an escaped byte.
pub const ESCAPE_MASK: u8 = 0x40;
/// Name of the hypervisor's own console; no partition can have it.
pub const HYPERVISOR_CONSOLE: &str = "bulkhead";

/// Tells whether `byte` must be escaped in text.
#[must_use]
pub const fn needs_escape(byte: u8) -> bool {
    matches!(byte, RS | US | DLE)
}
