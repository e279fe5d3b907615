// SPDX-License-Identifier: Apache-2.0
//! A noisy neighbour: a VM that uses as much as it can of one thing, beside a partition that must not notice.
//!
//! Bootargs: `noise=KIND` says which thing:
//!
//! - `cpu`: it computes and never waits.
//! - `wfi`: it wakes and sleeps as often as it can.
//! - `timer`: the interrupt of its timer never ends.
//! - `console`: it floods its console.
//! - `hypercall`: it makes hypercalls.
//! - `sgi`: it sends interrupts to itself, and to its second vCPU if it has one.
//! - `gic`: it accesses the distributor.
//! - `line`: it routes the line of its real-time clock to its second vCPU and makes that line pending again
//!   and again, by software and with changes of its other states.
//! - `stop`: it restarts itself for ever.
//! - `restart`: it does so too, and its lives print nothing.
//!
//! `count=N` ends it after N turns with `noisy: done N` (0: never).
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use bulkhead_guest::vm::psci::{self, Conduit, code};
use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{Machine, bus, cpu, exception, gic, smp};
use bulkhead_guest::{arguments, hypercall, println};

bulkhead_guest::vm_main!(main);

/// The interrupt it sends.
const SGI: u32 = 3;
/// The line of the board's real-time clock (PL031 of QEMU `virt`), if it is passed through.
const CLOCK_LINE: u32 = 34;

static COMPUTED: AtomicU64 = AtomicU64::new(1);

/// One turn of noise.
type Noise = (&'static str, fn(u64));

const NOISES: &[Noise] = &[
    ("cpu", compute),
    ("wfi", |_| {
        Timer::Virtual.arm(Timer::Virtual.now() + 1);
        cpu::wait_for_interrupt();
    }),
    ("timer", |_| {
        // The handler leaves the level up, so the interrupt comes again at once.
        Timer::Virtual.arm(Timer::Virtual.now());
        cpu::relax();
    }),
    ("console", |turn| {
        println!("noisy: line {turn} of many, as fast as the console takes them")
    }),
    ("hypercall", |turn| {
        hypercall::raw(0xC600_0000 | turn & 0xFFFF, [turn, turn, turn, turn, turn, turn]);
    }),
    ("sgi", |_| {
        gic::send(SGI, 0b11);
        cpu::relax();
    }),
    ("gic", |turn| {
        let enabled = gic::is_enabled(gic::FIRST_SHARED + (turn % 64) as u32);
        bus::write_u32(gic::DISTRIBUTOR + gic::offset::SET_ENABLE + 4, u32::from(enabled));
    }),
    ("line", |turn| {
        if turn == 0 {
            gic::route(CLOCK_LINE, 1);
            gic::enable(CLOCK_LINE);
        }
        gic::set_pending(CLOCK_LINE);
        match turn % 8 {
            3 => gic::clear_active(CLOCK_LINE),
            5 => gic::route(CLOCK_LINE, 1),
            7 => {
                gic::disable(CLOCK_LINE);
                gic::enable(CLOCK_LINE);
            }
            _ => {}
        }
        cpu::relax();
    }),
    ("stop", |_| psci::system_reset(Conduit::Hvc)),
    ("restart", |_| psci::system_reset(Conduit::Hvc)),
];

fn compute(turn: u64) {
    let mut value = COMPUTED.load(Ordering::Relaxed) ^ turn;
    for _ in 0..1000 {
        value = value.wrapping_mul(0x5851_F42D_4C95_7F2D).rotate_left(23);
    }
    COMPUTED.store(value, Ordering::Relaxed);
    cpu::relax();
}

fn interrupt() {
    let interrupt = gic::acknowledge();
    if interrupt < gic::FIRST_SPECIAL {
        gic::end(interrupt);
    }
}

fn second_cpu(_: u64) {
    gic::init_cpu();
    gic::enable(SGI);
    cpu::unmask_interrupts();
    loop {
        gic::send(SGI, 0b01);
        cpu::relax();
    }
}

fn waiting_cpu(_: u64) {
    gic::init_cpu();
    cpu::unmask_interrupts();
    loop {
        cpu::wait_for_interrupt();
    }
}

fn main(machine: Machine) {
    let wanted = arguments::value(machine.bootargs(), "noise").unwrap_or("cpu");
    let count = arguments::number(machine.bootargs(), "count", 0);
    let Some((name, noise)) = NOISES.iter().find(|(name, _)| *name == wanted) else {
        println!("noisy: no noise {wanted}");
        return;
    };
    gic::init_distributor();
    gic::init_cpu();
    exception::set_interrupt_handler(interrupt);
    gic::enable(SGI);
    gic::enable(Timer::Virtual.line());
    let second = match *name {
        "sgi" => smp::start(1, second_cpu, 0) == code::SUCCESS,
        "line" => smp::start(1, waiting_cpu, 0) == code::SUCCESS,
        _ => false,
    };
    if *name != "restart" {
        println!("noisy: {name}{}", if second { " on two vCPUs" } else { "" });
    }
    cpu::unmask_interrupts();
    let mut turn = 0;
    while count == 0 || turn < count {
        noise(turn);
        turn += 1;
    }
    cpu::mask_interrupts();
    println!("noisy: done {turn}");
}
