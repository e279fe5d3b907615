// SPDX-License-Identifier: Apache-2.0
//! Prints the value of each register of a VM's devices after a reset: interrupt controller, UART, timers. A
//! line is a run of equal values. The lines judge nothing: the system test compares them with those that the
//! same program prints on the bare board.
//!
//! Left out is what a VM's machine has otherwise on purpose. Identification registers say who made the device
//! and which features are there (`GICD_TYPER`, `GICR_TYPER`, `GICR_CTLR`: LPIs and messages). `GICC_BPR` and
//! `GICC_ABPR` are 2 and 3 on a GIC-400 (DDI 0471, chapter 3) and in a VM, and 0 and 1 on QEMU's board.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::println;
use bulkhead_guest::values::Values;
use bulkhead_guest::vm::gic::{self, DISTRIBUTOR, INTERFACE, offset};
use bulkhead_guest::vm::{Machine, bus, pl011, timer};

bulkhead_guest::vm_main!(main);

/// Lines that all boards have.
const LINES: u32 = 160;
/// The registers of one bit a line, in words of 32 lines.
const BITS: [(&str, u64); 7] = [
    ("IGROUPR", offset::GROUP),
    ("ISENABLER", offset::SET_ENABLE),
    ("ICENABLER", offset::CLEAR_ENABLE),
    ("ISPENDR", offset::SET_PENDING),
    ("ICPENDR", offset::CLEAR_PENDING),
    ("ISACTIVER", offset::SET_ACTIVE),
    ("ICACTIVER", offset::CLEAR_ACTIVE),
];
/// Registers of a PL011 (DDI 0183, 3.2) but its data, which a read takes.
const UART: [(&str, u64); 13] = [
    ("UARTRSR", 0x04),
    ("UARTFR", 0x18),
    ("UARTILPR", 0x20),
    ("UARTIBRD", 0x24),
    ("UARTFBRD", 0x28),
    ("UARTLCR_H", 0x2C),
    ("UARTCR", 0x30),
    ("UARTIFLS", 0x34),
    ("UARTIMSC", 0x38),
    ("UARTRIS", 0x3C),
    ("UARTMIS", 0x40),
    ("UARTDMACR", 0x48),
    ("UARTPeriphID0", 0xFE0),
];
/// Registers of a GICv2's CPU interface (IHI 0048B, 4.4).
const INTERFACE_V2: [(&str, u64); 7] = [
    ("GICC_CTLR", 0x00),
    ("GICC_PMR", 0x04),
    ("GICC_IAR", 0x0C),
    ("GICC_RPR", 0x14),
    ("GICC_HPPIR", 0x18),
    ("GICC_AHPPIR", 0x28),
    ("GICC_APR0", 0xD0),
];
/// Reads everything before anything is written, the UART first, and then prints it.
fn main(_: Machine) {
    let mut values = Values::new();
    for (name, offset) in UART {
        values.note(name, bus::read_u32(pl011::BASE + offset));
    }
    values.note("GICD_CTLR", bus::read_u32(DISTRIBUTOR + offset::CONTROL));
    registers(&mut values, DISTRIBUTOR, 0..LINES);
    if gic::is_version2() {
        version2(&mut values);
    } else {
        version3(&mut values);
    }
    for timer in [timer::Timer::Virtual, timer::Timer::Physical] {
        values.note("CNTx_CTL_EL0", timer.control());
    }
    values.print();
    println!("done");
}

/// Notes the registers that distributor and redistributor lay out alike.
fn registers(values: &mut Values, frame: u64, lines: core::ops::Range<u32>) {
    let word = |register: u64, index: u32| bus::read_u32(frame + register + u64::from(index) * 4);
    for (name, register) in BITS {
        for index in lines.start / 32..lines.end / 32 {
            values.note(name, word(register, index));
        }
    }
    for index in lines.start / 4..lines.end / 4 {
        values.note("IPRIORITYR", word(offset::PRIORITY, index));
    }
    for index in lines.start / 16..lines.end / 16 {
        values.note("ICFGR", word(offset::CONFIGURATION, index));
    }
}

fn version2(values: &mut Values) {
    for index in 0..u64::from(LINES / 4) {
        values.note("GICD_ITARGETSR", bus::read_u32(DISTRIBUTOR + 0x800 + index * 4));
    }
    for index in 0..4 {
        values.note("GICD_CPENDSGIR", bus::read_u32(DISTRIBUTOR + 0xF10 + index * 4));
        values.note("GICD_SPENDSGIR", bus::read_u32(DISTRIBUTOR + 0xF20 + index * 4));
    }
    for (name, offset) in INTERFACE_V2 {
        values.note(name, bus::read_u32(INTERFACE + offset));
    }
}

fn version3(values: &mut Values) {
    for line in gic::FIRST_SHARED..LINES {
        values.note("GICD_IROUTER", gic::routed(line));
    }
    for cpu in [0, 1] {
        let frame = gic::redistributor(cpu);
        values.note("GICR_WAKER", bus::read_u32(frame + offset::WAKER));
        registers(values, frame + gic::SGI_FRAME, 0..gic::FIRST_SHARED);
    }
    values.note("ICC_SRE_EL1", gic::system_registers());
    values.note("ICC_CTLR_EL1", gic::interface_control());
    values.note("ICC_PMR_EL1", gic::mask());
    values.note("ICC_BPR0_EL1", gic::group0_binary_point());
    values.note("ICC_BPR1_EL1", gic::binary_point());
    values.note("ICC_IGRPEN0_EL1", gic::group0_enable());
    values.note("ICC_IGRPEN1_EL1", gic::group_enable());
    values.note("ICC_AP0R0_EL1", gic::active_priorities0());
    values.note("ICC_AP1R0_EL1", gic::active_priorities());
    values.note("ICC_RPR_EL1", gic::running_priority());
    values.note("ICC_HPPIR0_EL1", gic::highest_pending0());
    values.note("ICC_HPPIR1_EL1", gic::highest_pending());
    values.note("ICC_IAR0_EL1", gic::acknowledge_group0());
    values.note("ICC_IAR1_EL1", gic::acknowledge());
}
