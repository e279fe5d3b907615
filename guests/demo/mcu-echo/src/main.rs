// SPDX-License-Identifier: Apache-2.0
//! Answers pings: a host on the network that sleeps until a frame comes.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

#[cfg(not(feature = "ring"))]
use bulkhead_guest_mcu::ethernet;
use bulkhead_guest_mcu::internet::{Heard, Host};
use bulkhead_guest_mcu::interrupts::Line;
use bulkhead_guest_mcu::println;
#[cfg(feature = "ring")]
use bulkhead_guest_mcu::ring as ethernet;
use bulkhead_guest_mcu::wake::Wake;
use cortex_m::Peripherals;
use cortex_m_rt::entry;
use ethernet::{Ethernet, Frame};

#[entry]
fn main() -> ! {
    let Some(peripherals) = Peripherals::take() else {
        panic!("somebody has them already")
    };
    let chip = match Ethernet::open(&peripherals.CPUID) {
        Ok(chip) => chip,
        Err(problem) => panic!("{problem}"),
    };
    let host = Host::new(chip);
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
