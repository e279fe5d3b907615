// SPDX-License-Identifier: Apache-2.0
//! Floating-point registers of VMs.
//!
//! Both worlds have the same registers. They move with the Non-secure world from VM to VM: a VM can use them and
//! give up its right to before anybody looks, so no register says whether they are in use. Instructions are written as numbers: the hypervisor itself is built without floating point, so
//! that no register of a partition is ever in its way.
//!
//! **Lazy stacking.** When an exception interrupts code that uses floating point, the CPU reserves room in the
//! frame, and fills the room at the next floating-point instruction of any code (B3.20). The address of the
//! room is a register of the Non-secure world that the VM can write. So the hypervisor never lets it come to
//! that: [`settle`] fills the room itself, if the room is in the VM's frame, and takes the CPU's note away.

use crate::sysreg::{CPACR, FPCCR, MVFR0, NSACR, other_space, read, synchronize, write};
use core::mem::MaybeUninit;

/// S0 to S31 and FPSCR.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct FpRegisters {
    registers: [u32; 32],
    status: u32,
}

/// CPACR: CP10 and CP11 for privileged code only.
const ACCESS_PRIVILEGED: u32 = 0x5 << 20;
/// NSACR: CP10 and CP11 for the Non-secure world (D1.2.192).
const OTHER_WORLD: u32 = 3 << 10;
/// FPCCR.LSPACT: room in a frame is reserved and not filled.
const LAZY_ACTIVE: u32 = 1;
/// FPCCR.ASPEN and LSPEN.
const PRESERVED: u32 = 0xC000_0000;
/// FPCAR.
const FPCAR: usize = 0xF38;
/// Offset of the floating-point registers in an extended frame (B3.19).
const BASIC: u32 = 0x20;
/// S0 to S15 and FPSCR.
const STACKED_WORDS: usize = 17;

/// Tells whether the CPU has floating point.
pub(crate) fn exists() -> bool {
    read(MVFR0) != 0
}

/// Lets the Non-secure world use floating point if it wants to, and privileged Secure code. A task has none.
pub(crate) fn open() {
    write(CPACR, ACCESS_PRIVILEGED);
    write(NSACR, OTHER_WORLD);
    // Floating-point instructions of the hypervisor do what they say and no more.
    write(FPCCR, read(FPCCR) & !PRESERVED);
    synchronize();
}

/// Fills the room that lazy stacking has reserved in the frame at `frame`, if it has and if `fits` says that all of
/// that frame is memory that the VM may write. Room anywhere else is not filled.
pub(crate) fn settle(frame: u32, fits: impl FnOnce() -> bool) {
    let control = other_space().read32(FPCCR);
    if control & LAZY_ACTIVE == 0 {
        return;
    }
    other_space().write32(FPCCR, control & !LAZY_ACTIVE);
    synchronize();
    let mut nowhere = MaybeUninit::<[u32; STACKED_WORDS]>::uninit();
    let room = frame.wrapping_add(BASIC);
    let to = if other_space().read32(FPCAR) == room && fits() {
        room
    } else {
        nowhere.as_mut_ptr() as u32
    };
    // SAFETY: `vstmia {to}!, {s0-s15}` with `to` in r0, `vmrs r1, fpscr`, `str r1, [r0]`: these store
    // seventeen words, of `nowhere` or of the frame. The frame is memory of the VM (see above), to which no
    // Rust reference exists.
    unsafe {
        core::arch::asm!(".inst.w 0xECA00A10", ".inst.w 0xEEF11A10", ".inst.n 0x6001", inout("r0") to => _, out("r1") _, options(nostack));
    }
}

impl FpRegisters {
    /// Every register zero.
    pub(crate) const ZERO: Self = Self {
        registers: [0; 32],
        status: 0,
    };

    /// Reads all from the hardware. Requires: settled.
    pub(crate) fn save(&mut self) {
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
        let at = self.registers.as_ptr();
        // SAFETY: `vldmia {at}, {s0-s31}` with `at` in r0 loads 32 words, and `registers` has 32 words;
        // `vmsr fpscr, r1`. No Rust code keeps a value in these registers.
        unsafe {
            core::arch::asm!(".inst.w 0xEC900A20", ".inst.w 0xEEE11A10", in("r0") at, in("r1") self.status, options(nostack));
        }
    }
}
