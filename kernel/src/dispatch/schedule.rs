// SPDX-License-Identifier: Apache-2.0
//! What follows from a decision besides the choice itself: partitions learn of their windows, and others which
//! schedule is in force.
//!
//! A change of the schedule is asked for on any pCPU and made by the owner of the schedule. What is wanted is kept
//! next to what is in force, under one short lock per pCPU; the message only says that there is something to look at.

use super::Pcpu;
use crate::mailbox::bits;
use bulkhead_abi::Error;
use bulkhead_abi::status::{PERIOD_START_EVENT, WINDOW_START_EVENT};
use bulkhead_arch_api::{Arch, PcpuId, Ticks};
use bulkhead_sched::{PcpuPolicy, Signals, Slot};

impl<A: Arch, P: PcpuPolicy> Pcpu<'_, '_, A, P> {
    /// Tells whom it concerns. Bounded by the slots in use.
    #[inline(never)]
    pub(super) fn tell(&mut self, signals: Signals) {
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
    }

    /// Message: another schedule is wanted. Requires: settled.
    pub(super) fn schedule_wanted(&mut self, now: Ticks) {
        let wanted = self.shared.schedules.of(self.id).lock().wanted;
        if let Some(schedule) = wanted {
            // Whoever asked knew how many schedules there are.
            let _known = self.local.change_schedule(schedule, now);
        }
    }

    /// Hypercall: which schedule of a pCPU is in force, which follows, and since when.
    pub(super) fn schedule_status(&self, pcpu: PcpuId) -> [u64; 4] {
        let state = *self.shared.schedules.of(pcpu).lock();
        let next = state.wanted.unwrap_or(state.current);
        let since = self.system.time.nanoseconds(state.since);
        [u64::from(state.current), u64::from(next), since, 0]
    }

    /// Hypercall: another schedule of a pCPU from its next frame on.
    pub(super) fn wish_schedule(&mut self, pcpu: PcpuId, schedule: u64) -> Result<(), Error> {
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
