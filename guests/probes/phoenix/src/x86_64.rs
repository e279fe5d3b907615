// SPDX-License-Identifier: Apache-2.0
//! The machine of a VM of class `x86_64`.

use bulkhead_guest::pc::exception::{self, Frame};
use bulkhead_guest::pc::{self, Machine, apic, cpu, smp};
use bulkhead_guest::println;
use core::sync::atomic::{AtomicBool, Ordering};

bulkhead_guest::pc_main!(begin);

/// A word of memory that belongs to no other program: after the program.
pub const REMEMBERED: u64 = 0x1C_0000;
/// An address that is no memory and no device.
pub const NOWHERE: u64 = 0x8000_0000;
pub const HAS_WARM_RESET: bool = false;
/// A register that no processor has.
const NO_MSR: u32 = 0xDEAD_0000;
/// The vector of the timer, and ticks until it fires.
const TIMER: u8 = 0x40;
const SOON: u64 = 20_000;

static FIRED: AtomicBool = AtomicBool::new(false);

fn begin(_: Machine) {
    exception::install(on_interrupt);
    apic::enable();
    crate::main();
}

fn on_interrupt(frame: &mut Frame) {
    if frame.vector == TIMER.into() {
        FIRED.store(true, Ordering::Relaxed);
        apic::end();
    } else {
        println!("FAIL exception {}", frame.vector);
    }
}

pub fn read(address: u64) -> u32 {
    cpu::load(address)
}

pub fn write(address: u64, value: u32) {
    cpu::store(address, value);
}

pub fn reset() {
    pc::reset();
}

/// Does nothing: see [`HAS_WARM_RESET`].
pub fn reset_warm() {}

/// Jumps to an address without memory.
pub fn jump() {
    cpu::jump(NOWHERE);
}

/// Reads a register that the VM may not read.
pub fn touch_register() {
    println!("FAIL register: {}", cpu::read_msr(NO_MSR));
}

/// Lets the VM's own timer fire soon.
pub fn arm_timer() {
    cpu::unmask();
    apic::set_deadline(TIMER, cpu::counter() + SOON);
}

/// Tells whether the timer has fired.
pub fn has_fired() -> bool {
    cpu::mask();
    FIRED.load(Ordering::Relaxed)
}

/// Lets others have their turn.
pub fn relax() {
    core::hint::spin_loop();
}

/// Waits for ever.
pub fn sleep() {
    cpu::stop();
}

pub fn start_second() {
    extern "C" fn second() {
        crate::call_without_end();
    }
    smp::start(1, second);
}
