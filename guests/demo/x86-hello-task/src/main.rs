// SPDX-License-Identifier: Apache-2.0
//! The smallest task: says hello, lists what it may name, and stops itself.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

fn main(page: StartupPage<'static>) {
    println!("hello from a task");
    for capability in page.capabilities() {
        println!(
            "hello: capability {} = {:?}, rights {:#x}",
            capability.name, capability.kind, capability.rights.0
        );
    }
}
