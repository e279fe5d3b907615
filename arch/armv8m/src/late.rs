// SPDX-License-Identifier: Apache-2.0
//! Stores that the bus refuses late: the CPU goes on meanwhile, and the fault names no instruction (Arm DDI
//! 0553B, B3.13, IMPRECISERR). A VM makes one with a store to a device that refuses it. The emulator has
//! none.

use crate::answer::{Trapped, forget_pending};
use crate::context::Pending;
use crate::machine::Machine;
use crate::sysreg::{self, CFSR};
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::{Exit, FaultReport};
use bulkhead_arch_armv7m_core::Guest;
use bulkhead_arch_armv7m_core::status::IMPRECISERR;

/// The syndrome of such a fault: the number of the exception BusFault, and its status.
const LATE: u64 = 5 << 32 | IMPRECISERR as u64;

impl Machine {
    /// Settles the stores of the vCPU that ran last, so that no fault falls on the next one, and no store
    /// arrives after the vCPU's memory is taken away.
    pub(crate) fn settle_faults(&mut self) {
        sysreg::synchronize();
        if sysreg::read(CFSR) & IMPRECISERR == 0 {
            return;
        }
        sysreg::write(CFSR, IMPRECISERR);
        forget_pending();
        let last = self.current.and_then(|vcpu| self.contexts.get(vcpu));
        if let Some(context) = last.filter(|context| context.pending == Pending::Nothing) {
            context.pending = Pending::Late;
        }
    }
}

impl Trapped<'_> {
    /// Returns the exit of a vCPU whose store was refused after it had left.
    pub(crate) fn late(&mut self) -> Exit {
        self.context.pending = Pending::Fault;
        Exit::Fault(FaultReport {
            class: HealthClass::Memory,
            syndrome: LATE,
            pc: self.live().register(15).into(),
            address: None,
            virtual_address: None,
        })
    }
}
