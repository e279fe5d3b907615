// SPDX-License-Identifier: Apache-2.0
//! A family that asks for what another CPU has in its list registers.
//!
//! CPU 1 takes interrupts all the time. CPU 0 reads and writes the state of those lines. Only the pCPU of CPU
//! 1 then knows which lines are pending or active. So the hypervisor has to ask that pCPU and wait for the
//! answer, with interrupts masked. A neighbour of CPU 0 sees how long this takes.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bulkhead_guest::vm::psci::code;
use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{bus, cpu, exception, gic, smp};

use crate::Attack;
use crate::crowd;
use crate::words::pick;

/// The CPU that is looked at.
const OTHER: usize = 1;
/// Offset of a redistributor's second frame (Arm IHI 0069, 12.10).
const SGI_FRAME: u64 = 0x1_0000;
/// Registers whose reading needs an answer of the other CPU, and some that change what it has.
const STATES: &[u64] = &[
    gic::offset::SET_PENDING,
    gic::offset::CLEAR_PENDING,
    gic::offset::SET_ACTIVE,
    gic::offset::CLEAR_ACTIVE,
];
/// Lines of the distributor that are routed to the other CPU: one word.
const FIRST_LINE: u32 = 64;
/// Ticks from one interrupt of the other CPU's timer to the next.
const PAUSE: u32 = 200;
/// Turns of a loop for which the other CPU keeps an interrupt active.
const HOLD: u32 = 20;

static RUNS: AtomicBool = AtomicBool::new(false);

/// Keeps an interrupt active for a while.
fn hold() {
    let line = gic::acknowledge();
    for _ in 0..HOLD {
        cpu::relax();
    }
    Timer::Virtual.disarm();
    gic::end(line);
}

/// Takes the interrupts of its timer, its own SGIs and a shared line on the other CPU, under any change of
/// them.
fn take_for_ever(_argument: u64) {
    gic::init_cpu();
    loop {
        bus::write_u32(gic::private_registers() + gic::offset::SET_ENABLE, u32::MAX);
        gic::enable(FIRST_LINE);
        gic::set_pending(FIRST_LINE);
        gic::send(3, 1 << OTHER);
        Timer::Virtual.arm_relative(PAUSE);
        cpu::unmask_interrupts();
        cpu::relax();
        cpu::wait_for_interrupt();
        cpu::mask_interrupts();
    }
}

/// Starts the other CPU, once. False: there is none.
fn start() -> bool {
    if crowd::is_on() {
        // The others take interrupts enough.
        return true;
    }
    if !RUNS.load(Relaxed) {
        exception::set_interrupt_handler(hold);
        gic::init_distributor();
        gic::route(FIRST_LINE, OTHER as u64);
        RUNS.store(smp::start(OTHER, take_for_ever, 0) == code::SUCCESS, Relaxed);
    }
    RUNS.load(Relaxed)
}

/// Looks at the state of the other CPU's lines once, or changes it once. Does nothing if there is no other
/// CPU.
pub fn access(attack: &mut Attack) {
    if !start() {
        return;
    }
    let random = &mut attack.random;
    let shared = gic::DISTRIBUTOR + u64::from(FIRST_LINE / 32 * 4);
    let frame = if gic::is_version2() || random.below(2) == 0 {
        shared
    } else {
        gic::redistributor(OTHER) + SGI_FRAME
    };
    let address = frame + pick(random, STATES);
    if random.below(8) == 0 {
        bus::write_u32(address, random.draw() as u32);
    }
    // The distance from the other CPU's actions is different each time.
    for _ in 0..random.below(30) {
        cpu::relax();
    }
    if bus::read_u32(address) == 0 {
        attack.seen.other += 1;
    } else {
        attack.seen.finished += 1;
    }
}
