// SPDX-License-Identifier: Apache-2.0
//! The services of the pCPU that the virtual GIC runs on.

use crate::ListRegister;

/// The parts of `ICH_HCR_EL2` that depend on what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Control {
    /// Interrupt when no list register is pending: there is more than fits (`NPIE`).
    pub refill: bool,
    /// Trap `ICC_DIR_EL1`: an active interrupt is outside the list registers (`TDIR`).
    pub trap_deactivate: bool,
}

/// The virtual CPU interface of this pCPU.
pub trait CpuInterface {
    /// List registers there are, 1..=16.
    fn slots(&self) -> u32;
    /// Bit n set: list register n is neither pending nor active (`ICH_ELRSR_EL2`).
    fn empty_slots(&self) -> u32;
    /// Bit n set: the interrupt in list register n has ended and wanted that noticed (`ICH_EISR_EL2`). Such a
    /// register does not count as empty before it is written.
    fn ended_slots(&self) -> u32;
    /// Makes [`CpuInterface::empty_slots`] and [`CpuInterface::ended_slots`] see the list registers that were
    /// written since the guest was left. Without it, they may see them or not (Arm ARM DDI 0487, D19.1.2).
    fn settle(&mut self);
    /// Reads list register `slot`.
    fn list_register(&self, slot: u32) -> ListRegister;
    /// Writes list register `slot`.
    fn set_list_register(&mut self, slot: u32, value: ListRegister);
    /// Writes list register `slot`, which is below 4.
    fn set_near_register(&mut self, slot: u32, value: ListRegister);
    /// Sets the control bits.
    fn set_control(&mut self, control: Control);
    /// Ends of interrupts that were in no list register, since last asked (`ICH_HCR_EL2.EOIcount`).
    fn take_end_count(&mut self) -> u32;
    /// `ICH_VMCR_EL2`.
    fn machine_control(&self) -> u64;
    /// Sets `ICH_VMCR_EL2`.
    fn set_machine_control(&mut self, value: u64);
    /// `ICH_AP0R<n>_EL2` and `ICH_AP1R<n>_EL2`.
    fn active_priorities(&self) -> [[u32; 4]; 2];
    /// Tells whether any of them is not 0.
    fn has_active_priorities(&self) -> bool;
    /// Switches the interface on with the control bits after reset, and without ends counted.
    fn open(&mut self);
    /// Tells whether each sender has a software-generated interrupt of its own, and the list register names
    /// the sender (GICv2).
    fn names_senders(&self) -> bool;
    /// Sets `ICH_AP0R<n>_EL2` and `ICH_AP1R<n>_EL2`.
    fn set_active_priorities(&mut self, value: &[[u32; 4]; 2]);
    /// Lowest implemented bit of a preemption level: 7 - `ICH_VTR_EL2.PREbits`.
    fn preemption_shift(&self) -> u32;
}

/// Physical interrupts of linked lines. Lines below 32 mean this pCPU's own private ones.
pub trait PhysicalLines {
    /// Lets a shared line interrupt, or not.
    fn set_enabled(&mut self, physical: u32, on: bool);
    /// Follows the guest's priority of a shared line.
    fn set_priority(&mut self, physical: u32, priority: u8);
    /// Delivers a shared line where vCPU `index` of this VM runs.
    fn set_target(&mut self, physical: u32, index: usize);
    /// Tells whether the line is edge-triggered.
    fn is_edge(&self, physical: u32) -> bool;
    /// Tells whether the line is pending, or its input is high.
    fn is_pending(&self, physical: u32) -> bool;
    /// Makes the line pending, or takes that back.
    fn set_pending(&mut self, physical: u32, on: bool);
    /// Makes the line active, or not.
    fn set_active(&mut self, physical: u32, on: bool);
}

/// Everything the virtual GIC needs of the pCPU it runs on.
pub trait Hardware: CpuInterface + PhysicalLines {
    /// Lets exactly these of this pCPU's private lines interrupt, of those that a VM can have.
    fn enable_private(&mut self, physical: u32);
    /// Makes sure that vCPU `index` of this VM passes through [`crate::Vgic::service`] soon. If the vCPU is
    /// loaded on another pCPU, this interrupts that pCPU. Otherwise it tells the code that decides what runs.
    /// `present` is true if the vCPU is loaded.
    fn kick(&mut self, index: usize, present: bool);
    /// Makes sure that vCPU `me`, which acts, passes through [`crate::Vgic::service`] once more as soon as
    /// the pCPU has taken its waiting interrupts. There is more to do than fits between two looks at
    /// interrupts.
    fn look_again(&mut self, me: usize);
    /// Tells whether an interrupt waits for this pCPU, a kick included.
    fn is_interrupted(&self) -> bool;
    /// Waits for one step of a bounded wait for another pCPU.
    fn relax(&self);
}
