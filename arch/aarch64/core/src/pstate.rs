// SPDX-License-Identifier: Apache-2.0
//! PSTATE as SPSR_EL2 holds it (Arm DDI 0487 D19.2.140).

/// `M[4]`: AArch32 state.
pub const AARCH32: u64 = 1 << 4;
/// `M[3:0]` of AArch64 state: EL0.
pub const EL0T: u64 = 0x0;
/// `M[3:0]` of AArch64 state: EL1 with SP_EL0.
pub const EL1T: u64 = 0x4;
/// `M[3:0]` of AArch64 state: EL1 with SP_EL1.
pub const EL1H: u64 = 0x5;
/// M: the state, and the mode or level in it.
pub const MODE: u64 = 0x1F;
/// D, A, I and F of AArch64 state.
pub const ALL_MASKED: u64 = 0xF << 6;
/// T of AArch32 state: T32 instructions.
pub const THUMB: u64 = 1 << 5;
/// E of AArch32 state: data accesses are big-endian.
pub const BIG_ENDIAN: u64 = 1 << 9;
/// SCTLR_EL1.E0E: data accesses of EL0 in AArch64 state are big-endian (B2.6.2).
pub const SCTLR_BIG_ENDIAN_EL0: u64 = 1 << 24;
/// SCTLR_EL1.EE: data accesses of EL1 in AArch64 state are big-endian (B2.6.2).
pub const SCTLR_BIG_ENDIAN_EL1: u64 = 1 << 25;

/// SS: a single step is pending.
const SINGLE_STEP: u64 = 1 << 21;
/// `M[3:2]` of AArch64 state: the level.
const LEVEL: u64 = 3 << 2;
/// IT of AArch32 state: bits 7:2 of ITSTATE are here in 15:10, bits 1:0 in 26:25.
const IT: u64 = 0xFC00 | 3 << 25;
/// `M[4:0]` of AArch32's User mode.
const MODE_USER: u64 = 0x10;

/// Tells whether it is EL1 in AArch64 state.
#[inline(always)]
#[must_use]
pub const fn is_el1(pstate: u64) -> bool {
    pstate & (AARCH32 | LEVEL) == EL1T
}

/// Tells whether it is a mode of AArch32 state other than User mode.
#[inline]
#[must_use]
pub const fn is_privileged_aarch32(pstate: u64) -> bool {
    pstate & MODE != MODE_USER
}

/// Tells whether data accesses are big-endian, with this SCTLR_EL1. The least significant byte of a device's
/// register is then the most significant one to the guest.
#[inline]
#[must_use]
pub const fn is_big_endian(pstate: u64, sctlr: u64) -> bool {
    if pstate & AARCH32 != 0 {
        return pstate & BIG_ENDIAN != 0;
    }
    let control = if is_el1(pstate) {
        SCTLR_BIG_ENDIAN_EL1
    } else {
        SCTLR_BIG_ENDIAN_EL0
    };
    sctlr & control != 0
}

/// ITSTATE of AArch32 state (G1.16): 0 outside of an IT block.
#[inline(always)]
#[must_use]
pub const fn it_state(pstate: u64) -> u64 {
    pstate >> 8 & 0xFC | pstate >> 25 & 3
}

/// PSTATE after a completed instruction: no single step is pending over it, and ITSTATE has advanced (F1.3).
#[inline(always)]
#[must_use]
pub const fn stepped(pstate: u64) -> u64 {
    let pstate = pstate & !SINGLE_STEP;
    if pstate & AARCH32 == 0 {
        return pstate;
    }
    let it = it_state(pstate);
    let it = if it & 7 == 0 {
        0
    } else {
        it & 0xE0 | it << 1 & 0x1F
    };
    pstate & !IT | (it & 0xFC) << 8 | (it & 3) << 25
}
