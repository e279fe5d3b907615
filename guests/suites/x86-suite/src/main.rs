// SPDX-License-Identifier: Apache-2.0
//! Looks at the processor of a PC, its local APIC and its timers from inside, and prints what it finds: the
//! same lines on the bare PC and in a VM. The emulator's bare PC has neither x2APIC nor TSC deadlines, so
//! what concerns these is a number of findings that are wrong by the manuals, which is 0 there.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod local;
mod masked;
mod rings;
mod timers;

use bulkhead_guest::pc::exception::{self, Frame};
use bulkhead_guest::pc::{Machine, apic, cpu, user};
use bulkhead_guest::println;
use core::sync::atomic::{AtomicU64, Ordering};

bulkhead_guest::pc_main!(main);

/// Vector of the non-maskable interrupt.
const NMI: u64 = 2;
/// Vectors from here on are interrupts that have to be ended.
const FIRST_INTERRUPT: u64 = 0x20;
/// The vector of the 8259's first line, which ends by itself.
const EXTERNAL: u8 = 0x48;

/// Interrupts that were taken.
static TAKEN: AtomicU64 = AtomicU64::new(0);

fn on_interrupt(frame: &mut Frame) {
    match frame.vector {
        NMI => masked::on_nmi(frame),
        vector if vector >= FIRST_INTERRUPT => {
            TAKEN.fetch_add(1, Ordering::Relaxed);
            if vector != EXTERNAL.into() {
                apic::end();
            }
        }
        vector => {
            println!("UNEXPECTED: exception {vector} at {:#x}", frame.rip);
            cpu::stop();
        }
    }
}

/// Returns the interrupts that came since this was asked last.
fn taken() -> u64 {
    TAKEN.swap(0, Ordering::Relaxed)
}

fn main(_: Machine) {
    exception::install(on_interrupt);
    timers::silence();
    local::at_reset();
    user::open();
    apic::enable();
    local::priorities();
    local::registers();
    rings::all();
    masked::all();
    timers::all();
    println!("suite: done");
}
