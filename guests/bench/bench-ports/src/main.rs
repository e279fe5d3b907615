// SPDX-License-Identifier: Apache-2.0
//! A task that measures messages, or serves another one that does.
//!
//! With the capabilities `own` and `requests` (write) it measures; with `requests` alone (read) it serves.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod ports;

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
        _ => println!("bench failed: no port"),
    }
}
