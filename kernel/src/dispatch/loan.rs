// SPDX-License-Identifier: Apache-2.0
//! Loans of places ([`crate::local`]) between vCPUs that wait for each other at ports and for locks.

use super::Pcpu;
use crate::parts::{PartOf, each_part};
use bulkhead_abi::Error;
use bulkhead_arch_api::{Arch, Drivers, Ticks, VcpuId};
use bulkhead_sched::{PcpuPolicy, PolicyError, Slot};

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Returns the deadline of a wait, from the nanoseconds since boot that the vCPU asked for.
    pub(crate) fn deadline_of(&self, until: Option<u64>) -> Ticks {
        until.map_or(Ticks::NEVER, |nanoseconds| self.system.time.at(nanoseconds))
    }

    /// Lends the place of `donor`, which is running or waits, to a vCPU that serves it. Without an error
    /// there may be no loan: the vCPU is elsewhere, it does not run, or the policy has no donation.
    ///
    /// # Errors
    /// [`Error::DonationCycle`].
    pub(crate) fn lend_to(&mut self, donor: Slot, server: VcpuId) -> Result<(), Error> {
        let there = self.system.binding(server);
        if !self.is_here(there.pcpu) || !self.local.can_borrow(there.slot) {
            return Ok(());
        }
        let now = self.machine.now();
        match self.local.lend(donor, there.slot, now) {
            Err(PolicyError::DonationCycle) => Err(Error::DonationCycle),
            _ => Ok(()),
        }
    }

    /// Ends the loans and the call of the vCPU, and takes its locks: the vCPU is being switched off, and has
    /// left its wait. Requires: settled, or the vCPU is not running.
    #[inline]
    pub(crate) fn leave_seat(&mut self, slot: Slot, vcpu: VcpuId) {
        if self.local.loans.is_any_engaged() {
            self.leave_engaged(slot, vcpu);
        }
    }

    #[inline(never)]
    fn leave_engaged(&mut self, slot: Slot, vcpu: VcpuId) {
        let now = self.machine.now();
        self.local.end_loans(slot, now);
        if !self.local.loans.disengage(slot) {
            return;
        }
        each_part!(self, part => part.vcpu_leaves(vcpu));
    }

    /// Ends the loan of a slot whose vCPU goes on.
    pub(crate) fn end_loan(&mut self, slot: Slot) {
        if self.local.loans.is_lending(slot) {
            let now = self.machine.now();
            self.local.end_loan(slot, now);
        }
    }
}
