// SPDX-License-Identifier: Apache-2.0
//! More attacks: instructions with several accesses across borders, jumps by every instruction that can make
//! one, IT blocks, faults inside faults, tables that change under an exception, and a timer with hardly any
//! period.

use core::arch::{asm, global_asm};

use crate::cpu::{change_masks, load, store};
use crate::targets::{CODE, SCRATCH, address, floating_point, private, return_value, victim};
use crate::{below, draw};

/// Pieces of code of so many bytes each.
macro_rules! pieces {
    ($name:literal, $size:literal, $([$($line:literal),+],)+) => {
        global_asm!(
            concat!(".section .text.", $name, ", \"ax\""),
            ".syntax unified",
            concat!(".balign ", $size),
            concat!(".global ", $name),
            ".thumb_func",
            concat!($name, ":"),
            $($($line,)+ concat!(".balign ", $size),)+
            concat!(".global ", $name, "_end"),
            concat!($name, "_end:"),
            options(raw),
        );
    };
}

// Loads and stores of several registers or of odd sizes: r0 is the base, all others but SP are data.
// Transfers of floating-point registers are written as encodings: VLDM, VSTM, VLDR, VSTR of words and
// doublewords, up and down.
pieces!(
    "hostile_transfers",
    "8",
    ["ldmia.w r0!, {r1-r3, r12}", "bx lr"],
    ["stmia.w r0!, {r1-r3, r12}", "bx lr"],
    ["ldmdb.w r0!, {r1-r3, r12}", "bx lr"],
    ["stmdb.w r0!, {r1-r3, r12}", "bx lr"],
    ["ldmia r0, {r0, r1, r2, r3}", "bx lr"],
    ["stmia.w r0, {r0, r1, r2, r3}", "bx lr"],
    ["ldmdb.w r0, {r0, r1, r12}", "bx lr"],
    ["ldrd r1, r2, [r0]", "bx lr"],
    ["ldrd r0, r2, [r0, #-4]", "bx lr"],
    ["strd r1, r2, [r0], #1020", "bx lr"],
    ["strd r1, r2, [r0, #-1020]!", "bx lr"],
    ["ldr.w r1, [r0, #1]", "bx lr"],
    ["str.w r1, [r0, #3]", "bx lr"],
    ["ldrh.w r1, [r0, #1]!", "bx lr"],
    ["strh.w r1, [r0], #-3", "bx lr"],
    ["ldrsb.w r1, [r0, #-1]", "bx lr"],
    [".inst.w 0xecb00a06", "bx lr"],
    [".inst.w 0xeca00a06", "bx lr"],
    [".inst.w 0xed300b08", "bx lr"],
    [".inst.w 0xed200b08", "bx lr"],
    [".inst.w 0xedd00a01", "bx lr"],
    [".inst.w 0xed001b01", "bx lr"],
    ["ldrex r1, [r0]", "bx lr"],
    ["strex r1, r2, [r0, #4]", "bx lr"],
    ["ldrexb r1, [r0]", "bx lr"],
    ["strexb r1, r2, [r0]", "bx lr"],
    ["ldrexh r1, [r0]", "bx lr"],
    ["strexh r1, r2, [r0]", "bx lr"],
    ["tbb [r0, r1]"],
    ["tbh [r0, r1, lsl #1]"],
    ["ldr pc, [r0]"],
    ["ldmia.w r0, {r1, pc}"],
);

// Blocks of conditional instructions: loads and stores, replaced instructions, undefined ones, BKPT, SVC. IT
// is written as a number, so that the assembler lets any instruction be in its block: ITETT NE, ITTE CS, ITE
// HI, ITET VS, ITEE MI.
pieces!(
    "hostile_conditions",
    "16",
    [
        ".inst.n 0xbf17",
        "str r1, [r0]",
        "ldr r2, [r0]",
        "mrs r3, basepri",
        "bx lr",
        "bx lr"
    ],
    [
        ".inst.n 0xbf26",
        "msr basepri, r1",
        ".inst.n 0xde92",
        ".inst.n 0xde55",
        "bx lr"
    ],
    [".inst.n 0xbf8c", "bkpt #3", "bkpt #4", "bx lr"],
    [
        ".inst.n 0xbf6a",
        "ldr r0, [r0]",
        "strd r1, r2, [r0]",
        "svc #6",
        "bx lr"
    ],
    [
        ".inst.n 0xbf4e",
        "ldmia.w r0, {r1, r2}",
        "wfe",
        "strb r1, [r0]",
        "bx lr"
    ],
);

// Ends of handlers: r0 holds what is to be the PC. The last two do not end, but fault.
pieces!(
    "hostile_ends",
    "8",
    ["bx r0"],
    ["push {r0}", "pop {pc}"],
    ["push {r0}", "ldr pc, [sp], #4"],
    ["mov r1, r0", "push {r0, r1}", "ldmia.w sp!, {r1, pc}"],
    ["mov pc, r0"],
    ["blx r0"],
    ["push {r0}", "ldr.w pc, [sp]"],
    ["udf #0x56", "svc #8"],
    ["ldr.w pc, [r1]", "bkpt #5"],
);

unsafe extern "C" {
    fn hostile_transfers();
    static hostile_transfers_end: u8;
    fn hostile_conditions();
    static hostile_conditions_end: u8;
    fn hostile_ends();
}

const TRANSFER: u32 = 8;
const CONDITIONS: u32 = 16;
const END: u32 = 8;
const ENDS: u32 = 9;

/// Calls code of this file, with a base in r0.
fn call_with(at: u32, base: u32, flags: u32) {
    // SAFETY: the handler copes. The store goes to the base, which callers choose as they choose the base of
    // other stores.
    unsafe {
        asm!(
            "msr apsr_nzcvq, {flags}", "blx {at}",
            flags = in(reg) flags, at = in(reg) at | 1,
            inout("r0") base => _, inout("r1") draw() => _, inout("r2") draw() => _, inout("r3") 0 => _, out("r12") _, out("lr") _,
        )
    }
}

/// Picks one of the pieces of `size` bytes from `start` to `end`.
fn piece(start: unsafe extern "C" fn(), end: *const u8, size: u32) -> u32 {
    let start = start as *const () as u32 & !1;
    start + below((end as u32 - start) / size) * size
}

/// Makes one of the transfers, at a border, at registers of the processor, or at the end of these. At a
/// border it may ruin this program's own memory, but not everywhere.
pub fn transfers() {
    let base = match below(6) {
        0 => private() & !3,
        1 => private(),
        2 => [
            0xE000_0000_u32,
            0xE000_E000,
            0xE000_F000,
            0xE004_2000,
            0xE010_0000,
        ][below(5) as usize]
            .wrapping_add(below(8) * 4)
            .wrapping_sub(16),
        3 => address() & !3,
        4 => CODE.wrapping_add(below(8) * 4).wrapping_sub(16),
        _ => victim(),
    };
    if below(2) == 0 {
        floating_point();
    }
    call_with(
        piece(hostile_transfers, &raw const hostile_transfers_end, TRANSFER),
        base,
        draw(),
    );
}

/// Runs a conditional block with random flags.
pub fn conditions() {
    let base = if below(2) == 0 { private() } else { victim() } & !3;
    call_with(
        piece(hostile_conditions, &raw const hostile_conditions_end, CONDITIONS),
        base,
        draw(),
    );
}

/// PUSH or POP with the main stack pointer somewhere.
pub fn push_and_pop() {
    let at = if below(3) == 0 { private() } else { address() } & !3;
    // SAFETY: this ends in the handler, in a restart, or with the stack pointer put back.
    unsafe {
        asm!(
            "mov r4, sp", "mov r5, lr", "cmp {kind}, #1", "mov sp, {at}", "ite eq", "pusheq {{r0-r3, lr}}", "popne {{r0-r3}}", "mov sp, r4", "mov lr, r5",
            at = in(reg) at, kind = in(reg) below(2),
            out("r0") _, out("r1") _, out("r2") _, out("r3") _, out("r4") _, out("r5") _, out("lr") _,
        )
    }
}

/// Puts a copy of the vector table in force, with one of these handlers for everything but what brings this
/// program back.
fn table_of_ends(kind: u32, faults: bool) {
    let handler = hostile_ends as *const () as u32 + kind * END;
    for word in 0..48 {
        store(SCRATCH + word * 4, load(CODE + word * 4));
    }
    // SVCall, PendSV and SysTick end so. Mostly the faults do not: two faults inside each other are the end
    // of a life.
    for exception in [11, 14, 15] {
        store(SCRATCH + exception * 4, handler);
    }
    if faults {
        for exception in 3..=6 {
            store(SCRATCH + exception * 4, handler);
        }
    }
    store(0xE000_ED08, SCRATCH);
}

/// Makes an exception return by each instruction that can make one, and by some that cannot, from handlers of
/// threads and of other handlers.
pub fn ends() {
    table_of_ends(below(ENDS), below(16) == 0);
    let frame = SCRATCH + 0x400 + below(4) * 4;
    for word in 0..32 {
        store(frame + word * 4, draw());
    }
    if below(2) == 0 {
        store(frame + 7 * 4, draw() & 0x1FF | 1 << 24);
    }
    let value = return_value();
    // SAFETY: the handler copes.
    unsafe {
        asm!("msr psp, {}", "svc #7", in(reg) frame, inout("r0") value => _, inout("r1") victim() => _, out("r2") _, out("r3") _, out("r12") _, out("lr") _)
    }
}

/// Jumps to such values, and to odd and even places, from a thread.
pub fn jumps() {
    let at = if below(2) == 0 { return_value() } else { address() };
    let kind = (hostile_ends as *const () as u32 & !1) + below(7) * END;
    call_with(kind, at, draw());
}

/// Changes the vector table while exceptions wait.
pub fn moving_table() {
    table_of_ends(below(ENDS), false);
    change_masks(true, false);
    store(0xE000_ED04, 1 << 28 | 1 << 26);
    store(0xE000_E100, 1 << 31);
    store(0xE000_E200, 1 << 31);
    for exception in [14, 15, 47] {
        store(SCRATCH + exception * 4, address());
    }
    if below(4) == 0 {
        store(0xE000_ED08, address());
    }
    change_masks(false, false);
}

/// SysTick with hardly any period, its handler the usual one, and a loop that touches it.
pub fn ticks() {
    store(0xE000_E014, below(3));
    store(0xE000_E018, 0);
    store(0xE000_E010, 3 | below(2) << 2);
    for _ in 0..8 {
        let _ = load(0xE000_E010);
        store(0xE000_E018, 0);
        store(0xE000_E014, below(3));
    }
}
