// SPDX-License-Identifier: Apache-2.0
//! Carries out the orders of the control blocks of partitions: stop, load, start, and the end of the system.

use super::Pcpu;
use super::device::Change;
use super::report::TOLD_AT_ONCE;
use crate::boot::{end_if_all_stopped, end_system};
use crate::load::{Chunk, Cursor};
use crate::local::Activity;
use crate::mailbox::bits;
use crate::partition::{Effects, Request};
use crate::parts::{PartOf, each_part};
use bulkhead_abi::log::ending::Ending;
use bulkhead_abi::log::entry::Failure;
use bulkhead_abi::status::state_change_event;
use bulkhead_abi::trace::Event;
use bulkhead_abi::{Error, PartitionState};
use bulkhead_arch_api::{
    Arch, CopyError, Drivers, EntryState, GuestPhys, PartitionId, PcpuId, Ticks, VcpuId, VcpuReset,
};
use bulkhead_sched::{PcpuPolicy, Slot};

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Makes a request about a partition, and carries out its effects.
    pub(crate) fn request(&mut self, partition: PartitionId, request: Request) -> Result<(), Error> {
        let homes = &self.system.facts_of(partition).homes;
        let effects = self
            .shared
            .partition(partition)
            .control(|control| control.request(request, homes))?;
        self.apply(partition, effects);
        Ok(())
    }

    /// Ends the partition of the running vCPU, for the vCPU itself or because of its fault. No answer lets
    /// the vCPU go on. The end of a running partition is told to each pCPU on which a vCPU of the partition
    /// is switched on. So the message to stop the vCPU is in the mailbox of this pCPU or on its way, no
    /// matter which pCPU ends the partition.
    pub(crate) fn end_own(&mut self, slot: Slot, request: Request) {
        self.local.block(slot, Activity::Ending);
        let vcpu = self.local.slot(slot).vcpu;
        let _already_ending = self.request(self.system.binding(vcpu).partition, request);
    }

    /// Carries the effects of a request to the pCPUs and partitions that they concern.
    fn apply(&mut self, partition: PartitionId, effects: Effects) {
        for pcpu in effects.stop.iter() {
            if self.is_here(pcpu) {
                self.local.order_here(partition);
            }
            self.shared.mailboxes.of(pcpu).post_stop(partition);
            self.notify(pcpu, true);
        }
        if effects.restarted {
            self.shared.partition(partition).health.restarted();
            self.shared.recorder.restarted(partition);
        }
        if matches!(
            effects.entered,
            Some(PartitionState::Stopped | PartitionState::Failed)
        ) {
            self.quiesce(partition);
            each_part!(self, part => part.life_ended(partition));
        }
        if effects.load {
            let first = self.system.binding_of(partition, 0);
            let wanted = self
                .shared
                .mailboxes
                .of(first.pcpu)
                .post_load(partition, first.slot);
            self.notify(first.pcpu, wanted);
        }
        if let Some(state) = effects.entered {
            self.announce(partition, state);
        }
    }

    /// Tells `pcpu` about mail. The flag `wanted` says whether `pcpu` wants to be interrupted for the mail.
    pub(crate) fn notify(&mut self, pcpu: PcpuId, wanted: bool) {
        if self.is_here(pcpu) {
            self.local.reschedule = true;
        } else if wanted {
            self.machine.signal(pcpu);
        }
    }

    /// Announces a state that a partition has entered: logs the state, tells the watchers, and ends the
    /// system if the partition was the last one.
    fn announce(&mut self, partition: PartitionId, state: PartitionState) {
        self.shared.recorder.state(partition, state);
        self.trace(Event::State {
            partition: partition.0,
            state,
        });
        if self.shared.partition(partition).health.announce(state) {
            self.log_state(partition, state);
        }
        let event = state_change_event(partition.0);
        let mut told = 0;
        for watcher in bits(self.system.facts_of(partition).watchers) {
            if told < TOLD_AT_ONCE || !self.local.untold.defer(watcher, event) {
                self.raise(PartitionId(watcher), event);
            } else if told == TOLD_AT_ONCE {
                self.come_at_once();
            }
            told = told.saturating_add(1);
        }
        if matches!(state, PartitionState::Stopped | PartitionState::Failed) {
            end_if_all_stopped(&mut self.machine, &mut self.drivers, self.shared, self.system);
        }
    }

    /// Ends the system because the virtual time that the image allows is over.
    pub(crate) fn time_is_up(&mut self) {
        end_system(
            &mut self.machine,
            &mut self.drivers,
            self.shared,
            Ending::TimeLimit,
        );
    }

    /// Carries out a message: stops the partition's vCPUs on this pCPU. Requires: settled.
    pub(crate) fn stop_here(&mut self, partition: PartitionId, now: Ticks) {
        if self.shared.partition(partition).state() != PartitionState::Stopping {
            return;
        }
        for slot in self.local.all() {
            let state = *self.local.slot(slot);
            if self.system.binding(state.vcpu).partition != partition
                || matches!(state.activity, Activity::Off)
            {
                continue;
            }
            if let Some(pause) = state.activity.pause() {
                pause.wait.leave(self, state.vcpu);
            }
            each_part!(self, part => part.vcpu_is_quiet(slot, state.vcpu));
            self.leave_seat(slot, state.vcpu);
            self.local.switch_off(slot, now);
            self.machine.detach(state.vcpu);
        }
        let effects = self
            .shared
            .partition(partition)
            .control(|control| control.confirm_stop(self.id));
        self.apply(partition, effects);
    }

    /// Carries out a message: loads the partition, whose vCPU 0 is bound here. Requires: settled.
    pub(crate) fn load_here(&mut self, partition: PartitionId, now: Ticks) {
        if self.shared.partition(partition).state() == PartitionState::Loading {
            self.quiesce(partition);
            each_part!(self, part => part.life_ended(partition));
            each_part!(self, part => part.life_begins(partition));
            let slot = self.system.binding_of(partition, 0).slot;
            let start = self
                .shared
                .partition(partition)
                .control(|control| control.start());
            self.shared.recorder.started(partition);
            self.local.make_loading(slot, Cursor::new(start), now);
            each_part!(self, part => part.vcpu_is_on(slot));
        }
    }

    /// Carries out a message: switches the vCPU in this slot on. Requires: settled, or no vCPU is running.
    #[inline(never)]
    pub(crate) fn start_one(&mut self, slot: Slot, now: Ticks) {
        let vcpu = self.local.slot(slot).vcpu;
        let binding = self.system.binding(vcpu);
        let start = self
            .shared
            .partition(binding.partition)
            .with_control(|control| control.take_start(binding.index));
        if let Some((entry, argument)) = start {
            self.machine.reset(
                vcpu,
                &VcpuReset {
                    state: EntryState::USUAL,
                    entry,
                    argument,
                    stack: 0,
                },
            );
            self.local.make_ready(slot, now);
            each_part!(self, part => part.vcpu_is_on(slot));
        }
    }

    /// Handles a running vCPU that has switched itself off.
    pub(crate) fn cpu_off(&mut self, slot: Slot, vcpu: VcpuId) {
        let binding = self.system.binding(vcpu);
        self.local.block(slot, Activity::Off);
        self.leave_seat(slot, vcpu);
        self.machine.detach(vcpu);
        let effects = self
            .shared
            .partition(binding.partition)
            .control(|control| control.switch_off(binding.index));
        if effects.entered.is_some() {
            self.local.set_watchdog(slot, Ticks::NEVER);
        }
        self.apply(binding.partition, effects);
    }

    /// Does one chunk of loading, then looks at interrupts that came meanwhile. So no interrupt waits for
    /// more than a chunk.
    #[inline(never)]
    pub(crate) fn load_chunk(&mut self, slot: Slot, vcpu: VcpuId) {
        // The decision that has led here may have taken as long as the chunk will take.
        if let Some(exit) = self.machine.poll() {
            return self.handle_common(&exit);
        }
        let mut cursor = match self.local.slot(slot).activity {
            Activity::Loading(cursor) => cursor,
            Activity::Revoking(index, own) => return self.revoke_chunk(slot, vcpu, index, own),
            Activity::Looking(pause) => return self.look_in_turn(slot, vcpu, pause),
            Activity::Calling => return self.upcalls().interrupt_task(slot, vcpu),
            _ => return,
        };
        let partition = self.system.binding(vcpu).partition;
        let image = &self.system.image;
        let memory = image.memory_of(u32::from(partition.0));
        let loads = image.loads_of(u32::from(partition.0), u32::from(cursor.alternative()));
        let chunk = cursor.advance(memory, loads);
        match chunk {
            Chunk::Capabilities(from) => {
                let (next, lost) = self.shared.capabilities.reset(partition, from);
                self.review(lost);
                // Holds and waits without their capabilities go one at a time, and then the reset looks once
                // more.
                let next = if !self.ends_one_hold(Some(partition)) && self.are_waits_right() {
                    next
                } else {
                    next.or(Some(from))
                };
                cursor.capabilities_reset(next);
            }
            Chunk::Devices(part) => cursor.devices_reset(self.reset_devices(partition, part)),
            _ => {}
        }
        self.local.slot_mut(slot).activity = Activity::Loading(cursor);
        let result = match chunk {
            Chunk::Capabilities(_) | Chunk::Devices(_) => Ok(()),
            Chunk::Clear { guest, length } => {
                let done = self.machine.clear(partition, guest, length);
                if let Ok(done) = done
                    && let Activity::Loading(cursor) = &mut self.local.slot_mut(slot).activity
                {
                    cursor.cleared(length, done);
                }
                done.map(|_| ())
            }
            Chunk::Copy { guest, .. } if self.is_kept(partition, guest) => Ok(()),
            Chunk::Copy {
                guest,
                payload,
                offset,
                length,
            } => self.copy_payload(partition, guest, payload, offset..offset.saturating_add(length)),
            Chunk::Clean { guest, length } => self.machine.clean(partition, guest, length),
            Chunk::Done => {
                self.go_live(partition, slot, vcpu, cursor.alternative());
                Ok(())
            }
        };
        if let Err(CopyError { address }) = result {
            // The image check has made sure that this cannot happen. Without its memory the partition must
            // not run.
            self.faults().fail(slot, vcpu, Failure::Load, address.0);
        }
        self.look();
    }

    /// Tells whether a piece of a payload is not to be copied ([`PartOf::keeps`]).
    fn is_kept(&mut self, partition: PartitionId, guest: GuestPhys) -> bool {
        each_part!(self, part => if part.keeps(partition, guest) {
            return true;
        });
        false
    }

    fn copy_payload(
        &mut self,
        partition: PartitionId,
        guest: GuestPhys,
        payload: u32,
        range: core::ops::Range<u64>,
    ) -> Result<(), CopyError> {
        let bytes = self.system.image.payload(payload);
        let bytes = usize::try_from(range.start)
            .ok()
            .zip(usize::try_from(range.end).ok())
            .and_then(|(start, end)| bytes.get(start..end))
            .ok_or(CopyError { address: guest })?;
        self.machine.copy_out(partition, guest, bytes)
    }

    /// Puts a part of the partition's state, other than its memory and its vCPUs, into its first state.
    /// Returns the next part.
    fn reset_devices(&mut self, partition: PartitionId, part: u32) -> Option<u32> {
        let next = self.machine.reset_shared(partition, part);
        if next.is_some() {
            return next;
        }
        // Another pCPU may have sent output of an earlier life, and so have raised the line again after its
        // reset.
        self.change_uart(partition, Change::Reset);
        each_part!(self, part => part.reset(partition));
        let shared = self.shared.partition(partition);
        if let Some(input) = shared.reader.lock().input() {
            input.clear();
        }
        shared.gate.clear();
        self.events_taken(partition);
        each_part!(self, part => part.was_reset(partition));
        None
    }

    /// Starts vCPU 0 of a partition. Everything else is in place.
    fn go_live(&mut self, partition: PartitionId, slot: Slot, vcpu: VcpuId, alternative: u8) {
        let shared = self.shared.partition(partition);
        if let Some(reset) = self.system.first_state(partition, alternative) {
            self.machine.reset(vcpu, &reset);
        }
        each_part!(self, part => part.goes_live(partition));
        let Some(effects) = shared.control(crate::partition::Control::loaded) else {
            // The partition is to stop again. The order may have to wait.
            self.local.block(slot, Activity::Ending);
            return;
        };
        let now = self.machine.now();
        shared.kick(now);
        self.local.slot_mut(slot).activity = Activity::Ready;
        let watchdog = now.plus(self.system.facts_of(partition).watchdog);
        self.local.set_watchdog(slot, watchdog);
        // The clock must learn of the watchdog.
        self.local.reschedule = true;
        self.apply(partition, effects);
    }
}
