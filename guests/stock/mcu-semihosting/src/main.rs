// SPDX-License-Identifier: Apache-2.0
//! Prints, reads and ends by semihosting, as most programs for microcontrollers do in an emulator. It uses
//! `cortex-m-semihosting` unchanged, and calls that no library makes.
//!
//! It ends with code 3, from the handler of a HardFault. A call without privileges is such a fault, as in an
//! emulator without a hypervisor.
#![no_std]
#![no_main]

use bulkhead_guest_mcu::println;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering};
use cortex_m::asm::wfi;
use cortex_m::peripheral::{SCB, syst::SystClkSource};
use cortex_m::register::control::{self, Npriv};
use cortex_m_rt::{ExceptionFrame, entry, exception};
use cortex_m_semihosting::{heprintln, hprintln, nr, syscall};

/// The result of a call that fails.
const FAILED: usize = usize::MAX;
/// Operations that the crate does not name.
const EXIT: usize = 0x18;
const EXIT_EXTENDED: usize = 0x20;
/// Mode "read binary".
const READ_BINARY: usize = 1;
/// The end of this program's RAM.
const RAM_END: usize = 0x2006_4000;

static TICKS: AtomicU32 = AtomicU32::new(0);

/// Makes a call with the address of a block, or with another value in its place.
fn call(operation: usize, parameter: usize) -> usize {
    // SAFETY: what these calls store goes to places of `Buffer`, or is refused.
    unsafe { cortex_m_semihosting::syscall1(operation, parameter) }
}

/// Makes a call with a block.
fn ask(operation: usize, block: &[usize]) -> usize {
    call(operation, block.as_ptr() as usize)
}

fn open(name: &CStr, mode: usize) -> usize {
    ask(nr::OPEN, &[name.as_ptr() as usize, mode, name.count_bytes()])
}

/// A buffer that calls store to.
struct Buffer(UnsafeCell<[u8; 16]>);
// SAFETY: only the thread reads it, and not while a call is made.
unsafe impl Sync for Buffer {}
static BUFFER: Buffer = Buffer(UnsafeCell::new([0; 16]));

impl Buffer {
    fn address(&self) -> usize {
        self.0.get() as usize
    }

    fn bytes(&self) -> [u8; 16] {
        // SAFETY: see above.
        unsafe { self.0.get().read_volatile() }
    }
}

/// Checks the console's handles and the file of the features.
fn files() {
    let [input, output, errors] = [0, 4, 8].map(|mode| open(c":tt", mode));
    let terminals = [input, output, errors].map(|handle| ask(nr::ISTTY, &[handle]));
    hprintln!("files: terminals {:?}", terminals);
    hprintln!(
        "files: modes {:?}",
        [12, FAILED].map(|mode| open(c":tt", mode) == FAILED)
    );
    let features = open(c":semihosting-features", READ_BINARY);
    let length = ask(nr::FLEN, &[features]);
    let left = ask(nr::READ, &[features, BUFFER.address(), 9]);
    let magic = BUFFER.bytes();
    let sought = ask(nr::SEEK, &[features, 1]);
    let more = ask(nr::READ, &[features, BUFFER.address() + 8, 2]);
    hprintln!(
        "features: {} bytes, {} left of 9, {:02x?}",
        length,
        left,
        &magic[..5]
    );
    hprintln!(
        "features: sought {}, {} left, {:02x?}",
        sought,
        more,
        &BUFFER.bytes()[8..10]
    );
    hprintln!(
        "features: no terminal {}, written {}, closed {}",
        ask(nr::ISTTY, &[features]),
        ask(nr::WRITE, &[features, features, 5]),
        ask(nr::CLOSE, &[features])
    );
    let names = [c"", c":t", c"/etc/passwd", c":semihosting-feature?"];
    hprintln!(
        "files: no others {:?}",
        names.map(|name| open(name, READ_BINARY) == FAILED)
    );
}

/// Prints a long text in one call, while interrupts go on.
fn long_text() {
    let mut text = [b'.'; 1024];
    for (number, line) in (0_u8..).zip(text.chunks_mut(64)) {
        line[..6].copy_from_slice(b"line a");
        line[5] += number;
        line[63] = b'\n';
    }
    let output = open(c":tt", 4);
    let before = TICKS.load(Ordering::Relaxed);
    let mut rounds = 0;
    let mut left = 0;
    // Longer than the console's ring, and longer than two ticks.
    while TICKS.load(Ordering::Relaxed) < before + 2 {
        left += ask(nr::WRITE, &[output, text.as_ptr() as usize, text.len()]);
        rounds += 1;
    }
    hprintln!("long: some rounds {}, {} bytes left", rounds > 1, left);
    call(
        nr::WRITE0,
        c"long: a string with a zero, longer than what one exit of a guest carries\n".as_ptr() as usize,
    );
    for byte in b"long: byte by byte\n" {
        call(nr::WRITEC, core::ptr::from_ref(byte) as usize);
    }
}

/// Blocks, texts and buffers that are not this program's, or not all of it.
fn hostile() {
    // Places outside: nothing, other programs, the hypervisor, the private bus, devices, the ends of
    // everything.
    let places = [
        0,
        3,
        0x8_0000,
        0x3D_6000,
        0x2000_0000,
        0x203F_8000,
        0x203F_F000,
        0x2005_FFFC,
        RAM_END,
        0x2200_0000,
        0x4000_4000,
        0x4020_0000,
        0xE000_E010,
        0xE000_ED00,
        0xFFFF_FFFC,
        FAILED,
    ];
    let code = hostile as *const () as usize & !3;
    let (mut calls, mut others) = (0_u32, 0_u32);
    for place in places {
        for operation in 0..0x120 {
            // These wait, end, or have no answer; or their answer does not depend on memory.
            let is_left_out = matches!(
                operation,
                nr::READC | EXIT | EXIT_EXTENDED | nr::WRITEC | nr::WRITE0
            ) || matches!(operation, nr::CLOCK | nr::TIME | nr::ERRNO | 0x31 | nr::ISERROR);
            if !is_left_out {
                calls += 1;
                others += u32::from(call(operation, place) != FAILED);
            }
        }
        call(nr::WRITEC, place);
        call(nr::WRITE0, place);
        others += u32::from(ask(nr::WRITE, &[2, place, 5]) != 5);
        others += u32::from(ask(nr::WRITE, &[2, place, FAILED]) != FAILED);
        others += u32::from(ask(nr::READ, &[1, place, 5]) != 5);
        others += u32::from(ask(nr::READ, &[1, place, FAILED]) != FAILED);
        others += u32::from(ask(nr::GET_CMDLINE, &[place, 80]) != FAILED);
        others += u32::from(ask(nr::HEAPINFO, &[place]) != FAILED);
        others += u32::from(ask(nr::OPEN, &[place, 0, 3]) != FAILED);
    }
    // Memory that the program may read, but not write.
    others += u32::from(ask(nr::READ, &[1, code, 5]) != 5);
    others += u32::from(ask(nr::GET_CMDLINE, &[code, 80]) != FAILED);
    others += u32::from(ask(nr::HEAPINFO, &[code]) != FAILED);
    others += u32::from(call(0x30, code) != FAILED);
    hprintln!("hostile: {} calls, {} other answers", calls, others);
    // The end of RAM: what is there leaves, the rest is counted.
    let left = ask(nr::WRITE, &[2, RAM_END - 4, FAILED]);
    hprintln!("\nhostile: {:x} bytes left", left);
}

/// Prints answers that depend on who gives them.
fn answers() {
    let mut block = [BUFFER.address(), 16];
    let found = call(nr::GET_CMDLINE, block.as_mut_ptr() as usize);
    // SAFETY: it is there; the call has changed it.
    let length = unsafe { core::ptr::from_ref(&block[1]).read_volatile() };
    let bytes = BUFFER.bytes();
    let name = core::str::from_utf8(bytes.get(..length).unwrap_or(&[])).unwrap_or("?");
    hprintln!("name: {} {:?}, {} behind it", found, name, bytes[length.min(15)]);
    hprintln!(
        "name: no room {}",
        ask(nr::GET_CMDLINE, &[BUFFER.address(), 0]) == FAILED
    );
    let before = call(0x30, BUFFER.address());
    let (ticks, hertz) = (BUFFER.bytes()[..8].iter().any(|byte| *byte != 0), call(0x31, 0));
    hprintln!("time: {} {} {} Hz", before, ticks, hertz);
    let (seconds, hundredths) = (call(nr::TIME, 0), call(nr::CLOCK, 0));
    hprintln!("time: {}", hundredths / 100 - seconds <= 1);
    hprintln!(
        "errors: {} {}",
        ask(nr::ISERROR, &[FAILED]),
        ask(nr::ISERROR, &[0])
    );
    heprintln!("errors: by heprintln");
}

/// Waits for input, with interrupts that end the waiting for a while, and with those masked.
fn input() {
    let handle = open(c":tt", 0);
    hprintln!("input: type");
    let first = call(nr::READC, 0) as u8;
    let left = ask(nr::READ, &[handle, BUFFER.address(), 1]);
    let second = BUFFER.bytes()[0];
    hprintln!("input: {:?} {:?}, {} left", first as char, second as char, left);
    cortex_m::interrupt::disable();
    hprintln!("input: masked, type");
    let third = call(nr::READC, 0) as u8;
    hprintln!("input: {:?}", third as char);
    // SAFETY: nothing relies on them being masked.
    unsafe { cortex_m::interrupt::enable() };
}

#[entry]
fn main() -> ! {
    let Some(mut core) = cortex_m::Peripherals::take() else {
        loop {
            wfi();
        }
    };
    hprintln!("semihosting: a program that prints by its debugger, {}", 42);
    core.SYST.set_clock_source(SystClkSource::Core);
    core.SYST.set_reload(25_000 - 1);
    core.SYST.clear_current();
    core.SYST.enable_counter();
    core.SYST.enable_interrupt();
    files();
    long_text();
    hostile();
    answers();
    input();
    let mut control = control::read();
    control.set_npriv(Npriv::Unprivileged);
    println!("semihosting: without privileges");
    // SAFETY: what follows is a fault.
    unsafe { control::write(control) };
    // SAFETY: prints, if it is answered.
    unsafe { syscall!(WRITE0, c"answered without privileges\n".as_ptr()) };
    loop {
        wfi();
    }
}

#[exception]
fn SysTick() {
    let ticks = TICKS.fetch_add(1, Ordering::Relaxed);
    if ticks == 0 {
        hprintln!("semihosting: from a handler");
    }
}

#[exception]
unsafe fn HardFault(_frame: &ExceptionFrame) -> ! {
    // SAFETY: a register that can be read.
    let status = unsafe { (*SCB::PTR).hfsr.read() };
    println!("semihosting: HardFault, hfsr {:08x}", status);
    hprintln!("semihosting: from the handler of a HardFault");
    ask(EXIT_EXTENDED, &[0x2_0026, 3]);
    loop {
        wfi();
    }
}
