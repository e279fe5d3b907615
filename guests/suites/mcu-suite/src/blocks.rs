// SPDX-License-Identifier: Apache-2.0
//! Random straight-line code (see `build.rs`), each block on several random sets of registers. A digest
//! covers the registers, flags, memory and system registers after each block.

use core::arch::global_asm;

use crate::console::print;
use crate::cpu::{load, process_stack, set_basepri, set_faultmask, set_primask, set_process_stack, store};
use crate::place::{self, PRIORITIES, RAM};
use crate::system::load_shown;
use crate::{Digest, Random};

global_asm!(include_str!(concat!(env!("OUT_DIR"), "/blocks.s")), options(raw));

// Runs a block: r0 the block, r1 thirteen registers and the flags, which are replaced by what it leaves.
global_asm!(
    ".section .text.suite_run_block, \"ax\"",
    ".thumb_func",
    ".global suite_run_block",
    "suite_run_block:",
    "push {{r4-r12, lr}}",
    "push {{r0, r1}}",
    "ldr r2, [r1, #52]",
    "msr apsr_nzcvq, r2",
    "ldmia.w r1, {{r0-r12}}",
    "ldr lr, [sp]",
    "blx lr",
    "push {{r12}}",
    "ldr r12, [sp, #8]",
    "stmia.w r12!, {{r0-r11}}",
    "pop {{r0}}",
    "str r0, [r12], #4",
    "mrs r0, apsr",
    "str r0, [r12]",
    "add sp, sp, #8",
    "pop {{r4-r12, pc}}",
);

unsafe extern "C" {
    static suite_blocks: u32;
    static suite_blocks_end: u32;
    pub fn suite_run_block(block: u32, registers: *mut [u32; 14]);
}

/// RAM the blocks may use; after the process stack.
const SCRATCH: u32 = RAM + 0x8100;
const SYSTEM: u32 = 0xE000_ED00;
const HANDLER_PRIORITIES: u32 = SYSTEM + 0x18;
const FAULT_ADDRESSES: u32 = SYSTEM + 0x34;
const SETS: u32 = 16;
/// Blocks of a line of output.
const GROUP: u32 = 8;

fn start(random: &mut Random) -> [u32; 14] {
    let mut registers = [0; 14];
    for register in &mut registers {
        *register = random.draw();
    }
    registers[8] &= 7;
    registers[9] = PRIORITIES;
    registers[10] = SYSTEM;
    registers[11] = SCRATCH;
    registers[12] = SCRATCH;
    for word in 0..8 {
        store(SCRATCH + word * 4, random.draw());
        store(PRIORITIES + word * 4, random.draw());
    }
    registers
}

fn run_block(block: u32, registers: &mut [u32; 14], digest: &mut Digest) {
    let stack = process_stack();
    // SAFETY: a block changes nothing but what it is given, RAM at SCRATCH and the registers put back below.
    unsafe { suite_run_block(block, registers) };
    for name in [
        crate::cpu::primask(),
        crate::cpu::basepri(),
        crate::cpu::faultmask(),
        process_stack(),
    ] {
        digest.add(name);
    }
    set_faultmask(0);
    set_basepri(0);
    set_primask(0);
    set_process_stack(stack);
    for register in registers {
        digest.add(*register);
    }
    for word in 0..8 {
        digest.add(load(SCRATCH + word * 4));
        digest.add(load(PRIORITIES + word * 4));
    }
    for word in 0..3 {
        digest.add(load_shown(HANDLER_PRIORITIES + word * 4));
        store(HANDLER_PRIORITIES + word * 4, 0);
    }
    for word in 0..place::FAULT_ADDRESSES {
        digest.add(load(FAULT_ADDRESSES + word * 4));
    }
}

/// Returns the address of the table of the blocks, and their number.
fn table() -> (u32, u32) {
    let (first, end) = (&raw const suite_blocks as u32, &raw const suite_blocks_end as u32);
    (first, (end - first) / 4)
}

/// Runs a block on one of its sets of registers.
fn one(first: u32, index: u32, set: u32, digest: &mut Digest) {
    let block = load(first + index * 4);
    let seed = (index + 1).wrapping_mul(0x1_0001);
    let mut random = Random::new(seed.wrapping_add(set.wrapping_mul(0x0123_4567)));
    let mut registers = start(&mut random);
    run_block(block, &mut registers, digest);
}

/// Runs all blocks on one more set of registers than [`run`].
pub fn more(round: u32, digest: &mut Digest) {
    let (first, count) = table();
    for index in 0..count {
        one(first, index, SETS + round, digest);
    }
}

/// Runs all blocks.
pub fn run() {
    let (first, count) = table();
    let mut digest = Digest::EMPTY;
    for index in 0..count {
        for set in 0..SETS {
            one(first, index, set, &mut digest);
        }
        if index % GROUP == GROUP - 1 {
            print!("blocks: {} blocks, {:08x}\n", index + 1, digest.0);
        }
    }
}
