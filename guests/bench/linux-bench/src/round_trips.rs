// SPDX-License-Identifier: Apache-2.0
//! A byte to another process and back.

#[cfg(not(target_arch = "powerpc"))]
use crate::linux::network;
use crate::linux::{File, fork, pipe, wait};

/// The other process of a pair ends when it reads this.
const END: u8 = 0xFF;

/// Sends a byte to another process and back. `ours` and `theirs` are what each reads and writes.
fn round_trip(name: &str, ours: [File; 2], theirs: [File; 2]) {
    fork(|| {
        let [from, to] = theirs;
        loop {
            let byte = from.read();
            if byte == END {
                return;
            }
            to.write(&[byte]);
        }
    });
    let [from, to] = ours;
    crate::measure(name, 1000, || {
        to.write(&[0]);
        from.read();
    });
    to.write(&[END]);
    wait();
}

/// Measures a pipe, and a pair of sockets where the kernel has a network.
pub fn measure() {
    let (there, back) = (pipe(), pipe());
    round_trip("pipe", [back[0], there[1]], [there[0], back[1]]);
    #[cfg(not(target_arch = "powerpc"))]
    {
        let [one, other] = network::pair();
        round_trip("socket", [one, one], [other, other]);
    }
}
