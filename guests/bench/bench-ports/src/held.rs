// SPDX-License-Identifier: Apache-2.0
//! The price of memory that is mapped only while it is held, in ticks of the counter: all words of a channel
//! are read, once from memory that is always there, and once with a hold before and a release after.

use bulkhead_guest::abi::Error;
use bulkhead_guest::channel::Channel;
use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::println;
use bulkhead_guest::vm::timer::Timer;
use core::sync::atomic::Ordering;

/// Turns that are counted, and turns before them.
const REPEATS: usize = 9;
const WARM_UP: usize = 3;

/// Measures both.
pub fn measure(free: Handle, gated: Handle) {
    let outcome = Channel::open(free).and_then(|free| {
        show("free", || {
            read(&free);
            Ok(())
        })?;
        show("held", || {
            let held = Channel::hold(gated)?;
            read(&held);
            held.release()
        })
    });
    if let Err(error) = outcome {
        println!("bench failed: {error:?}");
    }
}

/// Prints the median of several turns.
fn show(name: &str, mut turn: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    let mut ticks = [0; REPEATS];
    for number in 0..WARM_UP + REPEATS {
        let start = Timer::Virtual.now();
        turn()?;
        let end = Timer::Virtual.now();
        if let Some(number) = number.checked_sub(WARM_UP) {
            ticks[number] = end - start;
        }
    }
    ticks.sort_unstable();
    println!("bench {name} {}", ticks[REPEATS / 2]);
    Ok(())
}

/// Reads all words of a channel.
fn read(channel: &Channel) {
    let words = channel.words().iter();
    core::hint::black_box(words.fold(0, |sum: u32, word| sum.wrapping_add(word.load(Ordering::Relaxed))));
}
