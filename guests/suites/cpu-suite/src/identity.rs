// SPDX-License-Identifier: Apache-2.0
//! Identification registers: a feature that is advertised works, one that is not is undefined.

use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::vm::encoded::Encoding;
use bulkhead_guest::vm::exception::{class, probe};
use bulkhead_guest::vm::register::Register;
use bulkhead_guest::vm::{self, bus, gic, timer};

/// Returns a 4-bit field of an identification register.
fn field(register: Register, shift: u32) -> u64 {
    register.read() >> shift & 0xF
}

const fn encoding(op0: u8, op1: u8, crn: u8, crm: u8, op2: u8) -> Encoding {
    Encoding {
        op0,
        op1,
        crn,
        crm,
        op2,
    }
}

/// A feature: name, field that advertises it, register of it that can be read without effect.
struct Feature {
    name: &'static str,
    register: Register,
    shift: u32,
    probe: Encoding,
}

/// Fields and registers: Arm ARM DDI 0487 chapter D19.
const FEATURES: &[Feature] = &[
    Feature {
        name: "performance monitors",
        register: Register::DFR0,
        shift: 8,
        probe: encoding(3, 3, 9, 12, 0),
    },
    Feature {
        name: "SVE",
        register: Register::PFR0,
        shift: 32,
        probe: encoding(3, 0, 1, 2, 0),
    },
    Feature {
        name: "statistical profiling",
        register: Register::DFR0,
        shift: 32,
        probe: encoding(3, 0, 9, 9, 0),
    },
    Feature {
        name: "trace",
        register: Register::DFR0,
        shift: 4,
        probe: encoding(2, 1, 0, 0, 1),
    },
    Feature {
        name: "RAS",
        register: Register::PFR0,
        shift: 28,
        probe: encoding(3, 0, 5, 3, 0),
    },
    Feature {
        name: "activity monitors",
        register: Register::PFR0,
        shift: 44,
        probe: encoding(3, 3, 13, 2, 0),
    },
    Feature {
        name: "memory tagging",
        register: Register::PFR1,
        shift: 8,
        probe: encoding(3, 0, 1, 0, 6),
    },
    Feature {
        name: "limited ordering regions",
        register: Register::MMFR1,
        shift: 16,
        probe: encoding(3, 0, 10, 4, 7),
    },
    Feature {
        name: "trace filter",
        register: Register::DFR0,
        shift: 40,
        probe: encoding(3, 0, 1, 2, 1),
    },
    Feature {
        name: "pointer authentication",
        register: Register::ISAR1,
        shift: 4,
        probe: encoding(3, 0, 2, 1, 0),
    },
];

pub fn run(report: &mut Report) {
    report.equal("runs at EL1", Register::CurrentEL.read() >> 2 & 3, 1);
    report.equal(
        "MPIDR_EL1: affinity 0.0.0.0",
        Register::MPIDR.read() & 0xFF_00FF_FFFF,
        0,
    );
    let levels = [0, 4].map(|shift| field(Register::PFR0, shift));
    report.check(
        "EL0 and EL1 have AArch64",
        levels.iter().all(|level| (1..=2).contains(level)),
    );
    report.equal(
        "FP and SIMD agree",
        field(Register::PFR0, 16),
        field(Register::PFR0, 20),
    );
    report.equal(
        "GIC system registers are advertised where there are some",
        field(Register::PFR0, 24),
        u64::from(!board_has_version2()),
    );
    report.check("4 KiB granule", field(Register::MMFR0, 28) != 0xF);
    for feature in FEATURES {
        agrees(report, feature);
    }
    not_ours(report);
    all_readable(report);
    let frequency = timer::frequency();
    report.check(
        "CNTFRQ_EL0 is plausible",
        (1_000_000..=1_000_000_000).contains(&frequency),
    );
}

/// Tells whether the board has a GICv2. Its distributor is 4 KiB long and has `GICD_PIDR2` at its end (Arm
/// IHI 0048B section 4.3.18). A GICv3 has nothing there.
fn board_has_version2() -> bool {
    bus::read_u32(gic::DISTRIBUTOR + 0xFE8) >> 4 & 0xF == 2
}

fn agrees(report: &mut Report, feature: &Feature) {
    let value = field(feature.register, feature.shift);
    let advertised = value != 0 && value != 0xF;
    let works = match feature.probe.read() {
        Ok(_) => true,
        // Advertised, but EL1 has to switch it on first: SVE traps with an exception class of its own.
        Err(fault) => fault.class() != class::UNKNOWN,
    };
    println!("{}: field {value:#x}, works {works}", feature.name);
    report.equal("advertised exactly if it works", works, advertised);
    if vm::is_hypervised() && feature.name == "performance monitors" {
        report.check(
            "performance monitors are not virtualized and not advertised",
            !advertised,
        );
    }
}

/// Registers of higher levels do not exist here.
fn not_ours(report: &mut Report) {
    for (name, encoding) in [
        ("SCTLR_EL2", encoding(3, 4, 1, 0, 0)),
        ("HCR_EL2", encoding(3, 4, 1, 1, 0)),
        ("VTTBR_EL2", encoding(3, 4, 2, 1, 0)),
        ("SCR_EL3", encoding(3, 6, 1, 1, 0)),
        ("CNTVOFF_EL2", encoding(3, 4, 14, 0, 3)),
        ("ICH_LR0_EL2", encoding(3, 4, 12, 12, 0)),
        (
            "an implementation-defined register that does not exist",
            encoding(3, 0, 11, 7, 5),
        ),
    ] {
        let outcome = encoding.read().map_err(|fault| fault.class());
        println!("{name}:");
        report.equal("is undefined", outcome, Err(class::UNKNOWN));
    }
}

/// Checks that every identification register of the architecture's range can be read. Reserved ones are zero
/// (D19.2).
fn all_readable(report: &mut Report) {
    let mut faults = 0;
    for crm in 1..8 {
        for op2 in 0..8 {
            if encoding(3, 0, 0, crm, op2).read().is_err() {
                faults += 1;
                println!("S3_0_C0_C{crm}_{op2} faults");
            }
        }
    }
    report.equal("the identification range never faults", faults, 0);
    let mut faults = 0;
    for register in Register::ALL {
        let monitors = matches!(register, Register::PMCR | Register::PMCCNTR);
        if !monitors && probe(|| register.read()).is_err() {
            faults += 1;
            println!("{} faults", register.name());
        }
    }
    report.equal("the registers of EL1 never fault", faults, 0);
}
