// SPDX-License-Identifier: Apache-2.0
//! The phases (registers: Arm DDI 0403E.e, B3.2 to B3.5). An operation is a few stores, or one storm of
//! exceptions.

use core::arch::asm;

use crate::cpu::{call, change_masks, load, set_basepri, store, store_byte};

/// SYST_CSR.
pub const TICK_CONTROL: u32 = 0xE000_E010;
const TICK_RELOAD: u32 = 0xE000_E014;
const TICK_VALUE: u32 = 0xE000_E018;
const SET_ENABLE: u32 = 0xE000_E100;
const CLEAR_ENABLE: u32 = 0xE000_E180;
const SET_PENDING: u32 = 0xE000_E200;
const CLEAR_PENDING: u32 = 0xE000_E280;
const ACTIVE: u32 = 0xE000_E300;
const PRIORITIES: u32 = 0xE000_E400;
/// ICSR, and its bits that set PendSV and SysTick pending.
const CONTROL_AND_STATE: u32 = 0xE000_ED04;
const SET_SYSTEM: u32 = 1 << 28 | 1 << 26;
const CLEAR_SYSTEM: u32 = 1 << 27 | 1 << 25;
/// AIRCR with its key, without any request.
const CONTROL: u32 = 0xE000_ED0C;
const KEY: u32 = 0x05FA_0000;
const SYSTEM_PRIORITIES: u32 = 0xE000_ED18;
const SYSTEM_HANDLERS: u32 = 0xE000_ED24;
const SOFTWARE_TRIGGER: u32 = 0xE000_EF00;
const MPU_CONTROL: u32 = 0xE000_ED94;
const MPU_NUMBER: u32 = 0xE000_ED98;
const MPU_BASE: u32 = 0xE000_ED9C;
const MPU_SIZE: u32 = 0xE000_EDA0;
/// Lines of the boards.
const LINES: u32 = 32;

/// The numbers that are drawn: xorshift32.
pub struct Random(u32);

impl Random {
    /// Makes the draws of `seed`.
    pub fn new(seed: u32) -> Self {
        Self((seed + 1).wrapping_mul(0x9E37_79B9) | 1)
    }

    fn draw(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    fn below(&mut self, limit: u32) -> u32 {
        (self.draw() >> 8) % limit
    }

    /// Draws all bits, none, or some.
    fn mask(&mut self) -> u32 {
        match self.below(4) {
            0 => self.draw(),
            1 => 0,
            _ => u32::MAX,
        }
    }
}

/// A phase: its name, and one operation of it.
type Phase = (&'static str, fn(&mut Random));

/// The phases, in their order.
pub const PHASES: &[Phase] = &[
    ("pending", pending),
    ("enable", enable),
    ("priorities", priorities),
    ("trigger", |random| store(SOFTWARE_TRIGGER, random.below(LINES))),
    ("system", system),
    ("read", read),
    ("transfers", transfers),
    ("masks", masks),
    ("storm", storm),
    ("nest", nest),
    ("tick", tick),
    ("protection", protection),
    ("calls", calls),
    ("mixed", mixed),
];

/// Puts the processor into the state in which a phase finds it, with interrupts masked and nothing pending.
pub fn restore() {
    change_masks(true, false);
    set_basepri(0);
    for (register, value) in [
        (TICK_CONTROL, 0),
        (CLEAR_ENABLE, u32::MAX),
        (CLEAR_PENDING, u32::MAX),
        (CONTROL_AND_STATE, CLEAR_SYSTEM),
        (CONTROL, KEY),
        (MPU_CONTROL, 0),
    ] {
        store(register, value);
    }
}

/// Enables all lines and makes them pending, with as many priorities as there are.
pub fn prepare() {
    for word in 0..LINES / 4 {
        store(
            PRIORITIES + word * 4,
            0x6040_2000_u32.wrapping_add(word.wrapping_mul(0x1010_1010)),
        );
    }
    // SVCall is the most urgent: it is taken wherever it is made, except in itself.
    store(SYSTEM_PRIORITIES + 4, 0);
    store(SYSTEM_PRIORITIES + 8, 0xFFE0_0000);
    store(SYSTEM_HANDLERS, 7 << 16);
    fill();
}

fn fill() {
    store(SET_ENABLE, u32::MAX);
    store(SET_PENDING, u32::MAX);
    store(CONTROL_AND_STATE, SET_SYSTEM);
}

fn pending(random: &mut Random) {
    store(CLEAR_PENDING, random.mask());
    store(SET_PENDING, random.mask());
}

fn enable(random: &mut Random) {
    store(CLEAR_ENABLE, random.mask());
    store(SET_ENABLE, random.mask());
}

fn priorities(random: &mut Random) {
    let (line, value) = (random.below(LINES), random.draw());
    if value & 0x100 == 0 {
        store_byte(PRIORITIES + line, value as u8);
    } else {
        store(PRIORITIES + (line & !3), value);
    }
    store(CONTROL, KEY | random.below(8) << 8);
}

fn system(random: &mut Random) {
    store(
        CONTROL_AND_STATE,
        [SET_SYSTEM, CLEAR_SYSTEM, 1 << 28, 1 << 26][random.below(4) as usize],
    );
    store_byte(SYSTEM_PRIORITIES + 10, random.draw() as u8);
    store_byte(SYSTEM_PRIORITIES + 11, random.draw() as u8);
    store(CONTROL, KEY | random.below(8) << 8);
}

fn read(random: &mut Random) {
    const REGISTERS: [u32; 8] = [
        CONTROL_AND_STATE,
        SET_PENDING,
        SET_ENABLE,
        ACTIVE,
        PRIORITIES,
        SYSTEM_HANDLERS,
        CONTROL,
        TICK_VALUE,
    ];
    for register in REGISTERS {
        let _ = load(register);
    }
    store(SOFTWARE_TRIGGER, random.below(LINES));
}

/// Loads and stores of several registers: each word of them is an access of its own.
fn transfers(random: &mut Random) {
    let value = random.draw();
    // SAFETY: what is stored are priorities of lines, which no Rust object depends on.
    unsafe {
        asm!(
            "stmia {at}!, {{r0, r1, r2, r3, r4, r5}}",
            "sub {at}, #24",
            "ldmia {at}, {{r0, r1, r2, r3, r4, r5}}",
            at = inout(reg) PRIORITIES => _,
            inout("r0") value => _, inout("r1") !value => _, inout("r2") value => _, inout("r3") 0 => _, inout("r4") value => _, inout("r5") !value => _,
        )
    }
}

/// Moves the masks down and up while everything is pending. Each time the most urgent exception has to be
/// found.
fn masks(random: &mut Random) {
    fill();
    set_basepri(0x20 + (random.below(7) << 5));
    change_masks(false, false);
    change_masks(true, false);
    set_basepri(0);
}

/// Everything at once.
fn storm(_: &mut Random) {
    fill();
    change_masks(false, false);
    change_masks(true, false);
}

/// Nests as deep as there are priorities: the least urgent begins, and each handler makes more urgent ones
/// pending.
fn nest(random: &mut Random) {
    for line in 0..LINES {
        store_byte(PRIORITIES + line, (0xFF - line * 8) as u8);
    }
    store(CLEAR_PENDING, u32::MAX);
    store(SOFTWARE_TRIGGER, random.below(4));
    change_masks(false, false);
    change_masks(true, false);
}

/// SysTick with hardly any period.
fn tick(random: &mut Random) {
    store(TICK_RELOAD, 1 + random.below(40));
    store(TICK_VALUE, 0);
    store(TICK_CONTROL, 7);
    change_masks(false, false);
    let _ = load(TICK_CONTROL);
    change_masks(true, false);
    store(TICK_CONTROL, 0);
}

/// Writes all its regions again and again: small ones, large ones, with parts left out, over each other, off
/// and on. The background region lets this program at all its own memory where the regions leave it out. None
/// of the regions takes anything away.
fn protection(random: &mut Random) {
    for region in 0..8 {
        let size = 7 + random.below(20);
        let left_out = random.below(256) << 8;
        store(MPU_NUMBER, region);
        store(MPU_BASE, random.draw() & !((2 << size) - 1));
        // Full access for everybody (AP), normal memory, enabled.
        store(MPU_SIZE, 0x0302_0001 | left_out | size << 1);
    }
    store(MPU_CONTROL, 5);
    store(MPU_CONTROL, 0);
}

fn calls(random: &mut Random) {
    fill();
    change_masks(false, false);
    for _ in 0..1 + random.below(4) {
        call();
    }
    change_masks(true, false);
}

fn mixed(random: &mut Random) {
    let phases = PHASES.len() as u32 - 1;
    PHASES[random.below(phases) as usize].1(random);
}

/// Runs in a handler: makes everything pending now and then, and otherwise the line that is just more urgent.
pub fn inside(number: u32, all: bool) {
    if all {
        fill();
    } else if number >= 16 {
        store(SOFTWARE_TRIGGER, (number - 15) % LINES);
    } else {
        store(CONTROL_AND_STATE, 1 << 28);
    }
}
