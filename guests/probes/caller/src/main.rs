// SPDX-License-Identifier: Apache-2.0
//! A VM that calls the server of a port, and takes its timer's interrupts meanwhile.
//!
//! Its first capability is for the port (write). It calls 200 times, with and without donation, with an
//! interrupt of its own timer on the way in most of the calls, and checks each answer. It finds the port by
//! its name, `requests`, in the device tree and by a call.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::{Error, ObjectKind, Rights};
use bulkhead_guest::hypercall::{self as call, Handle, SELF};
use bulkhead_guest::port::{self, Message, Received};
use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::vm::Machine;

bulkhead_guest::vm_main!(main);

const PORT: Handle = Handle(1);
/// Its calls.
const CALLS: usize = 200;
/// Bytes of the longest message.
const SIZE: usize = 320;

fn main(machine: Machine) {
    let mut report = Report::new();
    let (mut good, mut refused) = (0, 0);
    let (mut request, mut answer) = (Message::<SIZE>::new(), Message::<SIZE>::new());
    for number in 0..CALLS {
        let length = number % (SIZE + 1);
        request.0.fill(number as u8);
        let called = ask(number % 2 == 0, &request, length, &mut answer);
        match called {
            Ok(received) => {
                let right = answer.0[..length]
                    .iter()
                    .all(|byte| *byte == (number as u8).wrapping_add(1));
                good += usize::from(right && received.length == length);
            }
            Err(_) => refused += 1,
        }
    }
    report.equal("every call of the VM is answered", (good, refused), (CALLS, 0));
    let wild = port::try_receive(PORT, &mut answer);
    report.equal("the VM may not receive", wild, Err(Error::NoRight));
    let (told, found) = (machine.capability("requests"), call::capability_find("requests"));
    report.equal("the device tree has the port", told, Some(PORT));
    report.equal(
        "a call finds the port by its name",
        found,
        Ok((PORT, ObjectKind::Port, Rights::WRITE)),
    );
    let own = call::capability_find("self");
    report.equal(
        "a call finds the own partition",
        own,
        Ok((SELF, ObjectKind::Partition, Rights::ALL)),
    );
    let other = call::capability_find("box");
    report.equal("names of others are none", other, Err(Error::NoCapability));
    report.finish();
}

/// Calls the server, and goes on to wait after each interrupt.
fn ask(
    donates: bool,
    message: &Message<SIZE>,
    length: usize,
    answer: &mut Message<SIZE>,
) -> Result<Received, Error> {
    let mut called = if donates {
        port::send_receive_donate(PORT, message, length, answer, 0)
    } else {
        port::send_receive(PORT, message, length, answer, 0)
    };
    while called == Err(Error::Interrupted) {
        called = port::resume(0);
    }
    if called == Err(Error::NoSpace) {
        println!("caller: full");
    }
    called
}
