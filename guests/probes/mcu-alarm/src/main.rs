// SPDX-License-Identifier: Apache-2.0
//! A second program that must be punctual, and that crashes. It owns timer 0, and lives in its handler.
//!
//! At its start it says whether the timer is as a reset of the board leaves it, and whether an interrupt of
//! the timer is pending. Every 100 alarms it prints how late they were. After 300 alarms it masks interrupts,
//! waits for one more, and stores to a register that it does not have. At that moment the timer runs, and its
//! interrupt is pending. The next life sees what becomes of both.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest_mcu::interrupts::Line;
use bulkhead_guest_mcu::timer::{Alarms, Timer};
use bulkhead_guest_mcu::{handler, interrupts, println, register};
use cortex_m::asm;
use cortex_m::peripheral::NVIC;
use cortex_m_rt::entry;

/// The period, which is no multiple of any other program's.
const PERIOD: u32 = 1499 * 25;
/// Alarms of a report, and of a life.
const REPORT: u32 = 100;
const LAST: u32 = 300;
/// A register of a UART that no manifest gives to this program.
const NOBODYS: usize = 0x4000_6008;

static ALARMS: Alarms = Alarms::new(Timer::ALL[0], PERIOD);

handler!(TIMER0, alarm);

fn alarm() {
    ALARMS.note();
}

#[entry]
fn main() -> ! {
    let timer = if Timer::ALL[0].is_quiet() {
        "quiet"
    } else {
        "NOT QUIET"
    };
    let pending = if NVIC::is_pending(Line::TIMER0) {
        "PENDING"
    } else {
        "not pending"
    };
    println!("alarm: the timer is {timer}, its interrupt {pending}");
    interrupts::enable(Line::TIMER0);
    ALARMS.start();
    let mut due = REPORT;
    while ALARMS.count() < LAST {
        asm::wfi();
        let alarms = ALARMS.count();
        if alarms >= due {
            due += REPORT;
            let [best, worst] = ALARMS.lateness();
            println!("alarm: {alarms} alarms, {best} to {worst} ns late");
        }
    }
    cortex_m::interrupt::disable();
    while !Timer::ALL[0].has_gone_off() {
        asm::nop();
    }
    register::write(NOBODYS, 0);
    println!("alarm: still here");
    loop {
        asm::wfi();
    }
}
