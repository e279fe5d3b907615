// SPDX-License-Identifier: Apache-2.0
//! Memory for frames, word by word.

use bulkhead_arch_api::{FrameWords, HostPhys};
use bulkhead_arch_support::physical;

/// Reads a word of a frame.
#[inline]
pub(crate) fn load(at: u64) -> u32 {
    // SAFETY: memory for frames (the kernel's promise), which is RAM without any Rust reference.
    unsafe { physical::read_word32(at as usize) }
}

/// Writes a word of a frame.
#[inline]
pub(crate) fn store(at: u64, value: u32) {
    // SAFETY: as for `load`.
    unsafe { physical::write_word32(at as usize, value) }
}

/// All memory for frames.
pub(crate) struct Words;

impl FrameWords for Words {
    #[inline(always)]
    fn word(&mut self, at: HostPhys) -> u32 {
        load(at.0)
    }

    #[inline(always)]
    fn set_word(&mut self, at: HostPhys, value: u32) {
        store(at.0, value);
    }
}
