// SPDX-License-Identifier: Apache-2.0
//! The price of a doorbell: from the instruction before the ring to the first one of the other side's
//! handler.
//!
//! The memory of the channel says how the other side waits, and when the interrupt came.

use crate::{arrival, measure};
use bulkhead_guest::channel::Channel;
use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::println;
use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{Machine, cpu, gic};
use core::sync::atomic::{AtomicU32, Ordering};

/// Turns in which the other side must get ready; more than it takes.
const HEAD_START: u64 = 20_000;
const BUSY: u32 = 1;
const IDLE: u32 = 2;

/// The words of the channel.
struct Words {
    /// The way in which the server is to wait; 0 until it is ready.
    order: &'static AtomicU32,
    /// When the interrupt came, the lower half.
    came: &'static AtomicU32,
    /// 1 if the server can be rung: a ring before that is lost.
    ready: &'static AtomicU32,
}

fn open(machine: &Machine) -> Option<(Channel, Words)> {
    let line = machine.doorbell("channel-bell")?;
    let channel = Channel::open(Handle(1)).ok()?;
    gic::set_edge(line, true);
    gic::enable(line);
    let [order, came, ready, ..] = channel.words() else {
        return None;
    };
    Some((channel, Words { order, came, ready }))
}

/// Measures a server that waits in each way.
pub fn run(machine: &Machine, is_alone: bool) {
    let Some((channel, words)) = open(machine) else {
        println!("bench failed: no channel");
        return;
    };
    while words.ready.load(Ordering::Acquire) == 0 {
        cpu::relax();
    }
    let turn = |order| {
        arrival::forget();
        words.order.store(order, Ordering::Release);
        let _ = channel.ring(0);
        arrival::wait(true);
        arrival::forget();
        let ready = Timer::Virtual.now() + HEAD_START;
        while Timer::Virtual.now() < ready {
            cpu::relax();
        }
        let start = Timer::Virtual.now();
        let _ = channel.ring(0);
        arrival::wait(true);
        u64::from(words.came.load(Ordering::Acquire).wrapping_sub(start as u32))
    };
    if is_alone {
        measure("doorbell-busy", || turn(BUSY));
    }
    measure("doorbell-idle", || turn(IDLE));
}

/// Waits as it is told, and notes when it was rung.
pub fn serve(machine: &Machine) {
    let Some((channel, words)) = open(machine) else {
        println!("bench failed: no channel");
        return;
    };
    words.ready.store(1, Ordering::Release);
    loop {
        arrival::wait(true);
        arrival::forget();
        let is_idle = words.order.load(Ordering::Acquire) != BUSY;
        let _ = channel.ring(0);
        let came = arrival::wait(is_idle);
        words.came.store(came as u32, Ordering::Release);
        arrival::forget();
        let _ = channel.ring(0);
    }
}
