// SPDX-License-Identifier: Apache-2.0
//! The spread of a latency over many arrivals at different phases. Tasks and VMs measure with this file.

use bulkhead_guest::println;

/// Arrivals that are measured.
pub const ARRIVALS: usize = 128;
/// Further ticks before each arrival than before the one before it. With no power of two in it, the loop of
/// the program that is interrupted is at another instruction each time.
pub const PHASE: u64 = 37;

/// Prints the worst latency, and the number of arrivals of each latency.
pub fn show(name: &str, ticks: &mut [u64; ARRIVALS]) {
    ticks.sort_unstable();
    for same in ticks.chunk_by(|one, other| one == other) {
        if let Some(ticks) = same.first() {
            println!("bench histogram-{name}-at-{ticks} {}", same.len());
        }
    }
    println!("bench {name}-worst {}", ticks[ARRIVALS - 1]);
}
