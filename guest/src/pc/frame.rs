// SPDX-License-Identifier: Apache-2.0
//! The frame of an exception of the VM, as the handlers and the attempts at instructions use it.

/// The words that the processor and the stub have pushed.
#[derive(Debug)]
#[repr(C)]
pub struct Frame {
    /// R11 to R8, RDI, RSI, RDX, RCX, RAX.
    registers: [u64; 9],
    /// The vector.
    pub vector: u64,
    /// The error code, 0 if there is none.
    pub code: u64,
    /// The instruction. The handler may change it.
    pub rip: u64,
    cs: u64,
    flags: u64,
    rsp: u64,
    ss: u64,
}
