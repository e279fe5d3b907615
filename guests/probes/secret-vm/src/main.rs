// SPDX-License-Identifier: Apache-2.0
//! A VM that takes its secret, in three lives. A real program never prints its secret.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

#[path = "../../secret-task/src/lives.rs"]
mod lives;

use bulkhead_guest::vm::Machine;

bulkhead_guest::vm_main!(main);

fn main(_machine: Machine) {
    lives::live();
}
