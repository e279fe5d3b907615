// SPDX-License-Identifier: Apache-2.0
//! The frame of the code that waits on a microcontroller.

use core::cell::UnsafeCell;

/// xPSR.T.
const THUMB: u32 = 1 << 24;
/// Words of a frame.
const FRAME_WORDS: usize = 8;

/// The frame with which the code that waits is entered, and on which it is interrupted.
#[repr(C, align(8))]
struct IdleFrame(UnsafeCell<[u32; FRAME_WORDS]>);

// SAFETY: only the CPU itself and `idle_frame` touch the frame, and there is one of either.
unsafe impl Sync for IdleFrame {}

static IDLE_FRAME: IdleFrame = IdleFrame(UnsafeCell::new([0; FRAME_WORDS]));

/// Makes the frame with which code at `entry` begins. Returns its address.
///
/// # Safety
/// The CPU has left the code that was entered with the last frame.
#[inline]
pub unsafe fn idle_frame(entry: u32) -> u32 {
    // SAFETY: the caller's: no code uses the frame.
    unsafe {
        IDLE_FRAME
            .0
            .get()
            .write_volatile([0, 0, 0, 0, 0, 0, entry & !1, THUMB])
    }
    IDLE_FRAME.0.get() as u32
}
