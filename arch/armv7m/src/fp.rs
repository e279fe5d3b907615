// SPDX-License-Identifier: Apache-2.0
//! Floating-point registers of guests.
//!
//! They stay in the hardware as long as no other guest that uses them runs. Instructions are written as
//! numbers: the hypervisor itself is built without floating point, so that no register of a guest is ever in its way.
//!
//! **Lazy stacking.** When a trap interrupts code that uses floating point, the CPU reserves room in the frame and fills it
//! at the next floating-point instruction, whoever executes it (B1.5.7). So before the frame's guest is left, [`settle`] makes that
//! happen while its memory and its stack are still the ones in force.

use crate::system::{CPACR, FPCCR, MVFR0, read, write};

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

/// Whether the CPU has floating point.
pub(crate) fn exists() -> bool {
    read(MVFR0) != 0
}

/// Whether the guest's code may use it.
pub(crate) fn allow(allowed: bool) {
    write(CPACR, if allowed { ACCESS_ALL } else { ACCESS_PRIVILEGED });
    crate::system::synchronize();
}

/// Fills the room that lazy stacking has reserved. Requires: all of it is memory the guest may write.
pub(crate) fn settle() {
    if read(FPCCR) & LAZY_ACTIVE != 0 {
        // SAFETY: `vmov.f32 s0, s0`: changes nothing but the memory that the CPU reserved in the guest's frame, to which
        // no Rust reference exists.
        unsafe { core::arch::asm!(".inst.w 0xEEB00A40", options(nostack)) }
    }
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
        let at = self.registers.as_mut_ptr();
        let status: u32;
        // SAFETY: `vstmia {at}, {s0-s31}` with `at` in r0 stores 32 words, which `registers` has; `vmrs r1, fpscr`.
        unsafe {
            core::arch::asm!(".inst.w 0xEC800A20", ".inst.w 0xEEF11A10", in("r0") at, out("r1") status, options(nostack));
        }
        self.status = status;
    }

    /// Writes all to the hardware. Requires: settled.
    pub(crate) fn load(&self) {
        let at = self.registers.as_ptr();
        // SAFETY: `vldmia {at}, {s0-s31}` with `at` in r0 loads 32 words, which `registers` has; `vmsr fpscr, r1`. No Rust
        // code keeps a value in these registers.
        unsafe {
            core::arch::asm!(".inst.w 0xEC900A20", ".inst.w 0xEEE11A10", in("r0") at, in("r1") self.status, options(nostack));
        }
    }
}
