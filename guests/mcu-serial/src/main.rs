// SPDX-License-Identifier: Apache-2.0
//! A bare-metal program that must be punctual: it owns UART 1 and timer 1, and lives in their handlers.
//!
//! Each byte that UART 1 receives is sent back with bit 5 turned over (letters change their case) by the handler itself. Timer 1
//! stands for the device whose latency can be told from inside: it goes off every 997 microseconds, and what it has counted
//! since is how late the handler began. Every 500 alarms the main loop prints how late they were at best and at worst. Its
//! output follows an alarm and takes less than the time to the next, so the program is never late because of itself.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest_mcu::uart::Uart;
use bulkhead_guest_mcu::{handler, interrupts, println, timer};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use cortex_m::asm;
use cortex_m_rt::entry;

/// A prime number of microseconds: in time it meets every phase of the others' ticks.
const PERIOD: u32 = 997 * 25;
/// Alarms of a report.
const REPORT: u32 = 500;
/// Instructions of a tick where an instruction takes a nanosecond.
const NANOSECONDS: u32 = 40;

static ALARMS: AtomicU32 = AtomicU32::new(0);
static EARLIEST: AtomicU32 = AtomicU32::new(u32::MAX);
static LATEST: AtomicU32 = AtomicU32::new(0);
static BYTES: AtomicU32 = AtomicU32::new(0);

handler!(TIMER1, alarm);
handler!(UARTRX1, received);

fn alarm() {
    let late = PERIOD - 1 - timer::left();
    timer::acknowledge();
    // Only this handler writes them while alarms come.
    EARLIEST.store(EARLIEST.load(Relaxed).min(late), Relaxed);
    LATEST.store(LATEST.load(Relaxed).max(late), Relaxed);
    ALARMS.store(ALARMS.load(Relaxed) + 1, Relaxed);
}

fn received() {
    if let Some(byte) = Uart::ALL[1].receive() {
        Uart::ALL[1].send(byte ^ 0x20);
        BYTES.store(BYTES.load(Relaxed) + 1, Relaxed);
    }
}

#[entry]
fn main() -> ! {
    println!(
        "serial: bare metal, alarms every {} us, UART 1 answers",
        PERIOD / 25
    );
    Uart::ALL[1].enable_receive();
    interrupts::enable(interrupts::Line::UARTRX1);
    interrupts::enable(interrupts::Line::TIMER1);
    timer::start(PERIOD);
    let mut due = REPORT;
    loop {
        asm::wfi();
        let alarms = ALARMS.load(Relaxed);
        if alarms >= due {
            due += REPORT;
            let [best, worst] = [&EARLIEST, &LATEST].map(|ticks| ticks.load(Relaxed) * NANOSECONDS);
            println!(
                "serial: {alarms} alarms, {best} to {worst} ns late, {} bytes",
                BYTES.load(Relaxed)
            );
        }
    }
}
