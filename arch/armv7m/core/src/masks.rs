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
//! The code then looks at [`LOOK`] after its store, and executes the replaced instruction if the byte is not
//! 0. The byte is not 0 either where the words are not the guest's masks: for code without privileges, whose
//! MSR must do nothing, and under a protection unit of the guest's own, which may refuse the words.

use crate::exception::Stack;
use crate::processor::VirtualCore;

/// Offset of the byte that is not 0 if a change of a mask needs a trap.
pub const LOOK: u32 = 0;
/// Offset of the byte with BASEPRI.
pub const BASEPRI: u32 = 1;
/// Offset of the byte with PRIMASK.
pub const PRIMASK: u32 = 2;
/// Offset of the word with PSP; 0 if only a trap can tell or change PSP.
pub const PROCESS_STACK: u32 = 4;
/// Offset of the word with the bits that BASEPRI has.
pub const PRIORITY_BITS: u32 = 8;

/// Bits of the first word that say to the backend, which keeps what it has shown: what is stored as a mask is
/// one, and what is stored as PSP, unless that is 0, is PSP.
const HAS_MASKS: u32 = 1 << 24;
const HAS_STACK: u32 = 1 << 25;

/// The words that are shown: the bytes of the masks, and PSP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskWords {
    /// The word at [`LOOK`], with [`BASEPRI`] and [`PRIMASK`] in it.
    pub masks: u32,
    /// The word at [`PROCESS_STACK`].
    pub process_stack: u32,
}

impl VirtualCore {
    /// Tells whether an exception waits, masked or not.
    #[inline(always)]
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        self.most_urgent_pending().is_some()
    }

    /// Takes the masks from the words, which the guest may have changed since `shown` was in the first one.
    #[inline(always)]
    pub fn take_masks(&mut self, shown: u32, words: impl FnOnce() -> MaskWords) {
        if shown & HAS_MASKS == 0 {
            return;
        }
        let MaskWords { masks, process_stack } = words();
        self.basepri = (masks >> 8) as u8 & self.model.priority_bits;
        self.primask = masks & 1 << 16 != 0;
        if shown & HAS_STACK != 0 && process_stack != 0 {
            self.process_sp = process_stack & !3;
        }
    }

    /// Returns the words to be shown to the guest before it goes on.
    #[inline(always)]
    #[must_use]
    pub fn shown_masks(&self) -> MaskWords {
        if !self.privileged() || self.mpu.enabled() {
            return self.closed_masks();
        }
        let (has_stack, process_stack) = match self.stack() {
            Stack::Main => (HAS_STACK, self.process_sp),
            Stack::Process => (0, 0),
        };
        MaskWords {
            masks: HAS_MASKS | has_stack | self.masks() | u32::from(self.is_waited_for()),
            process_stack,
        }
    }

    /// Returns the masks as they are in the first word.
    #[inline(always)]
    fn masks(&self) -> u32 {
        u32::from(self.basepri) << 8 | u32::from(self.primask) << 16
    }

    /// Returns the words that make each change of a mask trap. A store of privileged code counts, all the
    /// same: the trap may not come any more, because the guest can be interrupted between the two, and find
    /// other words. A load finds the masks, which code without privileges reads as 0.
    #[inline(never)]
    fn closed_masks(&self) -> MaskWords {
        let masks = match self.stack() {
            _ if !self.privileged() => 0,
            Stack::Main => HAS_MASKS | HAS_STACK | self.masks(),
            Stack::Process => HAS_MASKS | self.masks(),
        };
        MaskWords {
            masks: masks | 1,
            process_stack: 0,
        }
    }

    /// Returns the words for a handler of which this virtual CPU does not know yet: each change of a mask
    /// traps. A thread is interrupted that masks nothing.
    #[must_use]
    pub const fn handler_masks() -> MaskWords {
        MaskWords {
            masks: HAS_MASKS | HAS_STACK | 1,
            process_stack: 0,
        }
    }

    /// Returns the bits that BASEPRI has ([`PRIORITY_BITS`]).
    #[must_use]
    pub const fn priority_bits(&self) -> u32 {
        self.model.priority_bits as u32
    }
}
