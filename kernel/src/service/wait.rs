// SPDX-License-Identifier: Apache-2.0
//! Accesses that another partition answers: the client's side. The client waits for the answer.

use crate::dispatch::Pcpu;
use crate::local::Activity;
use crate::service::serve::Serving;
use crate::service::serve::{client_of, server_of};
use crate::service::{AccessWait, WindowId};
use crate::wait::Outcome;
use crate::wait::verbs::{Deadline, Facts, Verbs};
use bulkhead_abi::Error;
use bulkhead_abi::trace::BlockReason;
use bulkhead_arch_api::{Access, AccessKind, AddressSpace, Arch, Drivers, Reply, Ticks, VcpuId, VcpuSet};
use bulkhead_image::layout::{SERVED_FAULTS, SERVED_VIRTIO, ServedRecord};
use bulkhead_sched::{PcpuPolicy, Slot};

impl<A: Arch, D: Drivers, P: PcpuPolicy> Serving<'_, '_, '_, A, D, P> {
    /// Lets the server of a window answer an access. Returns whether the access is answered already, or
    /// `None` if it is to no window.
    #[inline(never)]
    pub(super) fn ask(&mut self, slot: Slot, vcpu: VcpuId, access: &Access) -> Option<bool> {
        let partition = self.pcpu.system.binding(vcpu).partition;
        if access.space != AddressSpace::Memory {
            return None;
        }
        let (window, record, offset) = self
            .pcpu
            .system
            .served_at(partition, access.address, access.size)?;
        if record.flags.get() & SERVED_VIRTIO != 0
            && let Some(reply) = self.answer_virtio(window, record, offset, access)
        {
            self.pcpu.machine.reply(vcpu, reply);
            return Some(true);
        }
        self.post(vcpu, access, window, record);
        // Interrupts wait until the access is over, as they wait for a slow device.
        let _interrupted_at = self.pcpu.machine.pause(vcpu);
        let timeout = self.pcpu.system.time.duration(record.timeout_ns.get());
        let until = self.pcpu.machine.now().plus(timeout);
        self.pcpu
            .local
            .block(slot, Activity::waiting(AccessWait.into(), until, Ticks::NEVER));
        Some(false)
    }

    fn post(&mut self, vcpu: VcpuId, access: &Access, window: WindowId, record: &ServedRecord) {
        let services = &self.pcpu.shared.services;
        let mut server = services.server(server_of(record)).lock();
        let mut request = services.request(vcpu).lock();
        request.number = request.number.wrapping_add(1);
        (request.access, request.answer) = (Some((*access, window)), None);
        server.posted.insert_all(VcpuSet::of(vcpu));
        drop(request);
        drop(server);
        self.call_server(record);
    }

    /// Ends the wait of a vCPU: with the answer, or because the time is up. Returns false if it has to wait
    /// on.
    fn end_access(&mut self, slot: Slot, vcpu: VcpuId, until: Ticks) -> bool {
        let is_late = until <= self.pcpu.machine.now();
        let Some((access, window, answer)) = self.finish(vcpu, is_late) else {
            return false;
        };
        self.pcpu.local.slot_mut(slot).activity = Activity::Ready;
        let record = self.pcpu.system.image.served().get(usize::from(window.0));
        let (value, flags) = match (answer, record) {
            (None, Some(record)) => {
                self.pcpu
                    .faults()
                    .service_late(server_of(record), client_of(record));
                (u64::MAX, record.flags.get())
            }
            (answer, _) => (answer.unwrap_or(0), 0),
        };
        if flags & SERVED_FAULTS != 0 {
            self.pcpu.faults().no_such_address(slot, vcpu, &access);
            return true;
        }
        let reply = match access.kind {
            AccessKind::Read => Reply::Read(value & ones(access.size)),
            AccessKind::Write(_) => Reply::Written,
        };
        self.pcpu.machine.reply(vcpu, reply);
        self.pcpu.handle_second(slot, vcpu, &access);
        true
    }

    /// Takes the access of a vCPU if it is answered, or in any case if `is_late`.
    fn finish(&self, vcpu: VcpuId, is_late: bool) -> Option<(Access, WindowId, Option<u64>)> {
        let services = &self.pcpu.shared.services;
        let (access, window) = services.request(vcpu).lock().access?;
        let record = self.pcpu.system.image.served().get(usize::from(window.0))?;
        let mut server = services.server(server_of(record)).lock();
        let mut request = services.request(vcpu).lock();
        if request.answer.is_none() && !is_late {
            return None;
        }
        request.access = None;
        server.forget(vcpu);
        Some((access, window, request.answer.take()))
    }
}

impl Facts for AccessWait {
    // An answer is a reply, to a call as to an access.
    const REASON: BlockReason = BlockReason::Reply;
    const DEADLINE: Deadline = Deadline::TakesTurn;
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Verbs<A, D, P> for AccessWait {
    /// Tells whether the access is answered. The vCPU takes the answer in its turn.
    #[inline(always)]
    fn outcome(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId) -> Option<Outcome> {
        let answer = pcpu.shared.services.request(vcpu).lock().answer;
        answer.map(|value| Ok([value, 0, 0, 0]))
    }

    /// Returns the error. No access is given up: it ends in its turn.
    #[inline(always)]
    fn give_up(self, _pcpu: &mut Pcpu<'_, '_, A, D, P>, _vcpu: VcpuId, error: Error) -> Outcome {
        Err(error)
    }

    /// Forgets the access.
    #[inline(always)]
    fn leave(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId) {
        let _forgotten = pcpu.services().finish(vcpu, true);
    }

    #[inline(always)]
    fn take_turn(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, slot: Slot, until: Ticks) -> bool {
        let vcpu = pcpu.local.slot(slot).vcpu;
        pcpu.services().end_access(slot, vcpu, until)
    }
}

/// Returns the largest number of `size` bytes.
const fn ones(size: u8) -> u64 {
    match size {
        1 => 0xFF,
        2 => 0xFFFF,
        4 => 0xFFFF_FFFF,
        _ => u64::MAX,
    }
}
