// SPDX-License-Identifier: Apache-2.0
//! Everything about SysTick that a program can see: periods, the races of the reload value with the end of a
//! period, the flag, the pending bit, stopping, ticks of a handler (Arm DDI 0403E.e, B3.3).
//!
//! Timer 1 counts the same clock and is the measure. Times are rounded to [`STEP`], far more than a trap and
//! far less than any difference that is looked for. So the bare board and a partition print the same.
#![no_std]
#![no_main]

use bulkhead_guest_mcu::println;
use bulkhead_guest_mcu::timer::Timer;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::peripheral::{SCB, SYST};
use cortex_m::{Peripherals, asm};
use cortex_m_rt::{entry, exception};

/// Ticks to which times are rounded.
const STEP: u32 = 1000;
/// Two periods, in ticks, which are far from each other.
const SHORT: u32 = 20_000;
const LONG: u32 = 60_000;

/// Place of the vector table (`memory.x`). On the bare board the tool puts only the first two words of the
/// table where a reset looks for them.
const TABLE: u32 = 0x0013_0000;

static TICKS: AtomicU32 = AtomicU32::new(0);

#[exception]
fn SysTick() {
    // Only this handler writes it.
    TICKS.store(TICKS.load(Relaxed) + 1, Relaxed);
}

/// Returns the ticks since `start`, a value of the measure.
fn since(start: u32) -> u32 {
    start.wrapping_sub(Timer::ALL[1].left())
}

/// Returns a time in steps.
fn steps(ticks: u32) -> u32 {
    (ticks + STEP / 2) / STEP
}

/// Waits for the end of the period. Returns how long that took.
fn wait(timer: &mut SYST) -> u32 {
    let start = Timer::ALL[1].left();
    while !timer.has_wrapped() && since(start) < 10 * LONG {
        asm::nop();
    }
    since(start)
}

/// Waits for so many ticks.
fn pass(ticks: u32) {
    let start = Timer::ALL[1].left();
    while since(start) < ticks {
        asm::nop();
    }
}

/// Starts a period of `ticks` from now on. An emulator may never count once it was started with a reload
/// value of 0, so the timer starts last.
fn begin(timer: &mut SYST, ticks: u32) {
    timer.disable_counter();
    timer.set_reload(ticks - 1);
    timer.clear_current();
    timer.enable_counter();
}

/// Prints how long ten periods are.
fn periods(timer: &mut SYST) {
    for ticks in [SHORT, LONG] {
        begin(timer, ticks);
        let ten: u32 = (0..10).map(|_| wait(timer)).sum();
        println!("systick: ten periods of {} are {}", steps(ticks), steps(ten));
    }
}

/// Prints the periods around a new reload value, which counts from the end of the period that runs on.
fn races(timer: &mut SYST) {
    for (name, before) in [("early", SHORT / 4), ("late", SHORT - SHORT / 10)] {
        begin(timer, SHORT);
        pass(before);
        timer.set_reload(LONG - 1);
        let [rest, next] = [wait(timer), wait(timer)];
        println!("systick: {name}, {} are left, then {}", steps(rest), steps(next));
    }
    // Just after the end of a period.
    begin(timer, SHORT);
    wait(timer);
    timer.set_reload(LONG - 1);
    let [own, next] = [wait(timer), wait(timer)];
    println!("systick: behind the end, {}, then {}", steps(own), steps(next));
}

/// Prints what writing the current value does: it is 0, the flag is down, nothing is pending, a new period
/// begins.
fn writes(timer: &mut SYST) {
    begin(timer, SHORT);
    pass(SHORT + SHORT / 2);
    SCB::clear_pendst();
    timer.clear_current();
    let (flag, pending) = (timer.has_wrapped(), SCB::is_pendst_pending());
    println!(
        "systick: written, flag {flag}, pending {pending}, {} to go",
        steps(wait(timer))
    );
    let again = timer.has_wrapped();
    println!("systick: the flag is read, and then {again}");
}

/// Prints what stopping does: the value stays, and time does not count.
fn stops(timer: &mut SYST) {
    begin(timer, LONG);
    pass(LONG / 2);
    timer.disable_counter();
    let before = SYST::get_current();
    pass(2 * LONG);
    let same = SYST::get_current() == before;
    timer.enable_counter();
    println!(
        "systick: stopped, the same {same}, {} are left",
        steps(wait(timer))
    );
}

/// Prints what a reload value of 0 does: the period that runs ends, and no other begins. It comes last,
/// because an emulator may never count again then.
fn ends(timer: &mut SYST) {
    begin(timer, SHORT);
    timer.set_reload(0);
    wait(timer);
    pass(LONG);
    println!("systick: a reload of 0, flag {}", timer.has_wrapped());
}

/// Prints how many ticks the handler counts in a time, with a mask in between: one tick is kept.
fn ticks(timer: &mut SYST) {
    begin(timer, 2_500);
    SCB::clear_pendst();
    timer.enable_interrupt();
    TICKS.store(0, Relaxed);
    pass(2_500 * 400 + 1_250);
    let counted = TICKS.load(Relaxed);
    cortex_m::interrupt::free(|_| pass(2_500 * 10));
    let kept = TICKS.load(Relaxed) - counted;
    timer.disable_interrupt();
    println!("systick: {counted} ticks, {kept} of ten behind a mask");
}

#[entry]
fn main() -> ! {
    // Counts down from the largest value, and so does not begin anew meanwhile.
    Timer::ALL[1].start(0);
    if let Some(mut peripherals) = Peripherals::take() {
        // SAFETY: the program's own table is there, aligned as VTOR wants (Arm DDI 0403E.e, B3.2.5).
        unsafe { peripherals.SCB.vtor.write(TABLE) };
        let timer = &mut peripherals.SYST;
        timer.set_clock_source(SystClkSource::Core);
        periods(timer);
        races(timer);
        writes(timer);
        stops(timer);
        ticks(timer);
        ends(timer);
    }
    println!("systick: done");
    loop {
        asm::wfi();
    }
}
