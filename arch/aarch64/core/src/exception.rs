// SPDX-License-Identifier: Apache-2.0
//! Exception entry to EL1 in AArch64 state (Arm DDI 0487 D1.10, AArch64.TakeException).

use crate::Handler;
use crate::pstate::{AARCH32, ALL_MASKED, EL1H, EL1T, MODE, is_el1};
use crate::syndrome::{
    EC_DATA_ABORT, EC_INSTRUCTION_ABORT, EC_SERROR, EC_UNKNOWN, IL, ISS_FNV, ISS_WRITE, class,
};
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::FaultReport;

/// Added to the class of an abort that comes from the same level.
const EC_SAME_LEVEL: u64 = 1;
/// Fault status: synchronous external abort, not on a table walk.
const FSC_EXTERNAL: u64 = 0x10;
/// Fault status: alignment.
const FSC_ALIGNMENT: u64 = 0x21;

/// The syndrome of an undefined instruction.
pub const UNDEFINED: u64 = EC_UNKNOWN << 26 | IL;

const PSTATE_FLAGS: u64 = 0xF << 28;
const PSTATE_DIT: u64 = 1 << 24;
const PSTATE_PAN: u64 = 1 << 22;
const PSTATE_SSBS: u64 = 1 << 12;
const SCTLR_SPAN: u64 = 1 << 23;
const SCTLR_DSSBS: u64 = 1 << 44;

/// The controls that an exception entry depends on besides PSTATE.
#[derive(Clone, Copy, Debug)]
pub struct Controls {
    /// SCTLR_EL1.
    pub sctlr: u64,
    /// VBAR_EL1.
    pub vbar: u64,
    /// The CPU has PAN (ID_AA64MMFR1_EL1.PAN).
    pub has_pan: bool,
}

impl Controls {
    /// Returns the handler of a synchronous exception that is taken from `pstate`.
    #[must_use]
    pub const fn handler(&self, pstate: u64) -> Handler {
        Handler {
            pstate: self.handler_pstate(pstate),
            pc: self.vbar.wrapping_add(vector_offset(pstate)),
        }
    }

    const fn handler_pstate(&self, pstate: u64) -> u64 {
        let dit = if pstate & AARCH32 == 0 { PSTATE_DIT } else { 0 };
        let pan = if self.has_pan && self.sctlr & SCTLR_SPAN == 0 {
            PSTATE_PAN
        } else {
            0
        };
        let ssbs = if self.sctlr & SCTLR_DSSBS != 0 {
            PSTATE_SSBS
        } else {
            0
        };
        pstate & (PSTATE_FLAGS | PSTATE_PAN | dit) | ALL_MASKED | EL1H | pan | ssbs
    }
}

/// Offset of the vector of a synchronous exception that is taken from this state (D1.10.2).
const fn vector_offset(pstate: u64) -> u64 {
    if pstate & AARCH32 != 0 {
        return 0x600;
    }
    match pstate & MODE {
        EL1H => 0x200,
        EL1T => 0,
        _ => 0x400,
    }
}

/// Tells whether a fault is an SError, which stays one for the guest.
#[must_use]
pub fn is_serror(report: &FaultReport) -> bool {
    report.class == HealthClass::Memory && class(report.syndrome) == EC_SERROR
}

/// Returns the syndrome that EL1 sees for a fault that was reported of code with this PSTATE: an external
/// abort for memory, else an undefined instruction.
#[must_use]
pub fn reflected(report: &FaultReport, pstate: u64) -> u64 {
    if report.class != HealthClass::Memory {
        return UNDEFINED;
    }
    let address = if report.virtual_address.is_some() {
        0
    } else {
        ISS_FNV
    };
    let (from_lower, write) = if class(report.syndrome) == EC_INSTRUCTION_ABORT {
        (EC_INSTRUCTION_ABORT, 0)
    } else {
        (EC_DATA_ABORT, report.syndrome & ISS_WRITE)
    };
    abort_class(from_lower, pstate) << 26 | IL | address | write | FSC_EXTERNAL
}

/// Returns the syndrome that EL1 sees for the alignment fault of a load or store that came with the syndrome
/// `reported`.
#[must_use]
pub const fn alignment_fault(reported: u64, pstate: u64) -> u64 {
    abort_class(EC_DATA_ABORT, pstate) << 26 | IL | reported & ISS_WRITE | FSC_ALIGNMENT
}

/// Returns the class of an abort as EL1 sees it.
const fn abort_class(from_lower: u64, pstate: u64) -> u64 {
    if is_el1(pstate) {
        from_lower + EC_SAME_LEVEL
    } else {
        from_lower
    }
}
