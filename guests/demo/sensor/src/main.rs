// SPDX-License-Identifier: Apache-2.0
//! A VM that sends readings through the ring of a channel, and sees the answer in another channel that it may
//! only read.
//!
//! Channel `readings`: a ring, this side sends. Channel `state`: two words, the number of the newest reading
//! that was handled and its value. The doorbells of both interrupt this VM.
//!
//! Bootargs: `count=N` (200) readings, one each `period=MICROSECONDS` (1000). At the end it prints `sensor:
//! 200 readings sent, 0 refused, state of reading 200, doorbells heard`, and switches itself off.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bulkhead_guest::channel::Channel;
use bulkhead_guest::ring::Producer;
use bulkhead_guest::vm::{Machine, cpu, exception, gic, mmu, timer};
use bulkhead_guest::{arguments, println};

bulkhead_guest::vm_main!(main);

/// Interrupts of doorbells.
static HEARD: AtomicU64 = AtomicU64::new(0);

fn interrupt() {
    let line = gic::acknowledge();
    if line < gic::FIRST_SPECIAL {
        HEARD.store(HEARD.load(Relaxed) + 1, Relaxed);
        gic::end(line);
    }
}

fn main(machine: Machine) {
    let count = arguments::number(machine.bootargs(), "count", 200);
    let period = arguments::number(machine.bootargs(), "period", 1000);
    mmu::enable();
    let open = |name: &str| Channel::open(machine.capability(name)?).ok();
    let (Some(readings), Some(state)) = (open("readings"), open("state")) else {
        println!("sensor: no channels");
        return;
    };
    let Some(mut producer) = Producer::attach(readings.words()) else {
        println!("sensor: the channel is too small for a ring");
        return;
    };
    gic::init_distributor();
    gic::init_cpu();
    exception::set_interrupt_handler(interrupt);
    for line in ["channel-readings", "channel-state"]
        .into_iter()
        .filter_map(|path| machine.doorbell(path))
    {
        gic::set_edge(line, true);
        gic::enable(line);
    }
    println!("sensor: {} sides, writes {}", state.sides(), state.may_write());
    let mut refused = 0;
    for number in 1..=count {
        let mut message = [0; 16];
        message[..8].copy_from_slice(&number.to_le_bytes());
        message[8..].copy_from_slice(&(number * number).to_le_bytes());
        if producer.send(&message).is_err() || readings.ring(0).is_err() {
            refused += 1;
        }
        cpu::unmask_interrupts();
        timer::nap(period);
        cpu::mask_interrupts();
    }
    let newest = state.words().first().map_or(0, |word| word.load(Relaxed));
    let heard = if HEARD.load(Relaxed) > 0 {
        "heard"
    } else {
        "not heard"
    };
    println!(
        "sensor: {count} readings sent, {refused} refused, state of reading {newest}, doorbells {heard}"
    );
}
