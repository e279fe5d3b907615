// SPDX-License-Identifier: Apache-2.0
//! A bare-metal program for Armv7-M that looks at the processor from inside and prints what it sees.
//!
//! It knows nothing of a hypervisor and judges nothing: the same binary prints the same text on the bare chip
//! and in a partition, and comparing the two texts is the test. In five parts:
//! - `registers`: every register of the system control space, written with patterns and read back;
//! - `exceptions`: each way into and out of an exception, with the frames and the stack pointers;
//! - `blocks`: random straight-line code, made when this package is built, run on random registers;
//! - `storm`: random sequences of what makes, masks, nests and ends exceptions;
//! - `transfers`: loads and stores of several registers and of odd sizes, with what faults there are.
//!
//! The last part comes after the storms, so that what those print does not depend on it.
//!
//! The suite ends with `suite: done`, and goes on with more of `blocks` and `storm` for ever.
//!
//! Values that depend on time are not printed, nor values that the architecture leaves open.
#![no_std]
#![no_main]

mod blocks;
mod console;
mod cpu;
mod entry;
mod exceptions;
mod place;
mod random;
mod registers;
mod reset;
mod storm;
mod system;
mod transfers;

use console::print;
use random::{Digest, Random};

/// Called by the reset code with RAM set up, on the main stack.
#[unsafe(no_mangle)]
extern "C" fn guest_main() -> ! {
    console::start();
    print!("suite: start\n");
    registers::run();
    exceptions::run();
    blocks::run();
    storm::run();
    transfers::run();
    random::more()
}
