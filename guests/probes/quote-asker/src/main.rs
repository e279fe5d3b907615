// SPDX-License-Identifier: Apache-2.0
//! A task that asks for a quote, and prints it as lines `quote HEX`.
//!
//! It needs these capabilities: `quotes` (the port of the attestation task; write), and a console.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::port::{self, Message};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

/// Bytes of the quote in a line.
const LINE: usize = 32;

fn main(page: StartupPage<'static>) {
    let Some(quotes) = page.find("quotes").map(|found| Handle(found.index)) else {
        println!("FAIL no capability quotes");
        return;
    };
    let mut question = Message::<33>::new();
    for (byte, number) in question.0.iter_mut().zip(0..) {
        *byte = number;
    }
    let mut answer = Message::<1024>::new();
    let mut ask = |length: usize| {
        let received = port::send_receive_donate(quotes, &question, length, &mut answer, 0);
        match received {
            Ok(received) => Some((received.length, answer)),
            Err(error) => {
                println!("FAIL {error:?}");
                None
            }
        }
    };
    // The key, an answer to no question, and the quote.
    for (length, name) in [(1, "key"), (33, "nothing"), (32, "quote")] {
        let Some((length, answer)) = ask(length) else {
            return;
        };
        println!("{name}: {length} bytes");
        for line in answer.0[..length].chunks(LINE) {
            println!("{name} {}", Hex(line));
        }
    }
    println!("done");
}

/// Bytes, printed as hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl core::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
