// SPDX-License-Identifier: Apache-2.0
//! The record that a crash leaves in the log area.

use bulkhead_abi::log::{Area, Crash, STACK_WORDS};
use core::sync::atomic::Ordering;

/// The facts of a crash besides its message.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// `CRASH_*`.
    pub kind: u32,
    /// The pCPU, or `NONE`.
    pub pcpu: u32,
    /// The board's counter, or 0. It is read late, so that the value needs no room on the stack meanwhile.
    pub counter: fn() -> u64,
    /// The address at which the class binary runs, if that is not the address that it is linked to.
    pub base: u64,
}

/// Makes a crash record. `details` adds everything that is known besides the message. `keep` gets what was
/// written out of the caches: all of it first, then the word that makes it complete.
#[inline(always)]
pub fn leave(area: &Area, origin: &Origin, message: &[u8], details: impl FnOnce(&Crash), keep: impl Fn()) {
    area.make_if_invalid();
    area.crash
        .begin(origin.kind, origin.pcpu, (origin.counter)(), message);
    area.crash.base.store(origin.base, Ordering::Relaxed);
    details(&area.crash);
    keep();
    area.crash.complete(area.header.boots.load(Ordering::Relaxed));
    keep();
}

/// Stores words of the stack from `from` on, as far as `word` finds them.
#[inline(always)]
pub fn store_stack<W: Into<u64>>(record: &Crash, from: usize, word: impl Fn(usize) -> Option<W>) {
    record.sp.store(from as u64, Ordering::Relaxed);
    let mut words = 0;
    for (place, index) in record.stack.iter().zip(0..STACK_WORDS) {
        let Some(word) = word(from + size_of::<W>() * index) else {
            break;
        };
        place.store(word.into(), Ordering::Relaxed);
        words += 1;
    }
    record.stack_words.store(words, Ordering::Relaxed);
}
