// SPDX-License-Identifier: Apache-2.0
//! Choosing operations, and counting how they ended.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::fmt::{self, Write};

use crate::words::strange_word;

global_asm!(include_str!("start.s"), options(raw));

/// Devices of the default machine.
const UART: usize = 0x0900_0000;
const DISTRIBUTOR: usize = 0x0800_0000;
const REDISTRIBUTOR: usize = 0x080A_0000;
const VIRTUAL_TIMER: u32 = 27;
/// The address of operations. Their registers also point here now and then. It is after the program, in 4
/// MiB of RAM.
const CODE: usize = 0x4020_0000;
const SCRATCH: u32 = 0x4030_0000;
/// Words of an operation, of which the last ones are calls that end it.
const WORDS: usize = 64;
/// Random ones among them.
const RANDOM_WORDS: u32 = 8;
/// `SVC #0` in A32, and twice in T32.
const SVC_A32: u32 = 0xEF00_0000;
const SVC_T32: u32 = 0xDF00_DF00;
/// Ticks of the counter that an operation gets: it runs at 62.5 MHz or 100 MHz.
const BUDGET: u32 = 2000;
/// Operations between two lines of text.
const ROUND: u32 = 1000;
/// Operations between two kicks of the watchdog.
const KICK_EVERY: u32 = 50;
/// The hypercall that kicks the watchdog, and the slot of the capability for the own partition.
const KICK: u32 = 0xC600_0000 | KICK_NUMBER;
/// `Operation::PartitionKick`.
const KICK_NUMBER: u32 = 0x0104;
const ITSELF: u32 = 0;
/// User, FIQ, IRQ, Supervisor, Abort, Undefined, System.
const MODES: [u32; 7] = [0x10, 0x11, 0x12, 0x13, 0x17, 0x1B, 0x1F];
/// PSTATE.T, A and F.
const T32: u32 = 1 << 5;
const MASKED: u32 = 1 << 8 | 1 << 6;

unsafe extern "C" {
    fn attack_enter(registers: *const [u32; 13], entry: u32, status: u32) -> !;
}

/// State that outlives an operation. There is one CPU, and no operation uses this state while it runs.
struct State {
    random: u64,
    count: u32,
    done: u32,
    ended: [u32; 8],
    registers: [u32; 13],
}

struct Shared(UnsafeCell<State>);

// SAFETY: there is one CPU, and code that had a reference before an operation never gets the CPU back.
unsafe impl Sync for Shared {}

static STATE: Shared = Shared(UnsafeCell::new(State {
    random: 0,
    count: 0,
    done: 0,
    ended: [0; 8],
    registers: [0; 13],
}));

fn write_word(address: usize, value: u32) {
    // SAFETY: a device register of the default machine, or RAM after the program.
    unsafe { (address as *mut u32).write_volatile(value) }
}

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            write_word(UART, u32::from(byte));
        }
        Ok(())
    }
}

/// Accesses to CP15.
macro_rules! coprocessor {
    ($registers:literal) => {{
        let value: u32;
        // SAFETY: reading a system register changes no memory.
        unsafe { asm!(concat!("mrc p15, ", $registers), out(reg) value, options(nostack)) }
        value
    }};
    ($registers:literal, $value:expr) => {{
        let value: u32 = $value;
        // SAFETY: interrupt controller and timer: they change no memory.
        unsafe { asm!(concat!("mcr p15, ", $registers), in(reg) value, options(nostack)) }
    }};
}

/// Called after each operation with the number of the vector that ended it. The first call has number 0 and,
/// in r2, the address of the device tree (`arch/arm/booting` of the kernel documentation).
#[unsafe(no_mangle)]
extern "C" fn attack_next(vector: u32, _: u32, tree: u32) -> ! {
    // SAFETY: one CPU, interrupts are masked, and the life that held this reference before is over.
    let state = unsafe { &mut *STATE.0.get() };
    timer_off();
    if vector == 0 {
        begin(state, tree);
    } else if let Some(count) = state.ended.get_mut(vector as usize) {
        *count += 1;
        state.done += 1;
    }
    if state.done % ROUND == 0 {
        tell(state);
        if state.done >= state.count {
            writeln!(Console, "hostile: end").unwrap_or(());
            // An operation may have jumped here too early. Then only this life ends, when the watchdog bites.
            // The partition does not end.
            loop {
                // SAFETY: waits, and changes nothing.
                unsafe { asm!("wfi", options(nomem, nostack)) }
            }
        }
    }
    // A program that is destroyed often goes round in circles through here, without getting further.
    if state.done % KICK_EVERY == KICK_EVERY - 1 {
        kick();
    }
    let (entry, status) = prepare(state);
    coprocessor!("0, {}, c14, c3, 0", BUDGET);
    coprocessor!("0, {}, c14, c3, 1", 1);
    let registers = &raw const state.registers;
    // SAFETY: never returns; after any operation the next life starts from the vectors.
    unsafe { attack_enter(registers, entry, status) }
}

fn begin(state: &mut State, tree: u32) {
    let low: u32;
    // SAFETY: reads CNTPCT: each life is another.
    unsafe { asm!("mrrc p15, 0, {}, {}, c14", out(reg) low, out(reg) _, options(nostack)) }
    state.random = u64::from(low) << 16 | 5;
    state.count = count(tree);
    writeln!(Console, "hostile: life").unwrap_or(());
    // Group 1 with affinity routing; lines 0 to 31 in group 1, the line of the timer enabled (Arm IHI 0069H
    // 12.9 to 12.11).
    write_word(DISTRIBUTOR, 0x12);
    write_word(REDISTRIBUTOR + 0x14, 0);
    write_word(REDISTRIBUTOR + 0x1_0080, u32::MAX);
    write_word(REDISTRIBUTOR + 0x1_0100, 1 << VIRTUAL_TIMER);
}

/// Turns off the timer that stops an endless operation, and ends its interrupt if the interrupt has come.
fn timer_off() {
    coprocessor!("0, {}, c14, c3, 1", 0);
    // ICC_SRE, ICC_PMR, ICC_IGRPEN1: as after an operation that changed them.
    coprocessor!("0, {}, c12, c12, 5", 1);
    coprocessor!("0, {}, c4, c6, 0", 0xFF);
    coprocessor!("0, {}, c12, c12, 7", 1);
    // ICC_IAR1, ICC_EOIR1: at most one is waiting, and one may be active.
    let taken = coprocessor!("0, {}, c12, c12, 0");
    if taken < 1020 {
        coprocessor!("0, {}, c12, c12, 1", taken);
    } else if coprocessor!("0, {}, c12, c11, 3") & 0xFF != 0xFF {
        coprocessor!("0, {}, c12, c12, 1", VIRTUAL_TIMER);
    }
    // SAFETY: what was written is seen by what comes later.
    unsafe { asm!("isb", options(nostack)) }
}

fn tell(state: &State) {
    let [_, undefined, called, fetch, data, _, interrupted, _] = state.ended;
    writeln!(
        Console,
        "hostile: done {}, undefined {undefined}, finished {called}, aborted {} and {data}, interrupted {interrupted}",
        state.done, fetch
    )
    .unwrap_or(());
}

/// Kicks this partition's watchdog.
fn kick() {
    // SAFETY: SMCCC: the call changes no other registers and no memory of ours.
    unsafe {
        asm!(".arch_extension virt", "hvc #0", inout("r0") KICK => _, inout("r1") ITSELF => _, inout("r2") 0 => _,
            inout("r3") 0 => _, out("r4") _, out("r5") _, out("r12") _);
    }
}

/// Returns the number after `count=` in the command line, which is somewhere in the device tree. The default
/// is a billion.
fn count(tree: u32) -> u32 {
    const NAME: &[u8] = b"count=";
    let byte = |at: u32| {
        // SAFETY: within the device tree, which is in RAM.
        unsafe { (at as *const u8).read_volatile() }
    };
    // Its size is the second word, big-endian (Devicetree Specification 0.4, 5.2).
    let size = (4..8).fold(0, |size: u32, at| size << 8 | u32::from(byte(tree + at)));
    let is_here = |at: &u32| NAME.iter().zip(*at..).all(|(letter, at)| byte(at) == *letter);
    let Some(at) = (tree..tree + size).find(is_here) else {
        return 1_000_000_000;
    };
    let digits = (at + NAME.len() as u32..).map(byte);
    digits
        .take_while(u8::is_ascii_digit)
        .fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
}

/// Draws a random number: the high half of PCG's product, whose bits are the good ones.
fn draw(random: &mut u64) -> u32 {
    *random = random
        .wrapping_mul(0x5851_F42D_4C95_7F2D)
        .wrapping_add(0x1405_7B7E_F767_814F);
    (*random >> 32) as u32
}

/// Writes an operation to memory and its registers to `state`; its entry and its status.
fn prepare(state: &mut State) -> (u32, u32) {
    let random = &mut state.random;
    let thumb = draw(random) & 1 == 1;
    let strange = draw(random).is_multiple_of(4);
    for index in 0..WORDS {
        let word = if index as u32 >= RANDOM_WORDS {
            if thumb { SVC_T32 } else { SVC_A32 }
        } else if strange {
            coprocessor_word(random, thumb)
        } else {
            draw(random)
        };
        write_word(CODE + 4 * index, word);
    }
    // ICIALLU: what was here before may have been fetched already.
    coprocessor!("0, {}, c7, c5, 0", 0);
    // SAFETY: the new words are seen by the fetches.
    unsafe { asm!("dsb", "isb", options(nostack)) }
    for register in &mut state.registers {
        *register = value(random);
    }
    let mode = MODES[draw(random) as usize % MODES.len()];
    let state_bits = if thumb { T32 } else { 0 };
    (CODE as u32, mode | MASKED | state_bits)
}

/// Draws an access to a coprocessor. In T32 its halfwords change places.
fn coprocessor_word(random: &mut u64, thumb: bool) -> u32 {
    let word = strange_word(u64::from(draw(random))).unwrap_or(SVC_A32);
    if thumb { word.rotate_left(16) } else { word }
}

/// Draws a value for a register: often small, often an address with a meaning.
fn value(random: &mut u64) -> u32 {
    let number = draw(random);
    match number % 8 {
        0 => number >> 26,
        1 => DISTRIBUTOR as u32 + (number >> 12),
        2 => UART as u32 + (number >> 20),
        3 | 4 => SCRATCH + (number >> 14),
        // A call to the hypervisor, or to the firmware.
        5 => 0xC600_0000 | number >> 21,
        _ => draw(random),
    }
}
