// SPDX-License-Identifier: Apache-2.0
//! A VM that faults again and again and never finishes an instruction: it switches to a translation that maps
//! nothing, its vectors included. None of these faults comes to the hypervisor.
//!
//! An emulator that counts instructions never counts one of them, so the clock of such a run stands still.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::println;
use bulkhead_guest::vm::{Machine, mmu};

bulkhead_guest::vm_main!(main);

fn main(_: Machine) {
    println!("fault-loop: nothing is mapped from now on");
    mmu::lose_everything()
}
