// SPDX-License-Identifier: Apache-2.0
//! Circles of waits: a call or a take of a lock that would close one is refused.
//!
//! A vCPU that waits for a reply waits for the vCPU that has the call. If no vCPU has the call yet, it waits
//! for the only vCPU that can receive at the port, if there is only one. A vCPU that waits for a lock waits
//! for the owner of the lock. A vCPU that is about to wait follows these waits, on all pCPUs. If they lead
//! back, the wait would have no end.
//!
//! **None is missed.** A vCPU writes its wait into its seat before it follows the others. Of several that
//! close a circle together, the last one to write finds the waits of all others.
//!
//! **None is invented.** The waits are looked at one after the other, and some may have ended by then. So a
//! circle is followed twice. Each wait has a number. If the numbers are the same, all waits were there at the
//! moment between.
//!
//! **Work bounds.** A step for each vCPU on the way, at most [`MAX_VCPUS`], and each takes two locks. Mostly
//! the first vCPU on the way waits for no other vCPU.

use super::Pcpu;
use crate::port::{Basis, CallState, PortId};
use bulkhead_arch_api::{Arch, Drivers, MAX_VCPUS, VcpuId};
use bulkhead_sched::PcpuPolicy;

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Tells whether `first` waits for `vcpu`, directly or through others.
    #[inline]
    pub(crate) fn closes_circle(&self, vcpu: VcpuId, first: VcpuId) -> bool {
        let waits = self.follow(vcpu, first);
        waits.is_some() && self.follow(vcpu, first) == waits
    }

    /// Follows the waits from `at` to `vcpu`. Returns a sum of their numbers if they lead there.
    #[inline(never)]
    fn follow(&self, vcpu: VcpuId, first: VcpuId) -> Option<u32> {
        let (mut at, mut sum) = (first, 0_u32);
        for _ in 0..MAX_VCPUS {
            if at == vcpu {
                return Some(sum);
            }
            let (next, number) = self.waits_for(at)?;
            sum = sum.rotate_left(7) ^ number ^ u32::from(at.0);
            at = next;
        }
        None
    }

    /// Returns the vCPU that a vCPU waits for, and the number of that wait.
    fn waits_for(&self, vcpu: VcpuId) -> Option<(VcpuId, u32)> {
        let (port, number, basis) = {
            let seat = self.shared.seats.of(vcpu).lock();
            let call = &seat.call;
            let port = if call.state != CallState::Open || !call.waits {
                None
            } else if let Some(server) = call.server {
                return Some((server, call.number));
            } else {
                Some((call.at.it, call.number))
            };
            (port, seat.turn, seat.basis)
        };
        if let Some((port, number)) = port {
            return self.only_server(port).map(|server| (server, number));
        }
        if let Basis::Lock(at) = basis {
            let state = self.shared.locks.of(at.it).lock();
            if state.waiters().contains(vcpu) {
                return state.owner().map(|owner| (owner, number));
            }
        }
        None
    }

    /// Returns the only vCPU that can receive at a port, unless it waits there.
    #[inline(never)]
    pub(crate) fn only_server(&self, port: PortId) -> Option<VcpuId> {
        let facts = self.system.port(port);
        let only = facts.receiver.filter(|_| facts.has_one_receiver)?;
        let queue = self.shared.ports.of(port).lock();
        // If another one has received last, it was granted a capability.
        (queue.server == Some(only) && !queue.has_waiters()).then_some(only)
    }
}
