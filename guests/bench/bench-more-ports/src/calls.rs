// SPDX-License-Identifier: Apache-2.0
//! The price of calls without donation, and of messages to a server that waits, in ticks of the counter.
//! Tasks and VMs measure with this file.

use bulkhead_guest::abi::Error;
use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::port::{self, Message};
use bulkhead_guest::println;
use bulkhead_guest::vm::timer::Timer;

/// Bytes of the messages that are measured.
const SIZES: [usize; 5] = [64, 128, 192, 256, LONG];
const LONG: usize = 320;
/// Turns that are counted, and turns before them.
const REPEATS: usize = 9;
const WARM_UP: usize = 3;

/// Measures messages to a server that waits for one and is less urgent, and calls of the server without
/// donation.
pub fn measure(server: Handle) {
    calls(server);
    waiting(server);
}

fn calls(server: Handle) {
    let (message, mut buffer) = (Message::<LONG>::new(), Message::<LONG>::new());
    for size in SIZES {
        let ticks = median(|| {
            let start = Timer::Virtual.now();
            let called = port::send_receive(server, &message, size, &mut buffer, 0);
            let end = Timer::Virtual.now();
            called.map(|_| end - start)
        });
        show("call", size, ticks);
    }
}

/// Measures messages. A call before each of them makes the server wait again.
fn waiting(server: Handle) {
    let (message, mut buffer) = (Message::<LONG>::new(), Message::<LONG>::new());
    for size in SIZES {
        let ticks = median(|| {
            port::send_receive(server, &message, size, &mut buffer, 0)?;
            let start = Timer::Virtual.now();
            let sent = port::send(server, &message, size, None);
            let end = Timer::Virtual.now();
            sent.map(|()| end - start)
        });
        show("waiting", size, ticks);
    }
}

fn show(name: &str, size: usize, ticks: Result<u64, Error>) {
    match ticks {
        Ok(ticks) => println!("bench port-{name}-{size} {ticks}"),
        Err(error) => println!("bench failed: {error:?}"),
    }
}

/// Returns the median of several turns.
fn median(mut turn: impl FnMut() -> Result<u64, Error>) -> Result<u64, Error> {
    for _ in 0..WARM_UP {
        turn()?;
    }
    let mut ticks = [0; REPEATS];
    for found in &mut ticks {
        *found = turn()?;
    }
    ticks.sort_unstable();
    Ok(ticks[REPEATS / 2])
}
