// SPDX-License-Identifier: Apache-2.0
//! A microcontroller (Armv7-M): the part of the library that knows the CPU, and its facts.
//!
//! `call` makes hypercalls, `start` has the first instructions of a task, `switch` changes between processes
//! of a task, `console` prints for a VM, and `end` ends a program. Every CPU has these five files with the
//! same names in them.

pub(crate) mod call;
pub(crate) mod console;
pub(crate) mod end;
mod start;
mod switch;

/// Bytes of the registers of a saved process on its stack.
pub(crate) const SAVED: usize = 16;
/// Bytes in use on the stack of a new process.
pub(crate) const FIRST_STACK: usize = SAVED;
/// The state of a new process, xPSR.T: every instruction is a Thumb one.
pub(crate) const FIRST_STATE: u64 = 1 << 24;
/// True if memory is mapped in pages, so that a whole page is the least that can be read.
pub(crate) const HAS_PAGES: bool = false;
/// True if a task keeps the initial values of its variables itself: it has no code memory with a copy.
pub(crate) const KEEPS_VALUES: bool = false;
/// True if the library serves VMs, too.
pub(crate) const HAS_VMS: bool = false;
