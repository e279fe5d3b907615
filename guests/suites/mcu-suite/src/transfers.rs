// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of several registers and of odd sizes, in and outside of IT blocks, aligned and not. They
//! go to registers of the processor, to their ends, and to places where nothing is. The output has the
//! registers afterwards, and the fault with the state that its frame holds.

use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use crate::Digest;
use crate::blocks::suite_run_block;
use crate::console::print;
use crate::cpu::{barrier, control, handler, load, set_control, store};
use crate::place::{HAS_ALL_FAULTS, NOWHERE, PRIORITIES, RAM};
use crate::system::{load_shown, mend, restore};

/// Pieces of code of 16 bytes each.
macro_rules! pieces {
    ($([$($line:literal),+],)+) => {
        global_asm!(
            ".section .text.suite_pieces, \"ax\"",
            ".syntax unified",
            ".balign 16",
            ".global suite_pieces",
            ".thumb_func",
            "suite_pieces:",
            $($($line,)+ "bx lr", ".balign 16",)+
            ".global suite_pieces_end",
            "suite_pieces_end:",
            options(raw),
        );
    };
}

// The base is r0.
pieces!(
    ["ldmia.w r0!, {r1, r2, r5}"],
    ["stmia.w r0!, {r1, r2, r5}"],
    ["ldmdb.w r0!, {r1, r2, r5}"],
    ["stmdb.w r0!, {r1, r2, r5}"],
    ["ldmia.w r0, {r0, r3, r12}"],
    ["stmia.w r0, {r0, r3, r12}"],
    ["ldmia r0!, {r1, r4, r7}"],
    ["stmia r0!, {r1, r4, r7}"],
    ["ldrd r1, r2, [r0]"],
    ["strd r1, r2, [r0]"],
    ["ldrd r0, r2, [r0, #-4]"],
    ["ldrd r3, r4, [r0], #16"],
    ["strd r3, r4, [r0, #-8]!"],
    [
        "cmp r0, r0",
        "itet eq",
        "ldmiaeq.w r0!, {r1, r2}",
        "ldrdne r1, r2, [r0]",
        "addeq r3, #1"
    ],
    [
        "cmp r0, r0",
        "ite ne",
        "strdne r1, r2, [r0]",
        "strdeq r2, r3, [r0]"
    ],
    ["ldr.w r1, [r0], #4"],
    ["str.w r1, [r0], #-4"],
    ["ldr.w r1, [r0, #4]!"],
    ["ldrh.w r1, [r0], #2"],
    ["strh.w r1, [r0, #2]!"],
    ["ldrsh.w r1, [r0]"],
    ["ldrb.w r1, [r0, #1]!"],
    ["strb.w r1, [r0], #1"],
    ["ldrt r1, [r0]"],
    ["strt r1, [r0]"],
    [
        "cmp r0, r0",
        "ittt eq",
        "mrseq r2, primask",
        "ldreq r1, [r0]",
        "addeq r3, #1"
    ],
    ["ldrbt r1, [r0, #1]"],
    ["ldrsht r1, [r0, #2]"],
    ["strbt r1, [r0, #3]"],
    ["strht r1, [r0, #2]"],
    ["vldr s0, [r0]", "vmov r1, s0"],
    ["vstr s1, [r0]"],
    ["vldr d1, [r0]", "vmov r1, r2, d1"],
    ["vstr d2, [r0, #8]"],
    ["vldmia r0!, {s4-s6}", "vmov r1, s6"],
    ["vstmia r0!, {s4-s6}"],
    ["vldmdb r0!, {d2-d3}", "vmov r1, r2, d3"],
    ["vstmdb r0!, {d2}"],
);

unsafe extern "C" {
    fn suite_pieces();
    static suite_pieces_end: u8;
}

const PIECE: u32 = 16;
/// From here on the pieces load or store one register. If the access is not aligned and not in memory, the
/// architecture leaves open what happens (B3.1.1).
const FIRST_SINGLE: u32 = 15;
/// The pieces that make a BusFault at a register of the processor: they load and store as unprivileged code.
const UNPRIVILEGED: [u32; 6] = [23, 24, 26, 27, 28, 29];
const HANDLER_PRIORITIES: u32 = 0xE000_ED18;
const FAULT_ADDRESSES: u32 = 0xE000_ED34;
const SCRATCH: u32 = RAM + 0x8100;

/// The addresses of the loads and stores.
const BASES: [u32; 12] = [
    PRIORITIES,
    PRIORITIES + 8,
    PRIORITIES + 28,
    PRIORITIES + 1,
    PRIORITIES + 2,
    FAULT_ADDRESSES,
    0xE000_DFF8,
    NOWHERE,
    NOWHERE + 3,
    SCRATCH,
    SCRATCH + 1,
    SCRATCH + 2,
];

static RUNNING: AtomicBool = AtomicBool::new(false);
static DIGEST: AtomicU32 = AtomicU32::new(0);
static FAULTS: AtomicU32 = AtomicU32::new(0);
static START: AtomicU32 = AtomicU32::new(0);

/// Tells whether exceptions belong to a transfer.
pub fn running() -> bool {
    RUNNING.load(Relaxed)
}

fn note(word: u32) {
    let mut digest = Digest(DIGEST.load(Relaxed));
    digest.add(word);
    DIGEST.store(digest.0, Relaxed);
}

/// Handles an exception of a transfer; see `exceptions::suite_exception`.
pub fn exception(exc_return: u32, frame: u32) -> u32 {
    FAULTS.fetch_add(1, Relaxed);
    note(handler());
    for word in [0, 1, 2, 3, 4] {
        note(load(frame + word * 4));
    }
    note(load(frame + 24).wrapping_sub(START.load(Relaxed)));
    // The flags and IT; not how the frame was aligned.
    note(load(frame + 28) & !(1 << 9));
    let status = load_shown(0xE000_ED28);
    note(status);
    note(load_shown(0xE000_ED2C));
    if status & 1 << 7 != 0 {
        note(load(FAULT_ADDRESSES));
    }
    if status & 1 << 15 != 0 {
        note(load(FAULT_ADDRESSES + 4));
    }
    mend(exc_return, frame)
}

fn one(piece: u32, base: u32) {
    for word in 0..8 {
        store(SCRATCH + word * 4, 0x0102_0304 * word);
        store(PRIORITIES + word * 4, 0x6040_2000 + 0x2020_2020 * word);
    }
    for word in 0..3 {
        store(HANDLER_PRIORITIES + word * 4, 0);
    }
    store(FAULT_ADDRESSES, 0x1234_5678);
    store(FAULT_ADDRESSES + 4, 0x9ABC_DEF0);
    let mut registers = [0_u32; 14];
    for (number, register) in (1..).zip(&mut registers) {
        *register = 0x1111_1111_u32.wrapping_mul(number);
    }
    registers[0] = base;
    START.store(piece & !1, Relaxed);
    RUNNING.store(true, Relaxed);
    // SAFETY: a piece changes only the registers, RAM at SCRATCH, and registers of the processor that are put
    // back.
    unsafe { suite_run_block(piece, &mut registers) };
    barrier();
    RUNNING.store(false, Relaxed);
    for register in registers {
        note(register);
    }
    for word in 0..8 {
        note(load(SCRATCH + word * 4));
        note(load(PRIORITIES + word * 4));
    }
    for word in 0..3 {
        note(load_shown(HANDLER_PRIORITIES + word * 4));
        store(HANDLER_PRIORITIES + word * 4, 0);
    }
    for word in 0..8 {
        store(PRIORITIES + word * 4, 0);
    }
}

/// Runs all pieces at all bases.
pub fn run() {
    restore();
    let start = suite_pieces as *const () as u32;
    let count = ((&raw const suite_pieces_end) as u32 - (start & !1)) / PIECE;
    DIGEST.store(Digest::EMPTY.0, Relaxed);
    for piece in 0..count {
        for base in BASES {
            let is_memory = base & !0x1F == SCRATCH & !0x1F;
            let is_open = piece >= FIRST_SINGLE && base & 3 != 0 && !is_memory;
            if !is_open
                && (HAS_ALL_FAULTS
                    || is_memory
                    || base & !0x1F == PRIORITIES && !UNPRIVILEGED.contains(&piece))
            {
                one(start + piece * PIECE, base);
            }
        }
        print!(
            "transfer: {} {} faults, {:08x}\n",
            piece,
            FAULTS.load(Relaxed),
            DIGEST.load(Relaxed)
        );
    }
    // The parts after this one see no floating-point context.
    set_control(control() & !4);
    restore();
}
