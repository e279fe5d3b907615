// SPDX-License-Identifier: Apache-2.0
//! The CPU interface of this pCPU on a GICv2: the physical one (`GICC_*`) and the control of the virtual one
//! (`GICH_*`), both memory-mapped (Arm IHI 0048B, 4.4 and chapter 5). The functions are the same as for a
//! GICv3.
//!
//! EOImode is 1 at EL2. The end of an interrupt only drops its priority, so that the interrupt stays active
//! until the guest (linked list register) or [`deactivate`] ends it. Software-generated interrupts are the
//! exception: their end must name the sender, and no guest ends one of the hypervisor's, so both steps are
//! done when one is acknowledged.

use super::physical::{self, Controller};
use crate::sysreg::instruction;
use bulkhead_arch_vgic::{Control, CpuInterface, ListRegister};

/// `GICC_IAR`: from here on no interrupt of ours.
pub(super) const SPURIOUS: u32 = 1020;
/// `GICC_IAR.Interrupt_ID`. The sender of a software-generated interrupt follows.
const INTERRUPT_MASK: u32 = 0x3FF;

/// `GICC_CTLR`: EnableGrp0 (seen from the non-secure state: EnableGrp1), EOImode.
const GICC_CTLR: usize = 0;
const CTLR_ENABLE: u32 = 1 | 1 << 9;
const GICC_PMR: usize = 4;
const GICC_BPR: usize = 8;
const GICC_IAR: usize = 0xC;
const GICC_EOIR: usize = 0x10;
const GICC_DIR: usize = 0x1000;

/// `GICH_HCR`: En, LRENPIE, NPIE, EOICount.
const GICH_HCR: usize = 0;
const HCR_ENABLE: u32 = 1 | 1 << 2;
const HCR_NO_PENDING: u32 = 1 << 3;
const HCR_END_COUNT: u32 = 0x1F << 27;
/// `GICH_VTR.ListRegs`.
const GICH_VTR: usize = 4;
const VTR_SLOTS: u32 = 0x3F;
const GICH_VMCR: usize = 8;
const GICH_EISR: usize = 0x20;
const GICH_ELRSR: usize = 0x30;
const GICH_APR: usize = 0xF0;
const GICH_LR: usize = 0x100;

/// Brings up the CPU interface of this pCPU.
pub(super) fn init() {
    let Some(controller) = physical::controller() else {
        return;
    };
    controller.interface.write32(GICC_PMR, 0xFF);
    controller.interface.write32(GICC_BPR, 0);
    controller.interface.write32(GICC_CTLR, CTLR_ENABLE);
    close();
    let mut interface = Interface;
    for slot in 0..interface.slots() {
        interface.set_list_register(slot, ListRegister::EMPTY);
    }
    interface.set_active_priorities(&[[0; 4]; 2]);
}

/// Tells whether there is more than one register of active priorities: no, there is one for both groups.
#[inline(always)]
pub(crate) const fn has_fine_priorities() -> bool {
    false
}

/// Returns the register of active priorities.
#[inline(always)]
pub(super) fn coarse_priorities() -> u64 {
    u64::from(read(GICH_APR))
}

/// Switches the virtual CPU interface off: no vCPU of a VM is loaded.
pub(super) fn close() {
    write(GICH_HCR, 0);
    write(GICH_VMCR, 0);
}

/// Takes the most urgent pending interrupt. Its priority is dropped at once, and the interrupt is active from
/// now on.
#[inline]
pub(super) fn acknowledge() -> u32 {
    let Some(Controller { interface, .. }) = physical::controller() else {
        return SPURIOUS;
    };
    let value = interface.read32(GICC_IAR);
    // The loads that follow must see everything that the interrupt announces.
    instruction!("dsb sy");
    let line = value & INTERRUPT_MASK;
    if line < SPURIOUS {
        interface.write32(GICC_EOIR, value);
    }
    if line < 16 {
        interface.write32(GICC_DIR, value);
    }
    line
}

/// Ends an acknowledged interrupt that no guest will end.
#[inline]
pub(super) fn deactivate(line: u32) {
    if let Some(controller) = physical::controller().filter(|_| line >= 16) {
        controller.interface.write32(GICC_DIR, line);
    }
}

/// Returns the value that calls this pCPU: its bit in a list of targets, for any affinity.
pub(super) fn call_of(_affinity: u64) -> u64 {
    physical::controller().map_or(0, |controller| controller.route_to(0))
}

/// Sends a software-generated interrupt by a value of [`call_of`]. The value 0 reaches no pCPU.
#[inline]
pub(super) fn send(call: u64, line: u32) {
    // Everything that was written for the other pCPU is visible there before the interrupt is.
    instruction!("dsb ishst");
    if let Some(controller) = physical::controller() {
        controller.send((call as u32) << 16 | line);
    }
}

/// Sends a software-generated interrupt to all pCPUs but this one (`GICD_SGIR.TargetListFilter`).
pub(super) fn send_to_others(line: u32) {
    instruction!("dsb ishst");
    if let Some(controller) = physical::controller() {
        controller.send(1 << 24 | line);
    }
}

#[inline(always)]
fn read(offset: usize) -> u32 {
    physical::controller().map_or(0, |controller| controller.hypervisor.read32(offset))
}

#[inline(always)]
fn write(offset: usize, value: u32) {
    if let Some(controller) = physical::controller() {
        controller.hypervisor.write32(offset, value);
    }
}

/// The virtual CPU interface of this pCPU.
pub(super) struct Interface;

impl CpuInterface for Interface {
    fn slots(&self) -> u32 {
        ((read(GICH_VTR) & VTR_SLOTS) + 1).min(16)
    }

    #[inline(always)]
    fn empty_slots(&self) -> u32 {
        read(GICH_ELRSR)
    }

    #[inline]
    fn ended_slots(&self) -> u32 {
        read(GICH_EISR)
    }

    /// Does nothing: all registers belong to one device, whose accesses stay in order.
    fn settle(&mut self) {}

    #[inline]
    fn list_register(&self, slot: u32) -> ListRegister {
        ListRegister::from_version2(read(GICH_LR + 4 * slot as usize))
    }

    /// Writes a list register without a call, because the short ways of the exit handlers end here.
    #[inline(always)]
    fn set_near_register(&mut self, slot: u32, value: ListRegister) {
        self.set_list_register(slot, value);
    }

    #[inline(always)]
    fn set_list_register(&mut self, slot: u32, value: ListRegister) {
        write(GICH_LR + 4 * slot as usize, value.version2());
    }

    fn set_control(&mut self, control: Control) {
        // The guest has no access to the hardware's GICC_DIR, so there is nothing to trap.
        let mut value = HCR_ENABLE | read(GICH_HCR) & HCR_END_COUNT;
        if control.refill {
            value |= HCR_NO_PENDING;
        }
        write(GICH_HCR, value);
    }

    fn take_end_count(&mut self) -> u32 {
        let value = read(GICH_HCR);
        write(GICH_HCR, value & !HCR_END_COUNT);
        (value & HCR_END_COUNT) >> 27
    }

    fn machine_control(&self) -> u64 {
        u64::from(read(GICH_VMCR))
    }

    fn set_machine_control(&mut self, value: u64) {
        write(GICH_VMCR, value as u32);
    }

    #[inline(always)]
    fn names_senders(&self) -> bool {
        true
    }

    #[inline(always)]
    fn has_active_priorities(&self) -> bool {
        coarse_priorities() != 0
    }

    #[inline(always)]
    fn open(&mut self) {
        write(GICH_HCR, HCR_ENABLE);
    }

    /// Returns the active priorities. Both groups share one register.
    fn active_priorities(&self) -> [[u32; 4]; 2] {
        [[read(GICH_APR), 0, 0, 0], [0; 4]]
    }

    fn set_active_priorities(&mut self, value: &[[u32; 4]; 2]) {
        let [[group0, ..], [group1, ..]] = value;
        write(GICH_APR, group0 | group1);
    }

    /// Returns the shift for five bits of priority.
    fn preemption_shift(&self) -> u32 {
        3
    }
}
