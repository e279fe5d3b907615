// SPDX-License-Identifier: Apache-2.0
//! A task that lends a device and its line to a driver (guest `clock-driver`), and takes them back, again and
//! again.
//!
//! It sends the capabilities `device` and `line` with two messages to the port `requests`, revokes both some
//! time later, and says so with a third message. It also needs `clock` (timer) and a console.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::{Error, Rights};
use bulkhead_guest::device::Device;
use bulkhead_guest::hypercall::{self as call, Handle};
use bulkhead_guest::port::{self, Message};
use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

const MILLISECOND: u64 = 1_000_000;
const LOANS: u8 = 3;

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let (Some(device), Some(line), Some(requests), Some(clock)) =
        (find("device"), find("line"), find("requests"), find("clock"))
    else {
        println!("FAIL capabilities device, line, requests and clock: missing");
        return;
    };
    let mut report = Report::new();
    let (mut lent, mut revoked, mut own) = (0, 0, 0);
    for _ in 0..LOANS {
        let write = Rights::READ.union(Rights::WRITE);
        lent += u8::from(lend(requests, 0, Some((device, write))).is_ok());
        lent += u8::from(lend(requests, 1, Some((line, Rights::READ))).is_ok());
        let until = call::timer_now(clock).unwrap_or(0) + 20 * MILLISECOND;
        // A refusal shows in what follows.
        let _slept = call::timer_sleep(clock, until);
        revoked += u8::from(call::capability_revoke(device).is_ok());
        revoked += u8::from(call::capability_revoke(line).is_ok());
        // The device is the keeper's own now.
        own += u8::from(Device::hold(device).and_then(Device::release).is_ok());
        lent += u8::from(lend(requests, 2, None).is_ok());
    }
    report.equal("every loan is sent", lent, 3 * LOANS);
    report.equal("every loan is taken back", revoked, 2 * LOANS);
    report.equal("the device comes back", own, LOANS);
    report.finish();
}

fn lend(port: Handle, word: u8, capability: Option<(Handle, Rights)>) -> Result<(), Error> {
    let mut message = Message::<8>::new();
    message.0[0] = word;
    port::send(port, &message, 8, capability)
}
