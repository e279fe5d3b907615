// SPDX-License-Identifier: Apache-2.0
//! The smallest VM of a PowerPC 405: says hello, asks the hypervisor for its version, and ends.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::powerpc::Machine;
use bulkhead_guest::{hypercall, println};

bulkhead_guest::powerpc_main!(main);

fn main(machine: Machine) {
    println!("hello from a VM");
    match hypercall::version() {
        Ok(version) => println!("hello: interface {}.{}", version >> 16, version & 0xFFFF),
        Err(_) => println!("hello: no hypervisor"),
    }
    let arguments = machine.bootargs();
    if !arguments.is_empty() {
        println!("hello: bootargs {arguments}");
    }
}
