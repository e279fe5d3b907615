// SPDX-License-Identifier: Apache-2.0
//! Interrupts for programs without a framework: letting them through, and giving them a handler.

pub use crate::device::Interrupt as Line;
use cortex_m::peripheral::NVIC;

/// Lets an interrupt through.
pub fn enable(line: Line) {
    // SAFETY: unmasking can break a critical section that masks lines one by one; none of our programs has
    // such.
    unsafe { NVIC::unmask(line) }
}

/// Makes a safe function the handler of an interrupt of [`Line`]: `handler!(TIMER1, alarm)`.
#[macro_export]
macro_rules! handler {
    ($name:ident, $function:path) => {
        // SAFETY: `device.x` gives this name `DefaultHandler` unless the program has one, and two definitions
        // do not link.
        #[unsafe(no_mangle)]
        extern "C" fn $name() {
            $function();
        }
    };
}
