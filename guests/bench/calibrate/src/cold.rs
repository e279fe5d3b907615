// SPDX-License-Identifier: Apache-2.0
//! Makes the caches cold.

use bulkhead_guest::vm::cpu;
use core::sync::atomic::{AtomicU8, Ordering};

/// Bytes that are walked through: twice the last cache of the machines that docs/first-board.md names, which
/// is 1 MiB.
pub const BYTES: usize = 2 << 20;
/// Bytes from one access to the next: no cache line is shorter.
const LINE: usize = 32;

static MEMORY: [AtomicU8; BYTES] = [const { AtomicU8::new(0) }; BYTES];

/// Fills the caches of data with other memory, and empties the cache of instructions.
pub fn forget() {
    for byte in MEMORY.iter().step_by(LINE) {
        byte.store(1, Ordering::Relaxed);
    }
    cpu::forget_instructions();
}
