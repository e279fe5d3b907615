// SPDX-License-Identifier: Apache-2.0
//! A task that drives a clock of the board as long as a keeper (guest `device-keeper`) lends the registers
//! and the line to the task.
//!
//! The task gets both with messages at the port `requests`, where the interrupts come as well, and needs a
//! console. At last the task touches the registers that were taken back, which is a fault of its own.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::Error;
use bulkhead_guest::device::{Device, Line};
use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::port::{self, Message, Received};
use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::startup_page::StartupPage;

#[cfg_attr(target_arch = "arm", path = "cmsdk.rs")]
#[cfg_attr(not(target_arch = "arm"), path = "pl031.rs")]
mod clock;

bulkhead_guest::task_main!(main);

const LOANS: u32 = 3;
const INTERRUPTS: u32 = 100;

#[derive(Default)]
struct Counts {
    loans: u32,
    interrupts: u32,
    /// Interrupts that came although the line should have been masked.
    early: u32,
    revoked: u32,
}

fn main(page: StartupPage<'static>) {
    let Some(requests) = page.find("requests").map(|found| Handle(found.index)) else {
        println!("FAIL capability requests: missing");
        return;
    };
    let mut counts = Counts::default();
    let mut last = None;
    for _ in 0..LOANS {
        let (Some(device), Some(line)) = (capability(requests), capability(requests)) else {
            break;
        };
        let (Ok(device), Ok(line)) = (Device::hold(device), Line::bind(line, requests)) else {
            break;
        };
        counts.loans += 1;
        for _ in 0..INTERRUPTS {
            serve(requests, device, line, &mut counts);
        }
        clock::stop(device);
        // The keeper says that it has taken both back.
        let told = receive(requests).is_ok_and(|(received, _)| !received.is_interrupt);
        let gone = [line.done(), line.done(), device.release(), device.release()];
        let expected = [
            Error::Revoked,
            Error::NoCapability,
            Error::Revoked,
            Error::NoCapability,
        ];
        counts.revoked += u32::from(told && gone == expected.map(Err));
        last = Some(device);
    }
    let mut report = Report::new();
    report.equal("every loan is held and bound", counts.loans, LOANS);
    report.equal(
        "every interrupt is a message",
        counts.interrupts,
        LOANS * INTERRUPTS,
    );
    report.equal("the line is masked until it is done", counts.early, 0);
    report.equal(
        "each index meets the error once, and is free",
        counts.revoked,
        LOANS,
    );
    report.finish();
    if let Some(device) = last {
        clock::start(device);
        println!("FAIL the registers are still there");
    }
}

/// Lets the clock interrupt, and serves the interrupt.
fn serve(requests: Handle, device: Device, line: Line, counts: &mut Counts) {
    clock::start(device);
    let Ok((received, word)) = receive(requests) else {
        return;
    };
    let is_it = received.is_interrupt && word != 0 && clock::has_rung(device);
    counts.interrupts += u32::from(is_it);
    // The level is still high.
    let mut message = Message::<8>::new();
    counts.early += u32::from(port::try_receive(requests, &mut message).is_ok());
    clock::clear(device);
    if line.done().is_err() {
        counts.early += 1;
    }
}

/// Returns the capability that comes with the next message.
fn capability(requests: Handle) -> Option<Handle> {
    receive(requests).ok()?.0.capability
}

/// Receives a message. Returns its word as well.
fn receive(requests: Handle) -> Result<(Received, u64), Error> {
    let mut message = Message::<8>::new();
    let received = port::receive(requests, &mut message, 0)?;
    Ok((received, u64::from_le_bytes(message.0)))
}
