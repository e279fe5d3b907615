// SPDX-License-Identifier: Apache-2.0
//! The functions and places of the assembly (`entry`) that Rust code calls to run something.

use crate::context::Registers;
use crate::machine::Machine;
use bulkhead_abi::log::Exits;

/// Frames that the Non-secure block has room for, and the bytes of each. Each pCPU has as many.
pub(crate) const FRAMES: usize = 8;
pub(crate) const FRAME_BYTES: usize = 32;

#[expect(
    improper_ctypes,
    reason = "the machine goes through the assembly as an address"
)]
unsafe extern "C" {
    /// Runs with these registers until `on_trap` ends the run. See the table of `entry`.
    pub(crate) fn bulkhead_enter(registers: *mut Registers, machine: *mut Machine, exits: &'static Exits);
    /// Waits for an interrupt.
    pub(crate) fn bulkhead_idle() -> !;
}

unsafe extern "C" {
    /// The instruction in the Non-secure block that ends a handler.
    pub(crate) static bulkhead_other_end: u8;
    /// The one that loads Secure memory.
    pub(crate) static bulkhead_other_fault: u8;
    /// The frames in the block.
    pub(crate) static bulkhead_other_frames: u8;
}
