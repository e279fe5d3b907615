// SPDX-License-Identifier: Apache-2.0
//! Instructions whose effect is an exception, or that cause one because of the level or of a control
//! register. All these exceptions go to the guest's own EL1 (Arm ARM DDI 0487 D1.13) and concern no other
//! exception level.

use bulkhead_guest::report::Report;
use bulkhead_guest::vm::exception::class;
use bulkhead_guest::vm::floating_point::{self, Allowed};
use bulkhead_guest::vm::sandbox::Sandbox;

use crate::{Case, Level, check, word_address};

/// The immediate of an exception-generating instruction (ISS bits 15:0).
const IMMEDIATE: u64 = 0xFFFF;
/// Trapped FP and SIMD; a return to a state that cannot be; a program counter that is not aligned.
const FP_TRAP: u64 = 0x07;
const ILLEGAL_STATE: u64 = 0x0E;
const PC_ALIGNMENT: u64 = 0x22;
/// A trapped MSR, MRS or system instruction.
const SYSTEM: u64 = 0x18;

const fn case(name: &'static str, words: &'static [u32], class: u64) -> Case {
    Case {
        name,
        words,
        registers: [0; 3],
        class: Some((class, 0)),
        rest: (0, 0),
    }
}

/// The same at both levels.
const EVERYWHERE: &[Case] = &[
    case("UDF", &[0x0000_0000], class::UNKNOWN),
    Case {
        rest: (IMMEDIATE, 7),
        ..case("BRK #7", &[0xD420_00E0], class::BRK)
    },
    // Halting debug is not the guest's.
    case("HLT #1", &[0xD440_0020], class::UNKNOWN),
    case("DCPS1", &[0xD4A0_0001], class::UNKNOWN),
    Case {
        class: Some((class::SVC, 1)),
        rest: (IMMEDIATE, 7),
        ..case("SVC #7", &[0xD400_00E1], class::SVC)
    },
    case("MRS of HCR_EL2", &[0xD53C_1102], class::UNKNOWN),
    case("MSR of VBAR_EL2", &[0xD51C_C002], class::UNKNOWN),
    case("MRS of SCR_EL3", &[0xD53E_1102], class::UNKNOWN),
    // A branch is done before its target is found misaligned, so the address is the target's.
    Case {
        registers: [word_address(1) + 2, 0, 0],
        class: Some((PC_ALIGNMENT, 1)),
        ..case(
            "branch to an address that is not aligned",
            &[0xD61F_0020, 0xD503_201F],
            0,
        )
    },
];

/// Instructions that are forbidden at EL0.
const PROGRAM_ONLY: &[Case] = &[
    case("HVC", &[0xD400_00E2], class::UNKNOWN),
    case("SMC", &[0xD400_00E3], class::UNKNOWN),
    case("ERET", &[0xD69F_03E0], class::UNKNOWN),
    case("MRS of SCTLR_EL1", &[0xD538_1002], class::UNKNOWN),
    case("MSR of ESR_EL1", &[0xD518_5202], class::UNKNOWN),
    case("TLBI", &[0xD508_871F], class::UNKNOWN),
    case("MRS of DAIF", &[0xD53B_4222], SYSTEM),
];

/// Forged states of an exception return that EL1 must not make: EL2 with either stack pointer, EL3, and
/// AArch32's Hyp mode.
const FORGED: [(&str, u64); 4] = [
    ("return to EL2h", 0x3C9),
    ("return to EL2t", 0x3C8),
    ("return to EL3", 0x3CD),
    ("return to Hyp mode", 0x1DA),
];
/// `MSR SPSR_EL1, x2`, `MSR ELR_EL1, x3`, `ERET`.
const FORGED_RETURN: &[u32] = &[0xD518_4002, 0xD518_4023, 0xD69F_03E0];

/// `FMOV d0, x2`.
const FP_WORD: &[u32] = &[0x9E67_0040];

pub fn run(report: &mut Report, sandbox: &mut Sandbox) {
    for case in EVERYWHERE {
        check(report, sandbox, Level::El1, case);
        check(report, sandbox, Level::El0, case);
    }
    for case in PROGRAM_ONLY {
        check(report, sandbox, Level::El0, case);
    }
    for (name, state) in FORGED {
        let forged = Case {
            registers: [0, state, word_address(3)],
            class: Some((ILLEGAL_STATE, 3)),
            ..case(name, FORGED_RETURN, ILLEGAL_STATE)
        };
        check(report, sandbox, Level::El1, &forged);
    }
    floating_point(report, sandbox);
}

/// `CPACR_EL1.FPEN` decides, with any owner of the FP registers.
fn floating_point(report: &mut Report, sandbox: &mut Sandbox) {
    let trapped = case("FP that is switched off", FP_WORD, FP_TRAP);
    let used = Case {
        name: "FP that is switched on",
        class: None,
        ..trapped
    };
    for (allowed, kernel, program) in [
        (Allowed::Nobody, trapped, trapped),
        (Allowed::Kernel, used, trapped),
        (Allowed::Everybody, used, used),
        (Allowed::Nobody, trapped, trapped),
    ] {
        floating_point::allow(allowed);
        check(report, sandbox, Level::El1, &kernel);
        check(report, sandbox, Level::El0, &program);
    }
}
