// SPDX-License-Identifier: Apache-2.0
//! A bare-metal program for Armv7-M that makes the hypervisor's emulation of the NVIC, of exceptions and of
//! the MPU as long as it can.
//!
//! All lines, PendSV and SysTick are enabled and pending. The program then changes them in one way after
//! another. Such a way is a phase ([`attack::PHASES`]). Unlike `mcu-hostile` it ruins nothing of its own, so
//! every operation counts. The same numbers are drawn each time. It prints `flood: phase NAME` at the
//! beginning of each phase, and `flood: lap N, E exceptions` at the end of each round. The program checks
//! nothing: the tests look at its neighbours.
#![no_std]
#![no_main]

mod attack;
#[path = "../../../suites/mcu-suite/src/console.rs"]
mod console;
#[allow(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "../../../suites/mcu-suite/src/cpu.rs"]
mod cpu;
mod handlers;
#[path = "../../../suites/mcu-suite/src/reset.rs"]
mod reset;

use attack::{PHASES, Random};
use console::print;

/// Operations of a phase.
const COUNT: u32 = 40;

/// Called after a reset, and again after a fault.
#[unsafe(no_mangle)]
extern "C" fn guest_main() -> ! {
    console::start();
    let mut lap = 0_u32;
    loop {
        let mut random = Random::new(lap);
        for (name, operation) in PHASES {
            attack::restore();
            print!("flood: phase {name}\n");
            attack::prepare();
            for _ in 0..COUNT {
                operation(&mut random);
                handlers::calm();
            }
        }
        attack::restore();
        lap += 1;
        print!("flood: lap {lap}, {} exceptions\n", handlers::count());
    }
}

/// Called after a fault that nothing here should make.
#[unsafe(no_mangle)]
extern "C" fn flood_fault(number: u32) -> ! {
    cpu::change_masks(true, false);
    print!("flood: fault, exception {number}\n");
    loop {
        cpu::wait();
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    flood_fault(0)
}
