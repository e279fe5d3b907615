// SPDX-License-Identifier: Apache-2.0
//! The smallest VM of class `x86_64`: says hello, makes hypercalls, and switches itself off.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::hypercall;
use bulkhead_guest::pc::Machine;
use bulkhead_guest::println;

bulkhead_guest::pc_main!(main);

fn main(machine: Machine) {
    println!("hello from a VM in 64-bit mode");
    let arguments = machine.bootargs();
    if !arguments.is_empty() {
        println!("hello: bootargs {arguments}");
    }
    match hypercall::version() {
        Ok(version) => println!("hello: interface {}.{}", version >> 16, version & 0xFFFF),
        Err(error) => println!("hello: no interface, {error:?}"),
    }
    match hypercall::partition_status(hypercall::SELF) {
        Ok(status) => println!("hello: {:?}", status.state),
        Err(error) => println!("hello: no status, {error:?}"),
    }
}
