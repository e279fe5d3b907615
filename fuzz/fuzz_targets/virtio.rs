// SPDX-License-Identifier: Apache-2.0
//! A virtio device: any sequence of accesses to its window and of changes of its driver's memory.
#![no_main]

#[path = "../../services/virtio/tests/support/device.rs"]
mod device;
#[path = "../../services/virtio/tests/support/hostile.rs"]
mod hostile;

use hostile::{Act, exercise};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

fn act(input: &mut Unstructured<'_>) -> Result<Act> {
    Ok(match input.int_in_range(0..=8)? {
        0 => Act::Store(input.int_in_range(0..=0x45)? * 4, 4, input.arbitrary()?),
        1 => Act::Store(input.arbitrary()?, input.arbitrary()?, input.arbitrary()?),
        2 => Act::Load(input.int_in_range(0..=0x120)?, input.arbitrary()?),
        // A descriptor, an index or a header: what is near the start of an area.
        3 | 4 => {
            let area = input.int_in_range(0..=4)? * 0x1000;
            let length = input.int_in_range(1..=16)?;
            Act::Poke(area + input.int_in_range(0..=0x80)?, input.bytes(length)?.to_vec())
        }
        5 => Act::Race(input.int_in_range(0..=0x4200)?, input.arbitrary()?),
        6 | 7 => Act::Serve(input.int_in_range(0..=20)?),
        _ => Act::Start(input.arbitrary()?, input.int_in_range(0..=140)?),
    })
}

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let mut acts = Vec::new();
    while !input.is_empty() {
        match act(&mut input) {
            Ok(act) => acts.push(act),
            Err(_) => break,
        }
    }
    exercise(&acts);
});
