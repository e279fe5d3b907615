// SPDX-License-Identifier: Apache-2.0
//! The FP/SIMD registers as a test sees them. Programs of this library are compiled without them, so nothing
//! but these functions ever touches them.

use core::arch::asm;

/// The exception levels that may use the registers without a trap to EL1 (`CPACR_EL1.FPEN`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Allowed {
    /// Neither level.
    Nobody = 0,
    /// EL1.
    Kernel = 1,
    /// EL1 and EL0.
    Everybody = 3,
}

/// Sets who may use the registers.
pub fn allow(allowed: Allowed) {
    // SAFETY: the compiler uses no FP/SIMD register on this target.
    unsafe { asm!("msr cpacr_el1, {}", "isb", in(reg) (allowed as u64) << 20, options(nostack)) }
}

/// Lets EL1 and EL0 use the registers.
pub fn enable() {
    allow(Allowed::Everybody);
}

/// Makes EL1 and EL0 trap when they use the registers.
pub fn disable() {
    allow(Allowed::Nobody);
}

/// Fills q0..q31 with values derived from `seed`, and FPCR/FPSR with legal ones.
pub fn fill(seed: u64) {
    let mut registers = [[0_u64; 2]; 32];
    for (i, [low, high]) in registers.iter_mut().enumerate() {
        *low = pattern(seed, i, 0);
        *high = pattern(seed, i, 1);
    }
    // SAFETY: the compiler uses no FP/SIMD register on this target; the array has room for 32 of 16 bytes.
    unsafe {
        asm!(
            ".arch_extension fp", ".arch_extension simd",
            "ldp q0, q1, [{0}]", "ldp q2, q3, [{0}, #32]", "ldp q4, q5, [{0}, #64]", "ldp q6, q7, [{0}, #96]",
            "ldp q8, q9, [{0}, #128]", "ldp q10, q11, [{0}, #160]", "ldp q12, q13, [{0}, #192]",
            "ldp q14, q15, [{0}, #224]", "ldp q16, q17, [{0}, #256]", "ldp q18, q19, [{0}, #288]",
            "ldp q20, q21, [{0}, #320]", "ldp q22, q23, [{0}, #352]", "ldp q24, q25, [{0}, #384]",
            "ldp q26, q27, [{0}, #416]", "ldp q28, q29, [{0}, #448]", "ldp q30, q31, [{0}, #480]",
            "msr fpcr, {1}", "msr fpsr, {2}",
            ".arch_extension nosimd", ".arch_extension nofp",
            in(reg) &raw const registers,
            in(reg) seed << 22 & 0x00C0_0000,
            in(reg) seed & 0x1F,
            options(nostack),
        );
    }
}

/// Returns the number of the registers that do not hold what [`fill`] put there.
#[must_use]
pub fn differences(seed: u64) -> u32 {
    let mut registers = [[0_u64; 2]; 32];
    let (control, status): (u64, u64);
    // SAFETY: stores all registers into an array of that size.
    unsafe {
        asm!(
            ".arch_extension fp", ".arch_extension simd",
            "stp q0, q1, [{0}]", "stp q2, q3, [{0}, #32]", "stp q4, q5, [{0}, #64]", "stp q6, q7, [{0}, #96]",
            "stp q8, q9, [{0}, #128]", "stp q10, q11, [{0}, #160]", "stp q12, q13, [{0}, #192]",
            "stp q14, q15, [{0}, #224]", "stp q16, q17, [{0}, #256]", "stp q18, q19, [{0}, #288]",
            "stp q20, q21, [{0}, #320]", "stp q22, q23, [{0}, #352]", "stp q24, q25, [{0}, #384]",
            "stp q26, q27, [{0}, #416]", "stp q28, q29, [{0}, #448]", "stp q30, q31, [{0}, #480]",
            "mrs {1}, fpcr", "mrs {2}, fpsr",
            ".arch_extension nosimd", ".arch_extension nofp",
            in(reg) &raw mut registers,
            out(reg) control,
            out(reg) status,
            options(nostack),
        );
    }
    let mut wrong = 0;
    for (i, [low, high]) in registers.iter().enumerate() {
        wrong += u32::from(*low != pattern(seed, i, 0) || *high != pattern(seed, i, 1));
    }
    wrong + u32::from(control != seed << 22 & 0x00C0_0000) + u32::from(status != seed & 0x1F)
}

fn pattern(seed: u64, register: usize, half: u64) -> u64 {
    (seed << 8 | (register as u64) << 1 | half).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
