// SPDX-License-Identifier: Apache-2.0
//! Exception entry to EL1 in AArch64 state: vectors (Arm DDI 0487 D1.10.2), PSTATE (D1.10.4) and syndromes.

use bulkhead_abi::HealthClass;
use bulkhead_arch_aarch64_core::Handler;
use bulkhead_arch_aarch64_core::exception::{Controls, UNDEFINED, alignment_fault, is_serror, reflected};
use bulkhead_arch_api::FaultReport;

const VBAR: u64 = 0xFFFF_8000_1234_5800;
/// No PAN, SCTLR_EL1.SPAN set.
const PLAIN: Controls = Controls {
    sctlr: 1 << 23,
    vbar: VBAR,
    has_pan: false,
};
const N_C: u64 = 0xA << 28;
const DIT: u64 = 1 << 24;
const UAO: u64 = 1 << 23;
const PAN: u64 = 1 << 22;
const SS: u64 = 1 << 21;
const IL: u64 = 1 << 20;
const SSBS: u64 = 1 << 12;
const BTYPE: u64 = 3 << 10;
/// EL1h with D, A, I and F masked.
const MASKED: u64 = 0x3C5;

fn report(class: HealthClass, syndrome: u64, virtual_address: Option<u64>) -> FaultReport {
    FaultReport {
        class,
        syndrome,
        pc: 0x4008_0000,
        address: None,
        virtual_address,
    }
}

#[test]
fn the_vector_is_that_of_level_and_stack_pointer() {
    for (pstate, offset) in [
        // Current level with SP_EL0, with SP_ELx.
        (0x4, 0x000),
        (0x5, 0x200),
        // Lower level in AArch64 state.
        (0x0, 0x400),
        // Lower level in AArch32 state.
        (0x10, 0x600),
        (0x30, 0x600),
    ] {
        let handler = PLAIN.handler(pstate);
        assert_eq!(handler.pc, VBAR + offset, "{pstate:#x}");
        assert_eq!(handler.pstate, MASKED, "{pstate:#x}");
    }
}

#[test]
fn flags_and_dit_are_kept_and_the_rest_is_cleared() {
    let everything = N_C | DIT | UAO | SS | IL | SSBS | BTYPE | 0x5;
    assert_eq!(PLAIN.handler(everything).pstate, N_C | DIT | MASKED);
    // Masks of the interrupted code do not matter.
    assert_eq!(PLAIN.handler(0x3C5), PLAIN.handler(0x5));
    // AArch32: no IT, T, E, GE, Q and J.
    let aarch32 = N_C | 0xF << 16 | 1 << 27 | 0xFC00 | 3 << 25 | 1 << 9 | 0x30;
    assert_eq!(PLAIN.handler(aarch32).pstate, N_C | MASKED);
}

#[test]
fn pan_is_set_unless_span_says_otherwise() {
    for (has_pan, span, before, after) in [
        (true, 0, 0, PAN),
        (true, 0, PAN, PAN),
        (true, 1 << 23, 0, 0),
        (true, 1 << 23, PAN, PAN),
        (false, 0, 0, 0),
    ] {
        let controls = Controls {
            sctlr: span,
            vbar: 0,
            has_pan,
        };
        assert_eq!(controls.handler(before).pstate, after | MASKED);
    }
}

#[test]
fn ssbs_is_what_dssbs_says() {
    for (dssbs, ssbs) in [(0, 0), (1 << 44, SSBS)] {
        let controls = Controls {
            sctlr: dssbs | 1 << 23,
            ..PLAIN
        };
        for before in [0x5, 0x5 | SSBS] {
            assert_eq!(controls.handler(before).pstate, ssbs | MASKED);
        }
    }
}

#[test]
fn vbar_may_be_anywhere() {
    let top = Controls {
        vbar: !0x7FF,
        ..PLAIN
    };
    let handler = Handler {
        pstate: MASKED,
        pc: !0x7FF | 0x600,
    };
    assert_eq!(top.handler(0x10), handler);
}

/// EC of data and instruction aborts: 0x24 and 0x20 from a lower level, one more from EL1 itself.
#[test]
fn aborts_are_external_and_name_the_level_they_come_from() {
    const EXTERNAL: u64 = 0x10;
    let from = [(0x0, 0), (0x4, 1), (0x5, 1), (0x10, 0), (0x30, 0)];
    for (pstate, same) in from {
        let load = report(HealthClass::Memory, 0x24 << 26 | 0x07, Some(0x1000));
        assert_eq!(reflected(&load, pstate), (0x24 + same) << 26 | 1 << 25 | EXTERNAL);
        let store = report(HealthClass::Memory, 0x24 << 26 | 1 << 6 | 0x07, Some(0x1000));
        assert_eq!(
            reflected(&store, pstate),
            (0x24 + same) << 26 | 1 << 25 | 1 << 6 | EXTERNAL
        );
        let fetch = report(HealthClass::Memory, 0x20 << 26 | 0x07, Some(0x1000));
        assert_eq!(
            reflected(&fetch, pstate),
            (0x20 + same) << 26 | 1 << 25 | EXTERNAL
        );
    }
}

#[test]
fn an_abort_without_an_address_says_so() {
    const FNV: u64 = 1 << 10;
    let load = report(HealthClass::Memory, 0x24 << 26, None);
    assert_eq!(reflected(&load, 0x5), 0x25 << 26 | 1 << 25 | FNV | 0x10);
}

#[test]
fn other_faults_are_undefined_instructions() {
    assert_eq!(UNDEFINED, 1 << 25);
    for class in [HealthClass::System, HealthClass::Task] {
        assert_eq!(reflected(&report(class, 0x18 << 26, None), 0x5), UNDEFINED);
    }
}

#[test]
fn alignment_faults() {
    const ALIGNMENT: u64 = 0x21;
    for (pstate, class) in [(0x0, 0x24), (0x5, 0x25), (0x4, 0x25), (0x10, 0x24)] {
        for write in [0, 1 << 6] {
            let reported = 0x24 << 26 | 1 << 25 | 1 << 24 | write | 0x07;
            assert_eq!(
                alignment_fault(reported, pstate),
                class << 26 | 1 << 25 | write | ALIGNMENT
            );
        }
    }
}

#[test]
fn an_serror_stays_one() {
    assert!(is_serror(&report(HealthClass::Memory, 0x2F << 26, None)));
    assert!(!is_serror(&report(HealthClass::Memory, 0x24 << 26, None)));
    assert!(!is_serror(&report(HealthClass::System, 0x2F << 26, None)));
}
