// SPDX-License-Identifier: Apache-2.0
//! The state of the interrupt controllers: what all pCPUs share, what a pCPU has of its own, and what a vCPU
//! has. Every other file of this folder works on that state.

use super::interface::{self, SPURIOUS};
use super::{lines, physical};
use bulkhead_arch_api::{MAX_PARTITIONS, MAX_PCPUS, MAX_VCPUS, PartitionId, PcpuId, VcpuId, VcpuSet};
use bulkhead_arch_vgic::{Bank, Distributor, Redistributor, Vgic};
use core::sync::atomic::{
    AtomicU8, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};

/// Software-generated interrupt of [`signal`].
pub(super) const SGI_SIGNAL: u32 = 0;
/// Software-generated interrupt that makes a pCPU look at [`Wires::kicked`].
pub(super) const SGI_KICK: u32 = 1;
/// The guest's virtual and physical timer, as on the board every VM sees.
pub(super) const VIRTUAL_TIMER_LINE: u32 = 27;
pub(super) const PHYSICAL_TIMER_LINE: u32 = 30;
/// Software-generated interrupt that ends a pCPU, because another found the hypervisor broken.
pub(super) const SGI_STOP: u32 = 2;
/// Interrupts handled in a row outside a guest before the caller gets a word in.
pub(crate) const IDLE_BURST: u32 = 64;
/// True if this is for a GICv2.
pub(super) const VERSION_2: bool = cfg!(feature = "gic-v2");
pub(super) const DISTRIBUTOR_SIZE: u64 = if VERSION_2 { 0x1000 } else { 0x1_0000 };
/// The address of registers that are not there: no guest-physical address (48 bits) is at or after it.
pub(super) const NOWHERE: u64 = 1 << 63;

/// The data of a VM that the pCPUs share.
pub(super) struct Vm {
    pub(super) distributor: AtomicU64,
    /// The redistributors, or the CPU interface of a GICv2.
    pub(super) second: AtomicU64,
}

pub(super) static DISTRIBUTORS: [Distributor; MAX_PARTITIONS] =
    [const { Distributor::new() }; MAX_PARTITIONS];
pub(super) static REDISTRIBUTORS: [Redistributor; MAX_VCPUS] = [const { Redistributor::new() }; MAX_VCPUS];
pub(super) static VMS: [Vm; MAX_PARTITIONS] = [const {
    Vm {
        distributor: AtomicU64::new(NOWHERE),
        second: AtomicU64::new(NOWHERE),
    }
}; MAX_PARTITIONS];
/// The tables of a kick. They are one object, because the address of an object takes two instructions.
pub(super) struct Wires {
    /// pCPU of each vCPU.
    pub(super) home: [AtomicU8; MAX_VCPUS],
    /// vCPUs each pCPU was kicked for.
    pub(super) kicked: [AtomicU64; MAX_PCPUS],
    /// The value that calls each pCPU that is up by a software-generated interrupt, see [`interface::send`].
    pub(super) calls: [AtomicU64; MAX_PCPUS],
    /// The vCPUs of each VM: the first one in bits 7:0, their number in bits 15:8.
    pub(super) vcpus: [AtomicU32; MAX_PARTITIONS],
}

pub(super) static WIRES: Wires = Wires {
    home: [const { AtomicU8::new(u8::MAX) }; MAX_VCPUS],
    kicked: [const { AtomicU64::new(0) }; MAX_PCPUS],
    calls: [const { AtomicU64::new(0) }; MAX_PCPUS],
    vcpus: [const { AtomicU32::new(0) }; MAX_PARTITIONS],
};
/// The value that routes shared lines to each pCPU that is up; all ones if the pCPU is not.
pub(super) static PCPU_ROUTES: [AtomicU64; MAX_PCPUS] = [const { AtomicU64::new(u64::MAX) }; MAX_PCPUS];
/// Owner of each shared physical line: [`ROUTED`], [`CRITICAL`], partition in bits 23:16, virtual line in
/// bits 15:0.
pub(super) static ROUTES: [AtomicU32; SPURIOUS as usize] = [const { AtomicU32::new(0) }; SPURIOUS as usize];
/// The number after the last line that is routed to a partition.
pub(super) static ROUTES_END: AtomicUsize = AtomicUsize::new(0);
pub(super) const ROUTED: u32 = 1 << 31;
/// Flag of a route: the kernel is told of each interrupt.
pub(super) const CRITICAL: u32 = 1 << 30;

/// A vCPU or none, in one byte.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct MaybeVcpu(u8);

impl MaybeVcpu {
    pub(super) const NONE: Self = Self(u8::MAX);

    #[inline(always)]
    pub(super) const fn some(vcpu: VcpuId) -> Self {
        Self(vcpu.0)
    }

    #[inline(always)]
    pub(super) fn get(self) -> Option<VcpuId> {
        (self != Self::NONE).then_some(VcpuId(self.0))
    }
}

/// Interrupt state of a pCPU.
pub(crate) struct PcpuIrq {
    pub(super) id: PcpuId,
    pub(super) redistributor: Option<physical::Redistributor>,
    pub(super) virtual_timer: u32,
    pub(super) physical_timer: u32,
    pub(super) hypervisor_timer: u32,
    pub(super) maintenance: u32,
    /// The vCPU of a VM whose state is in the virtual CPU interface.
    pub(super) loaded: MaybeVcpu,
    /// Private lines of the loaded vCPU that are to interrupt.
    pub(super) wanted: u32,
    /// Private lines of guests that are enabled physically: the wanted ones, and those that vCPUs before have
    /// left enabled. A line that is left over is disabled if it interrupts.
    pub(super) private_enabled: u32,
    /// vCPUs to make ready that the kernel has not been told of yet.
    pub(super) wake: VcpuSet,
}

/// Interrupt state of a vCPU that only its own pCPU touches.
pub(crate) struct VcpuIrq {
    /// The virtual GIC of its partition. Absent for a task.
    pub(super) vgic: Option<Vgic<'static>>,
    pub(super) id: VcpuId,
    pub(super) index: usize,
    pub(super) partition: PartitionId,
    pub(super) first: u8,
    pub(super) count: u8,
    /// Absent for a task.
    pub(super) own: Option<&'static Redistributor>,
    pub(super) bank: Bank,
    pub(super) distributor: u64,
    pub(super) second: u64,
    /// Where its own registers are, with a GICv3.
    pub(super) frame: u64,
}

impl PcpuIrq {
    pub(crate) const fn new() -> Self {
        Self {
            id: PcpuId(0),
            redistributor: None,
            virtual_timer: SPURIOUS,
            physical_timer: SPURIOUS,
            hypervisor_timer: SPURIOUS,
            maintenance: SPURIOUS,
            loaded: MaybeVcpu::NONE,
            wanted: 0,
            private_enabled: 0,
            wake: VcpuSet::EMPTY,
        }
    }

    pub(super) fn take_wake(&mut self) -> VcpuSet {
        core::mem::take(&mut self.wake)
    }

    pub(super) fn private(&self, line: u32) -> Option<lines::LineRegisters> {
        self.redistributor.map(|redistributor| redistributor.line(line))
    }
}

impl VcpuIrq {
    pub(crate) const fn new() -> Self {
        Self {
            vgic: None,
            id: VcpuId(0),
            index: 0,
            partition: PartitionId(0),
            first: 0,
            count: 0,
            own: None,
            bank: Bank::new(),
            distributor: NOWHERE,
            second: NOWHERE,
            frame: NOWHERE,
        }
    }

    #[inline]
    pub(super) fn vgic(&self) -> Option<Vgic<'static>> {
        self.vgic
    }
}

/// Returns the virtual GIC of a partition with these vCPUs.
#[inline]
pub(super) fn vgic_of(partition: PartitionId, first: u8, count: u8) -> Option<Vgic<'static>> {
    let first = usize::from(first);
    let redistributors = REDISTRIBUTORS.get(first..first + usize::from(count))?;
    Some(Vgic::new(
        DISTRIBUTORS.get(usize::from(partition.0))?,
        redistributors,
    ))
}

/// Returns the virtual GIC that [`adopt`] noted for a partition, and the partition's first vCPU.
pub(super) fn vgic_by_id(partition: PartitionId) -> Option<(Vgic<'static>, u8)> {
    let [first, count, ..] = WIRES
        .vcpus
        .get(usize::from(partition.0))?
        .load(SeqCst)
        .to_le_bytes();
    if count == 0 {
        return None;
    }
    Some((vgic_of(partition, first, count)?, first))
}

pub(super) fn pcpu_route(pcpu: u8) -> Option<u64> {
    PCPU_ROUTES
        .get(usize::from(pcpu))
        .map(|affinity| affinity.load(SeqCst))
        .filter(|value| *value != u64::MAX)
}

/// Sends a software-generated interrupt to a pCPU, if it is up.
#[inline]
pub(super) fn call(pcpu: u8, line: u32) {
    if let Some(call) = WIRES.calls.get(usize::from(pcpu)) {
        interface::send(call.load(Relaxed), line);
    }
}

/// Hands over vCPUs that became due in a place that cannot return [`Exit::Wake`]. This pCPU kicks itself and
/// returns the exit then.
#[inline(never)]
pub(super) fn hand_over(p: &PcpuIrq, wake: VcpuSet) {
    if wake.is_empty() {
        return;
    }
    if let Some(kicked) = WIRES.kicked.get(usize::from(p.id.0)) {
        kicked.fetch_or(wake.0, SeqCst);
        call(p.id.0, SGI_KICK);
    }
}
