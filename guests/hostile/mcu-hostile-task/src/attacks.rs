// SPDX-License-Identifier: Apache-2.0
//! The attacks. Each may fault at any instruction and never come back.

use core::arch::{asm, global_asm};

use bulkhead_guest::abi::Operation;
use bulkhead_guest::hypercall;
use bulkhead_guest::random::Random;

use crate::lives;
use crate::targets::{BORDERS, RAM};

/// Bytes of RAM of this program.
const RAM_SIZE: u32 = 0x1000;
/// A stack pointer within the stack.
pub const STACK: u32 = RAM + 0x400;
/// Halfwords of `hostile_code`.
const HALFWORDS: u32 = 4096;

// Random halfwords, by a linear congruential generator: of two instructions in a row one is mostly of 16
// bits. `hostile_run` gives these instructions thirteen registers and a stack pointer; they never return.
global_asm!(
    ".pushsection .text.hostile, \"ax\"",
    ".syntax unified",
    ".thumb",
    ".balign 4",
    ".global hostile_code",
    "hostile_code:",
    ".set seed, 20251",
    ".rept {halfwords}",
    ".set seed, (seed * 1103515245 + 12345) & 0x7fffffff",
    ".inst.n (seed >> 12) & 0xffff",
    ".endr",
    ".balign 4",
    "udf #0x7f",
    ".global hostile_run",
    ".type hostile_run, %function",
    ".thumb_func",
    "hostile_run:",
    "mov r14, r0",
    "ldr r12, [r14, #52]",
    "mov sp, r12",
    "ldr r12, [r14, #56]",
    "ldmia r14, {{r0-r11}}",
    "bx r12",
    ".popsection",
    halfwords = const HALFWORDS,
);

unsafe extern "C" {
    fn hostile_code();
    /// Runs at word 14 with the registers of words 0 to 11 and the stack pointer of word 13.
    fn hostile_run(words: *const [u32; 15]) -> !;
}

/// Instructions that may do anything.
macro_rules! attack {
    ($($operand:tt)*) => {
        // SAFETY: nothing in this program owns what they touch, or later code puts it right. Their effects
        // elsewhere are the subject of the test.
        unsafe { asm!($($operand)*) }
    };
}

/// Draws a number below a limit.
pub fn below(random: &mut Random, limit: u32) -> u32 {
    random.below(limit.into()) as u32
}

/// Draws a word.
pub fn draw(random: &mut Random) -> u32 {
    (random.draw() >> 24) as u32
}

/// Draws an address: somewhere, or near a border that may be wrong in the hypervisor.
pub fn address(random: &mut Random) -> u32 {
    match below(random, 4) {
        0 => draw(random),
        1 => RAM & 0xFC00_0000 | draw(random) & 0x0007_FFFF,
        _ => {
            let border = BORDERS[below(random, BORDERS.len() as u32) as usize];
            border.wrapping_add(below(random, 512)).wrapping_sub(256)
        }
    }
}

/// Draws a register of the processor, more often one that is there.
fn private(random: &mut Random) -> u32 {
    match below(random, 4) {
        0 => 0xE000_0000 + below(random, 0x10_0000),
        1 => 0xE000_E000 + below(random, 0x1000),
        2 => 0xE000_ED00 + below(random, 0x100),
        _ => 0xE000_E100 + below(random, 0x400),
    }
}

/// Draws a word that means something to the hypervisor, or nothing.
fn argument(random: &mut Random) -> u64 {
    match below(random, 6) {
        0 => below(random, 70).into(),
        1 => random.draw(),
        2 => address(random).into(),
        3 => 1 << below(random, 64),
        4 => u64::from(draw(random)),
        _ => 0,
    }
}

/// Makes a hypercall with any number and any arguments, but not the one that would end everything.
fn call(random: &mut Random) {
    let all = Operation::ALL;
    let function = match below(random, 8) {
        0 => draw(random),
        1 => 0xC600_0000 | draw(random) & 0xFFFF,
        _ => 0xC600_0000 | all[below(random, all.len() as u32) as usize] as u32,
    };
    let mut arguments = [0; 6];
    arguments.fill_with(|| argument(random));
    let ends = function == 0xC600_0000 | Operation::PartitionStop as u32;
    if !(ends && lives::is_deadly(arguments[0])) {
        hypercall::raw(function.into(), arguments);
    }
}

/// Makes one load or store, or several, anywhere but in the memory this program needs for its next attack.
fn memory(random: &mut Random) {
    let at = if below(random, 3) == 0 {
        private(random)
    } else {
        address(random)
    };
    access(random, at);
}

/// Makes one load or store, or several, at an address.
pub fn access(random: &mut Random, mut at: u32) {
    // Half of it is the stack, and after that there is nothing but variables of the runtime.
    if at.wrapping_sub(RAM) < RAM_SIZE - 4 {
        at = RAM + RAM_SIZE - 4;
    }
    let value = draw(random);
    let kind = below(random, 10);
    match kind {
        0 => attack!("ldrb {0}, [{0}]", inout(reg) at => _),
        1 => attack!("ldrh {0}, [{0}]", inout(reg) at => _),
        2 => attack!("ldr {0}, [{0}]", inout(reg) at => _),
        3 => attack!("ldrd r4, r5, [{0}]", in(reg) at, out("r4") _, out("r5") _),
        4 => attack!("ldrex {0}, [{0}]", inout(reg) at => _),
        5 => attack!("strb {1}, [{0}]", in(reg) at, in(reg) value),
        6 => attack!("strh {1}, [{0}]", in(reg) at, in(reg) value),
        7 => attack!("str {1}, [{0}]", in(reg) at, in(reg) value),
        8 => attack!("stmia {0}!, {{r4, r5}}", inout(reg) at => _, out("r4") _, out("r5") _),
        _ => attack!("ldrex {2}, [{0}]", "strex {2}, {1}, [{0}]", in(reg) at, in(reg) value, out(reg) _),
    }
}

/// Code that does something, with registers of any contents and a stack pointer anywhere.
fn run(random: &mut Random, at: u32, stack: u32) -> ! {
    let first = match below(random, 4) {
        0 => address(random),
        1 => 0xC600_0000 | draw(random) & 0x0307,
        _ => draw(random),
    };
    run_with(random, at, stack, first)
}

/// Does the same with a first register.
pub fn run_with(random: &mut Random, at: u32, stack: u32, first: u32) -> ! {
    let mut words = [0; 15];
    words.fill_with(|| match below(random, 4) {
        0 => address(random),
        1 => 0xC600_0000 | draw(random) & 0x0307,
        _ => draw(random),
    });
    words[0] = first;
    words[13] = stack;
    words[14] = at;
    // SAFETY: nothing of this program runs afterwards: it ends in a fault, or by the watchdog.
    unsafe { hostile_run(&raw const words) }
}

/// Random instructions. Bit 0 is T32.
fn instructions(random: &mut Random) {
    let at = hostile_code as *const () as u32 & !1;
    let start = (at + 2 * below(random, HALFWORDS)) | 1;
    let stack = if below(random, 2) == 0 {
        STACK
    } else {
        address(random)
    };
    run(random, start, stack)
}

/// Another partition's code, data, EXC_RETURN values, addresses of no instruction.
fn jump(random: &mut Random) {
    let at = match below(random, 4) {
        0 => 0xF000_0000 | draw(random) | if below(random, 2) == 0 { 0x0FFF_FFE0 } else { 0 },
        1 => RAM + below(random, RAM_SIZE),
        _ => address(random),
    };
    let kind = below(random, 4);
    let at = if kind == 0 { at } else { at | 1 };
    run(random, at, STACK)
}

/// Puts the stack pointer anywhere, then causes a push of a frame there: a call, a fault, registers, an
/// interrupt.
fn stack_pointer(random: &mut Random) {
    let (at, kind) = (address(random), below(random, 6));
    // SAFETY: the stack may be lost. If the program goes on it has its own again.
    unsafe {
        asm!(
            "mov r4, sp",
            "cmp {kind}, #3",
            "it hs",
            "vmovhs.f32 s0, s0",
            "mov sp, {at}",
            "cmp {kind}, #1",
            "beq 3f",
            "cmp {kind}, #2",
            "beq 4f",
            "cmp {kind}, #3",
            "beq 6f",
            "cmp {kind}, #4",
            "beq 7f",
            "movs r0, #0",
            "svc #0",
            "b 5f",
            "3: udf #0x55",
            "4: push {{r4}}",
            "b 5f",
            "6: mov r5, #0x10000",
            "8: subs r5, #1",
            "bne 8b",
            "b 5f",
            "7: vpush {{s0-s15}}",
            "5: mov sp, r4",
            at = in(reg) at, kind = in(reg) kind, out("r0") _, out("r4") _, out("r5") _,
        );
    }
}

/// Pushes until the stack has left the memory.
fn stack_without_end(random: &mut Random) {
    let both = below(random, 2);
    // SAFETY: the stack is below all variables; the loop ends in a fault.
    unsafe {
        asm!("2: push {{r0-r3}}", "cmp {0}, #0", "beq 2b", "svc #0", "b 2b", in(reg) both, options(noreturn));
    }
}

/// Instructions that mean something to a processor: unprivileged, they must do nothing for it.
fn sensitive(random: &mut Random) {
    let value = draw(random);
    match below(random, 10) {
        0 => attack!("msr basepri, {0}", in(reg) value),
        1 => attack!("msr primask, {0}", in(reg) value),
        2 => attack!("msr faultmask, {0}", in(reg) value),
        3 => attack!("msr msp, {0}", in(reg) value),
        4 => attack!("cpsid i", "cpsid f"),
        5 => attack!("msr control, {0}", "isb", in(reg) value & !2),
        6 => attack!("bkpt #0x33"),
        7 => attack!("wfi"),
        8 => attack!("sev", "wfe", "yield"),
        _ => attack!("mcr p15, 0, {0}, c1, c0, 0", in(reg) value),
    }
}

/// Makes one attack.
pub fn one(random: &mut Random) {
    match below(random, 32) {
        0..=9 => call(random),
        10..=18 => memory(random),
        19..=21 => sensitive(random),
        22..=24 => stack_pointer(random),
        25..=28 => instructions(random),
        29..=30 => jump(random),
        _ => stack_without_end(random),
    }
}
