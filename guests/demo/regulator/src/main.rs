// SPDX-License-Identifier: Apache-2.0
//! A VM that takes readings from the ring of a channel and tells their state through another channel.
//!
//! Channel `readings`: a ring, this side receives. Its doorbell interrupts this VM, which has nothing else to
//! do. Channel `state`: two words, the number of the newest reading and its value, for all sides to see.
//!
//! Bootargs: `count=N` (200) readings, after which it prints `regulator: 200 readings in order, 0 lost, last
//! value 40000` and switches itself off.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

use bulkhead_guest::channel::Channel;
use bulkhead_guest::ring::{Consumer, ReceiveError};
use bulkhead_guest::vm::{Machine, cpu, exception, gic, mmu};
use bulkhead_guest::{arguments, println};

bulkhead_guest::vm_main!(main);

/// Interrupts of the doorbell.
static RUNG: AtomicU64 = AtomicU64::new(0);

fn interrupt() {
    let line = gic::acknowledge();
    if line < gic::FIRST_SPECIAL {
        RUNG.store(RUNG.load(Relaxed) + 1, Relaxed);
        gic::end(line);
    }
}

/// The readings so far.
#[derive(Default)]
struct Seen {
    number: u64,
    lost: u64,
    value: u64,
}

impl Seen {
    /// Takes a message, whose sender may have written anything.
    fn take(&mut self, message: &[u8]) {
        let (numbers, _) = message.as_chunks::<8>();
        if let [number, value] = *numbers {
            let number = u64::from_le_bytes(number);
            self.lost += number.wrapping_sub(self.number + 1);
            self.number = number;
            self.value = u64::from_le_bytes(value);
        }
    }
}

fn main(machine: Machine) {
    let count = arguments::number(machine.bootargs(), "count", 200);
    mmu::enable();
    let open = |name: &str| Channel::open(machine.capability(name)?).ok();
    let (Some(readings), Some(state)) = (open("readings"), open("state")) else {
        println!("regulator: no channels");
        return;
    };
    let (Some(mut consumer), Some(line)) = (
        Consumer::attach(readings.words()),
        machine.doorbell("channel-readings"),
    ) else {
        println!("regulator: no ring");
        return;
    };
    gic::init_distributor();
    gic::init_cpu();
    exception::set_interrupt_handler(interrupt);
    gic::set_edge(line, true);
    gic::enable(line);
    println!("regulator: waits on line {line}");
    let (mut seen, mut rung) = (Seen::default(), 0);
    let mut message = [0; 16];
    while seen.number < count {
        // First a look: a ring before this VM was ready is lost, what was sent is not.
        match consumer.receive(&mut message) {
            Ok(length) => {
                seen.take(&message[..length]);
                if let [number, value, ..] = state.words() {
                    value.store(seen.value as u32, Relaxed);
                    number.store(seen.number as u32, Release);
                }
                // The others may be gone.
                let _ = state.ring(0);
            }
            Err(ReceiveError::Empty) => {
                cpu::sleep_until(|| RUNG.load(Relaxed) != rung);
                rung = RUNG.load(Relaxed);
            }
            Err(error) => {
                println!("regulator: {error:?}");
                return;
            }
        }
    }
    println!(
        "regulator: {} readings in order, {} lost, last value {}",
        seen.number, seen.lost, seen.value
    );
}
