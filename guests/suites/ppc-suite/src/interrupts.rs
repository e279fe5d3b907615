// SPDX-License-Identifier: Apache-2.0
//! Interrupts of the programmable interval timer and of the controller, critical and not.

use crate::executor::{self, Input};
use bulkhead_guest::powerpc::cpu;
use bulkhead_guest::powerpc::uart;
use bulkhead_guest::println;

/// MSR.
const EXTERNAL: u32 = 0x8000;
const CRITICAL: u32 = 0x2_0000;
/// `mtmsr r20`.
const ALLOW: u32 = 0x7E80_0124;
/// TCR.PIE, TSR.PIS.
const TIMER_INTERRUPT: u32 = 0x0400_0000;
const EXPIRED: u32 = 0x0800_0000;
/// The bit of the UART's line.
const UART: u32 = 0x8000_0000;

/// Prints what happens when MSR allows an interrupt.
fn allow(name: &str, state: u32) {
    let mut input: Input = [0; 35];
    input[20] = state;
    let after = executor::run(ALLOW, &input, None);
    let [vector, saved0, saved1, saved2] = [36, 37, 38, 39].map(|word| after.0[word]);
    match vector {
        0 => println!("interrupt: {name}: none"),
        0x100 => println!(
            "interrupt: {name}: {vector:x} behind {:x}",
            saved2 - executor::CODE
        ),
        _ => println!(
            "interrupt: {name}: {vector:x} behind {:x}, MSR {saved1:x}",
            saved0 - executor::CODE
        ),
    }
}

/// Lets each kind of interrupt happen.
pub fn suite() {
    cpu::write_spr::<984>(u32::MAX);
    allow("nothing", EXTERNAL | CRITICAL);
    cpu::write_spr::<986>(TIMER_INTERRUPT);
    cpu::write_spr::<987>(2000);
    while cpu::read_spr::<984>() & EXPIRED == 0 {}
    allow("timer, critical ones allowed", CRITICAL);
    allow("timer", EXTERNAL);
    cpu::write_spr::<984>(EXPIRED);
    cpu::write_spr::<987>(0);
    allow("timer cleared", EXTERNAL);

    // The UART interrupts as long as its transmitter is empty.
    cpu::write_dcr::<0xC4>(u32::MAX);
    cpu::write_dcr::<0xC5>(0);
    uart::interrupt_when_empty(true);
    cpu::write_dcr::<0xC0>(u32::MAX);
    cpu::write_dcr::<0xC3>(0);
    allow("line disabled", EXTERNAL | CRITICAL);
    cpu::write_dcr::<0xC2>(UART);
    allow("line, critical ones allowed", CRITICAL);
    allow("line", EXTERNAL);
    cpu::write_dcr::<0xC3>(UART);
    allow("critical line, others allowed", EXTERNAL);
    allow("critical line", CRITICAL);
    cpu::write_dcr::<0xC2>(0);
    uart::interrupt_when_empty(false);
    cpu::write_dcr::<0xC0>(u32::MAX);
    allow("line off", EXTERNAL | CRITICAL);
}
