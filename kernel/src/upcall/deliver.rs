// SPDX-License-Identifier: Apache-2.0
//! Upcalls: a task is interrupted by an event of a gate, or at a time of its own.
//!
//! A task that waits for an upcall is a waiter of the gate although it computes. So the raiser of an event
//! wakes the task ([`crate::event`]). A wake that finds the task ready, and in no call, makes it
//! [`Activity::Calling`]. The registers are changed in the next step, in the task's own time: by then every
//! answer to the task is written.

use crate::cap::Named;
use crate::dispatch::Pcpu;
use crate::dispatch::basis::WATCHES;
use crate::local::{Activity, Upcall};
use crate::parts::{PartOf, UPCALLS};
use crate::upcall::command::UpcallWish;
use bulkhead_abi::Error;
use bulkhead_abi::hypercall::UPCALL_WORDS;
use bulkhead_arch_api::{Arch, Drivers, GuestPhys, PartitionId, PartitionKind, Ticks, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

/// Bytes of the place where a task was.
const FRAME: usize = 8 * UPCALL_WORDS;

/// The upcalls of tasks, on a pCPU.
pub(crate) struct Calling<'p, 's, 'i, A: Arch, D, P> {
    pub(super) pcpu: &'p mut Pcpu<'s, 'i, A, D, P>,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the part with its pCPU.
    #[inline(always)]
    pub(crate) const fn upcalls(&mut self) -> Calling<'_, 's, 'i, A, D, P> {
        Calling { pcpu: self }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Calling<'_, '_, '_, A, D, P> {
    /// Carries out [`bulkhead_abi::Operation::EventUpcall`]. Returns the answer, or `None` if the task goes
    /// on elsewhere.
    pub(crate) fn want_upcall(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        at: Named<PartitionId>,
        wish: &UpcallWish,
    ) -> Option<Result<[u64; 4], Error>> {
        match self.change_upcall(slot, vcpu, at, wish) {
            Ok(true) => None,
            Ok(false) => Some(Ok([0; 4])),
            Err(error) => Some(Err(error)),
        }
    }

    /// Sets or ends the upcall that a task waits for. Returns whether the task goes on elsewhere.
    #[inline(never)]
    fn change_upcall(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        at: Named<PartitionId>,
        wish: &UpcallWish,
    ) -> Result<bool, Error> {
        if !self.is_there() {
            return Err(Error::NotSupported);
        }
        let Named { it: gate, index } = at;
        let caller = self.pcpu.system.binding(vcpu).partition;
        if self.pcpu.system.facts_of(caller).kind != PartitionKind::Task {
            return Err(Error::WrongState);
        }
        if wish.entry.is_some()
            && (!self
                .pcpu
                .machine
                .may_access(caller, wish.frame, FRAME as u64, true)
                || self.pcpu.may_take(caller, wish.frame, FRAME as u64))
        {
            return Err(Error::InvalidArgument);
        }
        let place = wish.from.map(|from| self.place_at(caller, from)).transpose()?;
        if let Some(place) = place
            && !self.pcpu.machine.go_on(vcpu, place)
        {
            return Err(Error::NotSupported);
        }
        self.end_upcall(slot, vcpu);
        if let Some(entry) = wish.entry {
            let until = wish.until.map_or(Ticks::NEVER, |at| self.pcpu.system.time.at(at));
            let upcall = Upcall {
                gate,
                index,
                entry,
                frame: wish.frame,
                until,
            };
            self.pcpu.local.set_upcall(slot, Some(upcall));
            self.pcpu.shared.partition(gate).gate.watch(vcpu);
            self.look_for_upcall(slot);
            // The next decision arms the clock, and publishes that mail for this slot must not wait.
            self.pcpu.local.reschedule = true;
        }
        Ok(place.is_some())
    }

    /// Reads a place to go on from.
    fn place_at(&self, caller: PartitionId, from: GuestPhys) -> Result<[u64; UPCALL_WORDS], Error> {
        let mut bytes = [0; FRAME];
        if !self.pcpu.machine.may_access(caller, from, FRAME as u64, false) {
            return Err(Error::InvalidArgument);
        }
        self.pcpu
            .machine
            .copy_in(caller, from, &mut bytes)
            .map_err(|_| Error::InvalidArgument)?;
        let mut place = [0; UPCALL_WORDS];
        for (word, bytes) in place.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        Ok(place)
    }

    /// Makes a task that is ready and waits for an upcall be interrupted, if there is a reason to.
    #[inline]
    fn look_for_upcall(&mut self, slot: Slot) {
        if self.pcpu.local.upcalls.is_watching(slot) {
            self.look_at_upcall(slot);
        }
    }

    #[inline(never)]
    fn look_at_upcall(&mut self, slot: Slot) {
        let Some(upcall) = self.pcpu.local.upcalls.of(slot) else {
            return;
        };
        let state = self.pcpu.local.slot(slot);
        if !matches!(state.activity, Activity::Ready) {
            return;
        }
        // A task that lost its capability learns it in the upcall.
        let is_due = self.pcpu.shared.partition(upcall.gate).gate.has_events()
            || !self.pcpu.stands(state.vcpu, upcall.index, WATCHES, upcall.gate.0);
        if is_due || upcall.until <= self.pcpu.machine.now() {
            self.pcpu.local.slot_mut(slot).activity = Activity::Calling;
        } else {
            // While the task waited or looked, the time of its upcall did not count.
            self.pcpu.local.note(slot);
        }
    }

    /// Interrupts a task.
    #[inline(never)]
    pub(crate) fn interrupt_task(&mut self, slot: Slot, vcpu: VcpuId) {
        let upcall = self.pcpu.local.upcalls.of(slot);
        self.end_upcall(slot, vcpu);
        self.pcpu.local.slot_mut(slot).activity = Activity::Ready;
        let Some(upcall) = upcall else { return };
        let Some(place) = self.pcpu.machine.divert(vcpu, upcall.entry, upcall.frame.0) else {
            return;
        };
        let mut bytes = [0; FRAME];
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(place) {
            *bytes = word.to_ne_bytes();
        }
        let caller = self.pcpu.system.binding(vcpu).partition;
        // The task's memory was the task's to write when it asked. Without it the task finds no way back, and
        // no other partition has a disadvantage.
        let _told = self.pcpu.machine.copy_out(caller, upcall.frame, &bytes);
    }

    /// Takes back the upcall that a task waits for, if there is one.
    fn end_upcall(&mut self, slot: Slot, vcpu: VcpuId) {
        if let Some(upcall) = self.pcpu.local.set_upcall(slot, None) {
            self.pcpu.shared.partition(upcall.gate).gate.leave(vcpu);
        }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> PartOf for Calling<'_, '_, '_, A, D, P> {
    const IS_THERE: bool = UPCALLS && A::HAS_UPCALLS;

    #[inline(always)]
    fn vcpu_goes_on(&mut self, slot: Slot) {
        self.look_for_upcall(slot);
    }

    #[inline(always)]
    fn vcpu_is_quiet(&mut self, slot: Slot, vcpu: VcpuId) {
        self.end_upcall(slot, vcpu);
    }
}
