// SPDX-License-Identifier: Apache-2.0
//! Records of a pCPU that is traced.
//!
//! A pCPU that is not traced asks at each of these places, and goes on. Exits and blocking are recorded here.
//! Getting ready and being switched off are recorded in [`crate::local`], where the policy learns of both.
//! Switches are recorded after the decision that stands. States and health are recorded where they are
//! announced.

use crate::dispatch::Pcpu;
use crate::local::Activity;
use bulkhead_abi::trace::{BlockReason, Event, ExitCause};
use bulkhead_arch_api::{Arch, Drivers, Exit, Ticks, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Records an event of a partition or of the pCPU at this moment.
    #[inline]
    pub(crate) fn trace(&self, event: Event) {
        if self.local.tracer.is_on() {
            self.local.tracer.record(self.machine.now(), event);
        }
    }

    /// Records the decision that was taken at `now` and stands.
    #[inline(never)]
    pub(crate) fn trace_decision(&mut self, now: Ticks) {
        self.local.trace_decision(now);
    }

    /// Records the exit that has ended a vCPU's run, or the wait of the pCPU.
    #[inline(never)]
    pub(crate) fn trace_exit(&self, vcpu: Option<VcpuId>, exit: &Exit) {
        let (cause, argument) = describe(exit);
        self.trace(Event::Exit {
            vcpu: vcpu.map(|vcpu| vcpu.0),
            cause,
            argument,
        });
    }

    /// Records that the slot which ran does not go on, if so. The policy is told at the next decision.
    #[inline(never)]
    pub(crate) fn trace_block(&self, slot: Slot, vcpu: VcpuId) {
        if let Some(why) = block_reason(self.local.slot(slot).activity) {
            self.trace(Event::Block { vcpu: vcpu.0, why });
        }
    }
}

/// Returns the reason why a vCPU is not ready, if there is one to record.
fn block_reason(activity: Activity) -> Option<BlockReason> {
    match activity {
        Activity::Off => Some(BlockReason::Off),
        Activity::Ending => Some(BlockReason::Ending),
        Activity::Idle(_) => Some(BlockReason::Idle),
        Activity::Blocked(pause) => Some(pause.wait.reason()),
        Activity::Ready
        | Activity::Loading(_)
        | Activity::Calling
        | Activity::Revoking(..)
        | Activity::Looking(_) => None,
    }
}

/// Returns an exit as the trace has it.
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
        Exit::Register(ref access) => (ExitCause::Access, access.address.0 as u32),
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
