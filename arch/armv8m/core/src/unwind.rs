// SPDX-License-Identifier: Apache-2.0
//! The way out of the handlers of a VM, so that another VM can run, and the way back.
//!
//! An exception of the Non-secure world stays *active* until its handler returns, and while it is active, no
//! exception of the same or a lower priority is taken. Software cannot change the active state of a line
//! (NVIC_IABR is read-only, D1.2.186). So the hypervisor has the CPU return from each of them: it makes
//! frames in its own memory, one for each active exception, each of which leads to an instruction that is the
//! end of a handler. The VM's own frames, on its own stacks, stay as they are. They are popped one day by the
//! VM's own handlers.
//!
//! On the way back the same exceptions are taken again. For that moment their vectors lead to the
//! hypervisor. When all of them are active, the VM goes on where it was.

/// Words of a frame without floating-point registers (B3.19).
pub const FRAME_WORDS: usize = 8;
/// xPSR.T: the only instruction set.
const THUMB: u32 = 1 << 24;
/// EXC_RETURN of an exception of the Non-secure world, taken from a Non-secure handler (D1.2.95).
pub const TO_HANDLER: u32 = 0xFFFF_FFB0;
/// The same from a Non-secure thread with the main stack.
pub const TO_THREAD: u32 = 0xFFFF_FFB8;
/// The bit of the same values for an exception that Secure code handles (ES).
pub const TAKEN_SECURE: u32 = 1;

/// Returns the frame with which handler `exception` goes on at `end`, the address of an instruction that
/// returns from it to the next frame. `is_last` tells whether the next frame is the thread's.
#[must_use]
pub const fn handler(exception: u8, end: u32, is_last: bool) -> [u32; FRAME_WORDS] {
    let link = if is_last { TO_THREAD } else { TO_HANDLER };
    [0, 0, 0, 0, 0, link, end, THUMB | exception as u32]
}

/// Returns the frame with which a thread goes on at `at`.
#[must_use]
pub const fn thread(at: u32) -> [u32; FRAME_WORDS] {
    [0, 0, 0, 0, 0, u32::MAX, at, THUMB]
}
