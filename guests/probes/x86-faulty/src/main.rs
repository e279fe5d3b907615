// SPDX-License-Identifier: Apache-2.0
//! A VM of class `x86_64` that does one wrong thing, for the tests of health events and actions.
//!
//! Bootargs: `fault=KIND` says which (see [`FAULTS`]), `delay=MILLISECONDS` waits before (0), `kicks=N` kicks
//! the watchdog N times, every 10 ms, before the fault.
//!
//! Prints `before KIND`; then `after KIND: VALUE` if it survives, and ends by switching itself off. If the
//! fault is reflected into the VM, it prints `exception VECTOR` and switches itself off.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::{Operation, function_id};
use bulkhead_guest::hypercall::{self, Results, SELF};
use bulkhead_guest::pc::exception::{self, Frame};
use bulkhead_guest::pc::{self, Machine, apic, clock, cpu};
use bulkhead_guest::{arguments, println};

bulkhead_guest::pc_main!(main);

const TIMER: u8 = 0x40;
/// An address that is no memory and no device of the machine.
const NOWHERE: u64 = 0x8000_0000;
/// A register that no processor has.
const NO_MSR: u32 = 0xDEAD_0000;
/// A capability index that is in range and empty.
const EMPTY_SLOT: u64 = 63;

/// A fault by its name: does it, and returns something to print.
type Fault = (&'static str, fn() -> u64);

/// All of them.
const FAULTS: &[Fault] = &[
    ("none", || 0),
    ("memory-read", || cpu::load(NOWHERE).into()),
    ("memory-write", || {
        cpu::store(NOWHERE, 0x0BAD_0BAD);
        0
    }),
    ("register", || cpu::read_msr(NO_MSR)),
    ("reserved-bit", || {
        cpu::set_reserved_bit_of_cr3();
        0
    }),
    ("hypercall-number", || status(hypercall::raw(0xC600_7FFF, [0; 6]))),
    ("hypercall-capability", || {
        let call = function_id(Operation::PartitionStatus).into();
        status(hypercall::raw(call, [EMPTY_SLOT, 0, 0, 0, 0, 0]))
    }),
    // Without a hint: an emulator leaves its fast loop for each.
    ("watchdog", || {
        loop {
            core::hint::black_box(());
        }
    }),
    ("hang", || cpu::stop()),
    ("no-handlers", || exception::lose_handlers()),
    ("reset", || pc::reset()),
];

/// Returns the first register of the answer.
fn status(Results([first, ..]): Results) -> u64 {
    first
}

fn handler(frame: &mut Frame) {
    if frame.vector == TIMER.into() {
        apic::end();
        return;
    }
    println!("exception {}", frame.vector);
    pc::power_off();
}

fn main(machine: Machine) {
    exception::install(handler);
    apic::enable();
    let line = machine.bootargs();
    let wanted = arguments::value(line, "fault").unwrap_or("none");
    let Some((name, fault)) = FAULTS.iter().find(|(name, _)| *name == wanted) else {
        println!("faulty: no fault {wanted}");
        return;
    };
    let (kicks, delay) = (
        arguments::number(line, "kicks", 0),
        arguments::number(line, "delay", 0),
    );
    // To measure the counter takes some milliseconds.
    let millisecond = if kicks + delay == 0 {
        0
    } else {
        clock::hertz() / 1000
    };
    let pause = |milliseconds| clock::sleep_until(TIMER, cpu::counter() + milliseconds * millisecond);
    for _ in 0..kicks {
        pause(10);
        if let Err(error) = hypercall::partition_kick(SELF) {
            println!("faulty: kick refused: {error:?}");
        }
    }
    pause(delay);
    println!("before {name}");
    let value = fault();
    println!("after {name}: {value:#x}");
}
