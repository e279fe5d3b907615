// SPDX-License-Identifier: Apache-2.0
//! The verbs of a wait for a lock.

use crate::dispatch::Pcpu;
use crate::lock::LockWait;
use crate::wait::Outcome;
use crate::wait::verbs::{Facts, Verbs};
use bulkhead_abi::Error;
use bulkhead_abi::trace::BlockReason;
use bulkhead_arch_api::{Arch, Drivers, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

impl Facts for LockWait {
    const REASON: BlockReason = BlockReason::Lock;
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Verbs<A, D, P> for LockWait {
    #[inline(always)]
    fn outcome(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId) -> Option<Outcome> {
        pcpu.received(vcpu)
    }

    /// Takes the vCPU from the waiters. Returns `error`, unless the lock has come meanwhile.
    #[inline(never)]
    fn give_up(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId, error: Error) -> Outcome {
        if pcpu.shared.locks.of(self.lock).lock().leave(vcpu) {
            return Err(error);
        }
        pcpu.received(vcpu).unwrap_or(Err(error))
    }

    /// Takes the vCPU from the waiters. A lock that has come meanwhile is left as the others are that the
    /// vCPU owns.
    #[inline(always)]
    fn leave(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId) {
        let _owns_it = pcpu.shared.locks.of(self.lock).lock().leave(vcpu);
    }

    /// Has the other waiters lend their places to the vCPU, if it owns the lock now.
    #[inline(always)]
    fn ended(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, outcome: Outcome) {
        if outcome.is_ok() {
            pcpu.locks().relend(self.lock);
        }
    }

    /// Corrects the loan of a waiter: another pCPU may have taken the lock from the owner that it lends to.
    #[inline(never)]
    fn lend(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, slot: Slot) {
        let owner = pcpu.shared.locks.of(self.lock).lock().owner();
        pcpu.locks().relend_of(slot, owner);
    }
}
