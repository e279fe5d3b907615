// SPDX-License-Identifier: Apache-2.0
//! A hostile VM whose EL1 is AArch32. It executes random words in A32 and in T32, in every mode, and random
//! accesses to coprocessors.
//!
//! There is no sandbox. Each operation starts with random registers and nothing else. An undefined
//! instruction, an abort, a call or the timer drops everything, and the next operation begins. An operation
//! can destroy the program itself. Then the watchdog is not kicked, and the partition is restarted if the
//! manifest says so. A life that lasts for the `count=N` operations of the bootargs prints `hostile: end` and
//! waits for the watchdog, too.
//!
//! The program prints `hostile: life` when it starts. After every thousand operations it prints how they
//! ended. An operation may change these numbers, too. The test looks from outside: the neighbours must be as
//! they are without this program.
//!
//! The program exists for 32-bit Arm only. For any other target it is empty.
#![no_std]
#![no_main]

#[cfg(target_arch = "arm")]
mod attack;
#[cfg(target_arch = "arm")]
#[path = "../../../suites/aarch32-suite/src/words.rs"]
mod words;

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
