// SPDX-License-Identifier: Apache-2.0
//! A task of a microcontroller that does what a broken or malicious program without privileges could do, at
//! random:
//!
//! - hypercalls of every number with any arguments;
//! - loads and stores anywhere (others' memory, borders, the private peripheral bus);
//! - a stack pointer anywhere, and then a call, an undefined instruction, floating-point registers to be
//!   stacked, or an interrupt;
//! - a stack without end;
//! - jumps into others' code, into data, to EXC_RETURN values and to random instructions with random
//!   registers.
//!
//! Most attacks end in a fault, and so in a restart. The manifest must make this restart warm: memory is then
//! as it was, but for the changes of the start-up. Still nothing is remembered in memory. The hypervisor
//! tells the task the number of its starts, which is the seed of a life. A life that survives its attacks
//! restarts itself. The watchdog ends a life that sleeps or loops too long.
//!
//! The task needs the capabilities `console` and `clock`. It abuses any other capability that it is given.
#![no_std]
#![no_main]

mod attacks;

use bulkhead_guest::abi::status::StartOptions;
use bulkhead_guest::abi::{Rights, StartMode};
use bulkhead_guest::hypercall::{self, Handle, SELF};
use bulkhead_guest::println;
use bulkhead_guest::random::Random;
use bulkhead_guest::startup_page::StartupPage;
use bulkhead_guest::task;

bulkhead_guest::task_main!(main);

/// Attacks of a life that goes well.
const ATTACKS: u32 = 16;
/// Lives between two lines.
const LINE: u32 = 256;

fn main(_: StartupPage<'static>) {
    let life = hypercall::partition_start_word(SELF).map_or(0, |word| word.starts);
    if life.is_multiple_of(LINE) {
        let events = hypercall::partition_status(SELF).map_or(0, |status| status.events);
        println!("hostile: life {life}, {events} health events");
    }
    let mut random = Random::new(u64::from(life) << 20);
    for _ in 0..ATTACKS {
        attacks::one(&mut random);
        let _ = hypercall::partition_kick(SELF);
    }
    let warm = StartOptions {
        mode: StartMode::Warm,
        alternative: None,
        is_health: false,
    };
    let _ = hypercall::partition_restart_as(SELF, warm);
    // The task has deleted the capability for itself.
    task::fail()
}

/// Tells whether a capability lets its holder stop this task for good, which would be the end of all attacks.
fn is_deadly(capability: u64) -> bool {
    let handle = Handle(u32::try_from(capability).unwrap_or(u32::MAX));
    hypercall::capability_inspect(handle).is_ok_and(|(_, rights)| rights.contains(Rights::CONTROL))
}
