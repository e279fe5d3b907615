// SPDX-License-Identifier: Apache-2.0
//! Prints the value of each register of a microcontroller's processor, console and Ethernet controller after
//! a reset. A line is a run of equal values. The lines judge nothing: the system test compares them with the
//! lines that the same program prints on the bare board.
//!
//! Left out are VTOR, which is where the program is, CPACR, which the start-up code has written, and a bit of
//! AIRCR.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest_mcu::ethernet::Ethernet;
use bulkhead_guest_mcu::uart::Uart;
use bulkhead_guest_mcu::{println, register};
use cortex_m::peripheral::CPUID;
use cortex_m::register::{basepri, control, faultmask, primask};
use cortex_m::{Peripherals, asm};
use cortex_m_rt::entry;

/// Registers of a CMSDK UART (DDI 0479D, 4.3), but its data.
const UART: [(&str, usize); 4] = [
    ("STATE", 0x04),
    ("CTRL", 0x08),
    ("INTSTATUS", 0x0C),
    ("BAUDDIV", 0x10),
];
/// Interrupt lines of an Armv7-M processor.
const LINES: usize = 240;
/// Registers of a LAN9118 (its data sheet, 5.3), but the FIFOs and the counter that always runs.
const ETHERNET: [(&str, usize); 25] = [
    ("RX_STATUS_PEEK", 0x44),
    ("TX_STATUS_PEEK", 0x4C),
    ("ID_REV", 0x50),
    ("IRQ_CFG", 0x54),
    ("INT_STS", 0x58),
    ("INT_EN", 0x5C),
    ("BYTE_TEST", 0x64),
    ("FIFO_INT", 0x68),
    ("RX_CFG", 0x6C),
    ("TX_CFG", 0x70),
    ("HW_CFG", 0x74),
    ("RX_DP_CTRL", 0x78),
    ("RX_FIFO_INF", 0x7C),
    ("TX_FIFO_INF", 0x80),
    ("PMT_CTRL", 0x84),
    ("GPIO_CFG", 0x88),
    ("GPT_CFG", 0x8C),
    ("GPT_CNT", 0x90),
    ("WORD_SWAP", 0x98),
    ("RX_DROP", 0xA0),
    ("MAC_CSR_CMD", 0xA4),
    ("MAC_CSR_DATA", 0xA8),
    ("AFC_CFG", 0xAC),
    ("E2P_CMD", 0xB0),
    ("E2P_DATA", 0xB4),
];
/// Registers of its MAC (5.4), and of its PHY (5.5) without what comes from the other side of the link: its
/// offer (5) and the interrupts of a link that has come up (29).
const MAC: core::ops::RangeInclusive<u32> = 1..=12;
const PHY: [u32; 7] = [0, 1, 2, 3, 4, 6, 30];

/// The bit of AIRCR on Armv8-M that lets the non-secure world have its own HardFaults (Arm DDI 0553B,
/// D1.2.3). It is 0 in a VM, whose HardFaults the hypervisor shows it.
const BFHFNMINS: u32 = 1 << 13;
/// The part number of a Cortex-M33 (Arm 100235, B3.3).
const PART_M33: u32 = 0xD21;

/// Prints a line for each run of equal values.
fn print(name: &str, count: usize, value: impl Fn(usize) -> u32) {
    let mut first = 0;
    while first < count {
        let this = value(first);
        let end = (first..count)
            .find(|index| value(*index) != this)
            .unwrap_or(count);
        println!("reset: {name}[{first}..{end}] {this:#x}");
        first = end;
    }
}

fn one(name: &str, value: u32) {
    println!("reset: {name} {value:#x}");
}

#[entry]
fn main() -> ! {
    let base = Uart::console().base();
    let uart = UART.map(|(name, offset)| (name, register::read(base + offset)));
    for (name, value) in uart {
        one(name, value);
    }
    if let Some(peripherals) = Peripherals::take() {
        // The boards of a Cortex-M33 have the controller elsewhere, and a VM has no virtual one.
        if peripherals.CPUID.base.read() >> 4 & 0xFFF != PART_M33 {
            ethernet(&Ethernet::untouched(&peripherals.CPUID));
        }
        all(&peripherals);
    }
    println!("done");
    loop {
        asm::wfi();
    }
}

fn all(peripherals: &Peripherals) {
    let Peripherals { NVIC, SCB, SYST, .. } = peripherals;
    lines(NVIC);
    one("SYST_CSR", SYST.csr.read());
    one("SYST_RVR", SYST.rvr.read());
    one("SYST_CVR", SYST.cvr.read());
    one("SYST_CALIB", SYST.calib.read());
    one("ICSR", SCB.icsr.read());
    one("AIRCR", SCB.aircr.read() & !BFHFNMINS);
    one("SCR", SCB.scr.read());
    one("CCR", SCB.ccr.read());
    print("SHPR", 12, |index| SCB.shpr[index].read().into());
    one("SHCSR", SCB.shcsr.read());
    one("CFSR", SCB.cfsr.read());
    one("HFSR", SCB.hfsr.read());
    one("DFSR", SCB.dfsr.read());
    one("MMFAR", SCB.mmfar.read());
    one("BFAR", SCB.bfar.read());
    one("AFSR", SCB.afsr.read());
    units(peripherals);
    one("CONTROL", control::read().bits());
    one("PRIMASK", u32::from(primask::read().is_active()));
    one("FAULTMASK", u32::from(faultmask::read().is_active()));
    one("BASEPRI", basepri::read().into());
}

/// Prints the interrupt controller's registers.
#[expect(non_snake_case, reason = "a peripheral of cortex-m")]
fn lines(NVIC: &cortex_m::peripheral::NVIC) {
    let words = LINES.div_ceil(32);
    print("NVIC_ISER", words, |index| NVIC.iser[index].read());
    print("NVIC_ICER", words, |index| NVIC.icer[index].read());
    print("NVIC_ISPR", words, |index| NVIC.ispr[index].read());
    print("NVIC_ICPR", words, |index| NVIC.icpr[index].read());
    print("NVIC_IABR", words, |index| NVIC.iabr[index].read());
    print("NVIC_IPR", LINES, |index| NVIC.ipr[index].read().into());
}

/// Prints the controller's registers, before a command to its MAC changes one.
fn ethernet(chip: &Ethernet) {
    for (name, offset) in ETHERNET {
        one(name, chip.read(offset));
    }
    for number in MAC {
        println!("reset: MAC {number} {:#x}", chip.mac(number));
    }
    for number in PHY {
        println!("reset: PHY {number} {:#x}", chip.phy(number));
    }
}

/// The first register of the floating-point unit: FPCCR, FPCAR, FPDSCR, MVFR0 to MVFR2 (ARM DDI 0403,
/// B3.2.2).
const FPCCR: usize = 0xE000_EF34;

/// Prints protection unit, floating-point unit, cycle counter and identification.
fn units(peripherals: &Peripherals) {
    let Peripherals { CPUID, DWT, MPU, .. } = peripherals;
    one("MPU_TYPE", MPU._type.read());
    one("MPU_CTRL", MPU.ctrl.read());
    one("MPU_RNR", MPU.rnr.read());
    one("MPU_RBAR", MPU.rbar.read());
    one("MPU_RASR", MPU.rasr.read());
    // The library has the registers of the floating-point unit only for targets that use the unit.
    one("FPCCR", register::read(FPCCR));
    one("FPCAR", register::read(FPCCR + 4));
    one("FPDSCR", register::read(FPCCR + 8));
    print("MVFR", 3, |index| register::read(FPCCR + 12 + 4 * index));
    one("DWT_CTRL", DWT.ctrl.read());
    identification(CPUID);
}

#[expect(non_snake_case, reason = "a peripheral of cortex-m")]
fn identification(CPUID: &CPUID) {
    one("CPUID", CPUID.base.read());
    print("ID_PFR", 2, |index| CPUID.pfr[index].read());
    one("ID_DFR", CPUID.dfr.read());
    one("ID_AFR", CPUID.afr.read());
    print("ID_MMFR", 4, |index| CPUID.mmfr[index].read());
    print("ID_ISAR", 5, |index| CPUID.isar[index].read());
    one("CLIDR", CPUID.clidr.read());
    one("CTR", CPUID.ctr.read());
    one("CCSIDR", CPUID.ccsidr.read());
}
