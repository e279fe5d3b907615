// SPDX-License-Identifier: Apache-2.0
//! The context of a process that is saved, as the entry code of each CPU uses it.

use core::cell::UnsafeCell;
use core::mem::offset_of;

use bulkhead_abi::hypercall::UPCALL_WORDS;

/// Bytes of the stack of the chooser.
pub(crate) const CHOOSER_STACK: usize = 16 * 1024;

/// The part of a process that begins with its first instruction.
pub type Entry = extern "C" fn();

/// A process that is saved.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Context {
    /// The place to go on, as the hypervisor reads and writes it.
    pub(crate) place: [u64; UPCALL_WORDS],
    /// Its stack pointer. The registers that are not in `place` are above.
    pub(crate) stack: usize,
}

/// Where the entry code finds the stack pointer.
pub(crate) const STACK_OFFSET: usize = offset_of!(Context, stack);

/// The upcall that a switch asks for.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Wish {
    /// First instruction; 0 for none.
    pub(crate) entry: u64,
    /// Nanoseconds since boot; 0 for never.
    pub(crate) until: u64,
}

#[repr(C, align(16))]
pub(crate) struct Memory<const N: usize>(UnsafeCell<[u8; N]>);

// SAFETY: the memory is only ever used as stacks: each by the one process, or the chooser, that it was given
// to.
unsafe impl<const N: usize> Sync for Memory<N> {}

pub(crate) static CHOOSER: Memory<CHOOSER_STACK> = Memory(UnsafeCell::new([0; CHOOSER_STACK]));
