// SPDX-License-Identifier: Apache-2.0
//! Registers of the processor itself: the system control space, and the few that take an instruction.

use bulkhead_arch_support::Mmio;

/// Offsets in the system control space (B3.2.2, B3.4, B3.5).
pub(crate) const ICTR: usize = 0x004;
pub(crate) const SYST_CALIB: usize = 0x01C;
pub(crate) const NVIC_ISER: usize = 0x100;
pub(crate) const NVIC_ICER: usize = 0x180;
pub(crate) const NVIC_ISPR: usize = 0x200;
pub(crate) const NVIC_ICPR: usize = 0x280;
pub(crate) const NVIC_IPR: usize = 0x400;
pub(crate) const CPUID: usize = 0xD00;
pub(crate) const ICSR: usize = 0xD04;
pub(crate) const AIRCR: usize = 0xD0C;
pub(crate) const CCR: usize = 0xD14;
pub(crate) const SHPR: usize = 0xD18;
pub(crate) const SHCSR: usize = 0xD24;
pub(crate) const CFSR: usize = 0xD28;
pub(crate) const HFSR: usize = 0xD2C;
pub(crate) const MMFAR: usize = 0xD34;
pub(crate) const BFAR: usize = 0xD38;
pub(crate) const ID_PFR0: usize = 0xD40;
pub(crate) const CPACR: usize = 0xD88;
pub(crate) const MPU_TYPE: usize = 0xD90;
pub(crate) const MPU_CTRL: usize = 0xD94;
pub(crate) const MPU_RBAR: usize = 0xD9C;
pub(crate) const MPU_RASR: usize = 0xDA0;
pub(crate) const FPCCR: usize = 0xF34;
pub(crate) const FPCAR: usize = 0xF38;
pub(crate) const FPDSCR: usize = 0xF3C;
pub(crate) const MVFR0: usize = 0xF40;
pub(crate) const PID4: usize = 0xFD0;

/// Lines of the interrupt controller that the vector table has vectors for.
pub(crate) const MAX_LINES: u32 = 64;

/// CCR: STKALIGN, which frames rely on, and DIV_0_TRP, which the guest decides about (B3.2.8).
pub(crate) const CCR_ALIGNED: u32 = 1 << 9;
pub(crate) const CCR_DIVISION: u32 = 1 << 4;

/// SHCSR: exceptions that wait for another to end.
pub(crate) const PENDED: u32 = 0xF << 12;

/// Returns the registers of the system control space.
pub(crate) const fn control_space() -> Mmio {
    // SAFETY: the system control space is at this address on every Armv7-M CPU (B3.1) and always device
    // memory. A write there changes the memory that partitions reach, never memory that the compiler knows
    // of.
    unsafe { Mmio::new(0xE000_E000, 0x1000) }
}

#[inline(always)]
pub(crate) fn read(offset: usize) -> u32 {
    control_space().read32(offset)
}

#[inline(always)]
pub(crate) fn write(offset: usize, value: u32) {
    control_space().write32(offset, value);
}

/// Makes all writes to the control space take effect for the code that follows (B2.4.4 of the manual's
/// barriers).
#[inline(always)]
pub(crate) fn synchronize() {
    // SAFETY: barriers without any other effect.
    unsafe { core::arch::asm!("dsb", "isb", options(nostack, preserves_flags)) }
}

/// Makes Thread mode unprivileged or not: CONTROL.nPRIV. The hypervisor itself is in Handler mode.
pub(crate) fn set_unprivileged(unprivileged: bool) {
    // SAFETY: in Handler mode this bit takes effect only at the place that the next exception return leads
    // to. SPSEL cannot be changed there, and FPCA only decides about the hypervisor's own frames.
    unsafe {
        core::arch::asm!("msr control, {}", "isb", in(reg) u32::from(unprivileged), options(nostack, preserves_flags));
    }
}
