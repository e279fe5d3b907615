// SPDX-License-Identifier: Apache-2.0
//! The mask words of a guest in its memory ([`bulkhead_arch_armv7m_core::masks`]): taken at each of its traps,
//! shown before it goes on.
//!
//! The words are between two traps what the guest's code has made of them. So each way out of a guest takes
//! them before anything looks at the virtual CPU, and each way back shows them as its last step. Without the
//! part both are nothing.

use crate::context::Context;
use bulkhead_abi::parts::{PARTS, Part};
use bulkhead_arch_armv7m_core::masks::{BASEPRI, LOOK, MaskWords, PRIMASK, PRIORITY_BITS, PROCESS_STACK};
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
        let at = self.masks;
        if IS_THERE && at != 0 {
            self.core.take_masks(&MaskWords {
                look: 0,
                basepri: load(at.wrapping_add(BASEPRI)),
                primask: load(at.wrapping_add(PRIMASK)),
                process_stack: load(at.wrapping_add(PROCESS_STACK)),
                priority_bits: 0,
            });
        }
    }

    /// Shows the guest its masks. The guest goes on next.
    #[inline(always)]
    pub(crate) fn show_masks(&self) {
        if IS_THERE && self.masks != 0 {
            show(self.masks, &self.core.shown_masks());
        }
    }

    /// Makes each change of a mask by the guest trap. A handler of the guest may start early next.
    pub(crate) fn close_masks(&self) {
        if IS_THERE && self.masks != 0 {
            show(self.masks, &self.core.closed_masks());
        }
    }
}

#[inline(always)]
fn show(at: u32, words: &MaskWords) {
    store(at.wrapping_add(LOOK), words.look);
    store(at.wrapping_add(BASEPRI), words.basepri);
    store(at.wrapping_add(PRIMASK), words.primask);
    store(at.wrapping_add(PROCESS_STACK), words.process_stack);
    store(at.wrapping_add(PRIORITY_BITS), words.priority_bits);
}
