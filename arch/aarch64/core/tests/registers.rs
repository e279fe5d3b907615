// SPDX-License-Identifier: Apache-2.0
//! System registers: each row of the tables, by the names and fields of the manual (Arm DDI 0487 D19.2, K15).

use bulkhead_arch_aarch64_core::registers::{
    Comparator, CpuInterface, IdRegister, InterruptRegister, NAME, PhysicalTimer, Read, Write,
    identification, read, register, write,
};

const BOTH: [CpuInterface; 2] = [CpuInterface::Registers, CpuInterface::Memory];

#[test]
fn names_are_packed_as_in_the_iss() {
    // Op0 21:20, Op2 19:17, Op1 16:14, CRn 13:10, CRm 4:1.
    assert_eq!(register(3, 0, 0, 0, 0), 3 << 20);
    assert_eq!(register(0, 0, 0, 0, 7), 7 << 17);
    assert_eq!(register(0, 7, 0, 0, 0), 7 << 14);
    assert_eq!(register(0, 0, 15, 0, 0), 15 << 10);
    assert_eq!(register(0, 0, 0, 15, 0), 15 << 1);
    assert_eq!(NAME, 0x3F_FC1E);
}

/// Registers that are no comparators and no identification: name, reading, writing.
const ROWS: [(&str, u64, Read, Write); 24] = {
    use PhysicalTimer::{Compare, Control, Counter, Value};
    const ZERO: Read = Read::Constant(0);
    [
        (
            "ACTLR_EL1",
            register(3, 0, 1, 0, 1),
            Read::Auxiliary,
            Write::Ignored,
        ),
        (
            "CNTPCT_EL0",
            register(3, 3, 14, 0, 1),
            Read::PhysicalTimer(Counter),
            Write::Absent,
        ),
        (
            "CNTP_TVAL_EL0",
            register(3, 3, 14, 2, 0),
            Read::PhysicalTimer(Value),
            Write::PhysicalTimer(Value),
        ),
        (
            "CNTP_CTL_EL0",
            register(3, 3, 14, 2, 1),
            Read::PhysicalTimer(Control),
            Write::PhysicalTimer(Control),
        ),
        (
            "CNTP_CVAL_EL0",
            register(3, 3, 14, 2, 2),
            Read::PhysicalTimer(Compare),
            Write::PhysicalTimer(Compare),
        ),
        (
            "ICC_SGI1R_EL1",
            register(3, 0, 12, 11, 5),
            Read::Absent,
            Write::Interrupt(InterruptRegister::Sgi1r),
        ),
        (
            "ICC_ASGI1R_EL1",
            register(3, 0, 12, 11, 6),
            Read::Absent,
            Write::Interrupt(InterruptRegister::Asgi1r),
        ),
        (
            "ICC_SGI0R_EL1",
            register(3, 0, 12, 11, 7),
            Read::Absent,
            Write::Interrupt(InterruptRegister::Sgi0r),
        ),
        (
            "ICC_DIR_EL1",
            register(3, 0, 12, 11, 1),
            Read::Absent,
            Write::Interrupt(InterruptRegister::Dir),
        ),
        ("OSDTRRX_EL1", register(2, 0, 0, 0, 2), ZERO, Write::Ignored),
        ("MDCCINT_EL1", register(2, 0, 0, 2, 0), ZERO, Write::Ignored),
        (
            "MDSCR_EL1",
            register(2, 0, 0, 2, 2),
            Read::DebugControl,
            Write::DebugControl,
        ),
        ("OSDTRTX_EL1", register(2, 0, 0, 3, 2), ZERO, Write::Ignored),
        ("OSECCR_EL1", register(2, 0, 0, 6, 2), ZERO, Write::Ignored),
        // Read-only, as are OSLSR, DBGAUTHSTATUS and MDCCSR; OSLAR is write-only.
        ("MDRAR_EL1", register(2, 0, 1, 0, 0), ZERO, Write::Absent),
        ("OSLAR_EL1", register(2, 0, 1, 0, 4), Read::Absent, Write::OsLock),
        (
            "OSLSR_EL1",
            register(2, 0, 1, 1, 4),
            Read::OsLockStatus,
            Write::Absent,
        ),
        ("OSDLR_EL1", register(2, 0, 1, 3, 4), ZERO, Write::Ignored),
        ("DBGPRCR_EL1", register(2, 0, 1, 4, 4), ZERO, Write::Ignored),
        (
            "DBGCLAIMSET_EL1",
            register(2, 0, 7, 8, 6),
            Read::Constant(0xFF),
            Write::Ignored,
        ),
        ("DBGCLAIMCLR_EL1", register(2, 0, 7, 9, 6), ZERO, Write::Ignored),
        ("DBGAUTHSTATUS_EL1", register(2, 0, 7, 14, 6), ZERO, Write::Absent),
        ("MDCCSR_EL0", register(2, 3, 0, 1, 0), ZERO, Write::Absent),
        ("DBGDTR_EL0", register(2, 3, 0, 4, 0), ZERO, Write::Ignored),
    ]
};

#[test]
fn every_row() {
    for interface in BOTH {
        for (name, number, reading, writing) in ROWS {
            assert_eq!(read(number, interface), reading, "{name}");
            assert_eq!(write(number, interface), writing, "{name}");
        }
    }
    // DBGDTRRX_EL0 and DBGDTRTX_EL0 are one name.
    let transfer = register(2, 3, 0, 5, 0);
    assert_eq!(read(transfer, CpuInterface::Registers), Read::Constant(0));
    assert_eq!(write(transfer, CpuInterface::Registers), Write::Ignored);
}

/// SRE, DFB and DIB are one and stay so (IHI 0069, 12.2.29); with a GICv2 there is no such register.
#[test]
fn the_system_register_interface_is_on_or_not_there() {
    let sre = register(3, 0, 12, 12, 5);
    assert_eq!(read(sre, CpuInterface::Registers), Read::Constant(7));
    assert_eq!(write(sre, CpuInterface::Registers), Write::Ignored);
    assert_eq!(read(sre, CpuInterface::Memory), Read::Absent);
    assert_eq!(write(sre, CpuInterface::Memory), Write::Absent);
}

#[test]
fn every_comparator() {
    let kinds = [
        (4, Comparator::BreakValue),
        (5, Comparator::BreakControl),
        (6, Comparator::WatchValue),
        (7, Comparator::WatchControl),
    ];
    for (op2, kind) in kinds {
        for number in 0..16 {
            let name = register(2, 0, 0, number, op2);
            let number = number as usize;
            assert_eq!(
                read(name, CpuInterface::Registers),
                Read::Comparator(kind, number)
            );
            assert_eq!(
                write(name, CpuInterface::Registers),
                Write::Comparator(kind, number)
            );
        }
    }
}

/// Everything else of the debug group (op0 2), and of the other groups (op0 3), is absent.
#[test]
fn nothing_else_is_there() {
    let mut present = 0;
    for op0 in 2..4 {
        for op1 in 0..8 {
            for crn in 0..16 {
                for crm in 0..16 {
                    for op2 in 0..8 {
                        let name = register(op0, op1, crn, crm, op2);
                        let is_row = ROWS.iter().any(|(_, number, ..)| *number == name)
                            || name == register(2, 3, 0, 5, 0)
                            || name == register(3, 0, 12, 12, 5);
                        let is_comparator = op0 == 2 && op1 == 0 && crn == 0 && op2 >= 4;
                        let is_identification = op0 == 3 && crn == 0;
                        if is_row || is_comparator {
                            present += 1;
                            continue;
                        }
                        let reading = if is_identification {
                            Read::Identification
                        } else {
                            Read::Absent
                        };
                        assert_eq!(read(name, CpuInterface::Registers), reading, "{name:#x}");
                        assert_eq!(write(name, CpuInterface::Registers), Write::Absent, "{name:#x}");
                    }
                }
            }
        }
    }
    assert_eq!(present, 24 + 2 + 64);
}

/// An identification register: CRm, op2, the fields that a guest sees by their lowest bits (each has four
/// bits), and what is set besides for a guest with a GICv3.
struct Id {
    register: IdRegister,
    crm: u64,
    op2: u64,
    fields: &'static [u32],
    ones: u64,
}

const ALL: &[u32] = &[0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60];

const fn id(register: IdRegister, crm: u64, op2: u64, fields: &'static [u32]) -> Id {
    Id {
        register,
        crm,
        op2,
        fields,
        ones: 0,
    }
}

const IDS: [Id; 25] = [
    // State0 to State3, CSV2, DIT; not AMU (20), RAS (28).
    id(IdRegister::Pfr0, 1, 0, &[0, 4, 8, 12, 16, 24]),
    // ProgMod, Security, MProgMod, GenTimer; not Virtualization (12), Sec_frac, Virt_frac; GIC (28) is ours.
    Id {
        ones: 1 << 28,
        ..id(IdRegister::Pfr1, 1, 1, &[0, 4, 8, 16])
    },
    // CopDbg, CopSDbg, MMapDbg; not CopTrc, MMapTrc, MProfDbg, PerfMon, TraceFilt.
    id(IdRegister::Dfr0, 1, 2, &[0, 4, 8]),
    id(IdRegister::Mmfr0, 1, 4, ALL),
    id(IdRegister::Mmfr1, 1, 5, ALL),
    id(IdRegister::Mmfr2, 1, 6, ALL),
    id(IdRegister::Mmfr3, 1, 7, ALL),
    id(IdRegister::Isar0, 2, 0, ALL),
    id(IdRegister::Isar1, 2, 1, ALL),
    id(IdRegister::Isar2, 2, 2, ALL),
    id(IdRegister::Isar3, 2, 3, ALL),
    id(IdRegister::Isar4, 2, 4, ALL),
    id(IdRegister::Isar5, 2, 5, ALL),
    // Not SpecSEI (0), EVT (28).
    id(IdRegister::Mmfr4, 2, 6, &[4, 8, 12, 16, 20, 24]),
    id(IdRegister::Mvfr0, 3, 0, ALL),
    id(IdRegister::Mvfr1, 3, 1, ALL),
    id(IdRegister::Mvfr2, 3, 2, ALL),
    // EL0, FP, AdvSIMD, DIT, CSV3; not EL2, EL3, RAS, SVE, SEL2, MPAM, AMU, RME. EL1 is AArch64 only, GIC is
    // ours, CSV2 at most 1.
    Id {
        ones: 1 << 4 | 1 << 24 | 1 << 56,
        ..id(IdRegister::Aa64Pfr0, 4, 0, &[0, 16, 20, 48, 60])
    },
    // BT, SSBS; not MTE, RAS_frac, MPAM_frac, SME.
    id(IdRegister::Aa64Pfr1, 4, 1, &[0, 4]),
    // DebugVer, BRPs, WRPs, CTX_CMPs; not TraceVer, PMUVer, PMSVer, TraceFilt, TraceBuffer. There is no
    // double lock.
    Id {
        ones: 0xF << 36,
        ..id(IdRegister::Aa64Dfr0, 5, 0, &[0, 12, 20, 28])
    },
    // Not TME (24).
    id(
        IdRegister::Aa64Isar0,
        6,
        0,
        &[0, 4, 8, 12, 16, 20, 28, 32, 36, 40, 44, 48, 52, 56, 60],
    ),
    // DPB, JSCVT, FCMA, LRCPC, FRINTTS, SB, SPECRES, BF16, DGH, I8MM; not APA, API, GPA, GPI, XS, LS64.
    id(
        IdRegister::Aa64Isar1,
        6,
        1,
        &[0, 12, 16, 20, 32, 36, 40, 44, 48, 52],
    ),
    // ASIDBits, BigEnd, SNSMem, BigEndEL0, TGran16, 64, 4; not TGran*_2, ExS, FGT, ECV. PARange is 40 bits.
    Id {
        ones: 2,
        ..id(IdRegister::Aa64Mmfr0, 7, 0, &[4, 8, 12, 16, 20, 24, 28])
    },
    // HAFDBS, HPDS, PAN, ETS; not VMIDBits, VH, LO, SpecSEI, XNX, TWED, HCX.
    id(IdRegister::Aa64Mmfr1, 7, 1, &[0, 12, 20, 36]),
    // CnP, UAO, LSM, VARange, CCIDX, ST, AT, TTL, BBM, E0PD; not IESB, NV, IDS, FWB, EVT.
    id(
        IdRegister::Aa64Mmfr2,
        7,
        2,
        &[0, 4, 8, 16, 20, 28, 32, 48, 52, 60],
    ),
];

#[test]
fn a_guest_sees_the_fields_it_can_use_and_no_other() {
    for Id {
        register: expected,
        crm,
        op2,
        fields,
        ones,
    } in IDS
    {
        let name = register(3, 0, 0, crm, op2);
        let seen = fields.iter().fold(0, |all, lowest| all | 0xF_u64 << lowest);
        let value = identification(name, CpuInterface::Registers, |register| {
            assert_eq!(register, expected);
            u64::MAX
        });
        assert_eq!(value, seen | ones, "{expected:?}");
        // A field that the hardware does not have is not there.
        for lowest in fields {
            let value = identification(name, CpuInterface::Registers, |_| !(0xF << lowest));
            assert_eq!(value, seen & !(0xF << lowest) | ones, "{expected:?} {lowest}");
        }
    }
}

#[test]
fn unallocated_identification_registers_read_as_zero() {
    for crm in 1..8 {
        for op2 in 0..8 {
            if IDS.iter().any(|id| (id.crm, id.op2) == (crm, op2)) {
                continue;
            }
            let value = identification(register(3, 0, 0, crm, op2), CpuInterface::Registers, |register| {
                panic!("{register:?} is not asked for")
            });
            assert_eq!(value, 0, "{crm} {op2}");
        }
    }
}

#[test]
fn limits_of_a_guest_are_not_raised() {
    let value = |crm, op2, hardware| {
        identification(register(3, 0, 0, crm, op2), CpuInterface::Registers, |_| hardware)
    };
    // PARange: 32, 36, 40, 42, 44, 48 and 52 bits.
    for (hardware, seen) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 2), (5, 2), (6, 2)] {
        assert_eq!(value(7, 0, hardware), seen);
    }
    // CSV2: 2 and 3 promise SCXTNUM_ELx.
    for (hardware, seen) in [(0_u64, 0_u64), (1, 1), (2, 1), (3, 1)] {
        assert_eq!(value(4, 0, hardware << 56), seen << 56 | 1 << 24 | 1 << 4);
    }
}

#[test]
fn a_guest_with_a_gicv2_has_no_system_register_interface() {
    for (crm, op2, rest) in [(1, 1, 0), (4, 0, 1 << 4)] {
        let name = register(3, 0, 0, crm, op2);
        // For any CPU.
        for hardware in [0, 1 << 28 | 1 << 24] {
            let value = identification(name, CpuInterface::Memory, |_| hardware);
            assert_eq!(value, rest, "{crm} {op2}");
        }
    }
}
