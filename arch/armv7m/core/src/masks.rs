// SPDX-License-Identifier: Apache-2.0
//! The mask words: words in a guest's own memory that hold its masks and its process stack pointer while the
//! guest runs.
//!
//! The host tool replaces MRS and MSR of BASEPRI, PRIMASK and PSP by branches to short pieces of code, which
//! load and store these words without a trap. Between two traps the words are the guest's masks: the backend
//! takes them at each trap ([`VirtualCore::take_masks`]), and shows them before the guest goes on
//! ([`VirtualCore::shown_masks`]). A guest can store there what it likes. It could give each of these
//! values to MSR as well, so the words say nothing that the guest could not say before.
//!
//! A store of a mask needs a trap if an exception waits, because the mask may have held the exception back.
//! The code then looks at [`LOOK`] after its store, and executes the replaced instruction if the word is not
//! 0. The word is not 0 either where the words are not the guest's masks: for code without privileges, whose
//! MSR must do nothing, and under a protection unit of the guest's own, which may refuse the words.

use crate::exception::Stack;
use crate::processor::VirtualCore;

/// Offset of the word that is not 0 if a change of a mask needs a trap.
pub const LOOK: u32 = 0;
/// Offset of the word with BASEPRI.
pub const BASEPRI: u32 = 4;
/// Offset of the word with PRIMASK.
pub const PRIMASK: u32 = 8;
/// Offset of the word with PSP; 0 if only a trap can tell or change PSP.
pub const PROCESS_STACK: u32 = 12;
/// Offset of the word with the bits that BASEPRI has.
pub const PRIORITY_BITS: u32 = 16;
/// Bytes of all words. They begin at a multiple of that.
pub const SIZE: u32 = 32;

/// The mask words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskWords {
    /// [`LOOK`].
    pub look: u32,
    /// [`BASEPRI`].
    pub basepri: u32,
    /// [`PRIMASK`].
    pub primask: u32,
    /// [`PROCESS_STACK`].
    pub process_stack: u32,
    /// [`PRIORITY_BITS`].
    pub priority_bits: u32,
}

impl VirtualCore {
    /// Tells whether the words are the masks: privileged code runs, and no protection unit checks it.
    #[inline(always)]
    const fn has_words(&self) -> bool {
        self.privileged() && !self.mpu.enabled()
    }

    /// Takes the masks from the words, which the guest may have changed since they were shown.
    #[inline(always)]
    pub fn take_masks(&mut self, words: &MaskWords) {
        if !self.has_words() {
            return;
        }
        self.basepri = words.basepri as u8 & self.model.priority_bits;
        self.primask = words.primask & 1 != 0;
        if words.process_stack != 0 && matches!(self.stack(), Stack::Main) {
            self.process_sp = words.process_stack & !3;
        }
    }

    /// Returns the words to be shown to the guest before it goes on.
    #[inline(always)]
    #[must_use]
    pub fn shown_masks(&self) -> MaskWords {
        let privileged = self.privileged();
        let process_stack = match self.stack() {
            Stack::Main if privileged => self.process_sp,
            _ => 0,
        };
        MaskWords {
            look: u32::from(!self.has_words() || self.most_urgent_pending().is_some()),
            basepri: if privileged { u32::from(self.basepri) } else { 0 },
            primask: u32::from(privileged && self.primask),
            process_stack,
            priority_bits: u32::from(self.model.priority_bits),
        }
    }

    /// Returns the words that make each change of a mask trap, for a guest that is about to be in a handler
    /// of which this virtual CPU does not know yet. Nothing is masked in there.
    #[must_use]
    pub const fn closed_masks(&self) -> MaskWords {
        MaskWords {
            look: 1,
            basepri: 0,
            primask: 0,
            process_stack: 0,
            priority_bits: self.model.priority_bits as u32,
        }
    }
}
