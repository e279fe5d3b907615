// SPDX-License-Identifier: Apache-2.0
//! Notes for pCPUs whose vCPU takes interrupts itself: the reason of a non-maskable interrupt.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Pieces of a note: a signal for the kernel; the vCPU has to look at its interrupts.
pub(crate) const SIGNALLED: u8 = 1;
pub(crate) const KICKED: u8 = 2;

/// There is such a vCPU, so a non-maskable interrupt in the hypervisor is no fault.
pub(crate) static IN_USE: AtomicBool = AtomicBool::new(false);
/// By APIC id: the pCPU has such a vCPU; its note.
static OWNERS: [AtomicBool; 256] = [const { AtomicBool::new(false) }; 256];
static NOTES: [AtomicU8; 256] = [const { AtomicU8::new(0) }; 256];

/// Notes that the pCPU with this APIC id has such a vCPU.
pub(crate) fn own(id: usize) {
    IN_USE.store(true, Ordering::Release);
    if let Some(owner) = OWNERS.get(id) {
        owner.store(true, Ordering::Release);
    }
}

/// Leaves a note for a pCPU, if it has such a vCPU. The caller sends the interrupt.
pub(crate) fn leave(target: u64, piece: u8) -> bool {
    let (Some(owner), Some(note)) = (OWNERS.get(target as usize), NOTES.get(target as usize)) else {
        return false;
    };
    let owns = owner.load(Ordering::Acquire);
    if owns {
        note.fetch_or(piece, Ordering::SeqCst);
    }
    owns
}

/// Takes the note for a pCPU.
pub(crate) fn take(id: usize) -> u8 {
    NOTES.get(id).map_or(0, |note| note.swap(0, Ordering::SeqCst))
}

/// Returns where the note for a pCPU is.
pub(crate) fn place(id: usize) -> *const u8 {
    NOTES
        .get(id)
        .map_or(core::ptr::null(), |note| note.as_ptr().cast_const())
}
