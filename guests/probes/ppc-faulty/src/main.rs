// SPDX-License-Identifier: Apache-2.0
//! A VM of class `ppc405` that does one wrong thing, for the tests of health events and actions.
//!
//! Bootargs: `fault=KIND` says which (see [`FAULTS`]).
//!
//! Prints `before KIND`; then `after KIND: VALUE` if it survives, and ends by stopping itself. If the fault
//! is reflected into the VM, its vector prints `UNEXPECTED interrupt VECTOR` and stops it.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::{Operation, function_id};
use bulkhead_guest::hypercall::{self, Results};
use bulkhead_guest::powerpc::{Machine, cpu};
use bulkhead_guest::{arguments, println};

bulkhead_guest::powerpc_main!(main);

/// An address that is no memory and no device of the machine.
const NOWHERE: u32 = 0x4000_0000;
/// A device control register that the machine does not have.
const NO_DCR: u32 = 0x100;
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
    ("memory-exec", || cpu::jump(NOWHERE)),
    ("register", || cpu::read_dcr::<NO_DCR>().into()),
    ("hypercall-number", || status(hypercall::raw(0xC600_7FFF, [0; 6]))),
    ("hypercall-capability", || {
        let call = function_id(Operation::PartitionStatus).into();
        status(hypercall::raw(call, [EMPTY_SLOT, 0, 0, 0, 0, 0]))
    }),
];

/// Returns the first register of the answer.
fn status(Results([first, ..]): Results) -> u64 {
    first
}

fn main(machine: Machine) {
    let wanted = arguments::value(machine.bootargs(), "fault").unwrap_or("none");
    let Some((name, fault)) = FAULTS.iter().find(|(name, _)| *name == wanted) else {
        println!("faulty: no fault {wanted}");
        return;
    };
    println!("before {name}");
    let value = fault();
    println!("after {name}: {value:#x}");
}
