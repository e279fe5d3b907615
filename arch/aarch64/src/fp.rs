// SPDX-License-Identifier: Apache-2.0
//! FP and SIMD registers, switched when they are used and not before.
//!
//! A pCPU remembers whose values its FP registers hold. A vCPU that becomes current and is not that owner
//! runs with CPTR_EL2.TFP set. Its first FP instruction traps here. The owner's values then go to its context
//! and the vCPU's come in. A guest's own CPACR_EL1 is its own business: its trap comes first. The hypervisor
//! itself is compiled without FP.

use core::arch::global_asm;

/// CPTR_EL2 (Arm DDI 0487 D19.2.31, E2H = 0): RES1 bits, TZ, TSM, TTA and TAM, so that SVE, SME, trace and
/// activity monitors trap.
pub(crate) const CPTR_OPEN: u64 = 0x33FF | 1 << 12 | 1 << 20 | 1 << 30;
/// CPTR_EL2.TFP besides.
pub(crate) const CPTR_TRAP: u64 = CPTR_OPEN | 1 << 10;

/// FP/SIMD registers of a vCPU.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct FpRegisters {
    vectors: [u128; 32],
    fpcr: u64,
    fpsr: u64,
}

impl FpRegisters {
    /// All registers zero, which is also a fine state after reset.
    pub(crate) const ZERO: Self = Self {
        vectors: [0; 32],
        fpcr: 0,
        fpsr: 0,
    };
}

unsafe extern "C" {
    /// Stores the FP registers to x0. Needs CPTR_EL2.TFP clear.
    pub(crate) fn bulkhead_fp_save(registers: *mut FpRegisters);
    /// Loads the FP registers from x0. Needs CPTR_EL2.TFP clear.
    pub(crate) fn bulkhead_fp_load(registers: *const FpRegisters);
}

global_asm!(
    r#"
    .arch_extension fp
    .arch_extension simd
    .macro  fp_pairs operation
    \operation q0, q1, [x0]
    \operation q2, q3, [x0, #32]
    \operation q4, q5, [x0, #64]
    \operation q6, q7, [x0, #96]
    \operation q8, q9, [x0, #128]
    \operation q10, q11, [x0, #160]
    \operation q12, q13, [x0, #192]
    \operation q14, q15, [x0, #224]
    \operation q16, q17, [x0, #256]
    \operation q18, q19, [x0, #288]
    \operation q20, q21, [x0, #320]
    \operation q22, q23, [x0, #352]
    \operation q24, q25, [x0, #384]
    \operation q26, q27, [x0, #416]
    \operation q28, q29, [x0, #448]
    \operation q30, q31, [x0, #480]
    .endm
    .text
    .global bulkhead_fp_save
bulkhead_fp_save:
    fp_pairs stp
    mrs     x1, fpcr
    mrs     x2, fpsr
    add     x0, x0, #512
    stp     x1, x2, [x0]
    ret
    .global bulkhead_fp_load
bulkhead_fp_load:
    fp_pairs ldp
    add     x0, x0, #512
    ldp     x1, x2, [x0]
    msr     fpcr, x1
    msr     fpsr, x2
    ret
    .arch_extension nosimd
    .arch_extension nofp
"#
);
