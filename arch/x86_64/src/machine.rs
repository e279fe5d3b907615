// SPDX-License-Identifier: Apache-2.0
//! The handle of a pCPU: the vCPUs that it has adopted, the current one, and the times for which its timer
//! is set.

use crate::context::{CONTEXTS, Context};
use bulkhead_abi::log::{RegisterFile, registers};
use bulkhead_arch_api::{Arch, ClassFacts, Frames, MAX_VCPUS, PcpuId, Ticks, VcpuId, VcpuSet, class};
use bulkhead_arch_translating::{Predictions, Relax};

/// A pCPU's machine.
pub struct Machine {
    /// The pCPU.
    pub(crate) pcpu: PcpuId,
    /// vCPUs adopted here.
    pub(crate) owned: VcpuSet,
    /// The vCPU whose floating-point registers are in the hardware: its context, or null. The context is
    /// always the context of an adopted vCPU.
    pub(crate) current: *mut Context,
    /// When the kernel wants [`bulkhead_arch_api::Exit::Deadline`].
    pub(crate) deadline: Ticks,
    /// The time for which the timer of the local APIC is set.
    pub(crate) armed: Ticks,
    /// The vCPU that runs has to look at its interrupts before it is entered.
    pub(crate) looks: bool,
    /// The pCPU's vCPU takes the interrupts of the pCPU itself.
    pub(crate) direct: bool,
    /// That vCPU runs, so no interrupt may be left for it that is not its own.
    pub(crate) quiet: bool,
    /// The control block for VMLOAD of the hypervisor's own hidden registers.
    pub(crate) host: u64,
    /// Predictions of branches of this pCPU.
    pub(crate) predictions: Predictions,
}

impl Arch for Machine {
    type Relax = Relax;
    const CAPS: ClassFacts = class::X86_64;
    const FILES: &'static [&'static RegisterFile] = &[&registers::AMD64];
}

/// The class has no networks of the hypervisor.
impl Frames for Machine {}

impl Machine {
    pub(crate) const fn new(pcpu: PcpuId) -> Self {
        Self {
            pcpu,
            owned: VcpuSet::EMPTY,
            current: core::ptr::null_mut(),
            deadline: Ticks::NEVER,
            armed: Ticks::NEVER,
            looks: true,
            direct: false,
            quiet: false,
            host: 0,
            predictions: Predictions::UNKNOWN,
        }
    }

    /// Returns the context of a vCPU this pCPU has adopted.
    #[inline(always)]
    pub(crate) fn adopted(&self, vcpu: VcpuId) -> Option<*mut Context> {
        self.owned
            .contains(vcpu)
            .then(|| CONTEXTS.slot(usize::from(vcpu.0) % MAX_VCPUS))
    }
}
