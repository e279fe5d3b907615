// SPDX-License-Identifier: Apache-2.0
//! AArch32 state: banked registers, conditions of A32 and T32, coprocessor names, exception entry.

use bulkhead_abi::HealthClass;
use bulkhead_abi::log::registers::A32;
use bulkhead_arch_aarch64_core::Handler;
use bulkhead_arch_aarch64_core::aarch32::{
    Exception, as_system_access, fault_status, passes, register_of_pair, stack_pointer, start, view,
    with_view,
};
use bulkhead_arch_api::FaultReport;

const USER: u64 = 0x10;
const FIQ: u64 = 0x11;
const IRQ: u64 = 0x12;
const SUPERVISOR: u64 = 0x13;
const ABORT: u64 = 0x17;
const UNDEFINED: u64 = 0x1B;
const SYSTEM: u64 = 0x1F;
const MODES: [(u64, &str); 7] = [
    (USER, "usr"),
    (FIQ, "fiq"),
    (IRQ, "irq"),
    (SUPERVISOR, "svc"),
    (ABORT, "abt"),
    (UNDEFINED, "und"),
    (SYSTEM, "usr"),
];

fn report(class: HealthClass, syndrome: u64) -> FaultReport {
    FaultReport {
        class,
        syndrome,
        pc: 0x8000,
        address: None,
        virtual_address: None,
    }
}

/// The table "Mapping of AArch32 general-purpose registers" (D1.20.1), by the names of x0..x30.
#[test]
fn each_mode_has_its_registers() {
    for (mode, name) in MODES {
        for number in 0..15_u8 {
            let banked = match number {
                13 => Some("sp"),
                14 => Some("lr"),
                8..=12 if mode == FIQ => Some(["r8", "r9", "r10", "r11", "r12"][usize::from(number) - 8]),
                _ => None,
            };
            let expected = banked.map_or(format!("r{number}"), |register| format!("{register}_{name}"));
            let found = A32.names[usize::from(view(0x6000_01C0 | mode, number))];
            assert_eq!(found, expected, "{mode:#x} {number}");
        }
        assert_eq!(view(mode, 15), 31, "the program counter is no general register");
        assert_eq!(A32.names[usize::from(stack_pointer(mode))], format!("sp_{name}"));
    }
}

#[test]
fn a_number_that_is_the_aarch64_view_already_stays() {
    for (mode, _) in MODES {
        for number in 16..31 {
            assert_eq!(view(mode, number), number);
        }
    }
}

#[test]
fn a_syndrome_is_renamed_in_its_register_field_alone() {
    for shift in [5, 16] {
        let syndrome = !(31 << shift) | 13 << shift;
        let renamed = !(31 << shift) | 19 << shift;
        assert_eq!(with_view(syndrome, shift, SUPERVISOR), renamed);
        assert_eq!(with_view(syndrome, shift, USER), syndrome);
    }
}

/// Each condition (F1.3.1), for N, Z, C, V.
fn condition(code: u64, (n, z, c, v): (bool, bool, bool, bool)) -> bool {
    match code {
        0b0000 => z,
        0b0001 => !z,
        0b0010 => c,
        0b0011 => !c,
        0b0100 => n,
        0b0101 => !n,
        0b0110 => v,
        0b0111 => !v,
        0b1000 => c && !z,
        0b1001 => !c || z,
        0b1010 => n == v,
        0b1011 => n != v,
        0b1100 => !z && n == v,
        0b1101 => z || n != v,
        _ => true,
    }
}

fn each_condition(mut check: impl FnMut(u64, u64, bool)) {
    for code in 0..16 {
        for flags in 0..16_u64 {
            let bit = |number: u32| flags >> number & 1 == 1;
            check(
                code,
                flags << 28,
                condition(code, (bit(3), bit(2), bit(1), bit(0))),
            );
        }
    }
}

#[test]
fn a_valid_condition_of_the_syndrome_decides() {
    each_condition(|code, flags, expected| {
        let syndrome = 0x03 << 26 | 1 << 25 | 1 << 24 | code << 20;
        // For any ITSTATE.
        for it in [0, 0xFC00 | 3 << 25] {
            assert_eq!(
                passes(syndrome, flags | it | SUPERVISOR),
                expected,
                "{code:#b} {flags:#x}"
            );
        }
    });
}

#[test]
fn else_the_it_block_decides() {
    each_condition(|code, flags, expected| {
        // The last instruction of a block: ITSTATE[7:4] is its condition, ITSTATE[3:0] is 0b1000.
        let it = code << 4 | 0b1000;
        let pstate = flags | (it >> 2 & 0x3F) << 10 | (it & 3) << 25 | 0x30;
        assert_eq!(
            passes(0x03 << 26 | 1 << 25 | 0xF << 20, pstate),
            expected,
            "{code:#b} {flags:#x}"
        );
    });
    assert!(passes(0, 0x30), "outside of a block");
    // The first of four: the mask is in both fields. NE with Z set.
    assert!(!passes(0, 1 << 30 | 0b00_0111 << 10 | 0b11 << 25 | 0x30));
}

/// MCR and MRC: Opc2 19:17, Opc1 16:14, CRn 13:10, Rt 9:5, CRm 4:1, Direction 0. MSR has the same, and Op0 in
/// 21:20.
#[test]
fn cp15_registers_have_their_aarch64_names() {
    let mcr = |opc1: u64, crn: u64, crm: u64, opc2: u64| {
        1 << 25 | 1 << 24 | 0xE << 20 | opc2 << 17 | opc1 << 14 | crn << 10 | 7 << 5 | crm << 1 | 1
    };
    let msr = |op1: u64, crn: u64, crm: u64, op2: u64| {
        1 << 25 | 3 << 20 | op2 << 17 | op1 << 14 | crn << 10 | 7 << 5 | crm << 1 | 1
    };
    // MIDR, ID_PFR0, ICC_SRE.
    for (opc1, crn, crm, opc2) in [(0, 0, 0, 0), (0, 0, 1, 0), (0, 12, 12, 5)] {
        assert_eq!(
            as_system_access(mcr(opc1, crn, crm, opc2)),
            msr(opc1, crn, crm, opc2)
        );
    }
    // CNTP_TVAL, CNTP_CTL and CNTKCTL: op1 0 here, 3 there.
    assert_eq!(as_system_access(mcr(0, 14, 2, 0)), msr(3, 14, 2, 0));
    assert_eq!(as_system_access(mcr(0, 14, 2, 1)), msr(3, 14, 2, 1));
    // CNTHCTL has another op1 and stays.
    assert_eq!(as_system_access(mcr(4, 14, 1, 0)), msr(4, 14, 1, 0));
}

/// MCRR and MRRC: Opc1 19:16, CRm 4:1.
#[test]
fn cp15_pairs_are_five_registers() {
    let name =
        |op1: u64, crn: u64, crm: u64, op2: u64| 3 << 20 | op2 << 17 | op1 << 14 | crn << 10 | crm << 1;
    for opc1 in 0..16 {
        for crm in 0..16 {
            let expected = match (opc1, crm) {
                (0, 12) => Some(name(0, 12, 11, 5)), // ICC_SGI1R
                (1, 12) => Some(name(0, 12, 11, 6)), // ICC_ASGI1R
                (2, 12) => Some(name(0, 12, 11, 7)), // ICC_SGI0R
                (0, 14) => Some(name(3, 14, 0, 1)),  // CNTPCT
                (2, 14) => Some(name(3, 14, 2, 2)),  // CNTP_CVAL
                _ => None,
            };
            assert_eq!(register_of_pair(opc1 << 16 | crm << 1 | 31 << 5), expected);
        }
    }
}

#[test]
fn a_start_is_in_supervisor_mode_with_everything_masked() {
    assert_eq!(
        start(0x4000_8000),
        Handler {
            pstate: 0x1D3,
            pc: 0x4000_8000
        }
    );
    assert_eq!(
        start(0x4000_8001),
        Handler {
            pstate: 0x1F3,
            pc: 0x4000_8000
        }
    );
}

const ALL: [Exception; 3] = [
    Exception::Undefined,
    Exception::PrefetchAbort,
    Exception::DataAbort,
];

/// Vectors 0x4, 0xC and 0x10 (G1.12.1); an undefined instruction masks IRQ, an abort SErrors as well.
#[test]
fn each_exception_has_its_vector_mode_and_masks() {
    let expected = [
        (0x04, UNDEFINED, 0x80),
        (0x0C, ABORT, 0x180),
        (0x10, ABORT, 0x180),
    ];
    for (exception, (vector, mode, masks)) in ALL.into_iter().zip(expected) {
        for (from, _) in MODES {
            let handler = Handler {
                pstate: masks | mode,
                pc: 0x8000_0020 + vector,
            };
            assert_eq!(
                exception.handler(from, 0, 0x8000_0020),
                handler,
                "{exception:?} {from:#x}"
            );
        }
        let high = exception.handler(USER, 1 << 13, 0x8000_0020);
        assert_eq!(high.pc, 0xFFFF_0000 + vector);
        // VBAR[4:0] are reserved.
        assert_eq!(exception.handler(USER, 0, 0x8000_003F).pc, 0x8000_0020 + vector);
    }
}

#[test]
fn state_and_byte_order_of_a_handler_are_the_controls() {
    for exception in ALL {
        let plain = exception.handler(USER, 0, 0).pstate;
        // T, E and IT of the interrupted code do not matter.
        let thumb_big = USER | 1 << 5 | 1 << 9 | 0xFC00 | 3 << 25;
        assert_eq!(exception.handler(thumb_big, 0, 0).pstate, plain);
        assert_eq!(exception.handler(USER, 1 << 30, 0).pstate, plain | 1 << 5);
        assert_eq!(exception.handler(USER, 1 << 25, 0).pstate, plain | 1 << 9);
        // Flags, Q, GE and the masks of SErrors and FIQ stay.
        let kept = 0xF80F_0000 | 1 << 8 | 1 << 6;
        assert_eq!(exception.handler(USER | kept, 0, 0).pstate, plain | kept);
    }
}

/// The preferred return addresses (G1.12.3).
#[test]
fn each_exception_leaves_its_return_address_in_its_link_register() {
    for (exception, a32, t32, link) in [
        (Exception::Undefined, 4, 2, "lr_und"),
        (Exception::PrefetchAbort, 4, 4, "lr_abt"),
        (Exception::DataAbort, 8, 8, "lr_abt"),
    ] {
        assert_eq!(exception.return_address(0x8000, USER), 0x8000 + a32);
        assert_eq!(exception.return_address(0x8000, USER | 1 << 5), 0x8000 + t32);
        assert_eq!(A32.names[usize::from(exception.link_register())], link);
    }
}

#[test]
fn faults_become_the_exception_of_their_class() {
    for (class, syndrome, expected) in [
        (HealthClass::Memory, 0x20 << 26, Exception::PrefetchAbort),
        (HealthClass::Memory, 0x24 << 26, Exception::DataAbort),
        (HealthClass::System, 0x03 << 26, Exception::Undefined),
        (HealthClass::System, 0x20 << 26, Exception::Undefined),
    ] {
        assert_eq!(Exception::of(&report(class, syndrome)), expected);
    }
}

/// Synchronous external abort: FS 0b01000 in the format of short descriptors; LPAE and STATUS 0b010000 in
/// the one of long ones.
#[test]
fn fault_status_is_an_external_abort_in_the_format_of_the_tables() {
    const EAE: u64 = 1 << 31;
    const WNR: u64 = 1 << 11;
    let fetch = report(HealthClass::Memory, 0x20 << 26 | 1 << 6);
    let load = report(HealthClass::Memory, 0x24 << 26);
    let store = report(HealthClass::Memory, 0x24 << 26 | 1 << 6);
    for (ttbcr, status) in [
        (0, 0b01000),
        (EAE, 1 << 9 | 0b01_0000),
        (EAE | 7, 1 << 9 | 0b01_0000),
    ] {
        assert_eq!(fault_status(&fetch, ttbcr), status, "IFSR has no WnR");
        assert_eq!(fault_status(&load, ttbcr), status);
        assert_eq!(fault_status(&store, ttbcr), status | WNR);
    }
}
