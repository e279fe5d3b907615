// SPDX-License-Identifier: Apache-2.0
//! Random sequences of operations that make, mask, nest and end exceptions.
//!
//! A storm starts in a thread on one of the stacks and draws operations from its seed. Every handler draws
//! from the same sequence, so the next operation depends on which exception is taken when. After each
//! operation the visible state goes into a digest. One digest is printed for every few storms.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use crate::console::print;
use crate::cpu::{
    barrier, basepri, call, change_masks, control, exchange_float, faultmask, handler, load,
    load_unprivileged, main_stack, primask, process_stack, set_basepri, set_basepri_max, set_control,
    settle_float, store, store_byte, undefined,
};
use crate::place::{HAS_ALL_FAULTS, LINES};
use crate::system::{
    ALL_FAULTS, ICER, ICSR, ISER, ISPR, PRIORITIES, SHCSR, load_shown, mend, on_process_stack, restore,
};
use crate::{Digest, Random};

/// Storms in all, and operations of each.
const STORMS: u32 = 300;
const OPERATIONS: u32 = 60;
/// Storms of a round of the long run.
const STORMS_OF_ROUND: u32 = 40;
/// Storms of a line of output.
const GROUP: u32 = 25;
/// Handlers inside handlers, so that the stack suffices.
const DEEPEST: u32 = 20;

static RUNNING: AtomicBool = AtomicBool::new(false);
static SEED: AtomicU32 = AtomicU32::new(1);
/// The effects of the storms on the processor, independent of the compiler's work on this program.
static DIGEST: AtomicU32 = AtomicU32::new(0);
/// Registers, stack pointers and floating-point state as well: the same wherever the same binary runs.
static STRICT: AtomicU32 = AtomicU32::new(0);
static LEFT: AtomicU32 = AtomicU32::new(0);
static DEPTH: AtomicU32 = AtomicU32::new(0);
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// Tells whether exceptions belong to a storm.
pub fn running() -> bool {
    RUNNING.load(Relaxed)
}

fn draw(limit: u32) -> u32 {
    let mut random = Random::new(SEED.load(Relaxed));
    let number = random.draw();
    SEED.store(number, Relaxed);
    (number >> 8) % limit
}

/// Draws a line of this program's own.
fn line() -> u32 {
    let line = draw(32);
    if LINES >> line & 1 != 0 { line } else { line + 8 }
}

fn note(word: u32) {
    let mut digest = Digest(DIGEST.load(Relaxed));
    digest.add(word);
    DIGEST.store(digest.0, Relaxed);
    note_strictly(word);
}

fn note_strictly(word: u32) {
    let mut digest = Digest(STRICT.load(Relaxed));
    digest.add(word);
    STRICT.store(digest.0, Relaxed);
}

fn note_state() {
    for word in [handler(), primask(), basepri(), faultmask(), control() & 3] {
        note(word);
    }
    note_strictly(control());
    note_strictly(process_stack());
    for register in [ICSR, SHCSR, ISER, ISPR, 0xE000_E300] {
        note(load_shown(register));
    }
}

/// Tells whether a fault or a call can be taken here. Otherwise the processor would lock up. A program whose
/// HardFault is another's makes none that would become one.
fn faults_allowed() -> bool {
    let is_first = || handler() | primask() | basepri() == 0;
    !matches!(handler(), 2 | 3) && faultmask() == 0 && (HAS_ALL_FAULTS || is_first())
}

/// Enables these faults and no others. Without HardFault, all stay enabled.
fn change_faults(enabled: u32) {
    if HAS_ALL_FAULTS {
        store(SHCSR, load(SHCSR) & !ALL_FAULTS | enabled);
    }
}

/// Does one operation. Returns false if the handler ends.
fn operation() -> bool {
    match draw(24) {
        0..=2 => store(ISPR, 1 << line()),
        3 => store(0xE000_EF00, line()),
        4 => store(ICSR, 1 << 28),
        5 => store(ICSR, 1 << 26),
        6 | 7 if faults_allowed() => call(),
        8 => change_masks(draw(3) == 0, false),
        9 => set_basepri(draw(4) * 0x40 + draw(2)),
        10 => set_basepri_max(draw(4) * 0x40),
        // In HardFault and NMI the manual forbids to set it (B5.2.3), which QEMU does not know.
        11 => change_masks(draw(4) == 0 && faults_allowed(), true),
        12 => store_byte(PRIORITIES + line(), (draw(4) * 0x40 + draw(2)) as u8),
        13 => {
            const WITH_PRIORITY: [u32; 6] = [4, 5, 6, 11, 14, 15];
            let exception = WITH_PRIORITY[draw(6) as usize];
            store_byte(0xE000_ED14 + exception, (draw(4) * 0x40) as u8);
        }
        14 => store(
            if draw(3) == 0 { ICER } else { ISER },
            (draw(1 << 16)) << draw(17),
        ),
        15 => store(0xE000_E280, draw(1 << 16) << draw(17)),
        16 => store(0xE000_ED0C, 0x05FA_0000 | draw(8) << 8),
        17 if faults_allowed() => undefined(draw(2) == 0),
        18 if HAS_ALL_FAULTS && faults_allowed() => note(load_unprivileged(ICSR)),
        19 => change_faults(draw(8) << 16),
        20 => note(exchange_float(draw(1 << 20))),
        21 if draw(8) == 0 && HAS_ALL_FAULTS => store(ICSR, 1 << 31),
        22 => set_control(control() & !4),
        _ => {
            if handler() != 0 {
                return false;
            }
        }
    }
    barrier();
    note_state();
    true
}

/// Handles an exception of a storm; see `exceptions::suite_exception`.
pub fn exception(exc_return: u32, frame: u32) -> u32 {
    TAKEN.fetch_add(1, Relaxed);
    let depth = DEPTH.fetch_add(1, Relaxed);
    let number = handler();
    note(number);
    note(exc_return | 0x10);
    note_strictly(exc_return);
    for word in [0, 1, 2, 3, 4, 5, 7] {
        // The PC is not the same where the processor may choose when to take an interrupt.
        note_strictly(load(frame + word * 4));
    }
    // IPSR and T: the flags, and whether the frame was moved to be aligned, are the compiler's.
    note(load(frame + 28) & 0x0100_01FF);
    if exc_return & 0x10 == 0 {
        // Until then it is not known whether the registers are in the frame already (lazy stacking).
        settle_float();
        note_strictly(load(frame + 0x20 + 7 * 4));
    }
    note_strictly(main_stack());
    let mut result = exc_return;
    if (3..=6).contains(&number) {
        note(load_shown(0xE000_ED28));
        note(load_shown(0xE000_ED2C));
        result = mend(exc_return, frame);
    }
    note_state();
    while depth < DEEPEST && LEFT.load(Relaxed) > 0 {
        LEFT.fetch_sub(1, Relaxed);
        if !operation() {
            break;
        }
    }
    DEPTH.fetch_sub(1, Relaxed);
    result
}

extern "C" fn thread() {
    while LEFT.load(Relaxed) > 0 {
        LEFT.fetch_sub(1, Relaxed);
        operation();
    }
}

/// Runs one storm.
fn one(storm: u32) {
    restore();
    SEED.store(storm.wrapping_mul(0x9E37_79B9) | 1, Relaxed);
    LEFT.store(OPERATIONS, Relaxed);
    store(ISER, u32::MAX);
    RUNNING.store(true, Relaxed);
    if draw(2) == 0 {
        thread();
    } else {
        on_process_stack(thread);
    }
    // Pending exceptions are taken now, with nothing left to draw.
    store(0xE000_ED0C, 0x05FA_0000);
    change_masks(false, false);
    change_masks(false, true);
    set_basepri(0);
    barrier();
    note_state();
    RUNNING.store(false, Relaxed);
}

/// More storms than [`run`] has; their digest, with all before.
pub fn more(round: u32) -> u32 {
    for storm in 0..STORMS_OF_ROUND {
        one(STORMS + round * STORMS_OF_ROUND + storm);
    }
    restore();
    DIGEST.load(Relaxed)
}

/// Runs the storms.
pub fn run() {
    for storm in 0..STORMS {
        one(storm);
        if storm % GROUP == GROUP - 1 {
            let (digest, taken) = (DIGEST.load(Relaxed), TAKEN.load(Relaxed));
            print!(
                "storm: {} storms, {} exceptions, {:08x}\n",
                storm + 1,
                taken,
                digest
            );
            print!("storm: strictly {:08x}\n", STRICT.load(Relaxed));
        }
    }
}
