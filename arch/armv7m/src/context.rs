// SPDX-License-Identifier: Apache-2.0
//! Contexts of vCPUs: plain data, and their table.
//!
//! A [`Context`] stays at the place that it was put at boot. Registers are in the context and in the frame on
//! the guest's own stack whenever Rust code runs.

use crate::fp::FpRegisters;
use crate::masks;
use bulkhead_arch_api::{MAX_VCPUS, PartitionId, PartitionKind, Ticks, VcpuId};
use bulkhead_arch_armv7m_core::{Fault, VirtualCore};
use bulkhead_arch_one_pcpu::{Pool, Slots};
use bulkhead_arch_regions::Loaded;
use core::mem::offset_of;

/// The state of a guest that is not in the frame that the CPU pushes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Registers {
    /// r4 to r11.
    pub(crate) general: [u32; 8],
    /// The process stack pointer: address of the frame.
    pub(crate) frame: u32,
    /// The value that returns to the guest (B1.5.8).
    pub(crate) exc_return: u32,
}

const _: () = assert!(offset_of!(Registers, frame) == 32 && offset_of!(Registers, exc_return) == 36);

/// EXC_RETURN to Thread mode on the process stack, with a basic frame.
pub(crate) const RETURN_BASIC: u32 = 0xFFFF_FFFD;
/// The same with an extended frame.
pub(crate) const RETURN_EXTENDED: u32 = 0xFFFF_FFED;

impl Registers {
    /// Of no vCPU yet.
    pub(crate) const NOTHING: Self = Self {
        general: [0; 8],
        frame: 0,
        exc_return: RETURN_BASIC,
    };
}

/// The answer that the last exit still needs.
#[derive(Clone, Copy)]
pub(crate) enum Pending {
    /// Nothing.
    Nothing,
    /// A load or store that the kernel answers.
    Access,
    /// A fault that the guest can be shown.
    Fault(Fault),
    /// A frame that could not be pushed, with its address.
    Stacking(u32, Fault),
    /// A store of the task's that the bus has refused after the task was left.
    Late(Fault),
    /// The guest's processor would have stopped: nothing helps but a reset.
    Stuck,
}

const _: () = assert!(core::mem::offset_of!(Context, registers) == 0);

/// A vCPU.
#[repr(C)]
pub(crate) struct Context {
    pub(crate) registers: Registers,
    pub(crate) core: VirtualCore,
    /// The regions of the unit while the guest's own unit is on. They are combined when the guest changes its
    /// unit, in its own time: a switch loads them.
    pub(crate) unit: Option<Loaded>,
    /// Floating-point registers, unless the hardware holds them.
    pub(crate) fp: FpRegisters,
    /// The part of the kernel's description at boot that the backend needs.
    pub(crate) partition: PartitionId,
    pub(crate) kind: PartitionKind,
    pub(crate) semihosting: bool,
    pub(crate) masks: masks::Own,
    /// The exit that is to be answered.
    pub(crate) pending: Pending,
}

impl Context {
    /// Tells whether it runs a program instead of a machine.
    pub(crate) fn is_task(&self) -> bool {
        self.kind == PartitionKind::Task
    }
}

/// The contexts in use, in memory of the pool.
pub(crate) struct ContextTable(Slots<Context, MAX_VCPUS>);

impl ContextTable {
    pub(crate) const fn new() -> Self {
        Self(Slots::new())
    }

    /// Returns the context of a vCPU that has been adopted.
    #[inline]
    pub(crate) fn get(&mut self, vcpu: VcpuId) -> Option<&mut Context> {
        self.0.get_mut(vcpu.0)
    }

    /// Adopts a vCPU. Called once for each vCPU. Without memory for its context, the vCPU is not adopted.
    pub(crate) fn adopt(&mut self, vcpu: VcpuId, context: Context, pool: &mut Pool) {
        self.0.put(vcpu.0, context, pool);
    }
}

/// Returns the time of the next event of a vCPU's own timer.
pub(crate) fn own_deadline(core: &VirtualCore) -> Ticks {
    core.next_deadline().map_or(Ticks::NEVER, Ticks)
}
