// SPDX-License-Identifier: Apache-2.0
//! Descriptor tables of the hypervisor (AMD APM volume 2, 4.8): one segment table and one task state for
//! each pCPU, one table of interrupt handlers for all.
//!
//! Exceptions of the hypervisor itself run on the emergency stack of the pCPU (IST 1). Interrupts are taken
//! only at two places of [`crate::sysreg`], on the stack in use.

use crate::entry;
use crate::stacks::{EMERGENCY_SIZE, EMERGENCY_STACKS};
use bulkhead_arch_api::MAX_PCPUS;
use core::arch::asm;
use core::cell::UnsafeCell;

/// Selector of the hypervisor's code.
pub(crate) const CODE: u16 = 0x08;
/// Selector of the task state.
const TASK: u16 = 0x20;
const CODE_64: u64 = 0x00AF_9B00_0000_FFFF;
const DATA: u64 = 0x00CF_9300_0000_FFFF;
/// Vectors below are exceptions.
const FIRST_INTERRUPT: usize = 32;
/// Bytes of a stub of `entry`.
const STUB: u64 = 16;

/// The segments and the task state of a pCPU.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Own {
    segments: [u64; 6],
    /// 104 bytes, of which the words after the first 4 bytes are stacks.
    task: [u32; 26],
}

/// Descriptor tables.
#[repr(C, align(4096))]
struct Descriptors {
    handlers: UnsafeCell<[[u64; 2]; 256]>,
    own: UnsafeCell<[Own; MAX_PCPUS]>,
}

// SAFETY: a pCPU writes its own part before it loads it; the boot pCPU writes the handlers before it starts
// others. Afterwards only the hardware uses them.
unsafe impl Sync for Descriptors {}

static DESCRIPTORS: Descriptors = Descriptors {
    handlers: UnsafeCell::new([[0; 2]; 256]),
    own: UnsafeCell::new(
        [Own {
            segments: [0; 6],
            task: [0; 26],
        }; MAX_PCPUS],
    ),
};

/// The operand of LGDT and LIDT.
#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}

/// Returns the descriptor of a handler: an interrupt gate.
fn gate(vector: usize) -> [u64; 2] {
    let address = entry::stubs() + vector as u64 * STUB;
    let stack = u64::from(vector < FIRST_INTERRUPT);
    let low =
        address & 0xFFFF | u64::from(CODE) << 16 | stack << 32 | 0x8E << 40 | (address >> 16 & 0xFFFF) << 48;
    [low, address >> 32]
}

/// Fills the table of handlers. On the boot pCPU, before [`load`].
pub(crate) fn fill_handlers() {
    // SAFETY: no other pCPU runs, and the table is not loaded yet.
    let handlers = unsafe { &mut *DESCRIPTORS.handlers.get() };
    for (vector, place) in handlers.iter_mut().enumerate() {
        *place = gate(vector);
    }
}

/// Loads the tables of this pCPU.
pub(crate) fn load(pcpu: usize) {
    let all = DESCRIPTORS.own.get().cast::<Own>();
    let own = all.wrapping_add(pcpu.min(MAX_PCPUS - 1));
    let emergency = (&raw const EMERGENCY_STACKS) as u64;
    let top = emergency + (pcpu as u64 + 1) * EMERGENCY_SIZE as u64;
    let mut task = [0; 26];
    // IST 1 is at byte 36. No port is allowed: the map begins after the segment.
    (task[9], task[10], task[25]) = (top as u32, (top >> 32) as u32, 104 << 16);
    let state = own as u64 + core::mem::offset_of!(Own, task) as u64;
    let descriptor = 103 | (state & 0xFF_FFFF) << 16 | 0x89 << 40 | (state >> 24 & 0xFF) << 56;
    let segments = [0, CODE_64, DATA, 0, descriptor, state >> 32];
    // SAFETY: this pCPU's own part, which no other code uses.
    unsafe { own.write(Own { segments, task }) }
    let segments = Pointer {
        limit: 6 * 8 - 1,
        base: own as u64,
    };
    let handlers = Pointer {
        limit: 256 * 16 - 1,
        base: DESCRIPTORS.handlers.get() as u64,
    };
    // SAFETY: both tables are as the manual wants them and stay where they are; the segments of code and data
    // are the same as before under new numbers, and the code segment is loaded by the far return.
    unsafe {
        asm!(
            "lgdt [{segments}]",
            "lidt [{handlers}]",
            "mov {temporary:e}, 0x10",
            "mov ss, {temporary:e}",
            "mov ds, {temporary:e}",
            "mov es, {temporary:e}",
            "push 0x08",
            "lea {temporary}, [rip + 2f]",
            "push {temporary}",
            "retfq",
            "2:",
            "mov {temporary:e}, {task}",
            "ltr {temporary:x}",
            segments = in(reg) &raw const segments,
            handlers = in(reg) &raw const handlers,
            temporary = out(reg) _,
            task = const TASK,
        );
    }
}
