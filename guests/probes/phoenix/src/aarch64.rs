// SPDX-License-Identifier: Apache-2.0
//! The machine of a VM of class `aarch64`.

use bulkhead_guest::print;
use bulkhead_guest::vm::psci::{self, Conduit};
use bulkhead_guest::vm::register::Register;
use bulkhead_guest::vm::timer::{self, Timer};
use bulkhead_guest::vm::{Machine, RAM_BASE, bus, cpu, smp};

bulkhead_guest::vm_main!(begin);

/// A word of memory that belongs to no other program: after the program, before the device tree.
pub const REMEMBERED: u64 = RAM_BASE + 0x7_0000;
/// An address that is no memory and no device.
pub const NOWHERE: u64 = 0x8000_0000;
pub const HAS_WARM_RESET: bool = true;

fn begin(_: Machine) {
    crate::main();
}

pub fn read(address: u64) -> u32 {
    bus::read_u32(address)
}

pub fn write(address: u64, value: u32) {
    bus::write_u32(address, value);
}

pub fn reset() {
    psci::system_reset(Conduit::Hvc);
}

pub fn reset_warm() {
    psci::system_reset_warm(Conduit::Smc);
}

/// Jumps to an address without memory.
pub fn jump() {
    bus::execute(0);
}

/// Reads a register that the VM may not read.
pub fn touch_register() {
    print!("{}", Register::PMCR.read());
}

/// Lets the VM's own timer fire soon.
pub fn arm_timer() {
    Timer::Virtual.arm_relative(timer::ticks(20) as u32);
}

/// Tells whether the timer has fired, and switches it off.
pub fn has_fired() -> bool {
    let fired = Timer::Virtual.has_fired();
    Timer::Virtual.disarm();
    fired
}

/// Lets others have their turn. The hint of the core library is ISB, for which the emulator changes no CPU.
pub fn relax() {
    cpu::relax();
}

/// Waits for ever.
pub fn sleep() {
    loop {
        cpu::wait_for_interrupt();
    }
}

pub fn start_second() {
    smp::start(1, |_| crate::call_without_end(), 0);
}
