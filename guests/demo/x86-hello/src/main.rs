// SPDX-License-Identifier: Apache-2.0
//! The smallest VM of class `x86_64`: says hello, makes hypercalls, and switches itself off. With
//! `look=ADDRESS` in its bootargs it also says which word is there.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::hypercall;
use bulkhead_guest::pc::{Machine, cpu};
use bulkhead_guest::{arguments, println};

bulkhead_guest::pc_main!(main);

fn main(machine: Machine) {
    println!("hello from a VM in 64-bit mode");
    let arguments = machine.bootargs();
    if !arguments.is_empty() {
        println!("hello: bootargs {arguments}");
    }
    if arguments::value(arguments, "look").is_some() {
        let word = cpu::load(arguments::number(arguments, "look", 0));
        println!("hello: looks at {word:#x}");
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
