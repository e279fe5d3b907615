// SPDX-License-Identifier: Apache-2.0
//! Prints the value of each register of a VM's processor and devices after a reset, on a PowerPC 405. A
//! line is a run of equal values. The lines judge nothing: the system test compares them with those that
//! the same program prints on the bare board.
//!
//! Left out are registers whose value after a reset is unknown by the manual and that the loader of the
//! bare board or the start-up code sets: SRR0 to SRR3, SPRG0 to SPRG7, EVPR, LR, CTR. So are three of
//! which QEMU 7.2 has another idea than the manuals. MCR of the UART is 0 after a reset. PIT does not
//! count before it is written. The bit of TSR for the fixed interval is set soon after a reset, and in
//! QEMU never.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::powerpc::{Machine, cpu, uart};
use bulkhead_guest::println;
use bulkhead_guest::values::Values;

bulkhead_guest::powerpc_main!(main);

/// Registers of the 16550.
const UART: [(usize, &str); 7] = [
    (0, "RBR"),
    (1, "IER"),
    (2, "IIR"),
    (3, "LCR"),
    (5, "LSR"),
    (6, "MSR"),
    (7, "SCR"),
];

macro_rules! note {
    ($values:ident, $read:ident, $($name:literal $number:literal,)*) => {
        $($values.note($name, cpu::$read::<$number>());)*
    };
}

fn main(_: Machine) {
    let mut values = Values::new();
    for (index, name) in UART {
        values.note(name, uart::register(index));
    }
    values.note("MSR", cpu::read_msr());
    note! { values, read_spr,
        "XER" 1,
        "PVR" 287,
        "PID" 945,
        "ZPR" 944,
        "CCR0" 947,
        "ESR" 980,
        "DEAR" 981,
        "TCR" 986,
        "DBSR" 1008,
        "DBCR0" 1010,
        "DBCR1" 957,
        "IAC1" 1012,
        "IAC2" 1013,
        "IAC3" 948,
        "IAC4" 949,
        "DAC1" 1014,
        "DAC2" 1015,
        "DVC1" 950,
        "DVC2" 951,
        "DCCR" 1018,
        "ICCR" 1019,
        "DCWR" 954,
        "SGR" 953,
        "SLER" 955,
        "SU0R" 956,
    }
    note! { values, read_dcr,
        "UIC0_SR" 0xC0, "UIC0_ER" 0xC2, "UIC0_CR" 0xC3, "UIC0_PR" 0xC4, "UIC0_TR" 0xC5,
        "UIC0_MSR" 0xC6, "UIC0_VCR" 0xC8,
    }
    values.print();
    println!("done");
}
