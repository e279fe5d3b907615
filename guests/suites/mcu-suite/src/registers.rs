// SPDX-License-Identifier: Apache-2.0
//! Registers of the system control space: what they hold, what of a pattern stays in them, and what narrow
//! accesses do (Arm DDI 0403E.e, B3.2 to B3.5).

use crate::console::print;
use crate::cpu::{barrier, load, load_byte, load_half, store, store_byte, store_half};
use crate::system::load_shown;

const PATTERNS: [u32; 4] = [0xFFFF_FFFF, 0x5555_5555, 0xAAAA_AAAA, 0];

/// Written with every pattern and read back; interrupts are masked meanwhile.
const PLAIN: [(u32, &str); 20] = [
    (0xE000_E100, "ISER0"),
    (0xE000_E180, "ICER0"),
    (0xE000_E104, "ISER1"),
    (0xE000_E400, "IPR0"),
    (0xE000_E41C, "IPR7"),
    (0xE000_E420, "IPR8"),
    (0xE000_ED18, "SHPR1"),
    (0xE000_ED1C, "SHPR2"),
    (0xE000_ED20, "SHPR3"),
    (0xE000_ED28, "CFSR"),
    (0xE000_ED2C, "HFSR"),
    (0xE000_ED34, "MMFAR"),
    (0xE000_ED38, "BFAR"),
    (0xE000_ED98, "RNR"),
    (0xE000_ED9C, "RBAR"),
    (0xE000_EDA0, "RASR"),
    (0xE000_EDB4, "RBAR_A3"),
    (0xE000_EF3C, "FPDSCR"),
    (0xE000_E014, "SYST_RVR"),
    (0xE000_E018, "SYST_CVR"),
];

/// Only read.
const CONSTANT: [(u32, &str); 28] = [
    (0xE000_E004, "ICTR"),
    (0xE000_ED00, "CPUID"),
    (0xE000_ED04, "ICSR"),
    (0xE000_ED08, "VTOR"),
    (0xE000_ED0C, "AIRCR"),
    (0xE000_ED14, "CCR"),
    (0xE000_ED24, "SHCSR"),
    (0xE000_ED40, "ID_PFR0"),
    (0xE000_ED44, "ID_PFR1"),
    (0xE000_ED48, "ID_DFR0"),
    (0xE000_ED4C, "ID_AFR0"),
    (0xE000_ED50, "ID_MMFR0"),
    (0xE000_ED54, "ID_MMFR1"),
    (0xE000_ED58, "ID_MMFR2"),
    (0xE000_ED5C, "ID_MMFR3"),
    (0xE000_ED60, "ID_ISAR0"),
    (0xE000_ED64, "ID_ISAR1"),
    (0xE000_ED68, "ID_ISAR2"),
    (0xE000_ED6C, "ID_ISAR3"),
    (0xE000_ED70, "ID_ISAR4"),
    (0xE000_ED88, "CPACR"),
    (0xE000_ED90, "MPU_TYPE"),
    (0xE000_ED94, "MPU_CTRL"),
    (0xE000_EF34, "FPCCR"),
    (0xE000_EF40, "MVFR0"),
    (0xE000_EF44, "MVFR1"),
    (0xE000_E010, "SYST_CSR"),
    (0xE000_E01C, "SYST_CALIB"),
];

/// Prints all of it.
pub fn run() {
    // Only bits the architecture has: SLEEPONEXIT and SEVONPEND.
    store(0xE000_ED10, 0x12);
    print!("register: SCR {:08x}\n", load(0xE000_ED10));
    store(0xE000_ED10, 0);
    crate::cpu::set_primask(1);
    for (address, name) in CONSTANT {
        print!("register: {} {:08x}\n", name, load_shown(address));
    }
    for (address, name) in PLAIN {
        print!("pattern: {}", name);
        for pattern in PATTERNS {
            store(address, pattern);
            barrier();
            print!(" {:08x}", load_shown(address));
        }
        print!("\n");
    }
    store(0xE000_E180, u32::MAX);
    // RASR was left disabled; so are all regions.
    narrow();
    pending();
    grouping();
    configuration();
    crate::cpu::set_primask(0);
}

fn narrow() {
    print!("narrow:");
    for address in [
        0xE000_E402_u32,
        0xE000_E407,
        0xE000_ED1B,
        0xE000_ED22,
        0xE000_ED23,
    ] {
        store_byte(address, 0xE7);
        print!(" {:02x}", load_byte(address));
    }
    for address in [0xE000_E40A_u32, 0xE000_ED22, 0xE000_ED1A] {
        store_half(address, 0x6A93);
        print!(" {:04x} {:08x}", load_half(address), load(address & !3));
        store_half(address, 0);
    }
    for address in [0xE000_E402_u32, 0xE000_E407, 0xE000_ED1B, 0xE000_ED23] {
        store_byte(address, 0);
    }
    store_byte(0xE000_E101, 0x81);
    print!(" {:08x} {:02x}", load(0xE000_E100), load_byte(0xE000_E101));
    store_byte(0xE000_E181, 0x80);
    print!(" {:08x}\n", load(0xE000_E100));
    store(0xE000_E180, u32::MAX);
}

/// Pending states without their handlers: PRIMASK is set.
fn pending() {
    const ICSR: u32 = 0xE000_ED04;
    print!("pending:");
    for (address, value) in [
        (0xE000_E200, 0x8000_0001_u32),
        (0xE000_EF00, 17),
        (0xE000_E100, 0x0002_0000),
        (ICSR, 1 << 28),
        (ICSR, 1 << 26),
        (0xE000_E280, 0x0002_0000),
        (ICSR, 1 << 27),
        (ICSR, 1 << 25),
        (0xE000_E280, u32::MAX),
        (0xE000_E180, u32::MAX),
    ] {
        store(address, value);
        barrier();
        print!(
            " {:08x}/{:08x}/{:08x}",
            load(ICSR),
            load(0xE000_E200),
            load(0xE000_E300)
        );
    }
    print!("\n");
}

fn grouping() {
    const AIRCR: u32 = 0xE000_ED0C;
    print!("grouping:");
    for group in 0..8 {
        store(AIRCR, 0x05FA_0000 | group << 8);
        print!(" {:08x}", load_shown(AIRCR));
    }
    // A wrong key.
    store(AIRCR, 0x1234_0300);
    print!(" {:08x}\n", load_shown(AIRCR));
    store(AIRCR, 0x05FA_0000);
}

fn configuration() {
    const CCR: u32 = 0xE000_ED14;
    const SHCSR: u32 = 0xE000_ED24;
    let reset = load(CCR);
    let mut seen = [0; 5];
    for (bit, value) in [0, 1, 3, 4, 8].into_iter().zip(&mut seen) {
        store(CCR, reset | 1 << bit);
        *value = load_shown(CCR);
    }
    // Unaligned accesses must not trap here: printing makes some.
    store(CCR, reset);
    print!("configuration:");
    for value in seen {
        print!(" {:08x}", value);
    }
    for value in [1 << 16, 1 << 17, 1 << 18, 7 << 16, 0] {
        store(SHCSR, value);
        print!(" {:08x}", load_shown(SHCSR));
    }
    print!("\n");
}
