// SPDX-License-Identifier: Apache-2.0
//! The handle of a pCPU: the vCPUs that it has adopted, the current one of them, and the owner of its FP
//! registers.

use crate::context::{CONTEXTS, Context};
use crate::fp::{self, CPTR_OPEN, CPTR_TRAP};
use crate::gic::PcpuIrq;
use crate::sysreg::{instruction, write_guest_register};
use bulkhead_abi::log::Pcpu;
use bulkhead_abi::log::{RegisterFile, registers};
use bulkhead_abi::trace::Entry;
use bulkhead_arch_api::{
    Arch, ClassFacts, Frames, MAX_PARTITIONS, MAX_VCPUS, PartitionId, PcpuId, VcpuId, VcpuSet, class,
};
use bulkhead_arch_translating::{Predictions, Relax};

/// The place of a pCPU's records of the short ways.
#[derive(Clone, Copy)]
pub(crate) struct ShortTrace {
    pub(crate) ring: &'static [Entry],
    pub(crate) counters: &'static Pcpu,
}

/// The calls that the kernel has lent for a run, and the functions that ask them; none if every call leaves.
/// They are pointers because the handlers are not generic.
#[derive(Clone, Copy)]
pub(crate) struct Lent {
    /// The last argument of both functions.
    pub(crate) calls: *const (),
    /// Asks for a hypercall.
    pub(crate) call: unsafe fn(&mut Context, &mut Machine, *const ()) -> u64,
    /// Asks for a register in the vCPU's window. `None`: the access leaves.
    pub(crate) register: unsafe fn(PartitionId, u64, u8, Option<u64>, *const ()) -> Option<u64>,
}

/// A pCPU's machine.
pub struct Machine {
    /// The pCPU.
    pub(crate) pcpu: PcpuId,
    /// Interrupt state of the pCPU.
    pub(crate) irq: PcpuIrq,
    /// vCPUs adopted here.
    pub(crate) owned: VcpuSet,
    /// The vCPU whose state is in the hardware: its context, or null. The context always belongs to an
    /// adopted vCPU.
    pub(crate) current: *mut Context,
    /// True if the CPU's implementation-defined registers of EL1 are to be switched.
    pub(crate) auxiliary: bool,
    /// The vCPU whose FP registers are in the hardware.
    pub(crate) fp_owner: Option<VcpuId>,
    /// Per partition, the index of the vCPU that used its VMID here last.
    pub(crate) last_index: [u8; MAX_PARTITIONS],
    /// True if the SPSR of an AArch32 mode must be asked for in that mode. See `status`.
    pub(crate) visits_status: bool,
    /// The calls that the kernel answers during this run.
    pub(crate) lent: Option<Lent>,
    /// Predictions of branches of this pCPU.
    pub(crate) predictions: Predictions,
    /// The place of records of the short ways, if they are traced.
    pub(crate) short_trace: Option<ShortTrace>,
}

impl Arch for Machine {
    type Relax = Relax;
    const CAPS: ClassFacts = class::AARCH64;
    const FILES: &'static [&'static RegisterFile] = &[&registers::A64, &registers::A32];
}

/// The class has no networks of the hypervisor.
impl Frames for Machine {}

impl Machine {
    pub(crate) const fn new(pcpu: PcpuId) -> Self {
        Self {
            pcpu,
            irq: PcpuIrq::new(),
            owned: VcpuSet::EMPTY,
            current: core::ptr::null_mut(),
            auxiliary: false,
            fp_owner: None,
            last_index: [u8::MAX; MAX_PARTITIONS],
            visits_status: false,
            lent: None,
            predictions: Predictions::UNKNOWN,
            short_trace: None,
        }
    }

    /// Returns the context of a vCPU this pCPU has adopted.
    pub(crate) fn adopted(&self, vcpu: VcpuId) -> Option<*mut Context> {
        self.owned
            .contains(vcpu)
            .then(|| CONTEXTS.slot(usize::from(vcpu.0) % MAX_VCPUS))
    }

    /// Gives the FP registers to the current vCPU, which used FP without owning them.
    pub(crate) fn fp_take(&mut self, context: &mut Context) {
        write_guest_register!("cptr_el2", CPTR_OPEN);
        instruction!("isb");
        if let Some(owner) = self.fp_owner_context(context.id) {
            // SAFETY: the slot is adopted by this pCPU and is not `context`, the only one referred to now.
            let owner = unsafe { &mut *owner };
            owner.cptr = CPTR_TRAP;
            // SAFETY: the storage is there, FP does not trap.
            unsafe { fp::bulkhead_fp_save(&raw mut owner.fp) }
        }
        // SAFETY: as above; the values in the registers are saved or of no use.
        unsafe { fp::bulkhead_fp_load(&raw const context.fp) }
        self.fp_owner = Some(context.id);
        (context.cptr, context.fp_used) = (CPTR_OPEN, true);
    }

    /// Forgets the values of the vCPU in the FP registers.
    pub(crate) fn fp_drop(&mut self, context: &mut Context) {
        context.cptr = CPTR_TRAP;
        if self.fp_owner == Some(context.id) {
            self.fp_owner = None;
        }
    }

    /// Returns the context of the vCPU whose FP registers this pCPU holds, if it is another than `vcpu`.
    fn fp_owner_context(&mut self, vcpu: VcpuId) -> Option<*mut Context> {
        let owner = self.fp_owner.filter(|owner| *owner != vcpu)?;
        self.adopted(owner)
    }
}
