// SPDX-License-Identifier: Apache-2.0
//! Effects of a decision besides the choice itself: partitions learn of their windows, and others learn which
//! schedule is in force.
//!
//! A change of the schedule is asked for on any pCPU, and made by the owner of the schedule. The schedule
//! that is wanted is kept next to the one in force, under one short lock per pCPU. The message only says that
//! there is something to look at.

use super::Pcpu;
use crate::mailbox::bits;
use bulkhead_abi::Error;
use bulkhead_abi::status::{PERIOD_START_EVENT, WINDOW_START_EVENT};
use bulkhead_arch_api::{Arch, Drivers, PcpuId, Ticks};
use bulkhead_sched::{PcpuPolicy, Slot};

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Tells the partitions concerned about the effects of the decision in force. Bounded by the slots in
    /// use. Returns whether that has woken a vCPU which changes the decision.
    #[inline(never)]
    pub(crate) fn tell(&mut self) -> bool {
        let signals = self.local.take_signals();
        self.local.trace_signals(signals);
        for slot in bits(signals.window_start.0) {
            let vcpu = self.local.slot(Slot(slot)).vcpu;
            let partition = self.system.binding(vcpu).partition;
            if self.system.facts_of(partition).window_events {
                let with_period = signals.period_start.0 & crate::mailbox::bit(slot) != 0;
                let period = if with_period { PERIOD_START_EVENT } else { 0 };
                self.raise(partition, WINDOW_START_EVENT | period);
            }
        }
        if signals.schedule_changed {
            let status = self.local.schedule();
            let mut state = self.shared.schedules.of(self.id).lock();
            state.current = status.current;
            state.since = Ticks(status.since);
            if state.wanted == Some(status.current) {
                state.wanted = None;
            }
        }
        self.local.reschedule
    }

    /// Carries out a message: another schedule is wanted. Requires: settled.
    pub(crate) fn schedule_wanted(&mut self, now: Ticks) {
        let wanted = self.shared.schedules.of(self.id).lock().wanted;
        if let Some(schedule) = wanted {
            // The number of the schedule was checked when the change was asked for.
            let _known = self.local.change_schedule(schedule, now);
        }
    }

    /// Answers a hypercall: the schedule of a pCPU that is in force, the schedule that follows, and the time
    /// since which the first is in force.
    pub(crate) fn schedule_status(&self, pcpu: PcpuId) -> [u64; 4] {
        let state = *self.shared.schedules.of(pcpu).lock();
        let next = state.wanted.unwrap_or(state.current);
        let since = self.system.time.nanoseconds(state.since);
        [u64::from(state.current), u64::from(next), since, 0]
    }

    /// Carries out a hypercall: asks for another schedule of a pCPU from its next frame on.
    pub(crate) fn wish_schedule(&mut self, pcpu: PcpuId, schedule: u64) -> Result<(), Error> {
        let known = self.system.image.schedules_of(u32::from(pcpu.0)).count();
        let wanted = u8::try_from(schedule)
            .ok()
            .filter(|number| usize::from(*number) < known)
            .ok_or(Error::InvalidArgument)?;
        self.shared.schedules.of(pcpu).lock().wanted = Some(wanted);
        self.shared.mailboxes.of(pcpu).post_schedule();
        self.notify(pcpu, false);
        Ok(())
    }
}
