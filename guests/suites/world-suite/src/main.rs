// SPDX-License-Identifier: Apache-2.0
//! The parts of `mcu-suite` that a program of the Non-secure world can have: registers, random code, storms
//! of exceptions, loads and stores of several registers. The file of `mcu-suite` says what they are.
#![no_std]
#![no_main]

#[path = "../../mcu-suite/src/blocks.rs"]
mod blocks;
#[path = "../../mcu-suite/src/console.rs"]
mod console;
#[allow(
    dead_code,
    reason = "shared with the suite of the other class, which uses all of it"
)]
#[path = "../../mcu-suite/src/cpu.rs"]
mod cpu;
#[allow(
    dead_code,
    reason = "shared with the suite of the other class, which uses all of it"
)]
#[path = "../../mcu-suite/src/entry.rs"]
mod entry;
mod place;
#[path = "../../mcu-suite/src/random.rs"]
mod random;
#[path = "../../mcu-suite/src/registers.rs"]
mod registers;
#[path = "../../mcu-suite/src/reset.rs"]
mod reset;
#[path = "../../mcu-suite/src/storm.rs"]
mod storm;
#[allow(
    dead_code,
    reason = "shared with the suite of the other class, which uses all of it"
)]
#[path = "../../mcu-suite/src/system.rs"]
mod system;
#[path = "../../mcu-suite/src/transfers.rs"]
mod transfers;

use console::print;
use random::{Digest, Random};

/// Handles all exceptions.
#[unsafe(no_mangle)]
extern "C" fn suite_exception(exc_return: u32, frame: u32) -> u32 {
    if storm::running() {
        return storm::exception(exc_return, frame);
    }
    if transfers::running() {
        return transfers::exception(exc_return, frame);
    }
    print!("suite: WRONG exception {}\n", cpu::handler());
    system::mend(exc_return, frame)
}

/// Called by the reset code with RAM set up, on the main stack.
#[unsafe(no_mangle)]
extern "C" fn guest_main() -> ! {
    console::start();
    print!("suite: start\n");
    registers::run();
    blocks::run();
    storm::run();
    transfers::run();
    random::more()
}
