// SPDX-License-Identifier: Apache-2.0
//! Every exception's handler: it makes more pending, up to a depth, and calms what would never end.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::attack;
use crate::cpu::store;

// The number of the exception is the argument. The return value in LR belongs to the exception. NMI and
// faults come from nowhere here.
global_asm!(
    ".section .text.guest_entry, \"ax\"",
    ".global guest_entry",
    ".thumb_func",
    "guest_entry:",
    "mrs r0, ipsr",
    "cmp r0, #7",
    "blo.w flood_fault",
    "b.w flood_exception",
);

/// The largest depth of exceptions inside each other. A frame with floating-point registers and what handlers
/// push need less than 512 bytes of the stack.
const DEEPEST: u32 = 24;
/// Exceptions of an operation that may make others pending.
const MOST: u32 = 120;
const SVCALL: u32 = 11;
const SYSTICK: u32 = 15;

static DEPTH: AtomicU32 = AtomicU32::new(0);
static IN_A_ROW: AtomicU32 = AtomicU32::new(0);
static ALL: AtomicU32 = AtomicU32::new(0);

/// Exceptions so far.
pub fn count() -> u32 {
    ALL.load(Relaxed)
}

/// Begins the next operation.
pub fn calm() {
    IN_A_ROW.store(0, Relaxed);
}

#[unsafe(no_mangle)]
extern "C" fn flood_exception(number: u32) {
    let depth = DEPTH.load(Relaxed) + 1;
    DEPTH.store(depth, Relaxed);
    ALL.store(ALL.load(Relaxed).wrapping_add(1), Relaxed);
    let row = IN_A_ROW.load(Relaxed) + 1;
    IN_A_ROW.store(row, Relaxed);
    if number == SYSTICK && row.is_multiple_of(8) {
        store(attack::TICK_CONTROL, 0);
    }
    if depth < DEEPEST && row < MOST {
        attack::inside(number, number != SVCALL && row.is_multiple_of(16));
    }
    DEPTH.store(depth - 1, Relaxed);
}
