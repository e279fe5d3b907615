// SPDX-License-Identifier: Apache-2.0
//! A control loop on a PowerPC 405: released every 5 ms by the programmable interval timer, it notes how far
//! its releases are from each other and reports once a second.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::powerpc::{Machine, cpu};
use bulkhead_guest::println;

bulkhead_guest::powerpc_main!(main);

/// Ticks of the time base in 5 ms.
const PERIOD: u32 = 333_333_333 / 200;
/// Releases in a second.
const RELEASES: u32 = 200;

fn main(_machine: Machine) {
    cpu::start_periods(PERIOD);
    let mut last = cpu::wait_for_period();
    for second in 1_u32.. {
        let (mut shortest, mut longest) = (u32::MAX, 0);
        for _ in 0..RELEASES {
            let now = cpu::wait_for_period();
            let distance = now.wrapping_sub(last);
            (shortest, longest) = (shortest.min(distance), longest.max(distance));
            last = now;
        }
        // Three nanoseconds a tick.
        let late = longest.saturating_sub(PERIOD) * 3;
        let early = PERIOD.saturating_sub(shortest) * 3;
        println!("control: second {second}, {RELEASES} releases, at most {late} ns late, {early} ns early");
    }
}
