// SPDX-License-Identifier: Apache-2.0
//! The machine: the kernel's hold on this backend. `bring_up` makes the machine, and its verbs are in the
//! files of their roles.

use crate::arrival::Held;
use crate::context::{ContextTable, Registers};
use crate::lines::Interrupts;
use crate::protection::{Plain, SpaceTable};
use crate::window::Loan;
use bulkhead_abi::log::{RegisterFile, registers};
use bulkhead_arch_api::{
    Arch, ClassFacts, Exit, Line, MAX_PARTITIONS, PartitionId, Ticks, VcpuId, VcpuSet, class,
};
use bulkhead_arch_armv7m_core::Model;
use bulkhead_arch_one_pcpu::Counter;
use bulkhead_arch_one_pcpu::Pool;
use bulkhead_arch_one_pcpu::Relax;
use bulkhead_drivers::cmsdk::DualTimer;

/// The machine.
pub struct Machine {
    /// Memory for the tables.
    pub(crate) pool: Pool,
    /// Contexts of vCPUs.
    pub(crate) contexts: ContextTable,
    /// Spaces of partitions.
    pub(crate) spaces: SpaceTable,
    /// Interrupt lines.
    pub(crate) irq: Interrupts,
    /// vCPUs whose partitions' lines may interrupt.
    pub(crate) admitted: VcpuSet,
    /// The vCPU whose space, lines and configuration are in the hardware.
    pub(crate) current: Option<VcpuId>,
    /// True if `current` runs, false if the CPU waits.
    pub(crate) runs: bool,
    /// The vCPU whose floating-point registers are in the hardware.
    pub(crate) fp_owner: Option<VcpuId>,
    /// Why `current` stopped running.
    pub(crate) exit: Exit,
    /// First vCPU of each partition.
    pub(crate) first: [Option<VcpuId>; MAX_PARTITIONS],
    /// The description of its processor that a guest sees.
    pub(crate) model: &'static Model,
    /// Which partitions are held back so that the latency of their interrupts is constant.
    pub(crate) held: [Option<Held>; MAX_PARTITIONS],
    /// The vCPU whose handlers start early.
    pub(crate) early: Option<VcpuId>,
    /// The line of an early start that its virtual CPU knows of and the kernel does not.
    pub(crate) early_untold: Option<Line>,
    /// Regions of the memory protection unit.
    pub(crate) regions: u32,
    /// The time at which the kernel wants to be told next.
    pub(crate) deadline: Ticks,
    /// Before then no guest's own timer interrupts.
    pub(crate) earliest_own: Ticks,
    /// The time for which the timer is set.
    pub(crate) armed: Ticks,
    pub(crate) timer: DualTimer,
    pub(crate) timer_line: u32,
    pub(crate) counter: Counter,
    pub(crate) hertz: u32,
    /// True if the image is for an emulator: only there a board switches itself off when a time is up.
    pub(crate) is_emulated: bool,
    /// Registers of the code that waits.
    pub(crate) idle: Registers,
    /// Address and records of the trace.
    pub(crate) trace: (usize, usize),
    /// Addresses of code that looks like an instruction that the host tool replaced and is none, in ascending
    /// order.
    pub(crate) lookalikes: &'static [u32],
    /// The plain parts of the current vCPU's space, for the shortest ways.
    pub(crate) plain: Plain,
    /// The kernel's device in its memory.
    pub(crate) loan: Loan,
}

impl Arch for Machine {
    type Relax = Relax;
    const CAPS: ClassFacts = class::ARMV7M;
    const FILES: &'static [&'static RegisterFile] = &[&registers::M_PROFILE];
}

impl Machine {
    /// Returns the first vCPU of a partition.
    pub(crate) fn first_of(&self, partition: PartitionId) -> Option<VcpuId> {
        self.first.get(usize::from(partition.0)).copied().flatten()
    }
}
