// SPDX-License-Identifier: Apache-2.0
//! A task that measures messages, switches or its own lateness, or serves another partition that measures.
//!
//! Its capabilities say which: `own` and `requests` (write) measure messages, and `requests` alone (read)
//! serves them. `turns` measures switches, and `stamps` serves them. `clock` measures how late the task is.
//! `free` and `gated` measure memory that is always mapped, and memory that is mapped while it is held.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod held;
mod late;
mod ports;
mod turns;

use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    match (find("own"), find("requests")) {
        (Some(own), Some(requests)) => {
            ports::measure_all(own, requests);
            println!("bench done");
        }
        (None, Some(requests)) => ports::serve(requests),
        _ => alone_with_channels(find),
    }
}

/// Measures or serves all but messages.
fn alone_with_channels(find: impl Fn(&str) -> Option<Handle>) {
    if let (Some(free), Some(gated)) = (find("free"), find("gated")) {
        held::measure(free, gated);
        println!("bench done");
        return;
    }
    match (find("turns"), find("stamps"), find("clock")) {
        (Some(turns), _, _) => {
            turns::measure(turns);
            println!("bench done");
        }
        (_, Some(stamps), _) => turns::serve(stamps),
        (_, _, Some(clock)) => {
            late::measure(clock);
            println!("bench done");
        }
        _ => println!("bench failed: no capability"),
    }
}
