// SPDX-License-Identifier: Apache-2.0
//! A vCPU at one of its traps: its processor, its registers and its space, as far as they are needed
//! together.

use crate::context::{Pending, Registers};
use crate::live::Live;
use crate::machine::Machine;
use crate::protection::Space;
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::{Exit, FaultReport, VcpuId};
use bulkhead_arch_armv7m_core::{Fault, Guest, VirtualCore, frame_size};

/// Syndrome of a guest whose processor would have stopped for good.
const LOCKUP: u64 = 0xF << 32;

/// A vCPU at its trap, its processor, and its space.
pub(crate) struct Trapped<'m> {
    pub(crate) core: &'m mut VirtualCore,
    pub(crate) registers: &'m mut Registers,
    pub(crate) pending: &'m mut Pending,
    pub(crate) space: &'m Space,
    pub(crate) is_task: bool,
    /// True if its calls of a debugger are answered.
    pub(crate) semihosting: bool,
}

impl Trapped<'_> {
    /// Returns the guest with its frame.
    pub(crate) fn parts(&mut self) -> (&mut VirtualCore, Live<'_>) {
        (self.core, Live::new(self.registers, self.space))
    }

    /// Returns the exit of a guest whose processor has stopped.
    pub(crate) fn stuck(&mut self) -> Exit {
        *self.pending = Pending::Stuck;
        let has_frame = self.space.writable(self.registers.frame, frame_size(false));
        let pc = if has_frame { self.parts().1.register(15) } else { 0 };
        Exit::Fault(FaultReport {
            class: HealthClass::System,
            syndrome: LOCKUP,
            pc: pc.into(),
            address: None,
            virtual_address: None,
        })
    }

    /// Returns the exit for a task's fault. The task does not see the fault: the manifest says what happens.
    pub(crate) fn task_fault(&mut self, fault: Fault) -> Exit {
        let syndrome = match fault {
            Fault::Memory { status, .. } | Fault::Bus { status, .. } | Fault::Hard { status } => status,
            Fault::Usage(status) => status.0,
        };
        *self.pending = Pending::Fault(fault);
        let pc = self.parts().1.register(15);
        Exit::Fault(FaultReport {
            class: HealthClass::Task,
            syndrome: syndrome.into(),
            pc: pc.into(),
            address: None,
            virtual_address: None,
        })
    }

    /// Returns the reason why the guest cannot run, if there is one.
    pub(crate) fn cannot_go_on(&mut self) -> Option<Exit> {
        match *self.pending {
            Pending::Stuck => Some(self.stuck()),
            Pending::Late(fault) => Some(self.task_fault(fault)),
            _ => None,
        }
    }
}

impl Machine {
    /// Returns a vCPU that has been adopted and whose partition has a space.
    pub(crate) fn trapped(&mut self, vcpu: VcpuId) -> Option<Trapped<'_>> {
        let context = self.contexts.get(vcpu)?;
        let space = self.spaces.get(context.partition)?;
        let is_task = context.is_task();
        let semihosting = context.semihosting;
        Some(Trapped {
            core: &mut context.core,
            registers: &mut context.registers,
            pending: &mut context.pending,
            space,
            is_task,
            semihosting,
        })
    }
}
