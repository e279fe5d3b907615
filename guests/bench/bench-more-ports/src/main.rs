// SPDX-License-Identifier: Apache-2.0
//! A task that measures more than `bench-ports` does: the spread of its lateness, if it has the capability
//! `clock`; else messages to a server, by the capability `server`.
//!
//! This is a program besides `bench-ports`: the figures of that one depend on its own instructions.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod calls;
mod late;
mod spread;

use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    match (find("clock"), find("server")) {
        (Some(clock), _) => late::measure(clock),
        (_, Some(server)) => calls::measure(server),
        _ => println!("bench failed: no capability"),
    }
    println!("bench done");
}
