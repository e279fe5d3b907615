// SPDX-License-Identifier: Apache-2.0
//! Floating point of tasks.
//!
//! The registers belong to the VM that has the Non-secure world, and a task *borrows* them. Its first
//! floating-point instruction is a UsageFault, because CPACR lets privileged code alone use them. The
//! hypervisor then keeps the VM's registers, gives the task its own, and the instruction is executed again.
//! The registers stay with the task until a VM runs, or until another task borrows them. So tasks and VMs
//! that use no floating point cost nothing.
//!
//! **The room of a VM.** The CPU may owe the VM registers in a frame (FPCCR.LSPACT, see `fp`). The next
//! floating-point instruction would pay, with the rights of the VM. So that note goes with the VM's
//! registers.
//!
//! **No frame of a task has registers.** FPCCR.ASPEN of the Secure world is clear, so the CPU neither notes
//! that a task uses them (CONTROL.FPCA and SFPA) nor pushes them (B3.20).

use crate::fp::{self, OWED};
use crate::loan::{IS_THERE, Loan};
use crate::machine::Machine;
use crate::sysreg::{self, CFSR, FPCCR, other_space};
use bulkhead_arch_api::VcpuId;

/// The number of the exception UsageFault.
const USAGE_FAULT: u32 = 6;
/// CFSR: an instruction of a coprocessor that may not be used (UFSR.NOCP, D1.2.271).
const NOCP: u32 = 1 << 19;

impl Machine {
    fn borrower(&self) -> Option<VcpuId> {
        let loan = self.loan.first()?.as_ref()?;
        Some(loan.task)
    }

    /// Tells whether a task has met CPACR.
    #[inline(always)]
    pub(crate) fn wants_floats(&mut self, vcpu: VcpuId, number: u32) -> bool {
        IS_THERE
            && number == USAGE_FAULT
            && sysreg::read(CFSR) & NOCP != 0
            && self.contexts.get(vcpu).is_some_and(|context| context.is_task())
    }

    /// Gives the registers to a task that runs and has not got them. Returns false if the task has them
    /// already, or if the CPU has no floating point.
    pub(crate) fn borrow_floats(&mut self, task: VcpuId) -> bool {
        if !fp::exists() || self.borrower() == Some(task) {
            return false;
        }
        let owed = match self.loan.first_mut().and_then(Option::take) {
            Some(last) => {
                self.keep_floats(last.task);
                last.owed
            }
            None => {
                let control = other_space().read32(FPCCR);
                other_space().write32(FPCCR, control & !OWED);
                if let Some(tenant) = self.tenant {
                    self.keep_floats(tenant);
                }
                control & OWED
            }
        };
        if let Some(context) = self.contexts.get(task) {
            context.fp.load();
        }
        fp::admit_tasks(true);
        if let Some(place) = self.loan.first_mut() {
            *place = Some(Loan { task, owed });
        }
        true
    }

    fn keep_floats(&mut self, vcpu: VcpuId) {
        if let Some(context) = self.contexts.get(vcpu) {
            context.fp.save();
        }
    }

    /// Takes the registers back from a task, for the VM that has the world.
    #[inline(always)]
    pub(crate) fn return_floats(&mut self) {
        if let Some(Some(Loan { task, owed })) = self.loan.first_mut().map(Option::take) {
            self.keep_floats(task);
            fp::admit_tasks(false);
            if let Some(context) = self.tenant.and_then(|tenant| self.contexts.get(tenant)) {
                context.fp.load();
            }
            // Do not reorder: an instruction of ours must not pay.
            other_space().write32(FPCCR, other_space().read32(FPCCR) | owed);
        }
    }

    /// Lets a task that is about to run use the registers if it has them.
    #[inline(always)]
    pub(crate) fn show_floats(&self, task: VcpuId) {
        if let Some(borrower) = self.borrower() {
            fp::admit_tasks(borrower == task);
        }
    }
}
