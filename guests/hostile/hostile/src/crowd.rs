// SPDX-License-Identifier: Apache-2.0
//! The other CPUs: they attack at the same time, each in a sandbox of its own.
//!
//! Now and then every CPU makes all its private lines but the timer's pending, and CPU 0 makes all shared
//! lines pending ([`flood`]). They have the lowest priority, which the mask keeps out. An attack may let them
//! in.
//!
//! An attack of one CPU on the interrupt controller may take the timer away from another whose code has no
//! end. So each CPU now and then gives all others their timer's interrupt back ([`rescue`]); on a GICv2
//! no CPU can take it.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use bulkhead_guest::vm::sandbox::Sandbox;
use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{bus, cpu, gic, smp};

use crate::Attack;

/// Operations from one rescue to the next, and from one time that all lines become pending to the next.
const RESCUE: u64 = 8;
const FLOOD: u64 = 64;
/// The mask lets in what is more urgent than this, which is the lowest that there is.
const LOWEST: u32 = 0xFFFF_FFFF;

static CPUS: AtomicUsize = AtomicUsize::new(1);
/// Number of the family, or of none.
static FAMILY: AtomicUsize = AtomicUsize::new(usize::MAX);
static SEED: AtomicU64 = AtomicU64::new(0);
static STOP: AtomicBool = AtomicBool::new(false);
/// The damage that each CPU has counted. Each CPU writes its own count.
static DAMAGE: [AtomicU64; smp::MAX_CPUS] = [const { AtomicU64::new(0) }; smp::MAX_CPUS];

/// Operations of each CPU. Each writes its own.
static DONE: [AtomicU64; smp::MAX_CPUS] = [const { AtomicU64::new(0) }; smp::MAX_CPUS];

/// Starts all CPUs below `cpus` but the first.
pub fn start(cpus: usize, family: Option<usize>, seed: u64) {
    CPUS.store(cpus.min(smp::MAX_CPUS), Relaxed);
    FAMILY.store(family.unwrap_or(usize::MAX), Relaxed);
    SEED.store(seed, Relaxed);
    for index in 1..cpus.min(smp::MAX_CPUS) {
        smp::start(index, attack, 0);
    }
}

/// Lets the others end with their next operation.
pub fn stop() {
    STOP.store(true, Relaxed);
}

/// Returns what the others have counted.
pub fn damage() -> u64 {
    DAMAGE.iter().map(|damage| damage.load(Relaxed)).sum()
}

/// Returns the operations of each of the others, in the order of the CPUs.
pub fn done() -> impl Iterator<Item = (usize, u64)> {
    let counts = DONE.iter().map(|done| done.load(Relaxed));
    counts.enumerate().take(CPUS.load(Relaxed)).skip(1)
}

/// Tells whether there is more than one attacker.
pub fn is_on() -> bool {
    CPUS.load(Relaxed) > 1
}

/// Attacks until CPU 0 has done its count: the program of each other CPU.
pub fn attack(_: u64) {
    let index = cpu::index();
    let family = Some(FAMILY.load(Relaxed)).filter(|family| *family != usize::MAX);
    let mut own = Attack::new(
        SEED.load(Relaxed) ^ ((index as u64) << 32),
        Sandbox::beside_others(),
    );
    // The count is not 0 if the CPU was off in between.
    let mut done = DONE.get(index).map_or(0, |done| done.load(Relaxed));
    while !STOP.load(Relaxed) {
        beside(done);
        own.operate(family);
        if let Some(damage) = DAMAGE.get(index) {
            damage.store(own.damage, Relaxed);
        }
        done += 1;
        if let Some(count) = DONE.get(index) {
            count.store(done, Relaxed);
        }
    }
}

/// Does what the calling CPU owes the others before its operation `done`, if there are any.
pub fn beside(done: u64) {
    let cpus = CPUS.load(Relaxed);
    if cpus <= 1 {
        return;
    }
    if done.is_multiple_of(FLOOD) {
        flood();
    }
    if done.is_multiple_of(RESCUE) {
        rescue(cpu::index(), cpus);
    }
}

/// Leaves all private lines but the timer's enabled and pending, and from CPU 0 all shared ones.
fn flood() {
    gic::set_mask(0);
    let line = Timer::Virtual.line();
    fill(gic::private_registers(), 0, !(1 << line));
    if cpu::index() == 0 {
        for word in 1..u64::from(gic::lines() / 32) {
            fill(gic::DISTRIBUTOR, word, u32::MAX);
        }
    }
    gic::set_priority(line, gic::DEFAULT_PRIORITY);
    gic::set_mask(0xFF);
}

/// Enables the lines `set` of a word and sets them pending, at the lowest priority.
fn fill(frame: u64, word: u64, set: u32) {
    for quarter in word * 8..word * 8 + 8 {
        bus::write_u32(frame + gic::offset::PRIORITY + quarter * 4, LOWEST);
    }
    bus::write_u32(frame + gic::offset::SET_ENABLE + word * 4, set);
    bus::write_u32(frame + gic::offset::SET_PENDING + word * 4, set);
}

/// Lets the timers' interrupts of all CPUs but `own` in again.
fn rescue(own: usize, cpus: usize) {
    gic::enable_distributor();
    if gic::is_version2() {
        return;
    }
    let line = Timer::Virtual.line();
    for index in (0..cpus).filter(|index| *index != own) {
        let redistributor = gic::redistributor(index);
        let frame = redistributor + gic::SGI_FRAME;
        bus::write_u32(redistributor + gic::offset::WAKER, 0);
        bus::write_u32(frame + gic::offset::GROUP, u32::MAX);
        bus::write_u32(frame + gic::offset::CLEAR_ACTIVE, 1 << line);
        bus::write_u8(
            frame + gic::offset::PRIORITY + u64::from(line),
            gic::DEFAULT_PRIORITY,
        );
        bus::write_u32(frame + gic::offset::SET_ENABLE, 1 << line);
    }
}
