// SPDX-License-Identifier: Apache-2.0
//! A bare-metal program that must be punctual: it owns UART 1 and timer 1, and lives in their handlers.
//!
//! The handler of UART 1 sends back each byte with bit 5 turned over (letters change their case). Timer 1
//! stands for the device whose latency can be told from inside: it goes off every 997 microseconds, and its
//! count since then is how late the handler began. Every 500 alarms the main loop prints how late they were
//! at best and at worst. Its output follows an alarm and takes less than the time to the next, so the program
//! is never late because of itself.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest_mcu::timer::{Alarms, Timer};
use bulkhead_guest_mcu::uart::Uart;
use bulkhead_guest_mcu::{handler, interrupts, println};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use cortex_m::asm;
use cortex_m_rt::entry;

/// A prime number of microseconds: in time it meets every phase of the others' ticks.
const PERIOD: u32 = 997 * 25;
/// Alarms of a report.
const REPORT: u32 = 500;

static ALARMS: Alarms = Alarms::new(Timer::ALL[1], PERIOD);
static BYTES: AtomicU32 = AtomicU32::new(0);

handler!(TIMER1, alarm);
handler!(UARTRX1, received);

fn alarm() {
    ALARMS.note();
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
    ALARMS.start();
    let mut due = REPORT;
    loop {
        asm::wfi();
        let alarms = ALARMS.count();
        if alarms >= due {
            due += REPORT;
            let [best, worst] = ALARMS.lateness();
            println!(
                "serial: {alarms} alarms, {best} to {worst} ns late, {} bytes",
                BYTES.load(Relaxed)
            );
        }
    }
}
