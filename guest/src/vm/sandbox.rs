// SPDX-License-Identifier: Apache-2.0
//! Runs machine code that may do anything, and gets out of it again: random instructions, system registers of
//! any encoding, loads and stores of every form.
//!
//! The code runs at addresses of its own ([`map`]), far from the program, with registers and a stack of its
//! choice, at EL1 or EL0. Every exception ends it: its own `BRK` after the last word, or
//! the virtual timer when its time is over. The vectors abandon its state: they keep what an observer wants
//! to see ([`Outcome`]), put the translation back as it was, and return to the caller of [`Sandbox::run`].
//!
//! The vectors run in the upper half of the address space, whose table no code of the sandbox can change
//! ([`is_survivable`]), so a broken lower half is no obstacle. Uses `TPIDR_EL1`, `TPIDRRO_EL0`, the virtual
//! timer and its interrupt, and `CONTEXTIDR_EL1`. Each CPU has its own.

mod map;

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::mem::offset_of;

use super::timer::Timer;
use super::{bus, cpu, gic, smp};

pub use map::{CODE, DEVICES, NARROW_CODE, NARROW_DEVICES, PROBED, STACK};

/// Most words of one run.
pub const MAX_WORDS: usize = 16;
/// The instruction after the last word: `BRK #0x5AFE`.
const END: u32 = 0xD42B_5FC0;
/// `ESR_EL1` of it (Arm ARM DDI 0487 D19.2.37, EC 0x3C).
const END_SYNDROME: u64 = 0x3C << 26 | 1 << 25 | 0x5AFE;
/// SPSR of the code: EL1 with its own stack pointer; EL0. Bit 9 masks debug exceptions.
const STATE_EL1: u64 = 5;
const STATE_EL0: u64 = 0;
/// SPSR of a 32-bit program: User mode, interrupts and asynchronous aborts masked; T32 instead of A32.
const STATE_USER: u64 = 0x10 | 7 << 6;
const STATE_T32: u64 = 1 << 5;
const MASK_DEBUG: u64 = 1 << 9;
/// PSTATE.SS, with which a debugger returns to what it steps (D2.12.3).
const STEP: u64 = 1 << 21;

/// The registers with which a run begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// x0..x30. A value that is an address of the program becomes 0 ([`without_program`]).
    pub general: [u64; 31],
    /// At EL0 instead of EL1.
    pub program: bool,
    /// Debug exceptions are let in; with `step`, one comes after the first instruction if `MDSCR_EL1.SS` is
    /// set.
    pub debug: bool,
    /// See `debug`.
    pub step: bool,
    /// Ends after this many ticks of the virtual counter.
    pub budget: u64,
}

/// The end of a run, and the registers then.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Outcome {
    /// x0..x30.
    pub general: [u64; 31],
    /// Index of the vector.
    pub vector: u64,
    /// `ESR_EL1`.
    pub syndrome: u64,
    /// `FAR_EL1`.
    pub address: u64,
    /// Its program counter.
    pub pc: u64,
    /// Its processor state.
    pub state: u64,
}

impl Outcome {
    /// Tells whether the code came to its end.
    #[must_use]
    pub const fn finished(&self) -> bool {
        self.vector.is_multiple_of(4) && self.syndrome == END_SYNDROME
    }

    /// Tells whether its time was over (or another interrupt came).
    #[must_use]
    pub const fn interrupted(&self) -> bool {
        self.vector % 4 == 1
    }

    /// Returns the exception class.
    #[must_use]
    pub const fn class(&self) -> u64 {
        self.syndrome >> 26 & 0x3F
    }

    /// Returns the index of the word that it came to.
    #[must_use]
    pub const fn word(&self) -> u64 {
        self.pc.wrapping_sub(map::CODE) / 4
    }
}

/// The registers that [`sandbox_enter`] loads.
#[repr(C)]
struct Entry {
    general: [u64; 31],
    stack: u64,
    pc: u64,
    state: u64,
}

/// The state of the caller that it saves: x19..x30, SP, VBAR_EL1, TTBR0_EL1; and the outcome.
#[repr(C, align(512))]
struct Saved {
    caller: [u64; 12],
    sp: u64,
    vectors: u64,
    table: u64,
    unused: u64,
    outcome: Outcome,
}

/// The size is a power of two, so that a vector finds its CPU's with a shift.
const SAVED_SHIFT: u32 = 9;
const _: () = assert!(size_of::<Saved>() == 1 << SAVED_SHIFT && smp::MAX_CPUS == 4);

struct Cells([UnsafeCell<Saved>; smp::MAX_CPUS]);

// SAFETY: a CPU uses its own only, in `Sandbox::run`, which borrows the one `Sandbox` of that CPU
// exclusively.
unsafe impl Sync for Cells {}

static SAVED: Cells = Cells([const { UnsafeCell::new(NOTHING) }; smp::MAX_CPUS]);

const NOTHING: Saved = Saved {
    caller: [0; 12],
    sp: 0,
    vectors: 0,
    table: 0,
    unused: 0,
    outcome: Outcome {
        general: [0; 31],
        vector: 0,
        syndrome: 0,
        address: 0,
        pc: 0,
        state: 0,
    },
};

global_asm!(
    ".pushsection .text.sandbox, \"ax\"",
    // in: x0 = Entry; returns after an exception of the code it starts
    "sandbox_enter:",
    "adrp x1, {saved}",
    "add x1, x1, :lo12:{saved}",
    "mrs x2, mpidr_el1",
    "ubfiz x2, x2, #{shift}, #2",
    "add x1, x1, x2",
    "stp x19, x20, [x1]",
    "stp x21, x22, [x1, #16]",
    "stp x23, x24, [x1, #32]",
    "stp x25, x26, [x1, #48]",
    "stp x27, x28, [x1, #64]",
    "stp x29, x30, [x1, #80]",
    "mov x2, sp",
    "mrs x3, vbar_el1",
    "stp x2, x3, [x1, #96]",
    "mrs x2, ttbr0_el1",
    "str x2, [x1, #112]",
    "adrp x2, sandbox_vectors",
    "add x2, x2, :lo12:sandbox_vectors",
    "orr x2, x2, #{upper}",
    "msr vbar_el1, x2",
    "ldp x2, x3, [x0, #248]",
    "ldr x4, [x0, #264]",
    "msr sp_el0, x2",
    "mov sp, x2",
    "msr elr_el1, x3",
    "msr spsr_el1, x4",
    "isb",
    "ldp x2, x3, [x0, #16]",
    "ldp x4, x5, [x0, #32]",
    "ldp x6, x7, [x0, #48]",
    "ldp x8, x9, [x0, #64]",
    "ldp x10, x11, [x0, #80]",
    "ldp x12, x13, [x0, #96]",
    "ldp x14, x15, [x0, #112]",
    "ldp x16, x17, [x0, #128]",
    "ldp x18, x19, [x0, #144]",
    "ldp x20, x21, [x0, #160]",
    "ldp x22, x23, [x0, #176]",
    "ldp x24, x25, [x0, #192]",
    "ldp x26, x27, [x0, #208]",
    "ldp x28, x29, [x0, #224]",
    "ldr x30, [x0, #240]",
    "ldp x0, x1, [x0]",
    "eret",
    ".macro sandbox_vector kind",
    ".balign 0x80",
    "msr tpidr_el1, x0",
    "mov x0, #\\kind",
    "b sandbox_leave",
    ".endm",
    ".balign 0x800",
    "sandbox_vectors:",
    ".irp kind, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
    "sandbox_vector \\kind",
    ".endr",
    ".purgem sandbox_vector",
    // in: x0 = index of the vector, its old value in TPIDR_EL1. No access to memory before the translation is
    // known.
    "sandbox_leave:",
    "msr tpidrro_el0, x1",
    "movz x1, #{system_0}",
    "movk x1, #{system_1}, lsl #16",
    "msr sctlr_el1, x1",
    "movz x1, #{control_0}",
    "movk x1, #{control_1}, lsl #16",
    "movk x1, #{control_2}, lsl #32",
    "msr tcr_el1, x1",
    "mov x1, #{attributes}",
    "msr mair_el1, x1",
    "isb",
    "msr contextidr_el1, x0",
    "mrs x0, mpidr_el1",
    "ubfiz x0, x0, #{shift}, #2",
    "adrp x1, {saved}",
    "add x1, x1, :lo12:{saved}",
    "add x1, x1, x0",
    "mrs x0, contextidr_el1",
    "add x1, x1, #{outcome}",
    "stp x2, x3, [x1, #16]",
    "stp x4, x5, [x1, #32]",
    "stp x6, x7, [x1, #48]",
    "stp x8, x9, [x1, #64]",
    "stp x10, x11, [x1, #80]",
    "stp x12, x13, [x1, #96]",
    "stp x14, x15, [x1, #112]",
    "stp x16, x17, [x1, #128]",
    "stp x18, x19, [x1, #144]",
    "stp x20, x21, [x1, #160]",
    "stp x22, x23, [x1, #176]",
    "stp x24, x25, [x1, #192]",
    "stp x26, x27, [x1, #208]",
    "stp x28, x29, [x1, #224]",
    "stp x30, x0, [x1, #240]",
    "mrs x2, tpidr_el1",
    "mrs x3, tpidrro_el0",
    "stp x2, x3, [x1]",
    "mrs x2, esr_el1",
    "mrs x3, far_el1",
    "stp x2, x3, [x1, #256]",
    "mrs x2, elr_el1",
    "mrs x3, spsr_el1",
    "stp x2, x3, [x1, #272]",
    "sub x1, x1, #{outcome}",
    "ldr x2, [x1, #112]",
    "msr ttbr0_el1, x2",
    "isb",
    "tlbi vmalle1",
    "dsb nsh",
    "ldp x2, x3, [x1, #96]",
    "msr vbar_el1, x3",
    "isb",
    "mov sp, x2",
    "ldp x19, x20, [x1]",
    "ldp x21, x22, [x1, #16]",
    "ldp x23, x24, [x1, #32]",
    "ldp x25, x26, [x1, #48]",
    "ldp x27, x28, [x1, #64]",
    "ldp x29, x30, [x1, #80]",
    "ret",
    ".popsection",
    saved = sym SAVED,
    shift = const SAVED_SHIFT,
    outcome = const offset_of!(Saved, outcome),
    upper = const map::UPPER,
    system_0 = const map::SYSTEM_CONTROL & 0xFFFF,
    system_1 = const map::SYSTEM_CONTROL >> 16,
    control_0 = const map::CONTROL & 0xFFFF,
    control_1 = const map::CONTROL >> 16 & 0xFFFF,
    control_2 = const map::CONTROL >> 32,
    attributes = const map::ATTRIBUTES,
);

const _: () = assert!(offset_of!(Entry, stack) == 248 && offset_of!(Entry, state) == 264);
const _: () = assert!(offset_of!(Saved, sp) == 96 && offset_of!(Saved, table) == 112);
const _: () = assert!(offset_of!(Outcome, vector) == 248 && offset_of!(Outcome, pc) == 272);

unsafe extern "C" {
    fn sandbox_enter(entry: *const Entry);
    static __image_start: u8;
    static __image_end: u8;
}

/// Tells whether the vectors can get out of `word`: not a write to a register that says where they are or how
/// memory is translated (`SCTLR`, `TCR`, `TTBR1`, `MAIR`, `VBAR`), nor one that masks the interrupt that ends
/// an endless loop.
#[must_use]
pub const fn is_survivable(word: u32) -> bool {
    !matches!(
        written(word),
        Some(
            (3, 0, 1, 0, 0)
                | (3, 0, 2, 0, 1 | 2)
                | (3, 0, 10, 2, 0)
                | (3, 0, 12, 0, 0)
                | (3, 3, 4, 2, 1)
                | (0, 3, 4, _, 6)
        )
    )
}

/// Tells whether `word` can keep the timer's interrupt away: it writes `CNTV_*`, `ICC_PMR_EL1`,
/// `ICC_AP0R*_EL1`, `ICC_AP1R*_EL1` or `ICC_IGRPEN*_EL1`. A WFI or a loop after it might have no end, and
/// rightly so: no interrupt is left that could end it.
#[must_use]
pub const fn is_silencing(word: u32) -> bool {
    matches!(
        written(word),
        Some(
            (3, 3, 14, 3, _)
                | (3, 0, 4, 6, 0)
                | (3, 0, 12, 8, 4..)
                | (3, 0, 12, 9, 0..4)
                | (3, 0, 12, 12, 6 | 7)
        )
    )
}

// `MSR CNTV_CVAL_EL0, x2`, `MSR CNTV_CTL_EL0, x2`, `MSR ICC_PMR_EL1, x2`; `MRS x2, CNTV_CTL_EL0` only reads.
const _: () = assert!(is_silencing(0xD51B_E342) && is_silencing(0xD51B_E322) && is_silencing(0xD518_4602));
const _: () = assert!(!is_silencing(0xD53B_E322) && is_survivable(0xD51B_E342));

/// Returns op0, op1, CRn, CRm and op2 of `word`, if it is of the "system" group (DDI 0487 C4.1.66: MSR, SYS,
/// ...) and writes.
const fn written(word: u32) -> Option<(u32, u32, u32, u32, u32)> {
    if word & 0xFFE0_0000 != 0xD500_0000 {
        return None;
    }
    let (op0, op1) = (word >> 19 & 3, word >> 16 & 7);
    let (crn, crm, op2) = (word >> 12 & 15, word >> 8 & 15, word >> 5 & 7);
    Some((op0, op1, crn, crm, op2))
}

/// The sandbox of the CPU that makes it. Only one at a time makes sense on each.
#[derive(Debug)]
pub struct Sandbox {
    /// Lets its code run with all private interrupts enabled, not only the timer's.
    keeps_lines: bool,
}

impl Sandbox {
    /// Switches the MMU on, with the program where it was and the sandbox beside it, and the timer's
    /// interrupt.
    #[must_use]
    pub fn new() -> Self {
        map::enable();
        gic::init_distributor();
        gic::init_cpu();
        Self { keeps_lines: false }
    }

    /// Does as [`Sandbox::new`], for a CPU that leaves the distributor as it is. Its code runs with all
    /// private interrupts enabled.
    #[must_use]
    pub fn beside_others() -> Self {
        map::enable();
        gic::init_cpu();
        Self { keeps_lines: true }
    }

    /// Lets its code run with all private interrupts enabled from now on.
    pub fn keep_lines(&mut self) {
        self.keeps_lines = true;
    }

    /// Makes the gigabyte at the guest-physical `address` visible at [`PROBED`].
    pub fn look_at(&mut self, address: u64) {
        map::look_at(address);
    }

    /// Puts `descriptor` as it is into the level-1 table, for the gigabyte at [`PROBED`]: what the sandbox
    /// sees there, or a table that is not one.
    pub fn describe(&mut self, descriptor: u64) {
        map::describe(descriptor);
    }

    /// Executes `words` until they end or `start.budget` is over. Words that are not [`is_survivable`] are
    /// replaced by NOP, and, unless there is but one word, those that are [`is_silencing`]; registers with
    /// addresses of the program by 0.
    pub fn run(&mut self, words: &[u32], start: &Start) -> Outcome {
        const NOP: u32 = 0xD503_201F;
        let words = &words[..words.len().min(MAX_WORDS)];
        let is_alone = words.len() == 1;
        let allowed = |word: u32| is_survivable(word) && (is_alone || !is_silencing(word));
        let survivable = words.iter().map(|word| if allowed(*word) { *word } else { NOP });
        map::write_code(survivable.chain([END]));
        let state = if start.program { STATE_EL0 } else { STATE_EL1 };
        let masked = if start.debug { 0 } else { MASK_DEBUG };
        let step = if start.step { STEP } else { 0 };
        execute(map::CODE, state | masked | step, start, self.keeps_lines)
    }

    /// Executes `words` of A32 or T32 instructions as a 32-bit program, with its interrupts masked, until
    /// they raise an exception, which they must. The code is at [`NARROW_CODE`], the lowest gigabyte of
    /// guest-physical addresses at [`NARROW_DEVICES`].
    pub fn run_narrow(&mut self, words: &[u32], t32: bool, start: &Start) -> Outcome {
        map::write_code(words.iter().copied().take(MAX_WORDS));
        map::show_narrow(true);
        let set = if t32 { STATE_T32 } else { 0 };
        let outcome = execute(NARROW_CODE, STATE_USER | set, start, self.keeps_lines);
        map::show_narrow(false);
        outcome
    }
}

/// Executes the code that is written, from `pc` on.
fn execute(pc: u64, state: u64, start: &Start, keeps_lines: bool) -> Outcome {
    let entry = Entry {
        general: start.general.map(without_program),
        stack: STACK + map::STACK_SIZE / 2,
        pc,
        state,
    };
    rearm(keeps_lines);
    Timer::Virtual.arm(Timer::Virtual.now().wrapping_add(start.budget));
    // SAFETY: the code cannot name the program's memory: its addresses are far away, no register holds one,
    // and what says where memory is survives (`is_survivable`; a 32-bit program is at EL0). The routine saves
    // and restores all registers a call must keep and changes memory in `SAVED` only.
    unsafe {
        asm!("bl {enter}", enter = sym sandbox_enter, inout("x0") &raw const entry => _, clobber_abi("C"));
    }
    Timer::Virtual.disarm();
    settle();
    // SAFETY: the routine has written it and no other code does (`Cells`).
    unsafe { (*SAVED.0[cpu::index() % smp::MAX_CPUS].get()).outcome }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the value, or 0 if it is an address of the program in either half: what [`Sandbox::run`] makes of
/// a register.
#[must_use]
pub fn without_program(value: u64) -> u64 {
    let start = (&raw const __image_start).addr() as u64;
    let end = (&raw const __image_end).addr() as u64;
    let low = value & !map::UPPER;
    if low.wrapping_add(4096) >= start && low < end + 4096 {
        0
    } else {
        value
    }
}

/// Lets the timer's interrupt come in, after any change of the CPU interface by the last run.
fn rearm(keeps_lines: bool) {
    let line = Timer::Virtual.line();
    gic::rearm_interface();
    gic::rearm_private();
    if keeps_lines {
        bus::write_u32(gic::private_registers() + gic::offset::SET_ENABLE, u32::MAX);
    }
    gic::set_priority(line, gic::DEFAULT_PRIORITY);
    gic::enable(line);
    gic::enable_distributor();
}

/// Takes and ends what is pending.
fn settle() {
    for _ in 0..4 {
        let line = gic::acknowledge();
        if line >= gic::FIRST_SPECIAL {
            break;
        }
        gic::end(line);
    }
    cpu::synchronize();
}
