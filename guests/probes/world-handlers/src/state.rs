// SPDX-License-Identifier: Apache-2.0
//! Registers of the processor that have a value of this program's own for ever: where each is, and what it
//! has.

use crate::cpu::{load, store, store_byte};
use crate::wrong;

pub const ICSR: u32 = 0xE000_ED04;
const MPU_RNR: u32 = 0xE000_ED98;
const MPU_RBAR: u32 = 0xE000_ED9C;
const MPU_RLAR: u32 = 0xE000_EDA0;
const NVIC_ISER: u32 = 0xE000_E100;
pub const NVIC_ISPR: u32 = 0xE000_E200;
const NVIC_IABR: u32 = 0xE000_E300;
const NVIC_IPR: u32 = 0xE000_E400;
const SHCSR: u32 = 0xE000_ED24;
const SYST_CSR: u32 = 0xE000_E010;
const SYST_RVR: u32 = 0xE000_E014;

/// ICSR: PendSV is pending.
pub const PENDSVSET: u32 = 1 << 28;
/// The lines that this program uses, and two that are enabled and never come.
const ENABLED: u32 = 1 << 16 | 1 << 17 | 1 << 18 | 1 << 20 | 1 << 23;
/// A line that is pending and not enabled for ever.
pub const WAITING: u32 = 1 << 25;
/// The region that MPU_RNR has chosen outside of a check.
const CHOSEN: u32 = 5;

/// Registers with a constant value, as (address, bits that are compared).
const CONSTANT: [(u32, u32); 33] = [
    (0xE000_ED08, u32::MAX), // VTOR
    (0xE000_ED0C, 7 << 8),   // AIRCR.PRIGROUP
    (0xE000_ED10, u32::MAX), // SCR
    (0xE000_ED14, u32::MAX), // CCR
    (0xE000_ED18, u32::MAX), // SHPR1 to 3
    (0xE000_ED1C, u32::MAX),
    (0xE000_ED20, u32::MAX),
    (SHCSR, 0xF_0000),
    (0xE000_ED28, u32::MAX), // CFSR
    (0xE000_ED34, u32::MAX), // MMFAR
    (0xE000_ED88, u32::MAX), // CPACR
    (0xE000_ED90, u32::MAX), // MPU_TYPE
    (0xE000_ED94, u32::MAX), // MPU_CTRL
    (MPU_RNR, u32::MAX),
    (0xE000_EDC0, u32::MAX), // MPU_MAIR0 and 1
    (0xE000_EDC4, u32::MAX),
    (0xE000_EF34, 0xC000_0000), // FPCCR.ASPEN and LSPEN
    (0xE000_EF3C, u32::MAX),    // FPDSCR
    (SYST_CSR, 7),
    (SYST_RVR, u32::MAX),
    (NVIC_ISER, u32::MAX),
    (NVIC_ISER + 4, u32::MAX),
    (NVIC_ISER + 8, u32::MAX),
    (NVIC_ISER + 12, u32::MAX),
    (NVIC_ISPR + 4, u32::MAX),
    (NVIC_ISPR + 8, u32::MAX),
    (NVIC_ISPR + 12, u32::MAX),
    (NVIC_IABR + 4, u32::MAX),
    (NVIC_IABR + 8, u32::MAX),
    (NVIC_IABR + 12, u32::MAX),
    (0xE000_E380, u32::MAX), // NVIC_ITNS, which is zero in the Non-secure world
    (0xE000_EDD0, u32::MAX), // SAU_CTRL, likewise
    (0xE000_E01C, u32::MAX), // SysTick's calibration
];
const PRIORITIES: usize = 32;
const REGIONS: usize = 32;

/// The values of all of them.
pub struct State {
    constant: [u32; CONSTANT.len()],
    priorities: [u32; PRIORITIES],
    regions: [u32; REGIONS],
}

/// Exceptions that are active or pending. SysTick may become pending at any time, so it is left out.
#[derive(Clone, Copy)]
pub struct Exceptions {
    /// NVIC_IABR0, and the handlers in SHCSR.
    pub active: [u32; 2],
    /// NVIC_ISPR0, and PendSV in ICSR.
    pub pending: [u32; 2],
}

impl Exceptions {
    pub fn read() -> Self {
        Self {
            active: [load(NVIC_IABR), load(SHCSR) & 0xFFFF],
            pending: [load(NVIC_ISPR), load(ICSR) & PENDSVSET],
        }
    }
}

impl State {
    /// Reads all of them. Requires: no handler comes, because it would change MPU_RNR.
    pub fn read() -> Self {
        let constant = CONSTANT.map(|(address, mask)| load(address) & mask);
        let mut priorities = [0; PRIORITIES];
        for (address, slot) in (NVIC_IPR..).step_by(4).zip(&mut priorities) {
            *slot = load(address);
        }
        let mut regions = [0; REGIONS];
        for (number, pair) in (0..).zip(regions.chunks_exact_mut(2)) {
            store(MPU_RNR, number);
            pair[0] = load(MPU_RBAR);
            pair[1] = load(MPU_RLAR);
        }
        store(MPU_RNR, CHOSEN);
        Self {
            constant,
            priorities,
            regions,
        }
    }

    /// Compares them with what they have to be, one by one: a copy of all has no room on the stack of each
    /// level. Requires: as for [`State::read`].
    pub fn check(&self, level: usize) {
        let same = |name, index, found, expected| {
            if found != expected {
                wrong(name, index, level, found, expected);
            }
        };
        for (index, ((address, mask), expected)) in CONSTANT.iter().zip(self.constant).enumerate() {
            same("register", index, load(*address) & mask, expected);
        }
        for ((index, expected), address) in self.priorities.iter().enumerate().zip((NVIC_IPR..).step_by(4)) {
            same("priorities", index, load(address), *expected);
        }
        for (number, pair) in (0..).zip(self.regions.chunks_exact(2)) {
            store(MPU_RNR, number);
            same("region base", number as usize, load(MPU_RBAR), pair[0]);
            same("region limit", number as usize, load(MPU_RLAR), pair[1]);
        }
        store(MPU_RNR, CHOSEN);
    }
}

/// Writes a register, and checks that it has the value.
fn set(address: u32, value: u32) {
    store(address, value);
    if load(address) != value {
        wrong("setting", address as usize & 0xFFFF, 0, load(address), value);
    }
}

/// Returns what is left of SysTick's period.
pub fn timer() -> u32 {
    load(SYST_CSR + 8)
}

/// The beginning and the end of the program's code memory and of its RAM.
pub struct Places {
    pub code: u32,
    pub ram: u32,
}

/// Gives every region of the protection unit a value. Three are on: code, RAM, devices.
fn set_regions(places: &Places, seed: u32) {
    set(0xE000_EDC0, 0x4404_FF00 ^ (seed & 0xFF) << 24);
    set(0xE000_EDC4, 0x0044_00FF);
    let on = [
        // Read-only and executable; read-write and not executable; devices, likewise.
        (places.code | 6, (places.code + 0x7FE0) | 3),
        (places.ram | 1, (places.ram + 0x3FE0) | 3),
        (0x4000_0001, 0x4FFF_FFE1),
        // Memory that does not exist.
        (0x6000_0001 | (seed & 0xFF) << 16, 0x6FFF_FFE1),
    ];
    for number in 0..16_u32 {
        store(MPU_RNR, number);
        let drawn = seed.rotate_left(number).wrapping_mul(0x9E37_79B9);
        let (base, limit) = on
            .get(number as usize)
            .copied()
            .unwrap_or((drawn & !0x10, drawn.rotate_left(9) & !0x11));
        set(MPU_RBAR, base);
        set(MPU_RLAR, limit);
    }
    store(MPU_RNR, CHOSEN);
    // With the background region, and for handlers of faults too.
    set(0xE000_ED94, 7);
}

/// Gives every register a value that only this program has.
pub fn set_up(places: &Places, seed: u32, vectors: u32, period: u32) {
    set(0xE000_ED08, vectors);
    store(0xE000_ED0C, 0x05FA_0000 | (3 + (seed & 1)) << 8);
    set(0xE000_ED10, (seed & 1) << 4);
    set(0xE000_ED14, 0x211 | (seed & 1) << 1);
    set(0xE000_ED18, 0x0040_0000 | (0x20 + (seed & 1) * 0x20));
    // SVCall; PendSV and SysTick.
    set(0xE000_ED1C, 0xE000_0000);
    set(0xE000_ED20, 0x60A0_0000 | ((seed & 1) * 0x60));
    set(SHCSR, 1 << 16);
    set(0xE000_ED34, seed & !3);
    set(0xE000_ED88, 0xF << 20);
    set(0xE000_EF3C, 1 << 25 | (1 + (seed & 1)) << 22);
    set_regions(places, seed);
    for line in 16..32_u32 {
        let priority = match line {
            16 => 0xC0,
            17 => 0x80,
            18 => 0x40,
            _ => line.wrapping_mul(seed | 1) as u8 & 0xE0,
        };
        store_byte(NVIC_IPR + line, priority);
    }
    set(NVIC_ISER, ENABLED);
    store(NVIC_ISPR, WAITING);
    store(SYST_RVR, period - 1);
    store(SYST_CSR + 8, 0);
    store(SYST_CSR, 7);
}
