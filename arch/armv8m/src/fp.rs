// SPDX-License-Identifier: Apache-2.0
//! Floating-point registers of VMs, and of tasks if those have some (`floats`).
//!
//! Both worlds have the same registers. They move with the Non-secure world from VM to VM. A VM can use them
//! and give up its right to before the hypervisor looks, so no register says whether they are in use.
//! Instructions are written as numbers: the hypervisor itself is built without floating point, so that no
//! register of a partition is ever in its way.
//!
//! **Lazy stacking.** When an exception interrupts code that uses floating point, the CPU reserves room in
//! the frame, and fills the room at the next floating-point instruction of any code (B3.20). The address of
//! the room (FPCAR) is a register of the VM's. So the hypervisor never lets its own instructions fill the
//! room: the note of the room (FPCCR.LSPACT) moves with the world. The CPU fills the room when the VM goes
//! on, with the rights of the VM.

use crate::sysreg::{CPACR, CPPWR, FPCCR, MVFR0, NSACR, read, synchronize, write};

/// S0 to S31 and FPSCR.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct FpRegisters {
    registers: [u32; 32],
    status: u32,
}

/// CPACR: CP10 and CP11 for privileged code only.
const ACCESS_PRIVILEGED: u32 = 0x5 << 20;
/// CPACR: the same for all code.
const ACCESS_ALL: u32 = 0xF << 20;
/// CPPWR: no state of a coprocessor may become unknown, and only Secure software decides about that (SUSn,
/// D1.2.16).
const SECURE_POWER: u32 = 0xAAAA_AAAA;
/// NSACR: CP10 and CP11 for the Non-secure world (D1.2.192).
const OTHER_WORLD: u32 = 3 << 10;
/// FPCCR.S: the registers are the Secure world's, because an instruction of that world has used them.
const SECURE: u32 = 1 << 2;
/// FPCCR.HFRDY, BFRDY and SFRDY: a fault of late stacking can be taken. Non-secure code is always below these
/// exceptions, so nothing clears the bits again.
const READY: u32 = 1 << 4 | 1 << 6 | 1 << 7;
/// FPCCR.ASPEN and LSPEN.
const PRESERVED: u32 = 0xC000_0000;

/// FPCCR.LSPACT: the CPU owes registers to a frame.
pub(crate) const OWED: u32 = 1;

/// Lets tasks use floating point, or not.
pub(crate) fn admit_tasks(is_admitted: bool) {
    let access = if is_admitted {
        ACCESS_ALL
    } else {
        ACCESS_PRIVILEGED
    };
    write(CPACR, access);
    synchronize();
}

/// Tells whether the CPU has floating point.
pub(crate) fn exists() -> bool {
    read(MVFR0) != 0
}

/// Lets the Non-secure world use floating point if it wants to, and privileged Secure code.
pub(crate) fn open() {
    write(CPPWR, SECURE_POWER);
    write(CPACR, ACCESS_PRIVILEGED);
    write(NSACR, OTHER_WORLD);
    // Floating-point instructions of the hypervisor do what they say and no more.
    write(FPCCR, read(FPCCR) & !PRESERVED | READY);
    synchronize();
}

impl FpRegisters {
    /// Every register zero.
    pub(crate) const ZERO: Self = Self {
        registers: [0; 32],
        status: 0,
    };

    /// Reads all from the hardware. Requires: FPCCR.LSPACT of the Non-secure world is clear.
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

    /// Writes all to the hardware. Requires: as for [`FpRegisters::save`].
    pub(crate) fn load(&self) {
        let at = self.registers.as_ptr();
        // SAFETY: `vldmia {at}, {s0-s31}` with `at` in r0 loads 32 words, and `registers` has 32 words;
        // `vmsr fpscr, r1`. No Rust code keeps a value in these registers.
        unsafe {
            core::arch::asm!(".inst.w 0xEC900A20", ".inst.w 0xEEE11A10", in("r0") at, in("r1") self.status, options(nostack));
        }
        // The registers are the Non-secure world's again: the CPU looks there for room to be filled.
        write(FPCCR, read(FPCCR) & !SECURE);
    }
}
