// SPDX-License-Identifier: Apache-2.0
//! The frame of the code that waits on a microcontroller.

use bulkhead_arch_api::{MAX_PCPUS, PcpuId};
use core::cell::UnsafeCell;

/// xPSR.T.
const THUMB: u32 = 1 << 24;
/// Words of a frame.
const FRAME_WORDS: usize = 8;

/// The frame with which the code that waits is entered, and on which it is interrupted.
#[repr(C, align(8))]
struct IdleFrame(UnsafeCell<[u32; FRAME_WORDS]>);

// SAFETY: only the frame's CPU itself and `idle_frame` there touch it, and there is one of either.
unsafe impl Sync for IdleFrame {}

static IDLE_FRAMES: [IdleFrame; MAX_PCPUS] =
    [const { IdleFrame(UnsafeCell::new([0; FRAME_WORDS])) }; MAX_PCPUS];

/// Makes the frame with which code at `entry` begins on a pCPU. Returns its address.
///
/// # Safety
/// The CPU has left the code that was entered with the last frame.
#[inline]
pub unsafe fn idle_frame(pcpu: PcpuId, entry: u32) -> u32 {
    let [first, ..] = &IDLE_FRAMES;
    let frame = IDLE_FRAMES.get(usize::from(pcpu.0)).unwrap_or(first).0.get();
    // SAFETY: the caller's: no code uses the frame.
    unsafe { frame.write_volatile([0, 0, 0, 0, 0, 0, entry & !1, THUMB]) }
    frame as u32
}
