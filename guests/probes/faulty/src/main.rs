// SPDX-License-Identifier: Apache-2.0
//! A VM that does one wrong thing, for the tests of health events and actions.
//!
//! Bootargs: `fault=KIND` says which (see [`FAULTS`]), `delay=MILLISECONDS` waits before (0), `kicks=N` kicks
//! the watchdog N times, every `every=MILLISECONDS` (10), before the fault.
//!
//! Prints `before KIND`; then `after KIND: VALUE` if it survives, and ends by switching itself off. If the
//! fault is reflected into the VM, its vector prints `exception ec=..` and switches it off.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::{Operation, Rights};
use bulkhead_guest::hypercall::{self, Handle, Results, SELF};
use bulkhead_guest::vm::psci::{self, Conduit};
use bulkhead_guest::vm::register::Register;
use bulkhead_guest::vm::{Machine, bus, cpu, timer};
use bulkhead_guest::{arguments, println};

bulkhead_guest::vm_main!(main);

/// An address that is no memory and no device of the default machine.
const NOWHERE: u64 = 0x8000_0000;
/// A capability index that is in range and empty.
const EMPTY_SLOT: u64 = 63;

/// A fault by its name: does it, and returns something to print.
type Fault = (&'static str, fn() -> u64);

/// All of them.
const FAULTS: &[Fault] = &[
    ("none", || 0),
    ("memory-read", || bus::read_u32(NOWHERE).into()),
    ("memory-write", || {
        bus::write_u32(NOWHERE, 0x0BAD_0BAD);
        0
    }),
    ("memory-exec", || {
        bus::execute(NOWHERE);
        0
    }),
    ("memory-ldp", || bus::read_pair(NOWHERE).0),
    ("memory-flash", || bus::read_u32(0).into()),
    ("sysreg", || Register::PMCR.read()),
    ("smc-unknown", || {
        psci::code_of(Conduit::Smc, 0xC300_0001, [0; 3]).cast_unsigned()
    }),
    ("hypercall-number", || status(hypercall::raw(0xC600_7FFF, [0; 6]))),
    ("hypercall-capability", || {
        on(Operation::PartitionStatus, EMPTY_SLOT)
    }),
    ("hypercall-range", || on(Operation::PartitionStatus, u64::MAX)),
    ("hypercall-kind", || on(Operation::EventPoll, SELF.0.into())),
    ("hypercall-right", without_right),
    ("watchdog", || {
        // Busy until the watchdog ends it.
        loop {
            timer::pause(1000);
        }
    }),
    ("hang", || {
        // Asleep for ever, interrupts masked.
        loop {
            cpu::wait_for_interrupt();
        }
    }),
];

/// x0 of the answer.
fn status(Results([x0, ..]): Results) -> u64 {
    x0
}

fn on(operation: Operation, capability: u64) -> u64 {
    status(hypercall::raw(
        bulkhead_guest::abi::function_id(operation).into(),
        [capability, 0, 0, 0, 0, 0],
    ))
}

/// Stops itself through a capability that may only look.
fn without_right() -> u64 {
    match hypercall::capability_derive(SELF, Rights::READ) {
        Ok(Handle(index)) => on(Operation::PartitionStop, index.into()),
        Err(error) => (error as i64).cast_unsigned(),
    }
}

fn main(machine: Machine) {
    let line = machine.bootargs();
    let wanted = arguments::value(line, "fault").unwrap_or("none");
    let Some((name, fault)) = FAULTS.iter().find(|(name, _)| *name == wanted) else {
        println!("faulty: no fault {wanted}");
        return;
    };
    let kicks = arguments::number(line, "kicks", 0);
    let every = arguments::number(line, "every", 10);
    for _ in 0..kicks {
        timer::sleep(every * 1000);
        if let Err(error) = hypercall::partition_kick(SELF) {
            println!("faulty: kick refused: {error:?}");
        }
    }
    let delay = arguments::number(line, "delay", 0);
    if delay > 0 {
        timer::sleep(delay * 1000);
    }
    println!("before {name}");
    let value = fault();
    println!("after {name}: {value:#x}");
}
