// SPDX-License-Identifier: Apache-2.0
//! A PowerPC 405: the part of the library that knows the CPU, and its facts.
//!
//! `call` makes hypercalls, `start` has the first instructions of a task, `switch` changes between processes
//! of a task, `console` prints for a VM, and `end` ends a program. Every CPU has these five files with the
//! same names in them.

pub(crate) mod call;
pub(crate) mod console;
pub(crate) mod end;
mod start;
mod switch;

/// Bytes of the registers of a saved process on its stack, after a back chain and a word for the LR of a
/// called function.
pub(crate) const SAVED: usize = 112;
/// Bytes of the first frame on a stack (System V ABI, PowerPC supplement, section 3): a function stores LR
/// in the frame of its caller.
pub(crate) const FIRST_FRAME: usize = 16;
/// Bytes in use on the stack of a new process.
pub(crate) const FIRST_STACK: usize = FIRST_FRAME + SAVED;
/// The state of a new process, in the second word of its place.
pub(crate) const FIRST_STATE: u64 = 0;
/// True if memory is mapped in pages, so that a whole page is the least that can be read.
pub(crate) const HAS_PAGES: bool = true;
/// True if a task keeps the initial values of its variables itself: it has no code memory with a copy.
pub(crate) const KEEPS_VALUES: bool = true;
/// True if the library serves VMs, too.
pub(crate) const HAS_VMS: bool = true;
