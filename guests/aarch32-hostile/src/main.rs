// SPDX-License-Identifier: Apache-2.0
//! A hostile VM whose EL1 is AArch32: it executes random words, in A32 and in T32, in every mode, and random accesses to coprocessors.
//!
//! There is no sandbox: each operation starts from nothing but its own random registers, and whatever it leads to (an undefined
//! instruction, an abort, a call, the timer) drops everything and goes on with the next operation. An operation can
//! destroy the program itself; then nobody kicks the watchdog, and the partition is restarted, if the manifest says so.
//! A life that lasts for the `count=N` operations of the bootargs prints `hostile: end` and waits for the watchdog, too.
//!
//! Prints `hostile: life` when it starts, and every thousand operations how they ended (an operation may change these numbers, too). What must be true is seen from
//! outside: its neighbours are as they are without it.
//!
//! The program exists for 32-bit Arm only; for any other target it is empty.
#![no_std]
#![no_main]

#[cfg(target_arch = "arm")]
mod attack;
#[cfg(target_arch = "arm")]
#[path = "../../aarch32-suite/src/words.rs"]
mod words;

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
