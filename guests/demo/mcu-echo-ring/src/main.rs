// SPDX-License-Identifier: Apache-2.0
//! `mcu-echo` for a virtual controller with a ring of frames: a program that knows Bulkhead.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest_mcu::ethernet::{Ethernet, Frame};
use bulkhead_guest_mcu::internet::{Heard, Host};
use bulkhead_guest_mcu::interrupts::Line;
use bulkhead_guest_mcu::println;
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
    let host = Host::new(ring);
    let [a, b, c, d] = host.ip;
    println!("echo: listening at {a}.{b}.{c}.{d}");
    let wake = Wake::by(Line::ETHERNET);
    let (mut frame, mut answered) = (Frame::new(), 0_u32);
    loop {
        match host.listen(&mut frame) {
            Some(Heard::Answered) => {
                answered += 1;
                if answered.is_power_of_two() {
                    println!("echo: answered {answered}");
                }
            }
            Some(_) => {}
            None => wake.wait(),
        }
    }
}
