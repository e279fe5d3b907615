// SPDX-License-Identifier: Apache-2.0
//! The mask words of a guest in its memory: taken at each of its traps, shown before it goes on
//! ([`bulkhead_arch_armv7m_core::masks`]).
//!
//! Between two traps the words are the work of the guest's code. So each way out of a guest takes them before
//! anything looks at the virtual CPU, and each way back shows them as its last step. Without the part both
//! are nothing.

use bulkhead_abi::parts::{PARTS, Part};
use bulkhead_arch_armv7m_core::VirtualCore;
use bulkhead_arch_armv7m_core::masks::{MaskWords, PRIORITY_BITS, PROCESS_STACK};
use bulkhead_arch_support::physical;

/// True if the hypervisor has this part.
pub(crate) const IS_THERE: bool = PARTS.has(Part::MaskWords);

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

/// The mask words of a guest; none without the part.
pub(crate) type Own = [Masks; if IS_THERE { 1 } else { 0 }];

/// Mask words.
#[derive(Clone, Copy)]
pub(crate) struct Masks {
    /// The address, 0 if the guest has none.
    at: u32,
    /// The first word as it was shown. Without words nothing is ever shown, so nothing is taken.
    shown: u32,
}

impl Masks {
    /// Makes the mask words of a guest, of which nothing has been shown. `at` is their address, 0 if it has
    /// none.
    pub(crate) const fn of(at: u32) -> Own {
        [Self { at, shown: 0 }; if IS_THERE { 1 } else { 0 }]
    }

    #[inline(always)]
    fn show(&mut self, words: MaskWords) {
        self.shown = words.masks;
        store(self.at, words.masks);
        store(self.at.wrapping_add(PROCESS_STACK), words.process_stack);
    }
}

/// Takes the masks that the guest has left in its words. The guest has run since they were shown.
#[inline(always)]
pub(crate) fn take(own: &Own, core: &mut VirtualCore) {
    if let Some(Masks { at, shown }) = own.first() {
        core.take_masks(*shown, || MaskWords {
            masks: load(*at),
            process_stack: load(at.wrapping_add(PROCESS_STACK)),
        });
    }
}

/// Does what [`take`] does, where the time does not matter as much as the bytes.
#[inline(never)]
pub(crate) fn take_slowly(own: &Own, core: &mut VirtualCore) {
    take(own, core);
}

fn of_guest(own: &mut Own) -> Option<&mut Masks> {
    own.first_mut().filter(|masks| masks.at != 0)
}

/// Shows the guest its masks. The guest goes on next, and all words have been shown since its last exit.
#[inline(always)]
pub(crate) fn show(own: &mut Own, core: &VirtualCore) {
    if let Some(masks) = of_guest(own) {
        masks.show(core.shown_masks());
    }
}

/// Shows the guest all of its words. The guest goes on next.
#[inline(never)]
pub(crate) fn show_all(own: &mut Own, core: &VirtualCore) {
    if let Some(masks) = of_guest(own) {
        masks.show(core.shown_masks());
        store(masks.at.wrapping_add(PRIORITY_BITS), core.priority_bits());
    }
}

/// Makes each change of a mask by the guest trap. A handler of the guest may start early next, in which
/// nothing is masked.
pub(crate) fn close(own: &mut Own) {
    if let Some(masks) = of_guest(own) {
        masks.show(VirtualCore::handler_masks());
    }
}
