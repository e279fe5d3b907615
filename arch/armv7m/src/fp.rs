// SPDX-License-Identifier: Apache-2.0
//! Floating-point registers of guests.
//!
//! A guest's registers stay in the hardware until another guest that uses floating point runs. Instructions
//! are written as numbers: the hypervisor itself is built without floating point, so that no register of a
//! guest is ever in its way.
//!
//! **Lazy stacking.** When a trap interrupts code that uses floating point, the CPU reserves room in the
//! frame. The CPU fills the room at the next floating-point instruction of any code (B1.5.7), with
//! the rights of the guest. That instruction could fault in the middle of the hypervisor. So the hypervisor
//! never lets it come to that. [`settle`] fills the room itself, if the room is in the frame and the guest's
//! memory, and takes the CPU's note of the room away. While the hypervisor touches the registers, automatic
//! preservation is off ([`Held`]): with it on, the first instruction would change FPSCR to FPDSCR (B1.5.7,
//! ExecuteFPCheck).

use crate::sysreg::{CPACR, FPCAR, FPCCR, FPDSCR, MVFR0, read, synchronize, write};
use core::mem::MaybeUninit;

/// S0 to S31 and FPSCR.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct FpRegisters {
    registers: [u32; 32],
    status: u32,
}

/// CPACR: CP10 and CP11 for everybody, and for privileged code only.
const ACCESS_ALL: u32 = 0xF << 20;
const ACCESS_PRIVILEGED: u32 = 0x5 << 20;
/// FPCCR.LSPACT: room in a frame is reserved and not filled.
const LAZY_ACTIVE: u32 = 1;

/// FPCCR.ASPEN and LSPEN.
const PRESERVED: u32 = 0xC000_0000;
/// Offset of the floating-point registers in an extended frame (B1.5.7).
const BASIC: u32 = 0x20;

/// S0 to S15 and FPSCR.
const STACKED_WORDS: usize = 17;

/// Tells whether the CPU has floating point.
pub(crate) fn exists() -> bool {
    read(MVFR0) != 0
}

/// Allows or forbids floating point to the guest's code.
pub(crate) fn allow(allowed: bool) {
    write(CPACR, if allowed { ACCESS_ALL } else { ACCESS_PRIVILEGED });
    crate::sysreg::synchronize();
}

/// Automatic preservation is off while a value of this type lives: floating-point instructions do what they
/// say and no more.
struct Held {
    control: u32,
}

impl Held {
    /// Takes the note of room to be filled away, too.
    fn new() -> Self {
        let control = read(FPCCR) & !LAZY_ACTIVE;
        write(FPCCR, control & !PRESERVED);
        synchronize();
        Self { control }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        write(FPCCR, self.control);
        synchronize();
    }
}

/// Sets the settings that belong to the guest: its FPDSCR, and whether and when the CPU keeps registers in
/// frames (FPCCR).
pub(crate) fn configure(default_status: u32, context_control: u32) {
    write(FPDSCR, default_status);
    write(FPCCR, context_control & PRESERVED | read(FPCCR) & !PRESERVED);
}

/// Fills the room that lazy stacking has reserved in the frame at `frame`. Does so if there is such room, and
/// if `fits`: all of that frame is memory the guest may write. Room anywhere else is not filled.
pub(crate) fn settle(frame: u32, fits: bool) {
    if read(FPCCR) & LAZY_ACTIVE != 0 {
        fill(frame, fits);
    }
}

/// Does the same as [`settle`], in as many instructions even if nothing is reserved. The time to leave a
/// guest must not depend on the guest's actions.
pub(crate) fn settle_evenly(frame: u32, fits: bool) {
    if exists() {
        fill(frame, fits);
    }
}

/// Stores the registers for which room is reserved. They go to the room, if it is in the frame at `frame` and
/// that frame `fits`, and otherwise nowhere.
#[inline(never)]
fn fill(frame: u32, fits: bool) {
    let mut nowhere = MaybeUninit::<[u32; STACKED_WORDS]>::uninit();
    let room = frame.wrapping_add(BASIC);
    let is_reserved = read(FPCCR) & LAZY_ACTIVE != 0;
    let is_there = is_reserved & fits & (read(FPCAR) == room);
    let to = if is_there {
        room
    } else {
        nowhere.as_mut_ptr() as u32
    };
    let held = Held::new();
    // SAFETY: `vstmia {to}!, {s0-s15}` with `to` in r0, `vmrs r1, fpscr`, `str r1, [r0]`: these store
    // seventeen words, of `nowhere` or of the frame. The frame is memory of the guest (see above), to which
    // no Rust reference exists.
    unsafe {
        core::arch::asm!(".inst.w 0xECA00A10", ".inst.w 0xEEF11A10", ".inst.n 0x6001", inout("r0") to => _, out("r1") _, options(nostack));
    }
    drop(held);
}

/// Forgets the room that lazy stacking has reserved.
pub(crate) fn drop_lazy() {
    write(FPCCR, read(FPCCR) & !LAZY_ACTIVE);
}

impl FpRegisters {
    /// Every register zero.
    pub(crate) const ZERO: Self = Self {
        registers: [0; 32],
        status: 0,
    };

    /// Reads all from the hardware. Requires: settled.
    pub(crate) fn save(&mut self) {
        let _held = Held::new();
        let at = self.registers.as_mut_ptr();
        let status: u32;
        // SAFETY: `vstmia {at}, {s0-s31}` with `at` in r0 stores 32 words, and `registers` has 32 words;
        // `vmrs r1, fpscr`.
        unsafe {
            core::arch::asm!(".inst.w 0xEC800A20", ".inst.w 0xEEF11A10", in("r0") at, out("r1") status, options(nostack));
        }
        self.status = status;
    }

    /// Writes all to the hardware. Requires: settled.
    pub(crate) fn load(&self) {
        let _held = Held::new();
        let at = self.registers.as_ptr();
        // SAFETY: `vldmia {at}, {s0-s31}` with `at` in r0 loads 32 words, and `registers` has 32 words;
        // `vmsr fpscr, r1`. No Rust code keeps a value in these registers.
        unsafe {
            core::arch::asm!(".inst.w 0xEC900A20", ".inst.w 0xEEE11A10", in("r0") at, in("r1") self.status, options(nostack));
        }
    }
}

/// Returns S`number` as the hardware has it. Requires: settled.
#[inline(never)]
pub(crate) fn register(number: u8) -> u32 {
    let mut all = FpRegisters::ZERO;
    all.save();
    all.registers.get(usize::from(number)).copied().unwrap_or(0)
}

/// Changes S`number` in the hardware. Requires: settled.
#[inline(never)]
pub(crate) fn set_register(number: u8, value: u32) {
    let mut all = FpRegisters::ZERO;
    all.save();
    if let Some(register) = all.registers.get_mut(usize::from(number)) {
        *register = value;
    }
    all.load();
}
