// SPDX-License-Identifier: Apache-2.0
//! The price of messages, in ticks of the counter: from one side's first instruction to the other side's
//! next, and back. A task and a VM measure with this file.

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

/// Measures messages to itself, and calls of a server.
pub fn measure_all(own: Handle, requests: Handle) {
    let mut buffer = Message::<LONG>::new();
    for size in SIZES {
        let (mut sends, mut receives) = ([0; REPEATS], [0; REPEATS]);
        let (mut there, mut back) = ([0; REPEATS], [0; REPEATS]);
        let mut first = [0; 4];
        for turn in 0..WARM_UP + REPEATS {
            let start = Timer::Virtual.now();
            let sent = port::send(own, &buffer, size, None);
            let between = Timer::Virtual.now();
            let received = port::try_receive(own, &mut buffer);
            let end = Timer::Virtual.now();
            let request = Message::<LONG>::new();
            let begin = Timer::Virtual.now();
            let called = port::send_receive_donate(requests, &request, size, &mut buffer, 0);
            let over = Timer::Virtual.now();
            if sent.is_err() || received.is_err() || called.is_err() {
                println!("bench failed: {sent:?} {received:?} {called:?}");
                return;
            }
            let stamp = buffer
                .0
                .first_chunk()
                .map_or(0, |stamp| u64::from_le_bytes(*stamp));
            if turn == 0 {
                first = [between - start, end - between, stamp - begin, over - begin];
            }
            if let Some(turn) = turn.checked_sub(WARM_UP) {
                (sends[turn], receives[turn]) = (between - start, end - between);
                (there[turn], back[turn]) = (stamp - begin, over - begin);
            }
        }
        let rows = [
            ("send", sends),
            ("receive", receives),
            ("one-way", there),
            ("two-way", back),
        ];
        for ((name, mut ticks), first) in rows.into_iter().zip(first) {
            ticks.sort_unstable();
            println!("bench port-{name}-{size}-first {first}");
            println!("bench port-{name}-{size} {}", ticks[REPEATS / 2]);
        }
    }
}

/// Answers each request with as many bytes. The first of them are the time at which it came.
pub fn serve(requests: Handle) {
    let mut buffer = Message::<LONG>::new();
    let (mut caller, mut length) = (None, 0);
    loop {
        let came = port::reply_receive(requests, caller, length, &mut buffer, 0);
        let now = Timer::Virtual.now();
        let Ok(received) = came else {
            println!("bench failed: {came:?}");
            return;
        };
        buffer.0[..8].copy_from_slice(&now.to_le_bytes());
        (caller, length) = (received.reply, received.length);
    }
}
