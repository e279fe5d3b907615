// SPDX-License-Identifier: Apache-2.0
//! Pings the emulator's gateway, then its neighbour on the network if there is one, and prints the time.
//!
//! A program for the bare board: LAN9118, SysTick, one interrupt line. SysTick measures the time from the
//! first word written to the controller to the answer that was read and checked. The program sleeps while it
//! waits.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

#[cfg(not(feature = "ring"))]
use bulkhead_guest_mcu::ethernet;
use bulkhead_guest_mcu::internet::{Heard, Host, Ip, Mac};
use bulkhead_guest_mcu::interrupts::Line;
use bulkhead_guest_mcu::println;
#[cfg(feature = "ring")]
use bulkhead_guest_mcu::ring as ethernet;
use bulkhead_guest_mcu::wake::Wake;
use cortex_m::Peripherals;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::peripheral::{SCB, SYST};
use cortex_m_rt::entry;
use ethernet::{Ethernet, Frame};

/// The host side of QEMU's user network.
const GATEWAY: Ip = [10, 0, 2, 2];
const PINGS: u16 = 32;
/// SysTick counts down from here, 25 ticks a microsecond, and wakes us when it begins anew: every 10 ms.
const RELOAD: u32 = 249_999;

/// A host that waits for answers.
struct Pinger {
    host: Host<Ethernet>,
    frame: Frame,
    wake: Wake,
}

/// Returns the ticks since `start`, which is less than one round ago.
fn since(start: u32) -> u32 {
    let now = SYST::get_current();
    if now <= start {
        start - now
    } else {
        start + RELOAD + 1 - now
    }
}

impl Pinger {
    /// Listens until `wanted` says what it was, or SysTick has begun anew twice.
    fn wait<T>(&mut self, wanted: impl Fn(Heard) -> Option<T>) -> Option<T> {
        let mut rounds = 0;
        while rounds < 2 {
            match self.host.listen(&mut self.frame) {
                Some(heard) => {
                    if let Some(found) = wanted(heard) {
                        return Some(found);
                    }
                }
                None => self.wake.wait(),
            }
            if SCB::is_pendst_pending() {
                SCB::clear_pendst();
                rounds += 1;
            }
        }
        None
    }

    fn find(&mut self, ip: Ip) -> Option<Mac> {
        for _ in 0..20 {
            self.host.ask(&mut self.frame, ip);
            let found = self.wait(|heard| match heard {
                Heard::Address(from, mac) if from == ip => Some(mac),
                _ => None,
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn ping(&mut self, name: &str, ip: Ip) {
        let Some(mac) = self.find(ip) else {
            println!("ping: {name} does not answer");
            return;
        };
        let (mut answered, mut sum, mut longest, mut shortest) = (0_u32, 0_u32, 0, RELOAD);
        for number in 1..=PINGS {
            let start = SYST::get_current();
            self.host.ping(&mut self.frame, ip, mac, number);
            let back = self.wait(|heard| (heard == Heard::Echo(ip, number)).then_some(()));
            let ticks = since(start);
            if back.is_some() {
                answered += 1;
                sum += ticks;
                longest = ticks.max(longest);
                shortest = ticks.min(shortest);
            }
        }
        let mean = sum / answered.max(1);
        println!(
            "ping: {name}: {answered} of {PINGS} answered; ticks of 40 ns: mean {mean}, min {shortest}, max {longest}, sum {sum}"
        );
    }
}

#[entry]
fn main() -> ! {
    let Some(mut peripherals) = Peripherals::take() else {
        panic!("somebody has them already")
    };
    let chip = match Ethernet::open(&peripherals.CPUID) {
        Ok(chip) => chip,
        Err(problem) => panic!("{problem}"),
    };
    let wake = Wake::by(Line::ETHERNET);
    let [a, b, c, d, e, f] = chip.address;
    println!("ping: {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
    let timer = &mut peripherals.SYST;
    timer.set_clock_source(SystClkSource::Core);
    timer.set_reload(RELOAD);
    timer.clear_current();
    timer.enable_interrupt();
    timer.enable_counter();
    let mut pinger = Pinger {
        host: Host::new(chip),
        frame: Frame::new(),
        wake,
    };
    pinger.ping("gateway", GATEWAY);
    // The neighbour's interface has the next address.
    let [x, y, z, own] = pinger.host.ip;
    pinger.ping("neighbour", [x, y, z, own + 1]);
    println!("ping: done");
    // A SysTick that is pending would end every sleep at once, and a less important partition would never
    // run.
    peripherals.SYST.disable_interrupt();
    SCB::clear_pendst();
    loop {
        if pinger.host.listen(&mut pinger.frame).is_none() {
            pinger.wake.wait();
        }
    }
}
