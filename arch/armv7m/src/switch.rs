// SPDX-License-Identifier: Apache-2.0
//! The switch from one vCPU to another, and the state that the current vCPU still lacks before it goes on.
//!
//! At any time at most one vCPU is *current*: its space and its configuration are in the hardware, whether it
//! runs or not. Space and configuration move only when another vCPU runs.

use crate::context::own_deadline;
use crate::live::Live;
use crate::machine::Machine;
use crate::masks;
use crate::protection::{self, Plain};
use crate::sysreg::{self, CCR, CCR_ALIGNED, CCR_DIVISION, CFSR, PENDED, SHCSR};
use crate::trapped::Trapped;
use crate::{context::Pending, fp};
use bulkhead_arch_api::{Clock, Exit, ResetKind, Ticks, VcpuId};
use bulkhead_arch_armv7m_core::status::IMPRECISERR;
use bulkhead_arch_armv7m_core::{Fault, Late};

impl Trapped<'_> {
    /// Settles a store of the guest that the bus refuses. The guest is left, and the store is its own, not
    /// the next vCPU's. There is no health event: memory that is not the guest's is refused
    /// at once, by the protection unit.
    fn settle_faults(&mut self, now: u64) {
        sysreg::synchronize();
        let status = sysreg::read(CFSR);
        if status == 0 {
            return;
        }
        sysreg::write(CFSR, status);
        sysreg::write(SHCSR, sysreg::read(SHCSR) & !PENDED);
        if status & IMPRECISERR == 0 {
            return;
        }
        if self.is_task {
            if matches!(self.pending, Pending::Nothing) {
                *self.pending = Pending::Late(Fault::Bus {
                    status: IMPRECISERR,
                    address: None,
                });
            }
            return;
        }
        let (core, mut live) = self.parts();
        core.advance(now);
        if core.store_refused_late(&mut live, |_| false, now) != Late::Done {
            core.late_bus_fault();
        }
    }
}

impl Machine {
    /// Brings the current vCPU up to now, before it goes on. Interrupts that became pending meanwhile are
    /// taken, and the guest's changes to its processor are made to the real one. Returns the exit if that is
    /// not possible.
    #[inline(never)]
    pub(crate) fn prepare(&mut self, vcpu: VcpuId) -> Option<Exit> {
        let now = self.now();
        let deadline = self.deadline;
        let context = self.contexts.get(vcpu)?;
        if context.is_task() {
            self.set_timer(deadline);
            return None;
        }
        let partition = context.partition;
        let space = self.spaces.get(partition)?;
        let core = &mut context.core;
        while let Some(line) = core.take_ended_line() {
            self.irq.ended(partition, line);
        }
        core.advance(now.0);
        if core
            .deliver(&mut Live::new(&mut context.registers, space))
            .is_err()
        {
            return self.trapped(vcpu).map(|mut trapped| trapped.stuck());
        }
        let changes = core.take_changes();
        if changes.lines {
            self.irq.follow(partition, core);
        }
        if changes.regions {
            context.unit = core.guest_regions().map(|view| space.combined(&view));
            protection::load(context.unit.as_ref().unwrap_or(&space.loaded));
        }
        let own = own_deadline(core).max(self.earliest_own);
        masks::show_all(&mut context.masks, &context.core);
        if changes.configuration {
            self.configure(vcpu);
        }
        if changes.reset {
            return Some(Exit::Reset(ResetKind::Warm));
        }
        self.set_timer(deadline.min(own));
        self.hold_back(partition);
        None
    }

    /// Sets the parts of the current guest's configuration that the hardware itself carries out.
    fn configure(&mut self, vcpu: VcpuId) {
        let has_unit = self.model.floating_point;
        let Some(context) = self.contexts.get(vcpu) else {
            return;
        };
        let (_, allowed) = context.core.floating_point_access();
        let allowed = has_unit && (allowed || context.is_task());
        sysreg::write(CCR, CCR_ALIGNED | context.core.configuration() & CCR_DIVISION);
        if !has_unit {
            return sysreg::synchronize();
        }
        let (default_status, control) = context.core.floating_point_control();
        fp::configure(default_status, control);
        fp::allow(allowed);
        if !allowed || self.fp_owner == Some(vcpu) {
            return;
        }
        if let Some(owner) = self.fp_owner.and_then(|owner| self.contexts.get(owner)) {
            owner.fp.save();
        }
        if let Some(context) = self.contexts.get(vcpu) {
            context.fp.load();
        }
        self.fp_owner = Some(vcpu);
    }

    /// Ends the time of the current vCPU as such. Stores and a frame of this vCPU that are not finished yet
    /// are settled, so that none of them falls on the next one.
    pub(crate) fn leave_current(&mut self) {
        let now = self.now().0;
        if let Some(mut trapped) = self.current.take().and_then(|current| self.trapped(current)) {
            trapped.settle_faults(now);
            let (_, mut live) = trapped.parts();
            live.leave_floating_point();
        }
    }

    /// Makes a vCPU the current one. The cost does not depend on the vCPU that was current before, or on the
    /// place where that one was interrupted.
    pub(crate) fn switch_to(&mut self, vcpu: VcpuId) -> bool {
        self.leave_current();
        let Some(context) = self.contexts.get(vcpu) else {
            return false;
        };
        let Some(space) = self.spaces.get(context.partition) else {
            return false;
        };
        protection::load(context.unit.as_ref().unwrap_or(&space.loaded));
        // A task takes no short way.
        self.plain = if context.is_task() {
            Plain::NOTHING
        } else {
            space.plain()
        };
        self.current = Some(vcpu);
        self.configure(vcpu);
        // The timer is set again, for whichever time it is set now.
        self.armed = Ticks(0);
        true
    }
}
