// SPDX-License-Identifier: Apache-2.0
//! A VM that is restarted for ever. Each life ends in another way and checks what it is told about its start.
//!
//! Life number n (`starts` of its own start word) ends as [`WAYS`] says for n. From that, life n + 1 knows
//! the mode and the cause with which it must have been started, and whether its word of memory must still be
//! there. Its second vCPU, if it has one, makes hypercalls all the while. The task `conductor` knows the same
//! table, and helps with the ways that this VM cannot go alone.
//!
//! It prints `FAIL ...` for a check that fails, and a line every 100 lives.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::status::{StartOptions, StartWord};
use bulkhead_guest::abi::{Error, HealthClass, StartCause, StartMode};
use bulkhead_guest::hypercall::{self, Handle, SELF};
use bulkhead_guest::println;

#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(target_arch = "powerpc", path = "powerpc.rs")]
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
mod machine;

/// Its first capability after that for itself.
const CLOCK: Handle = Handle(1);

/// The end of a life.
#[derive(Clone, Copy)]
enum Way {
    /// A reset of the machine.
    Reset,
    /// A warm reset of the machine. Without one, a hypercall on itself.
    WarmReset,
    /// A store to nowhere: its health action restarts cold.
    Store,
    /// A jump to nowhere: likewise.
    Jump,
    /// A register it may not read: its health action restarts warm.
    Register,
    /// A hypercall on itself.
    Hypercall,
    /// The conductor restarts it while it is busy.
    Busy,
    /// The conductor stops this VM while it sleeps, and starts it. Before that comes a sleep that its own
    /// timer interrupts.
    Asleep,
}

/// The end of life n is the entry n modulo the length.
const WAYS: [Way; 8] = [
    Way::Reset,
    Way::WarmReset,
    Way::Store,
    Way::Jump,
    Way::Register,
    Way::Hypercall,
    Way::Busy,
    Way::Asleep,
];

fn way(life: u32) -> Way {
    WAYS[life as usize % WAYS.len()]
}

/// Returns how life `life` must have been started, by the end of the one before.
fn expected(life: u32) -> StartWord {
    let before = life - 1;
    let health = StartCause::Health;
    // The conductor takes turns.
    let turn = if (before / WAYS.len() as u32).is_multiple_of(2) {
        StartMode::Warm
    } else {
        StartMode::Cold
    };
    let (mode, cause) = match way(before) {
        _ if before == 0 => (StartMode::Cold, StartCause::Boot),
        Way::Reset => (StartMode::Cold, StartCause::Own),
        Way::WarmReset | Way::Hypercall => (StartMode::Warm, StartCause::Own),
        Way::Store | Way::Jump => (StartMode::Cold, health(HealthClass::Memory)),
        Way::Register => (StartMode::Warm, health(HealthClass::System)),
        Way::Busy | Way::Asleep => (turn, StartCause::Supervisor),
    };
    StartWord {
        mode,
        cause,
        alternative: 0,
        starts: life,
    }
}

fn end(way: Way) {
    match way {
        Way::Reset => machine::reset(),
        Way::WarmReset if machine::HAS_WARM_RESET => machine::reset_warm(),
        Way::Store => machine::write(machine::NOWHERE, 0x0BAD_0BAD),
        Way::Jump => machine::jump(),
        Way::Register => machine::touch_register(),
        Way::WarmReset | Way::Hypercall => {
            let warm = StartOptions {
                mode: StartMode::Warm,
                alternative: None,
                is_health: false,
            };
            if let Err(error) = hypercall::partition_restart_as(SELF, warm) {
                println!("FAIL restart: {error:?}");
            }
            // The conductor's last stop can overtake the restart. Then the vCPU goes on until its CPU hears
            // of the stop.
            spin();
        }
        Way::Busy => spin(),
        Way::Asleep => {
            interrupted_sleep();
            machine::sleep();
        }
    }
}

/// Waits busily until this life is ended.
fn spin() -> ! {
    loop {
        machine::relax();
    }
}

/// Checks that a sleep in the hypervisor ends when the VM's own timer fires.
fn interrupted_sleep() {
    let end = hypercall::timer_now(CLOCK).unwrap_or(0) + 1_000_000_000;
    machine::arm_timer();
    let slept = hypercall::timer_sleep(CLOCK, end);
    if slept != Err(Error::Interrupted) || !machine::has_fired() {
        println!("FAIL sleep: {slept:?}");
    }
}

/// Makes hypercalls, on the second vCPU.
#[cfg(not(target_arch = "powerpc"))]
fn call_without_end() -> ! {
    loop {
        // With any answer, the vCPU is in the hypervisor most of the time.
        let _ = hypercall::null();
    }
}

fn main() {
    let word = match hypercall::partition_start_word(SELF) {
        Ok(word) if word.starts != 0 => word,
        other => {
            println!("FAIL start word: {other:?}");
            return;
        }
    };
    let life = word.starts;
    if word != expected(life) {
        println!("FAIL life {life}: {word:?}, not {:?}", expected(life));
    }
    let remembered = machine::read(machine::REMEMBERED);
    let kept = if word.mode == StartMode::Warm { life - 1 } else { 0 };
    if remembered != kept {
        println!("FAIL life {life}: memory says {remembered}, not {kept}");
    }
    machine::write(machine::REMEMBERED, life);
    if life.is_multiple_of(100) {
        println!("life {life}");
    }
    machine::start_second();
    end(way(life));
    println!("FAIL life {life} goes on");
}
