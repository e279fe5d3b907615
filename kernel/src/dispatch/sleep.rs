// SPDX-License-Identifier: Apache-2.0
//! Sleeps: waits for a time.

use super::Pcpu;
use super::basis::SLEEPS;
use crate::local::Activity;
use crate::time::SleepWait;
use crate::wait::verbs::{Facts, Rest, Verbs};
use crate::wait::{Outcome, Wait};
use bulkhead_abi::Error;
use bulkhead_abi::trace::BlockReason;
use bulkhead_arch_api::{Arch, Drivers, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Blocks the vCPU until a time, in nanoseconds since boot.
    pub(crate) fn sleep(&mut self, slot: Slot, vcpu: VcpuId, index: u8, until: u64) -> Option<Outcome> {
        let until = self.system.time.at(until);
        if until <= self.machine.now() {
            return Some(Ok([0; 4]));
        }
        let Some(timer) = self.interruption(vcpu) else {
            return Some(Err(Error::Interrupted));
        };
        let wait = Wait::Sleep(SleepWait { index });
        self.local.block(slot, Activity::waiting(wait, until, timer));
        None
    }
}

impl Facts for SleepWait {
    const REASON: BlockReason = BlockReason::Sleeping;

    #[inline(always)]
    fn rests_on(self) -> Option<Rest> {
        Some(Rest {
            index: self.index,
            right: SLEEPS,
            object: 0,
        })
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Verbs<A, D, P> for SleepWait {
    #[inline(always)]
    fn outcome(self, _pcpu: &mut Pcpu<'_, '_, A, D, P>, _vcpu: VcpuId) -> Option<Outcome> {
        None
    }

    /// Ends the sleep. Its deadline is no error: the vCPU has asked for it.
    #[inline(always)]
    fn give_up(self, _pcpu: &mut Pcpu<'_, '_, A, D, P>, _vcpu: VcpuId, error: Error) -> Outcome {
        match error {
            Error::TimedOut => Ok([0; 4]),
            _ => Err(error),
        }
    }

    #[inline(always)]
    fn leave(self, _pcpu: &mut Pcpu<'_, '_, A, D, P>, _vcpu: VcpuId) {}
}
