// SPDX-License-Identifier: Apache-2.0
//! A task that does wrong things, for the tests of health events and actions.
//!
//! A task can be told nothing but its capabilities, so their names (of any kind) say which wrong things
//! it does, and in which order: `fault-memory`, `fault-undefined`, `fault-hypercall`, `fault-hang`, and
//! `fault-at-HEX` for a load from an address.
//!
//! The task prints `before NAME`, and `after NAME` if it survives.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::startup_page::StartupPage;
use bulkhead_guest::{hypercall, println, task};

bulkhead_guest::task_main!(main);

/// An address that is not the task's.
const NOWHERE: u64 = 0x8000_0000;

/// Returns the address in a name such as `fault-at-40201000`.
fn address_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("fault-at-")?, 16).ok()
}

fn main(page: StartupPage<'static>) {
    for capability in page
        .capabilities()
        .filter(|capability| capability.name.starts_with("fault-"))
    {
        println!("before {}", capability.name);
        match capability.name {
            "fault-memory" => {
                let _ = task::read_foreign(NOWHERE);
            }
            "fault-undefined" => task::undefined_instruction(),
            "fault-hypercall" => {
                hypercall::raw(0xC600_7FFF, [0; 6]);
            }
            // Without a hint: an emulator leaves its fast loop for each.
            "fault-hang" => loop {
                core::hint::black_box(());
            },
            name => match address_of(name) {
                Some(address) => {
                    let _ = task::read_foreign(address);
                }
                None => println!("faulty: no fault {name}"),
            },
        }
        println!("after {}", capability.name);
    }
}
