// SPDX-License-Identifier: Apache-2.0
//! The machine: the kernel's hold on this backend. `bring_up` makes the machine, and its verbs are in the
//! files of their roles.

use crate::buffer::Buffer;
use crate::context::{Context, ContextTable, Registers};
use crate::lines::Lines;
use crate::regions::{Space, SpaceTable};
use bulkhead_abi::log::{RegisterFile, registers};
use bulkhead_arch_api::{
    Arch, CallRegisters, ClassFacts, Exit, Frames, MAX_PARTITIONS, PartitionId, Ticks, VcpuId, VcpuSet, class,
};
use bulkhead_arch_one_pcpu::Relax;

/// The calls that the kernel has lent for a run, and the function that asks them. They are pointers because
/// the handlers are not generic.
#[derive(Clone, Copy)]
pub(crate) struct Lent {
    /// The last argument of the function.
    pub(crate) calls: *const (),
    /// Asks for a hypercall. `None`: nothing was done.
    pub(crate) call: unsafe fn(&mut Machine, VcpuId, &mut CallRegisters, *const ()) -> Option<VcpuSet>,
}

/// The machine.
pub struct Machine {
    /// Contexts of vCPUs.
    pub(crate) contexts: ContextTable,
    /// Spaces of partitions.
    pub(crate) spaces: SpaceTable,
    /// The translation buffer.
    pub(crate) buffer: Buffer,
    /// Interrupt lines.
    pub(crate) lines: Lines,
    /// The vCPU whose translations are in the buffer.
    pub(crate) current: Option<VcpuId>,
    /// True if `current` runs, false if the CPU waits.
    pub(crate) runs: bool,
    /// Why `current` stopped running.
    pub(crate) exit: Exit,
    /// Calls that are answered without an exit in this run.
    pub(crate) lent: Option<Lent>,
    /// First vCPU of each partition.
    pub(crate) first: [Option<VcpuId>; MAX_PARTITIONS],
    /// The time at which the kernel wants to be told next.
    pub(crate) deadline: Ticks,
    /// The time for which the timer is set.
    pub(crate) armed: Ticks,
    pub(crate) hertz: u32,
    /// True if the image is for an emulator: only there a board switches itself off when a time is up.
    pub(crate) is_emulated: bool,
    /// Registers of the code that waits.
    pub(crate) idle: Registers,
    /// Address and records of the trace.
    pub(crate) trace: (usize, usize),
}

impl Arch for Machine {
    type Relax = Relax;
    const CAPS: ClassFacts = class::PPC405;
    const FILES: &'static [&'static RegisterFile] = &[&registers::POWER];
}

/// The class has no networks of the hypervisor.
impl Frames for Machine {}

impl Machine {
    /// Returns the first vCPU of a partition, which is its only one.
    pub(crate) fn first_of(&self, partition: PartitionId) -> Option<VcpuId> {
        self.first.get(usize::from(partition.0)).copied().flatten()
    }

    /// Returns a vCPU and its space.
    #[inline]
    pub(crate) fn guest(&mut self, vcpu: VcpuId) -> Option<(&mut Context, &Space, &mut Buffer)> {
        let context = self.contexts.get(vcpu)?;
        let space = self.spaces.get(context.partition)?;
        Some((context, space, &mut self.buffer))
    }
}
