// SPDX-License-Identifier: Apache-2.0
//! An SError that the hypervisor gives to a VM, as the VM sees it.
//!
//! No board of the emulator can be made to report an SError. So the test sends the hypervisor's vector for
//! synchronous exceptions to the one for SErrors: each HVC of this program is one. For the same reason the
//! program must do nothing else that the hypervisor sees, such as printing. Its results are in x0 when it
//! makes a call: [`FIRST`], then [`DONE`] with the number of the step that failed, 0 if none, in the low
//! half.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::vm::psci::{self, Conduit};
use bulkhead_guest::vm::register::Register;
use bulkhead_guest::vm::{Machine, cpu, exception};

bulkhead_guest::vm_main!(main);

/// x0 of the call that causes an SError.
const FIRST: u32 = 0x0BAD_0000;
/// x0 of the call that tells the result.
const DONE: u32 = 0x600D_0000;
/// `ISR_EL1.A`.
const PENDING: u64 = 1 << 8;

fn main(_: Machine) {
    psci::call(Conduit::Hvc, DONE | failed_step(), [0; 3]);
    loop {
        cpu::relax();
    }
}

fn failed_step() -> u32 {
    if Register::ISR.read() & PENDING != 0 {
        return 1;
    }
    psci::call(Conduit::Hvc, FIRST, [0; 3]);
    // Masked since the first instruction.
    if Register::ISR.read() & PENDING == 0 {
        return 2;
    }
    match exception::probe(cpu::take_aborts) {
        Ok(()) => return 3,
        Err(fault) if fault.class() != exception::class::SERROR => return 4,
        Err(_) => {}
    }
    if exception::probed_faults() != 1 {
        return 5;
    }
    if Register::ISR.read() & PENDING != 0 {
        return 6;
    }
    0
}
