// SPDX-License-Identifier: Apache-2.0
//! The loop of a pCPU that is traced.
//!
//! The same steps as the other loop, in the same order, with records in between; so a pCPU that is not traced does not even
//! ask. What is recorded where: exits and blocking here, getting ready and being switched off in [`crate::local`] where the
//! policy learns of it, switches after the decision that stands, states and health where they are announced.

use super::{Next, Pcpu};
use crate::local::Activity;
use bulkhead_abi::trace::{BlockReason, Event, ExitCause};
use bulkhead_arch_api::{Arch, Exit, Ticks, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

impl<A: Arch, P: PcpuPolicy> Pcpu<'_, '_, A, P> {
    /// [`Pcpu::execute`], traced.
    #[inline(never)]
    pub(super) fn execute_traced(&mut self, next: Next) {
        match next {
            Next::Run(slot, vcpu) => {
                let exit = self.run_vcpu(vcpu);
                self.trace_exit(Some(vcpu), &exit);
                self.handle(slot, vcpu, &exit);
                self.trace_block(slot, vcpu);
            }
            Next::Load(slot, vcpu) => {
                self.load_chunk(slot, vcpu);
                self.trace_block(slot, vcpu);
            }
            Next::Report(slot) => self.report_in_turn(slot),
            Next::Idle => {
                let exit = self.machine.wait();
                self.trace_exit(None, &exit);
                self.handle_common(&exit);
            }
            Next::Again => {}
        }
    }

    /// What happens to a partition or the pCPU at this moment.
    #[inline]
    pub(super) fn trace(&self, event: Event) {
        if self.local.tracer.is_on() {
            self.local.tracer.record(self.machine.now(), event);
        }
    }

    /// The decision that was taken at `now` stands.
    #[inline(never)]
    pub(super) fn trace_decision(&mut self, now: Ticks) {
        self.local.trace_decision(now);
    }

    fn trace_exit(&self, vcpu: Option<VcpuId>, exit: &Exit) {
        let (cause, argument) = describe(exit);
        self.trace(Event::Exit {
            vcpu: vcpu.map(|vcpu| vcpu.0),
            cause,
            argument,
        });
    }

    /// The slot ran; if it does not go on, the policy is told at the next decision.
    fn trace_block(&self, slot: Slot, vcpu: VcpuId) {
        if let Some(why) = block_reason(self.local.slot(slot).activity) {
            self.trace(Event::Block { vcpu: vcpu.0, why });
        }
    }
}

/// What a vCPU that is not ready waits for.
const fn block_reason(activity: Activity) -> Option<BlockReason> {
    match activity {
        Activity::Off => Some(BlockReason::Off),
        Activity::Ending => Some(BlockReason::Ending),
        Activity::Idle(_) => Some(BlockReason::Idle),
        Activity::Waiting(..) => Some(BlockReason::Waiting),
        Activity::Sleeping(..) => Some(BlockReason::Sleeping),
        Activity::Ready | Activity::Loading(_) | Activity::Reporting => None,
    }
}

/// An exit as the trace has it.
fn describe(exit: &Exit) -> (ExitCause, u32) {
    match *exit {
        Exit::Interrupt(line) => (ExitCause::Interrupt, line.0),
        Exit::Deadline => (ExitCause::Deadline, 0),
        Exit::Signal => (ExitCause::Signal, 0),
        Exit::Wake(vcpus) | Exit::Device(vcpus, _) => {
            let first = vcpus.iter().next();
            (ExitCause::Wake, first.map_or(u32::MAX, |vcpu| u32::from(vcpu.0)))
        }
        Exit::Hypercall(ref call) => (ExitCause::Hypercall, u32::from(call.operation)),
        Exit::Access(ref access) => (ExitCause::Access, access.address.0 as u32),
        Exit::Idle { .. } => (ExitCause::Idle, 0),
        Exit::CpuOn { target, .. } => (ExitCause::CpuOn, u32::from(target)),
        Exit::CpuPower { target } => (ExitCause::CpuPower, u32::from(target)),
        Exit::CpuOff => (ExitCause::CpuOff, 0),
        Exit::Reset(_) => (ExitCause::Reset, 0),
        Exit::Fault(_) => (ExitCause::Fault, 0),
        Exit::Failed { code } => (ExitCause::Failed, code as u32),
        Exit::Host(_) => (ExitCause::Host, 0),
    }
}
