// SPDX-License-Identifier: Apache-2.0
//! The virtual UART: any sequence of accesses, input and room.
#![no_main]

#[path = "../../devices/tests/support/pl011.rs"]
mod support;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use support::{Event, exercise};

fn event(input: &mut Unstructured<'_>) -> Result<Event> {
    let offset = |input: &mut Unstructured<'_>| {
        Ok::<u64, libfuzzer_sys::arbitrary::Error>(match input.int_in_range(0..=9)? {
            0 => input.arbitrary()?,
            1 => input.int_in_range(0..=0x1004)?,
            _ => input.int_in_range(0..=0x14)? * 4,
        })
    };
    Ok(match input.int_in_range(0..=4)? {
        0 => Event::Read(offset(input)?, input.arbitrary()?),
        1 => Event::Write(offset(input)?, input.arbitrary()?, input.arbitrary()?),
        2 => Event::Receive(input.arbitrary()?),
        3 => Event::Room(input.int_in_range(0..=600)?),
        _ => Event::Reset,
    })
}

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let mut events = Vec::new();
    while !input.is_empty() {
        match event(&mut input) {
            Ok(event) => events.push(event),
            Err(_) => break,
        }
    }
    exercise(&events);
});
