// SPDX-License-Identifier: Apache-2.0
//! A task that does wrong things, for the tests of health events and actions.
//!
//! A task can be told nothing but its capabilities, so their names (of any kind) say which wrong things
//! it does, and in which order: `fault-memory`, `fault-undefined`, `fault-hypercall`, `fault-hang`.
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
            unknown => println!("faulty: no fault {unknown}"),
        }
        println!("after {}", capability.name);
    }
}
