// SPDX-License-Identifier: Apache-2.0
//! `mcu-ping` for a virtual controller with a ring of frames: a program that knows Bulkhead.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

#[path = "../../mcu-ping/src/pinger.rs"]
mod pinger;

use bulkhead_guest_mcu::ethernet::Ethernet;
use bulkhead_guest_mcu::interrupts::Line;
use bulkhead_guest_mcu::ring::Ring;
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
    let Some(ring) = Ring::open(chip) else {
        panic!("no ring of frames")
    };
    pinger::run(ring, Wake::by(Line::ETHERNET), peripherals)
}
