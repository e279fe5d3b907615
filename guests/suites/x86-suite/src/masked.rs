// SPDX-License-Identifier: Apache-2.0
//! Non-maskable interrupts: one is not interrupted by the next one before its IRET (AMD APM volume 2, 8.2.3),
//! so its handler may have a stack of its own.

use crate::taken;
use bulkhead_guest::pc::exception::Frame;
use bulkhead_guest::pc::{apic, attempt, cpu, exception};
use bulkhead_guest::println;
use core::sync::atomic::{AtomicU64, Ordering};

/// Delivery of a non-maskable interrupt, level asserted.
const COMMAND: u32 = 0x4400;
const VECTOR: u8 = 0x51;
/// Handlers that sent one each.
const LAST: u64 = 5;
/// A selector that no table has.
const NO_SELECTOR: u16 = 0xFFF8;
/// Steps of work in a handler after the message.
const WORK: u64 = 1000;

static COUNT: AtomicU64 = AtomicU64::new(0);
static DEPTH: AtomicU64 = AtomicU64::new(0);
static DEEPEST: AtomicU64 = AtomicU64::new(0);
/// The instruction that the last one came at, and how many came at the same one as the one before.
static AT: AtomicU64 = AtomicU64::new(0);
static SAME: AtomicU64 = AtomicU64::new(0);
/// Raises an exception in the handler, whose IRET lets the next one in.
static RAISES: AtomicU64 = AtomicU64::new(0);

fn send() {
    apic::command(0, COMMAND);
}

/// Handles one: sends the next one, and works.
pub(crate) fn on_nmi(frame: &Frame) {
    let depth = DEPTH.fetch_add(1, Ordering::Relaxed) + 1;
    DEEPEST.fetch_max(depth, Ordering::Relaxed);
    if AT.swap(frame.rip, Ordering::Relaxed) == frame.rip {
        SAME.fetch_add(1, Ordering::Relaxed);
    }
    if COUNT.fetch_add(1, Ordering::Relaxed) + 1 < LAST {
        send();
        work();
        if RAISES.load(Ordering::Relaxed) != 0 {
            let _raised = attempt::load_selector(true, NO_SELECTOR);
            work();
        }
    }
    DEPTH.fetch_sub(1, Ordering::Relaxed);
}

fn work() {
    let mut value = 1_u64;
    for _ in 0..WORK {
        value = core::hint::black_box(value.wrapping_mul(5));
    }
}

/// Sends the first one, and prints what came.
fn round(name: &str) {
    for place in [&COUNT, &DEEPEST, &AT, &SAME] {
        place.store(0, Ordering::Relaxed);
    }
    send();
    work();
    let [count, deepest, same] = [&COUNT, &DEEPEST, &SAME].map(|place| place.load(Ordering::Relaxed));
    println!("{name}: {count} taken, depth {deepest}, {same} where the one before came");
}

/// Tries all ways.
pub(crate) fn all() {
    round("NMI");
    exception::use_stack(2, 1);
    round("NMI with a stack of its own");
    // An interrupt waits at the same time, and comes after them.
    apic::command_self(VECTOR);
    round("NMI before an interrupt");
    cpu::open();
    println!("NMI: {} interrupt behind", taken());
    cpu::unmask();
    round("NMI with interrupts on");
    cpu::mask();
    exception::use_stack(2, 0);
    RAISES.store(1, Ordering::Relaxed);
    round("NMI with exceptions");
}
