// SPDX-License-Identifier: Apache-2.0
//! A VM that keeps values in its debug registers while other VMs do the same on the same pCPU.
//!
//! The command line is the number of the VM. The VM prints `debug: clean` if the registers were 0 at first,
//! `debug: kept N times`, and `debug: 1 exception` for a breakpoint on an instruction.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::pc::exception::{self, Frame};
use bulkhead_guest::pc::{Machine, apic, cpu};
use bulkhead_guest::println;
use core::sync::atomic::{AtomicU32, Ordering};

bulkhead_guest::pc_main!(main);

const ROUNDS: u64 = 50;
const TIMER: u8 = 0x40;
/// Vector of #DB (Intel SDM 3A, section 6.15).
const DEBUG: u64 = 1;
/// Ticks of the counter from one look to the next.
const PAUSE: u64 = 200_000;
/// DR7: the bit that is always 1; a breakpoint on the instruction at DR0.
const OFF: u64 = 0x400;
const AT_DR0: u64 = OFF | 1;

static EXCEPTIONS: AtomicU32 = AtomicU32::new(0);

fn handler(frame: &mut Frame) {
    if frame.vector == DEBUG {
        EXCEPTIONS.fetch_add(1, Ordering::Relaxed);
        cpu::write_debug_control(OFF);
    } else {
        apic::end();
    }
}

#[inline(never)]
extern "C" fn watched() {
    println!("debug: behind the breakpoint");
}

fn main(machine: Machine) {
    let own = machine
        .bootargs()
        .bytes()
        .fold(0, |number, digit| number * 10 + u64::from(digit & 0xF));
    exception::install(handler);
    apic::enable();
    if cpu::read_debug() == [0; 4] {
        println!("debug: clean");
    }
    let mut kept = 0;
    for round in 0..ROUNDS {
        let values = [0, 1, 2, 3].map(|number| own << 32 | round << 8 | number << 4);
        cpu::write_debug(values);
        apic::set_deadline(TIMER, cpu::counter() + PAUSE);
        cpu::wait();
        kept += u64::from(cpu::read_debug() == values);
    }
    println!("debug: kept {kept} times");
    cpu::write_debug([watched as *const () as u64, 0, 0, 0]);
    cpu::write_debug_control(AT_DR0);
    watched();
    println!("debug: {} exception", EXCEPTIONS.load(Ordering::Relaxed));
}
