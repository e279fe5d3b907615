// SPDX-License-Identifier: Apache-2.0
//! Reads and writes every system register, and executes every system instruction, once.
//!
//! The program visits each encoding of MRS and MSR (op0 2 and 3) and of SYSL and SYS (op0 1), whether the CPU
//! has it or not. Groups to which the architecture gives no meaning are left out ([`is_allocated`]). A
//! register that can be read is written with its own value, and any other one with [`BLANK`]. The emulator
//! writes down which accesses came to the hypervisor. The program does not know: it prints how many accesses
//! had an effect, and ends.
//!
//! Each access is made in the sandbox. The sandbox leaves out writes that it would not survive (`SCTLR_EL1`,
//! `TCR_EL1`, `TTBR1_EL1`, `MAIR_EL1`, `VBAR_EL1`). It makes them itself when it starts.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::println;
use bulkhead_guest::vm::sandbox::{STACK, Sandbox, Start};
use bulkhead_guest::vm::{Machine, timer};

bulkhead_guest::vm_main!(main);

/// `SYS` or `MSR` of nothing, with x2 (Arm ARM DDI 0487 C4.1.66).
const WRITE: u32 = 0xD500_0002;
/// The bit that makes it a `SYSL` or an `MRS`.
const READ: u32 = 1 << 21;
/// op0, which has two bits.
const OP0: u32 = 19;
/// Encodings below an op0: op1, CRn, CRm and op2.
const NAMES: u32 = 1 << 14;
/// The value that is written to what cannot be read: no interrupt's number that is of use, no CPU's.
const BLANK: u64 = 0;
/// CRn of a name.
const CRN: u32 = 7;
/// Time of one access.
const BUDGET_MICROSECONDS: u64 = 20;

fn main(_: Machine) {
    let mut sandbox = Sandbox::new();
    for op0 in 1..4_u32 {
        let (mut reads, mut writes) = (0, 0);
        for name in (0..NAMES).filter(|name| is_allocated(op0, name >> CRN & 15)) {
            let word = WRITE | op0 << OP0 | name << 5;
            let mut start = Start {
                general: [0; 31],
                program: false,
                debug: false,
                step: false,
                budget: timer::ticks(BUDGET_MICROSECONDS),
            };
            // Maintenance of caches by address needs one.
            start.general[2] = if op0 == 1 { STACK } else { BLANK };
            let outcome = sandbox.run(&[word | READ], &start);
            if outcome.finished() {
                reads += 1;
                start.general[2] = outcome.general[2];
            }
            writes += u32::from(sandbox.run(&[word], &start).finished());
        }
        println!("registers: op0 {op0}: {reads} reads, {writes} writes");
    }
    println!("registers: done");
}

/// Tells whether the architecture gives a meaning to encodings of `op0` and `crn` (DDI 0487 D18.2, D18.3).
/// SYS with a CRn of 7 to 9 is caches, TLBs and translation, with 11 and 15 the implementation's. Debug and
/// trace have CRn 0 to 7.
const fn is_allocated(op0: u32, crn: u32) -> bool {
    match op0 {
        1 => matches!(crn, 7..=9 | 11 | 15),
        2 => crn < 8,
        _ => true,
    }
}
