// SPDX-License-Identifier: Apache-2.0
//! A VM of class `armv8m` whose native handlers nest as deep as they can while the hypervisor takes the
//! whole Non-secure world away and brings it back.
//!
//! A round begins in the thread, on the process stack. Each level makes a more urgent exception pending,
//! keeps values in all registers while it spins for some turns of the scheduler, and looks at everything
//! afterwards: SVCall, line 16, PendSV, line 17, SysTick whenever it comes, line 18. In the first half of a
//! spin PRIMASK, BASEPRI or FAULTMASK may keep the exception waiting. Half of the levels use no floating
//! point. So the lazy frame of the level below stays open.
//!
//! The program prints `handlers: 16 rounds, 0 wrong, ticks 12 of 12, 40 late, nested 6, lazy 31`. `ticks`
//! are those that came and those that the hypervisor's clock says, and SysTick is 40 ticks of its clock
//! `late`. `nested` is the largest depth, `lazy` counts spins with an open frame. Before each such line the
//! program compares 2 KiB of its RAM with a pattern, and its code with a sum. Each difference is a line with
//! `WRONG`. Two copies with different values run side by side.
#![no_std]
#![no_main]

#[allow(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "../../../suites/mcu-suite/src/cpu.rs"]
mod cpu;
mod memory;
mod spin;
mod state;

use bulkhead_guest_mcu::println;
use bulkhead_guest_mcu::uart::Uart;
use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use cortex_m_rt::entry;
use spin::{Found, Plan, Values};
use state::{Exceptions, ICSR, NVIC_ISPR, PENDSVSET, Places, State, WAITING};

/// Levels, the least urgent first.
const THREAD: usize = 0;
const CALL: usize = 1;
const LINE_16: usize = 2;
const PEND: usize = 3;
const LINE_17: usize = 4;
const TICK: usize = 5;
const LINE_18: usize = 6;
const LEVELS: usize = 7;
/// Their exceptions.
const EXCEPTIONS: [u32; LEVELS] = [0, 11, 32, 14, 33, 15, 34];
/// BASEPRI that keeps an exception of this level waiting.
const PRIORITIES: [u32; LEVELS] = [0xFF, 0xE0, 0xC0, 0xA0, 0x80, 0x60, 0x40];
/// BASEPRI that keeps nothing waiting.
const LOWEST: u32 = 0xF0;
/// The largest number of turns of a loop: 0.26 ms of the emulator, more than two turns of the scheduler.
const LONGEST: u32 = 1 << 17;
/// Bits of FPSCR that can be written.
const FPSCR_BITS: u32 = 0xF7C0_009F;
/// APSR.Q and GE.
const FLAGS: u32 = 0x080F_0000;
/// Rounds of a line of output.
const GROUP: u32 = 16;
/// Differences that are printed.
const PRINTED: u32 = 24;
/// SysTick's clock in ticks of a millisecond.
const MILLISECOND: u32 = 20_000;

static NUMBERS: AtomicU32 = AtomicU32::new(0);
static WRONG: AtomicU32 = AtomicU32::new(0);
static TICKS: AtomicU32 = AtomicU32::new(0);
static DEPTH: AtomicU32 = AtomicU32::new(0);
static NESTED: AtomicU32 = AtomicU32::new(0);
static LAZY: AtomicU32 = AtomicU32::new(0);
/// Counts for each level: it was made pending, and it came.
static ASKED: [AtomicU32; LEVELS] = [const { AtomicU32::new(0) }; LEVELS];
static CAME: [AtomicU32; LEVELS] = [const { AtomicU32::new(0) }; LEVELS];
static DRIFT: AtomicI32 = AtomicI32::new(0);
/// A place for a store that changes nothing.
static NOTHING: AtomicU32 = AtomicU32::new(0);

/// The state that everything has to have. It is written once, before the first handler comes.
struct Expected(UnsafeCell<MaybeUninit<State>>);

// SAFETY: `main` writes it before any handler comes. There is no write afterwards.
unsafe impl Sync for Expected {}

static EXPECTED: Expected = Expected(UnsafeCell::new(MaybeUninit::uninit()));

impl Expected {
    fn get(&self) -> &State {
        // SAFETY: see above.
        let state = unsafe { &*self.0.get() };
        // SAFETY: see above.
        unsafe { state.assume_init_ref() }
    }
}

/// Vector table: the first word is no stack pointer, for no reset reads it.
#[repr(C, align(256))]
struct Vectors([extern "C" fn(); 48]);

static VECTORS: Vectors = {
    let mut vectors: [extern "C" fn(); 48] = [unexpected; 48];
    vectors[11] = call;
    vectors[14] = pend;
    vectors[15] = tick;
    vectors[32] = line_16;
    vectors[33] = line_17;
    vectors[34] = line_18;
    Vectors(vectors)
};

/// The stack of the thread.
#[repr(C, align(8))]
struct Stack(UnsafeCell<[u32; 640]>);

// SAFETY: no Rust code uses it but as a stack.
unsafe impl Sync for Stack {}

static PROCESS_STACK: Stack = Stack(UnsafeCell::new([0; 640]));
/// Bytes of the main stack that the limit leaves for it.
const MAIN_STACK: u32 = 0x2C00;

// r0: top of the process stack. r1: its limit. r2: limit of the main stack. r3: the function, which does not
// return. The two MSR are of MSPLIM and PSPLIM.
global_asm!(
    ".section .text.handlers_on_stack, \"ax\"",
    ".global handlers_on_stack",
    ".thumb_func",
    "handlers_on_stack:",
    "msr psp, r0",
    ".inst.w 0xf382880a",
    ".inst.w 0xf381880b",
    "movs r0, #2",
    "msr control, r0",
    "isb",
    "bx r3",
);

unsafe extern "C" {
    fn handlers_on_stack(top: u32, limit: u32, main_limit: u32, function: extern "C" fn() -> !) -> !;
    static __sidata: u8;
}

/// Reports a difference.
fn wrong(name: &str, index: usize, level: usize, found: u32, expected: u32) {
    let number = WRONG.fetch_add(1, Relaxed);
    if number < PRINTED {
        println!("handlers: WRONG {name} {index} at level {level}: {found:#x}, not {expected:#x}");
    }
}

fn compare(name: &str, level: usize, found: &[u32], expected: &[u32]) {
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        if found != expected {
            wrong(name, index, level, *found, *expected);
        }
    }
}

/// Draws a number (xorshift). A handler may come in between: any number will do.
fn draw() -> u32 {
    let mut state = NUMBERS.load(Relaxed);
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    NUMBERS.store(state, Relaxed);
    state.wrapping_mul(0x9E37_79B9)
}

fn below(limit: u32) -> u32 {
    (draw() >> 8) % limit
}

/// Asks the hypervisor for its clock.
fn nanoseconds() -> u64 {
    let (low, high): (u32, u32);
    let status: u32;
    // SAFETY: a hypercall changes r0 to r9 of this program and nothing else of it.
    unsafe {
        asm!(
            "push {{r6, r7}}", "udf #0xb1", "pop {{r6, r7}}",
            inout("r0") 0xC600_0300_u32 => status, inout("r1") 1 => _, out("r2") low, out("r3") high,
            out("r4") _, out("r5") _, out("r8") _, out("r9") _,
        );
    }
    if status != 0 {
        wrong("clock", 0, 0, status, 0);
    }
    u64::from(low) | u64::from(high) << 32
}

/// Picks the exception that a level makes pending: none, or a more urgent one. SysTick comes by itself.
fn next(level: usize) -> usize {
    if below(8) == 0 {
        return THREAD;
    }
    let first = if below(4) == 0 {
        level + 1 + below((LEVELS - level) as u32) as usize
    } else {
        level + 1
    };
    match first {
        TICK => LINE_18,
        LEVELS.. => THREAD,
        _ => first,
    }
}

/// Returns the store that makes an exception pending.
fn pending(level: usize) -> (u32, u32) {
    match level {
        LINE_16 => (NVIC_ISPR, 1 << 16),
        LINE_17 => (NVIC_ISPR, 1 << 17),
        LINE_18 => (NVIC_ISPR, 1 << 18),
        PEND => (ICSR, PENDSVSET),
        _ => (NOTHING.as_ptr() as u32, 0),
    }
}

fn plan(level: usize, next: usize) -> Plan {
    let (address, value) = pending(next);
    let [mut primask, mut basepri, mut faultmask] = [0; 3];
    match below(5) {
        _ if next == CALL => {}
        0 => primask = 1,
        1 if next != THREAD => basepri = PRIORITIES[next],
        2 => faultmask = 1,
        3 => (primask, basepri) = (1, 0x20),
        _ => {}
    }
    let mut values = Values {
        floats: [0; 32],
        fpscr: draw() & FPSCR_BITS,
        flags: draw() & FLAGS,
        general: [0; 12],
    };
    values.floats.fill_with(draw);
    values.general.fill_with(draw);
    Plan {
        masked: 1 + below(LONGEST),
        open: 1 + below(LONGEST),
        primask,
        basepri,
        faultmask,
        address,
        value,
        basepri_after: if below(2) == 0 { 0 } else { LOWEST + level as u32 },
        call: u32::from(next == CALL),
        float: u32::from(level == THREAD || below(2) == 0),
        control: 0,
        stacks: [0; 2],
        values,
    }
}

/// Compares what a spin has found with its plan.
fn judge(level: usize, next: usize, before: &Exceptions, plan: &Plan, found: &Found) {
    if plan.float != 0 {
        compare("float", level, &found.values.floats, &plan.values.floats);
        compare("FPSCR", level, &[found.values.fpscr], &[plan.values.fpscr]);
    }
    compare(
        "flags",
        level,
        &[found.values.flags & FLAGS],
        &[plan.values.flags],
    );
    compare("general", level, &found.values.general, &plan.values.general);
    let special = [EXCEPTIONS[level], 0, plan.basepri_after, 0, plan.control];
    compare("special", level, &found.special, &special);
    compare("stack", level, &found.stacks, &plan.stacks);
    compare("limit", level, &found.limits, &limits());
    let is_masked = plan.primask | plan.basepri | plan.faultmask != 0;
    let line = if is_masked && matches!(next, LINE_16 | LINE_17 | LINE_18) {
        plan.value
    } else {
        0
    };
    let pend = if is_masked && next == PEND { PENDSVSET } else { 0 };
    let [primask, basepri, faultmask, lines, control, float] = found.middle;
    let middle = [primask, basepri, faultmask, lines, control & PENDSVSET];
    // An exception of a level below may wait while SysTick is handled.
    let [lines, system] = before.pending;
    let expected = [
        plan.primask,
        plan.basepri,
        plan.faultmask,
        lines | line,
        system | pend,
    ];
    compare("middle", level, &middle, &expected);
    LAZY.fetch_add(float & 1, Relaxed);
}

/// Makes a round of one level.
fn one(level: usize) {
    let before = Exceptions::read();
    if level == THREAD {
        compare("pending", level, &before.pending, &[WAITING, 0]);
    }
    let basepri = cpu::basepri();
    let next = next(level);
    let mut plan = plan(level, next);
    ASKED[next].fetch_add(1, Relaxed);
    let found = spin::run(&mut plan);
    judge(level, next, &before, &plan, &found);
    let after = Exceptions::read();
    cpu::set_primask(1);
    EXPECTED.get().check(level);
    cpu::set_primask(0);
    compare("active", level, &after.active, &before.active);
    compare("pending", level, &after.pending, &before.pending);
    cpu::set_basepri(basepri);
}

/// Handles any exception.
fn handle(level: usize) {
    let depth = DEPTH.fetch_add(1, Relaxed) + 1;
    NESTED.fetch_max(depth, Relaxed);
    CAME[level].fetch_add(1, Relaxed);
    let [lines, system] = Exceptions::read().active;
    let own = match level {
        CALL => system & 1 << 7,
        PEND => system & 1 << 10,
        TICK => system & 1 << 11,
        _ => lines & 1 << (EXCEPTIONS[level] - 16),
    };
    if own == 0 {
        wrong("not active", 0, level, lines, system);
    }
    one(level);
    DEPTH.fetch_sub(1, Relaxed);
}

extern "C" fn call() {
    handle(CALL);
}

extern "C" fn pend() {
    handle(PEND);
}

extern "C" fn tick() {
    TICKS.fetch_add(1, Relaxed);
    handle(TICK);
}

extern "C" fn line_16() {
    handle(LINE_16);
}

extern "C" fn line_17() {
    handle(LINE_17);
}

extern "C" fn line_18() {
    handle(LINE_18);
}

/// Handles an exception that this program never causes.
extern "C" fn unexpected() {
    let status = [0xE000_ED28, 0xE000_ED34].map(cpu::load);
    println!("handlers: WRONG exception {}: {status:#x?}", cpu::handler());
    loop {
        cpu::wait();
    }
}

/// Returns the limits of the two stacks.
fn limits() -> [u32; 2] {
    [places().ram + 0x4000 - MAIN_STACK, PROCESS_STACK.0.get() as u32]
}

/// Returns the end of the code and of the constants.
fn code_end() -> u32 {
    (&raw const __sidata) as u32
}

/// Returns where the program is linked.
fn places() -> Places {
    Places {
        code: code_end() & !0x7FFF,
        ram: (&raw const WRONG) as u32 & !0x3FFF,
    }
}

/// Returns a number that only this copy of the program has.
fn seed() -> u32 {
    (places().code >> 15).wrapping_mul(0x85EB_CA6B) & !1 | places().code >> 15 & 1
}

/// Returns the ticks of SysTick's period: not the same in both copies.
fn period() -> u32 {
    (5 + (seed() & 1)) * MILLISECOND
}

/// Compares the ticks with the clock of the hypervisor. The tick of this moment may or may not have come.
fn check_ticks(start: u64) -> u32 {
    let before = TICKS.load(Relaxed);
    let clock = (nanoseconds() - start) / 50;
    let after = TICKS.load(Relaxed);
    let expected = (clock / u64::from(period())) as u32;
    if expected + 1 < before || expected > after + 1 {
        wrong("ticks", 0, THREAD, after, expected);
    }
    expected
}

/// Returns the clock ticks that SysTick has lost against the hypervisor's clock. It may be another one only
/// by what each switch loses of its time. The answer is the last one if the VM was interrupted between the
/// two readings.
fn drift(start: u64) -> i32 {
    let period = period().cast_signed();
    let [before, clock, after] = [
        u64::from(state::timer()),
        (nanoseconds() - start) / 50,
        u64::from(state::timer()),
    ];
    if before.wrapping_sub(after) < 500 {
        let phase = (clock % period as u64) as i32;
        let late = (phase - (period - before as i32)).rem_euclid(period);
        DRIFT.store(if late > period / 2 { late - period } else { late }, Relaxed);
    }
    DRIFT.load(Relaxed)
}

extern "C" fn rounds() -> ! {
    let start = nanoseconds();
    for round in 1.. {
        one(THREAD);
        let expected = check_ticks(start);
        for level in [CALL, LINE_16, PEND, LINE_17, LINE_18] {
            let [asked, came] = [&ASKED, &CAME].map(|counts| counts[level].load(Relaxed));
            if asked != came {
                wrong("count", level, THREAD, came, asked);
            }
        }
        if round % GROUP == 0 {
            memory::check();
            println!(
                "handlers: {round} rounds, {} wrong, ticks {} of {expected}, {} late, nested {}, lazy {}",
                WRONG.load(Relaxed),
                TICKS.load(Relaxed),
                drift(start),
                NESTED.load(Relaxed),
                LAZY.load(Relaxed)
            );
        }
    }
    loop {
        cpu::wait();
    }
}

#[entry]
fn main() -> ! {
    Uart::console().enable();
    NUMBERS.store(seed() | 1, Relaxed);
    memory::set_up();
    cpu::set_primask(1);
    state::set_up(&places(), seed(), (&raw const VECTORS) as u32, period());
    // SAFETY: no handler comes yet, and no other code has a reference to it.
    unsafe { (*EXPECTED.0.get()).write(State::read()) };
    cpu::set_primask(0);
    let [main_limit, limit] = limits();
    let top = limit + size_of::<Stack>() as u32;
    // SAFETY: the stack is free. The rest of the program runs on it.
    unsafe { handlers_on_stack(top, limit, main_limit, rounds) }
}
