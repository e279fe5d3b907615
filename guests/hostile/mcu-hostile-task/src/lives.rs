// SPDX-License-Identifier: Apache-2.0
//! The lives of a task that attacks.

use bulkhead_guest::abi::status::StartOptions;
use bulkhead_guest::abi::{Rights, StartMode};
use bulkhead_guest::hypercall::{self, Handle, SELF};
use bulkhead_guest::println;
use bulkhead_guest::random::Random;
use bulkhead_guest::startup_page::StartupPage;
use bulkhead_guest::task;

use crate::attack;

/// Attacks of a life that goes well.
const ATTACKS: u32 = 16;
/// Lives between two lines.
const LINE: u32 = 256;

/// Makes the attacks of one life.
pub fn main(_: StartupPage<'static>) {
    let life = hypercall::partition_start_word(SELF).map_or(0, |word| word.starts);
    if life.is_multiple_of(LINE) {
        let events = hypercall::partition_status(SELF).map_or(0, |status| status.events);
        println!("hostile: life {life}, {events} health events");
    }
    let mut random = Random::new(u64::from(life) << 20);
    for _ in 0..ATTACKS {
        attack(&mut random);
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
pub fn is_deadly(capability: u64) -> bool {
    let handle = Handle(u32::try_from(capability).unwrap_or(u32::MAX));
    hypercall::capability_inspect(handle).is_ok_and(|(_, rights)| rights.contains(Rights::CONTROL))
}
