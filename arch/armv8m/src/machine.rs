// SPDX-License-Identifier: Apache-2.0
//! The machine: the kernel's hold on this backend. `bring_up` makes the machine, and its verbs are in the
//! files of their roles.

use crate::attribution::Attribution;
use crate::context::{ContextTable, Registers};
use crate::lines::Interrupts;
use crate::loan::{self, Loan};
use crate::pair::{PLACES, Pair};
use crate::protection::SpaceTable;
use bulkhead_abi::log::{RegisterFile, registers};
use bulkhead_arch_api::{
    Arch, ClassFacts, Exit, Frames, MAX_PARTITIONS, PartitionId, Ticks, VcpuId, VcpuSet, class,
};
use bulkhead_arch_one_pcpu::{Counter, Pool};
use bulkhead_drivers::cmsdk::DualTimer;

/// The machine.
pub struct Machine {
    /// Memory for the tables.
    pub(crate) pool: Pool,
    /// Contexts of vCPUs.
    pub(crate) contexts: ContextTable,
    /// Spaces of partitions.
    pub(crate) spaces: SpaceTable,
    /// Memory and devices of the Non-secure world.
    pub(crate) attribution: Attribution,
    /// Interrupt lines.
    pub(crate) irq: Interrupts,
    /// vCPUs whose partitions' lines may interrupt.
    pub(crate) admitted: VcpuSet,
    /// The vCPU that ran last.
    pub(crate) current: Option<VcpuId>,
    /// True if `current` runs, false if the CPU waits.
    pub(crate) runs: bool,
    /// The VM whose world is in the hardware.
    pub(crate) tenant: Option<VcpuId>,
    /// True if no exception of the tenant can be taken, and its lines are watched.
    pub(crate) parked: bool,
    /// True if the state of the parked tenant's lines is in its context, because the tenant owns some.
    pub(crate) lines_are_out: bool,
    /// True if the tenant's memory and devices are Secure for now.
    pub(crate) is_closed: bool,
    /// True while the Non-secure world executes instructions of the hypervisor's.
    pub(crate) passes: bool,
    /// Regions of the Secure memory protection unit that are on.
    pub(crate) loaded: usize,
    /// Why `current` stopped running.
    pub(crate) exit: Exit,
    /// First vCPU of each partition.
    pub(crate) first: [Option<VcpuId>; MAX_PARTITIONS],
    /// The time at which the kernel wants to be told next.
    pub(crate) deadline: Ticks,
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
    /// The floating-point registers, while a task has them.
    pub(crate) loan: [Option<Loan>; loan::PLACES],
    /// The facts of two pCPUs, if there are two.
    pub(crate) pair: [Pair; PLACES],
}

impl Arch for Machine {
    type Relax = crate::Relax;
    const CAPS: ClassFacts = class::ARMV8M;
    const FILES: &'static [&'static RegisterFile] = &[&registers::M_PROFILE];
}

impl Frames for Machine {}

impl Machine {
    /// Returns the first vCPU of a partition.
    pub(crate) fn first_of(&self, partition: PartitionId) -> Option<VcpuId> {
        self.first.get(usize::from(partition.0)).copied().flatten()
    }
}
