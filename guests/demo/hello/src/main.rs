// SPDX-License-Identifier: Apache-2.0
//! The smallest VM: says hello and switches itself off.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::println;
use bulkhead_guest::vm::Machine;

bulkhead_guest::vm_main!(main);

fn main(machine: Machine) {
    println!("hello from a VM");
    let arguments = machine.bootargs();
    if !arguments.is_empty() {
        println!("hello: bootargs {arguments}");
    }
}
