// SPDX-License-Identifier: Apache-2.0
//! Pings the emulator's gateway, then its neighbour on the network if there is one, and prints the time.
//!
//! A program for the bare board: LAN9118, SysTick, one interrupt line.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod pinger;

use bulkhead_guest_mcu::ethernet::Ethernet;
use bulkhead_guest_mcu::interrupts::Line;
use bulkhead_guest_mcu::wake::Wake;
use cortex_m::Peripherals;
use cortex_m_rt::entry;

#[entry]
fn main() -> ! {
    let Some(peripherals) = Peripherals::take() else {
        panic!("somebody has them already")
    };
    let chip = match Ethernet::open(&peripherals.CPUID) {
        Ok(chip) => chip,
        Err(problem) => panic!("{problem}"),
    };
    pinger::run(chip, Wake::by(Line::ETHERNET), peripherals)
}
