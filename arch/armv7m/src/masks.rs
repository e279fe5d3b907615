// SPDX-License-Identifier: Apache-2.0
//! The mask words of a guest in its memory ([`bulkhead_arch_armv7m_core::masks`]): taken at each of its traps,
//! shown before it goes on.
//!
//! The words are between two traps what the guest's code has made of them. So each way out of a guest takes
//! them before anything looks at the virtual CPU, and each way back shows them as its last step. Without the
//! part both are nothing.

use crate::context::Context;
use bulkhead_abi::parts::{PARTS, Part};
use bulkhead_arch_armv7m_core::masks::{MaskWords, PRIORITY_BITS, PROCESS_STACK};
use bulkhead_arch_support::physical;

/// True if the hypervisor has this part.
const IS_THERE: bool = PARTS.has(Part::MaskWords);

#[inline(always)]
fn load(at: u32) -> u32 {
    // SAFETY: a word of the guest's RAM at a multiple of 4: the rules of the system image say so of the
    // address of mask words. No Rust reference to a guest's memory exists.
    unsafe { physical::read_word32(at as usize) }
}

#[inline(always)]
fn store(at: u32, value: u32) {
    // SAFETY: as for `load`.
    unsafe { physical::write_word32(at as usize, value) }
}

impl Context {
    /// Takes the masks that the guest has left in its words. The guest has run since they were shown.
    #[inline(always)]
    pub(crate) fn take_masks(&mut self) {
        let (at, shown) = (self.masks.at, self.masks.shown);
        if IS_THERE && at != 0 {
            self.core.take_masks(shown, || MaskWords {
                masks: load(at),
                process_stack: load(at.wrapping_add(PROCESS_STACK)),
            });
        }
    }

    /// Shows the guest its masks. The guest goes on next, and all words have been shown since its last exit.
    #[inline(always)]
    pub(crate) fn show_masks(&mut self) {
        if IS_THERE && self.masks.at != 0 {
            self.masks.show(self.core.shown_masks());
        }
    }

    /// Shows the guest all of its words. The guest goes on next.
    pub(crate) fn show_all_masks(&mut self) {
        if IS_THERE && self.masks.at != 0 {
            self.masks.show(self.core.shown_masks());
            store(
                self.masks.at.wrapping_add(PRIORITY_BITS),
                self.core.priority_bits(),
            );
        }
    }

    /// Makes each change of a mask by the guest trap. A handler of the guest may start early next, in which
    /// nothing is masked.
    pub(crate) fn close_masks(&mut self) {
        if IS_THERE && self.masks.at != 0 {
            self.masks.show(self.core.closed_masks());
        }
    }
}

/// The mask words of a guest.
pub(crate) struct Masks {
    /// The address, 0 if there are none.
    pub(crate) at: u32,
    /// The first word as it was shown.
    shown: u32,
}

impl Masks {
    /// Makes mask words of which nothing has been shown.
    pub(crate) const fn new(at: u32) -> Self {
        Self { at, shown: 0 }
    }

    #[inline(always)]
    fn show(&mut self, words: MaskWords) {
        self.shown = words.masks;
        store(self.at, words.masks);
        store(self.at.wrapping_add(PROCESS_STACK), words.process_stack);
    }
}
