// SPDX-License-Identifier: Apache-2.0
//! Measures what privileged instructions cost, on the bare board and as a VM of a PowerPC 405.
//!
//! The time base ticks once in three instructions, so a thousand of anything are exact to a fraction of an
//! instruction. `bench NAME INSTRUCTIONS` is one figure; `bench done` is the end. With the feature `first`,
//! as the program `ppc-bench-first`, everything is done once: the figures of a fresh system.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::powerpc::{Machine, cpu, is_hypervised};
use bulkhead_guest::{hypercall, println};

bulkhead_guest::powerpc_main!(main);

/// Turns of each measurement.
const TURNS: u32 = if cfg!(feature = "first") { 1 } else { 1000 };
/// Instructions in a tick of the time base.
const INSTRUCTIONS: u32 = 3;

/// Prints the cost of a turn, without the loop's.
fn measure(name: &str, mut turn: impl FnMut(u32)) {
    let time = |turn: &mut dyn FnMut(u32)| {
        let start = cpu::ticks();
        for number in 0..TURNS {
            turn(number);
        }
        cpu::ticks().wrapping_sub(start)
    };
    let all = time(&mut turn);
    let nothing = time(&mut |number| {
        core::hint::black_box(number);
    });
    println!(
        "bench {name} {}",
        all.saturating_sub(nothing) * INSTRUCTIONS / TURNS
    );
}

/// Keeps the compiler from leaving out what makes a value.
fn keep(value: u32) {
    core::hint::black_box(value);
}

fn main(_machine: Machine) {
    measure("compute", |number| {
        core::hint::black_box(number.wrapping_mul(1_103_515_245).wrapping_add(12_345));
    });
    measure("mfmsr", |_| keep(cpu::read_msr()));
    let state = cpu::read_msr();
    measure("mtmsr", |_| cpu::write_msr(state));
    measure("wrteei-pair", |_| {
        cpu::enable_interrupts();
        cpu::disable_interrupts();
    });
    measure("mfspr-srr0", |_| keep(cpu::read_spr::<26>()));
    measure("mtspr-srr0", cpu::write_spr::<26>);
    measure("mfspr-sprg3", |_| keep(cpu::read_spr::<275>()));
    measure("mtspr-sprg3", cpu::write_spr::<275>);
    measure("mtspr-sprg4", cpu::write_spr::<276>);
    measure("mtspr-pid", |number| cpu::write_spr::<945>(number & 0xFF));
    cpu::write_spr::<945>(0);
    measure("rfi", |_| cpu::return_from_interrupt());
    measure("system-call", |_| cpu::system_call());
    measure("tlbwe-pair", |number| {
        cpu::write_entry(number & 63, 0x4000_0000 | number << 12 | 1 << 7, 0x300);
    });
    if is_hypervised() {
        measure("null-call", |_| {
            let _ = hypercall::null();
        });
        measure("version-call", |_| {
            let _ = hypercall::version();
        });
        measure("status-call", |_| {
            let _ = hypercall::partition_status(hypercall::SELF);
        });
    }
    println!("bench done");
}
