// SPDX-License-Identifier: Apache-2.0
//! Contexts of vCPUs: plain data, and their table.
//!
//! A [`Context`] stays at the place that it was put at boot. Registers are in the context and in the frame on
//! the partition's own stack whenever Rust code runs.

use crate::fp::FpRegisters;
use crate::line_set::Lines;
use crate::sysreg;
use crate::world::World;
use bulkhead_arch_api::{MAX_VCPUS, PartitionId, PartitionKind, TimeMode, VcpuId};
use bulkhead_arch_one_pcpu::{Pool, Slots};
use core::mem::offset_of;

/// The state of a partition that is not in the frame that the CPU pushes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Registers {
    /// r4 to r11.
    pub(crate) general: [u32; 8],
    /// The stack pointer of the code that was interrupted: address of the frame. It is loaded for a task
    /// only.
    pub(crate) frame: u32,
    /// The value that returns to the partition (D1.2.95).
    pub(crate) exc_return: u32,
}

const _: () = assert!(offset_of!(Registers, frame) == 32 && offset_of!(Registers, exc_return) == 36);

/// EXC_RETURN to Secure Thread mode on the process stack, with a basic frame.
pub(crate) const RETURN_TASK: u32 = 0xFFFF_FFFD;
/// EXC_RETURN to Non-secure Thread mode on the main stack, with a basic frame.
pub(crate) const RETURN_VM: u32 = 0xFFFF_FFB9;
/// EXC_RETURN: Secure code was interrupted.
pub(crate) const OF_SECURE: u32 = 1 << 6;
/// EXC_RETURN: there are no floating-point registers in the frame.
pub(crate) const BASIC: u32 = 1 << 4;

/// EXC_RETURN: a thread was interrupted.
const THREAD: u32 = 1 << 3;
/// CONTROL: a thread uses the process stack.
pub(crate) const SPSEL: u32 = 1 << 1;

impl Registers {
    /// Of no vCPU yet.
    pub(crate) const NOTHING: Self = Self {
        general: [0; 8],
        frame: 0,
        exc_return: RETURN_TASK,
    };

    /// Tells whether the frame of the VM in the hardware is on its process stack. SPSEL of EXC_RETURN is
    /// about the Secure world's stacks, so only the VM's CONTROL says so.
    pub(crate) fn is_on_process_stack(&self) -> bool {
        self.exc_return & THREAD != 0 && sysreg::control() & SPSEL != 0
    }
}

/// The answer that the last exit still needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pending {
    /// Nothing.
    Nothing,
    /// A load or store that the kernel answers.
    Access,
    /// A fault. It may be a frame that could not be pushed or popped.
    Fault,
    /// A fault that the VM is shown when it runs next.
    Shown,
    /// A store that was refused after the vCPU had left, which is told when the vCPU runs next.
    Late,
    /// Nothing helps but a reset.
    Stuck,
}

const _: () = assert!(offset_of!(Context, registers) == 0);

/// A vCPU.
#[repr(C)]
pub(crate) struct Context {
    pub(crate) registers: Registers,
    /// The Non-secure world of a VM, while another VM has it.
    pub(crate) world: World,
    /// Its floating-point registers, while another VM has the hardware.
    pub(crate) fp: FpRegisters,
    /// Lines whose level a virtual device holds.
    pub(crate) levels: Lines,
    /// The part of the kernel's description at boot that the backend needs.
    pub(crate) partition: PartitionId,
    pub(crate) kind: PartitionKind,
    pub(crate) time: TimeMode,
    /// CFSR of the VM at its last HardFault.
    pub(crate) own_faults: u32,
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
