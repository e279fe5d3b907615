// SPDX-License-Identifier: Apache-2.0
//! A hostile server: takes and answers accesses at random or not at all, raises interrupts without end, and
//! copies from and to all addresses, of windows that are its own and of others. Then it hangs.
//!
//! It needs a capability for its windows, and the capability `clock` (timer). It prints how many calls of
//! each kind were granted and refused.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::ObjectKind;
use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::random::Random;
use bulkhead_guest::startup_page::StartupPage;
use bulkhead_guest::{println, service};

bulkhead_guest::task_main!(main);

/// Calls.
const CALLS: u32 = 20_000;
/// The RAM of a client begins here.
const RAM: u64 = 0x4000_0000;
/// Bytes of the addresses that it tries there.
const REACH: u64 = 4 << 20;
const BUFFER: usize = 256;

fn main(page: StartupPage<'static>) {
    let Some(windows) = page.first(ObjectKind::Service).map(|found| Handle(found.index)) else {
        println!("server-wild: no windows");
        return;
    };
    let mut random = Random::new(7);
    let mut buffer = [0; BUFFER];
    let mut last = 0;
    let (mut granted, mut refused) = ([0_u32; 6], [0_u32; 6]);
    for _ in 0..CALLS {
        let way = random.below(6) as usize;
        // Three of four calls are for windows that could be its own.
        let window = if random.below(4) == 0 {
            random.draw() as u8
        } else {
            random.below(4) as u8
        };
        let address = if random.below(8) == 0 {
            random.draw()
        } else {
            RAM + random.below(REACH)
        };
        let length = random.below(BUFFER as u64 + 1) as usize;
        let bytes = buffer.get_mut(..length).unwrap_or_default();
        let result = match way {
            0 => service::take(windows).map(|access| last = access.number),
            1 => service::answer(
                windows,
                if random.below(4) == 0 { random.draw() } else { last },
                random.draw(),
            ),
            2 => service::news(windows).map(drop),
            3 => service::interrupt(windows, window, random.draw() as u32, random.draw() as u32),
            4 => service::read(windows, window, address, bytes),
            _ => service::write(windows, window, address, bytes),
        };
        let counts = if result.is_ok() {
            &mut granted
        } else {
            &mut refused
        };
        if let Some(count) = counts.get_mut(way) {
            *count += 1;
        }
    }
    println!("server-wild: granted {granted:?}, refused {refused:?}");
    loop {
        core::hint::spin_loop();
    }
}
