// SPDX-License-Identifier: Apache-2.0
//! The machine as `arch/vgic` needs it: the CPU interface, physical lines, kicks.
//!
//! A line below 32 is this pCPU's own and is reached through its redistributor. Any other line is reached
//! through the distributor, from every pCPU. Kicks to vCPUs that are loaded nowhere, or here, are collected
//! for the kernel.

use super::interface::Interface;
use super::state::{PcpuIrq, SGI_KICK, WIRES, call, pcpu_route};
use super::{lines, physical};
use crate::sysreg::read_register;
use bulkhead_arch_api::{PcpuId, VcpuId, VcpuSet};
use bulkhead_arch_vgic::{Control, CpuInterface, Hardware, ListRegister, PhysicalLines};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Shared physical lines of a partition whose first vCPU is given.
pub(super) struct SharedLines(pub(super) u8);

impl PhysicalLines for SharedLines {
    fn set_enabled(&mut self, physical: u32, on: bool) {
        let Some(controller) = physical::controller() else {
            return;
        };
        let line = controller.shared(physical);
        if on { line.enable() } else { line.disable() }
    }

    fn set_priority(&mut self, physical: u32, priority: u8) {
        if let Some(controller) = physical::controller() {
            controller.shared(physical).set_guest_priority(priority);
        }
    }

    fn set_target(&mut self, physical: u32, index: usize) {
        let vcpu = usize::from(self.0).saturating_add(index);
        let home = WIRES.home.get(vcpu).map_or(u8::MAX, |home| home.load(SeqCst));
        if let (Some(controller), Some(affinity)) = (physical::controller(), pcpu_route(home)) {
            controller.set_route(physical, affinity);
        }
    }

    fn is_edge(&self, physical: u32) -> bool {
        physical::controller().is_some_and(|controller| controller.shared(physical).is_edge())
    }

    fn is_pending(&self, physical: u32) -> bool {
        physical::controller().is_some_and(|controller| controller.shared(physical).is_pending())
    }

    fn set_pending(&mut self, physical: u32, on: bool) {
        if let Some(controller) = physical::controller() {
            controller.shared(physical).set_pending(on);
        }
    }

    fn set_active(&mut self, physical: u32, on: bool) {
        if let Some(controller) = physical::controller() {
            controller.shared(physical).set_active(on);
        }
    }
}

/// This pCPU, acting for a partition whose first vCPU is given.
pub(super) struct Local<'a> {
    pub(super) pcpu: &'a mut PcpuIrq,
    pub(super) first: u8,
}

impl CpuInterface for Local<'_> {
    #[inline]
    fn slots(&self) -> u32 {
        Interface.slots()
    }
    #[inline]
    fn empty_slots(&self) -> u32 {
        Interface.empty_slots()
    }
    #[inline]
    fn ended_slots(&self) -> u32 {
        Interface.ended_slots()
    }
    fn settle(&mut self) {
        Interface.settle();
    }
    #[inline]
    fn list_register(&self, slot: u32) -> ListRegister {
        Interface.list_register(slot)
    }
    #[inline]
    fn set_list_register(&mut self, slot: u32, value: ListRegister) {
        Interface.set_list_register(slot, value);
    }
    #[inline]
    fn set_near_register(&mut self, slot: u32, value: ListRegister) {
        Interface.set_near_register(slot, value);
    }
    fn set_control(&mut self, control: Control) {
        Interface.set_control(control);
    }
    fn take_end_count(&mut self) -> u32 {
        Interface.take_end_count()
    }
    fn machine_control(&self) -> u64 {
        Interface.machine_control()
    }
    fn set_machine_control(&mut self, value: u64) {
        Interface.set_machine_control(value);
    }
    fn active_priorities(&self) -> [[u32; 4]; 2] {
        Interface.active_priorities()
    }
    #[inline]
    fn has_active_priorities(&self) -> bool {
        Interface.has_active_priorities()
    }
    #[inline]
    fn open(&mut self) {
        Interface.open();
    }
    #[inline]
    fn names_senders(&self) -> bool {
        Interface.names_senders()
    }
    fn set_active_priorities(&mut self, value: &[[u32; 4]; 2]) {
        Interface.set_active_priorities(value);
    }
    fn preemption_shift(&self) -> u32 {
        Interface.preemption_shift()
    }
}

impl PhysicalLines for Local<'_> {
    fn set_enabled(&mut self, physical: u32, on: bool) {
        SharedLines(self.first).set_enabled(physical, on);
    }

    fn set_priority(&mut self, physical: u32, priority: u8) {
        SharedLines(self.first).set_priority(physical, priority);
    }

    fn set_target(&mut self, physical: u32, index: usize) {
        SharedLines(self.first).set_target(physical, index);
    }

    fn is_edge(&self, physical: u32) -> bool {
        // The timers are the only private lines a guest can have.
        physical >= 32 && SharedLines(self.first).is_edge(physical)
    }

    fn is_pending(&self, physical: u32) -> bool {
        match physical {
            0..32 => self
                .pcpu
                .private(physical)
                .is_some_and(lines::LineRegisters::is_pending),
            _ => SharedLines(self.first).is_pending(physical),
        }
    }

    fn set_pending(&mut self, physical: u32, on: bool) {
        match physical {
            0..32 => self
                .pcpu
                .private(physical)
                .into_iter()
                .for_each(|line| line.set_pending(on)),
            _ => SharedLines(self.first).set_pending(physical, on),
        }
    }

    fn set_active(&mut self, physical: u32, on: bool) {
        match physical {
            0..32 => self
                .pcpu
                .private(physical)
                .into_iter()
                .for_each(|line| line.set_active(on)),
            _ => SharedLines(self.first).set_active(physical, on),
        }
    }
}

/// Kicks a vCPU that is loaded. Returns false, and does nothing, if that is on this pCPU, `here`.
#[inline(always)]
pub(super) fn kick(here: PcpuId, vcpu: VcpuId) -> bool {
    let home = WIRES
        .home
        .get(usize::from(vcpu.0))
        .map_or(u8::MAX, |home| home.load(Relaxed));
    let Some(kicked) = WIRES.kicked.get(usize::from(home)).filter(|_| home != here.0) else {
        return false;
    };
    if kicked.fetch_or(VcpuSet::of(vcpu).0, SeqCst) == 0 {
        call(home, SGI_KICK);
    }
    true
}

impl Hardware for Local<'_> {
    fn enable_private(&mut self, physical: u32) {
        self.pcpu.wanted = physical;
        let Some(redistributor) = self.pcpu.redistributor else {
            return;
        };
        let before = core::mem::replace(&mut self.pcpu.private_enabled, physical);
        if before & !physical != 0 {
            redistributor.disable(before & !physical);
        }
        if physical & !before != 0 {
            redistributor.enable(physical & !before);
        }
    }

    #[inline]
    fn kick(&mut self, index: usize, present: bool) {
        let vcpu = VcpuId(self.first.wrapping_add(index as u8));
        if !(present && kick(self.pcpu.id, vcpu)) {
            self.pcpu.wake.insert_all(VcpuSet::of(vcpu));
        }
    }

    /// Kicks this pCPU itself. The kick is taken as soon as the vCPU is entered, after interrupts that are
    /// more urgent.
    fn look_again(&mut self, me: usize) {
        let vcpu = VcpuId(self.first.wrapping_add(me as u8));
        let here = self.pcpu.id.0;
        if let Some(kicked) = WIRES.kicked.get(usize::from(here))
            && kicked.fetch_or(VcpuSet::of(vcpu).0, SeqCst) == 0
        {
            call(here, SGI_KICK);
        }
    }

    /// Reads `ISR_EL1`, which at EL2 shows the physical interrupts (Arm DDI 0487).
    #[inline(always)]
    fn is_interrupted(&self) -> bool {
        read_register!("isr_el1") != 0
    }

    fn relax(&self) {
        bulkhead_arch_support::relax();
    }
}
