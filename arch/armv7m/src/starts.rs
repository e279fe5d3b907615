// SPDX-License-Identifier: Apache-2.0
//! The data of handlers that start early (`early`), which the assembly shares.
//!
//! The assembly interrupts the hypervisor, and has ended before the hypervisor goes on. So plain words are
//! enough, but for the state: [`disarm`] exchanges it, because an early start may come at any instruction.

use bulkhead_abi::parts::{PARTS, Part};
use bulkhead_arch_api::Ticks;
use core::sync::atomic::{AtomicU32, Ordering};

/// True if the hypervisor has this part.
pub(crate) const IS_THERE: bool = PARTS.has(Part::EarlyHandlers);

/// Values of [`Early::state`].
const DISARMED: u32 = 0;
pub(crate) const ARMED: u32 = 1;
pub(crate) const STARTED: u32 = 2;
pub(crate) const ENDED: u32 = 3;

/// Eight registers, and the words of what is kept; none without the part.
const EIGHT: usize = if IS_THERE { 8 } else { 0 };
const KEPT: usize = if IS_THERE { 8 + 8 + 5 + 16 } else { 0 };

/// The data of early starts, for the assembly and for the rest of the backend.
#[repr(C)]
pub(crate) struct Early {
    pub(crate) state: AtomicU32,
    /// 1 once the hypervisor has begun: PendSV then is the end of an early start.
    pub(crate) has_begun: AtomicU32,
    /// SysTick's reload value.
    pub(crate) bound: AtomicU32,
    /// The address of the partition's regions, as the protection unit wants them.
    pub(crate) regions: AtomicU32,
    /// CCR for the guest.
    pub(crate) configuration: AtomicU32,
    /// The line that has started.
    pub(crate) line: AtomicU32,
    /// The frame that leads to the handler; at the end the guest's frame.
    pub(crate) frame: AtomicU32,
    /// The words of that frame, with the address of the vector table in the place of the PC.
    pub(crate) words: [AtomicU32; EIGHT],
    /// r4 to r11 of the guest.
    pub(crate) general: [AtomicU32; EIGHT],
    /// Bits of CFSR that were new at the end.
    pub(crate) faults: AtomicU32,
    /// The exception that was the end: HardFault, or SysTick. The most significant bit: it was a BKPT.
    pub(crate) end: AtomicU32,
    /// All that was interrupted: r4 to r11; PSP, EXC_RETURN, CONTROL, ICSR, CCR, SHCSR, CFSR, HFSR;
    /// MMFAR, BFAR, CPACR, MPU_CTRL, MPU_RNR; the regions of the protection unit.
    pub(crate) kept: [AtomicU32; KEPT],
}

/// The words of [`Early::kept`] from which the control and the number of the protection unit are.
pub(crate) const KEPT_UNIT: usize = 4 * (8 + 8 + 3);

// `entry` reads them one after the other.
const _: () =
    assert!(core::mem::offset_of!(Early, general) == core::mem::offset_of!(Early, words) + 4 * EIGHT);
// `entry` copies a region as two words, its base first.
const _: () = assert!(core::mem::offset_of!((u32, u32), 0) == 0 && size_of::<(u32, u32)>() == 8);

/// The data of early starts. `entry` knows it by this name.
pub(crate) static EARLY: Early = Early {
    state: AtomicU32::new(DISARMED),
    has_begun: AtomicU32::new(0),
    bound: AtomicU32::new(0),
    regions: AtomicU32::new(0),
    configuration: AtomicU32::new(0),
    line: AtomicU32::new(0),
    frame: AtomicU32::new(0),
    words: [const { AtomicU32::new(0) }; EIGHT],
    general: [const { AtomicU32::new(0) }; EIGHT],
    faults: AtomicU32::new(0),
    end: AtomicU32::new(0),
    kept: [const { AtomicU32::new(0) }; KEPT],
};

/// Stores a word of the data.
pub(crate) fn store(place: &AtomicU32, value: u32) {
    place.store(value, Ordering::Relaxed);
}

/// Loads a word of the data.
pub(crate) fn load(place: &AtomicU32) -> u32 {
    place.load(Ordering::Relaxed)
}

/// Stores eight words of the data.
pub(crate) fn store_all(places: &[AtomicU32], values: &[u32; 8]) {
    for (place, value) in places.iter().zip(values) {
        store(place, *value);
    }
}

/// Tells whether an early start waits to be told.
pub(crate) fn has_ended() -> bool {
    IS_THERE && load(&EARLY.state) == ENDED
}

/// Returns the line that an early start has masked in the controller.
pub(crate) fn masked() -> Option<u32> {
    has_ended().then(|| load(&EARLY.line))
}

/// Sets the longest time of an early start.
pub(crate) fn limit(bound: Ticks) {
    store(&EARLY.bound, bound.0 as u32);
}

/// Lets no handler start early any more. Returns whether an early start had waited to be told. One that comes
/// before the exchange is seen, and none comes after.
#[inline(always)]
pub(crate) fn disarm() -> bool {
    IS_THERE && EARLY.state.swap(DISARMED, Ordering::AcqRel) == ENDED
}

/// Lets handlers start early by the data that is stored.
pub(crate) fn arm() {
    EARLY.state.store(ARMED, Ordering::Release);
}
