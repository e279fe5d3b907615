// SPDX-License-Identifier: Apache-2.0
//! Prints the value of each register of a PC's devices and processor as a program finds it that a PVH loader
//! starts. A line is a run of equal values. The lines judge nothing: the system test compares them with those
//! that the same program prints on the bare PC.
//!
//! The bare PC has run its firmware. A VM has none, so what only a firmware leaves is left out: the
//! masks, requests and levels of the 8259 pair, and the modes of the PIT. Left out is also what the VM's
//! machine has otherwise on purpose: 32 pins of the I/O APIC, and no MTRRs. So is MCR of the 16550, which
//! is 0 after a reset by its data sheet, and 8 in QEMU.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::pc::{Machine, apic, attempt, cpu};
use bulkhead_guest::println;
use bulkhead_guest::values::Values;

bulkhead_guest::pc_main!(main);

/// The first serial port.
const UART: u16 = 0x3F8;
/// Registers of the local APIC (Intel SDM 3A, 11.4.1) from the version on, without registers of x2APIC alone,
/// the end of interrupt, and the command.
const LOCAL: [(&str, u32, u32); 14] = [
    ("APIC version", 0x03, 0x04),
    ("APIC TPR", 0x08, 0x09),
    ("APIC PPR", 0x0A, 0x0B),
    ("APIC LDR", 0x0D, 0x0E),
    ("APIC DFR", 0x0E, 0x0F),
    ("APIC SVR", 0x0F, 0x10),
    ("APIC ISR, TMR, IRR", 0x10, 0x28),
    ("APIC LVT timer", 0x32, 0x33),
    ("APIC LVT thermal", 0x33, 0x34),
    ("APIC LVT performance", 0x34, 0x35),
    ("APIC LVT LINT", 0x35, 0x37),
    ("APIC LVT error", 0x37, 0x38),
    ("APIC initial, current count", 0x38, 0x3A),
    ("APIC divide", 0x3E, 0x3F),
];
/// Model-specific registers.
const MODEL_SPECIFIC: [(&str, u32); 14] = [
    ("APIC_BASE", 0x1B),
    ("SYSENTER_CS", 0x174),
    ("SYSENTER_ESP", 0x175),
    ("SYSENTER_EIP", 0x176),
    ("DebugCtl", 0x1D9),
    ("PAT", 0x277),
    ("EFER", 0xC000_0080),
    ("STAR", 0xC000_0081),
    ("LSTAR", 0xC000_0082),
    ("CSTAR", 0xC000_0083),
    ("SFMASK", 0xC000_0084),
    ("FS base", 0xC000_0100),
    ("KERNEL_GS base", 0xC000_0102),
    ("TSC_AUX", 0xC000_0103),
];

fn main(_: Machine) {
    let mut values = Values::new();
    for register in [0, 1, 2, 3, 5, 6, 7] {
        values.note("16550", cpu::read_port8(UART + register));
    }
    for (name, first, end) in LOCAL {
        for register in first..end {
            values.note(name, cpu::load(apic::ADDRESS + u64::from(register) * 16));
        }
    }
    values.note("I/O APIC ID", apic::read_io(0));
    values.note("I/O APIC version", apic::read_io(1) & 0xFF);
    for register in 0x10..0x40 {
        values.note("I/O APIC pin", apic::read_io(register));
    }
    values.note("port 0x61", cpu::read_port8(0x61) & 0xF);
    for register in 0x0A..0x0E {
        cpu::write_port8(0x70, register);
        values.note("RTC A to D", cpu::read_port8(0x71));
    }
    for (name, number) in MODEL_SPECIFIC {
        values.note(name, attempt::read_msr(number).unwrap_or(u64::MAX));
    }
    for debug in cpu::read_debug() {
        values.note("DR0 to DR3", debug);
    }
    values.print();
    println!("done");
}
