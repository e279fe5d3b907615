// SPDX-License-Identifier: Apache-2.0
//! Calls a debugger that is not there, all the time, with the calls that take longest to answer.
//!
//! BKPT is a HardFault on a CPU without a debugger, and no interrupt preempts the handler of a HardFault.
#![no_std]
#![no_main]

use bulkhead_guest_mcu::println;
use cortex_m_rt::entry;
use cortex_m_semihosting::{nr, syscall1};

/// Calls of a line of output.
const REPORT: u32 = 20_000;
/// Mode "read binary".
const READ_BINARY: usize = 1;
/// The longest name of a file that there is, but for its last letter.
const NAME: &[u8] = b":semihosting-feature?\0";

#[entry]
fn main() -> ! {
    let block = [NAME.as_ptr() as usize, READ_BINARY, NAME.len() - 1];
    let mut calls = 0_u32;
    loop {
        // SAFETY: a call that opens a file stores nothing.
        unsafe { syscall1(nr::OPEN, block.as_ptr() as usize) };
        calls = calls.wrapping_add(1);
        if calls.is_multiple_of(REPORT) {
            println!("breakpoint: {calls} calls");
        }
    }
}
