// SPDX-License-Identifier: Apache-2.0
//! A task that takes its secret, in three lives. A real program never prints its secret.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod lives;

use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

fn main(_page: StartupPage<'static>) {
    lives::live();
}
