// SPDX-License-Identifier: Apache-2.0
//! The machine of a VM of class `ppc405`, which has one vCPU.

use bulkhead_guest::powerpc::{Machine, cpu};

bulkhead_guest::powerpc_main!(begin);

/// A word of memory that belongs to no other program: after the program and the device tree.
pub const REMEMBERED: u64 = 0xF_0000;
/// An address that is no memory and no device.
pub const NOWHERE: u64 = 0x4000_0000;
pub const HAS_WARM_RESET: bool = false;
/// A device control register that the machine does not have.
const NO_DCR: u32 = 0x100;
/// Ticks until the timer fires.
const SOON: u32 = 10_000;
/// The programmable interval timer has fired, in TSR.
const TSR: u32 = 984;
const EXPIRED: u32 = 0x0800_0000;

fn begin(_: Machine) {
    crate::main();
}

pub fn read(address: u64) -> u32 {
    cpu::load(address as u32)
}

pub fn write(address: u64, value: u32) {
    cpu::store(address as u32, value);
}

/// Asks for a reset of the system by DBCR0.
pub fn reset() {
    cpu::write_spr::<1010>(0x3000_0000);
}

/// Does nothing: see [`HAS_WARM_RESET`].
pub fn reset_warm() {}

/// Jumps to an address without memory.
pub fn jump() {
    cpu::jump(NOWHERE as u32);
}

/// Writes a register that the VM may not write.
pub fn touch_register() {
    cpu::write_dcr::<NO_DCR>(0);
}

/// Lets the VM's own timer fire soon.
pub fn arm_timer() {
    cpu::start_periods(SOON);
    cpu::enable_interrupts();
}

/// Tells whether the timer has fired, and switches its interrupt off.
pub fn has_fired() -> bool {
    cpu::disable_interrupts();
    cpu::read_spr::<TSR>() & EXPIRED != 0
}

/// Lets others have their turn.
pub fn relax() {
    core::hint::spin_loop();
}

/// Waits for ever.
pub fn sleep() {
    /// MSR.WE.
    const WAIT: u32 = 0x4_0000;
    loop {
        cpu::write_msr(WAIT);
    }
}

/// Does nothing: there is no second vCPU.
pub fn start_second() {}
