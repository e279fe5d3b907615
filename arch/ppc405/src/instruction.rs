// SPDX-License-Identifier: Apache-2.0
//! Instructions that the guest may not carry out itself: privileged ones, traps and system calls.
//!
//! Once in the hypervisor, the instructions that follow are carried out here too, as long as they are
//! privileged ones: handlers of an operating system are rows of them, and a trap costs more than any of them.

use crate::access::syndrome;
use crate::context::{Context, Pending};
use crate::guest;
use crate::machine::Machine;
use crate::sysreg;
use bulkhead_abi::{Error, HealthClass};
use bulkhead_arch_api::{
    Access, AccessKind, AddressSpace, Exit, FaultReport, GuestPhys, ResetKind, Ticks, VcpuId,
};
use bulkhead_arch_ppc405_core::decode::decode;
use bulkhead_arch_ppc405_core::emulate::Effect;
use bulkhead_arch_ppc405_core::exception::vector;
use bulkhead_arch_ppc405_core::hypercall;
use bulkhead_arch_ppc405_core::registers::esr;

/// The most instructions that are carried out at a trap.
const AT_ONCE: usize = 16;

impl Context {
    /// Returns the report of a fault at the guest's PC.
    fn report(&self, class: HealthClass, vector: u32) -> FaultReport {
        FaultReport {
            class,
            syndrome: syndrome(vector, self.registers.trap.syndrome),
            pc: self.registers.frame.pc.into(),
            address: None,
            virtual_address: None,
        }
    }

    /// Returns the exit for a fault of a task.
    pub(crate) fn task_fault(&mut self, vector: u32) -> Exit {
        self.pending = Pending::Fault;
        let class = if self.registers.trap.syndrome & esr::PPR != 0 && vector == vector::PROGRAM {
            HealthClass::System
        } else {
            HealthClass::Task
        };
        Exit::Fault(self.report(class, vector))
    }

    /// Returns the exit for a device control register of others.
    fn dcr_access(&mut self, dcr: u16, kind: AccessKind, pending: Pending) -> Exit {
        self.pending = pending;
        Exit::Access(Access {
            space: AddressSpace::Registers,
            address: GuestPhys(dcr.into()),
            size: 4,
            kind,
            report: FaultReport {
                address: Some(GuestPhys(dcr.into())),
                ..self.report(HealthClass::System, vector::PROGRAM)
            },
        })
    }

    /// Returns the exit of a guest that waits.
    pub(crate) fn waits(&self) -> Exit {
        Exit::Idle {
            until: Ticks(self.cpu.timers.next_event()),
        }
    }
}

impl Machine {
    /// Handles a program interrupt.
    pub(crate) fn program(&mut self, vcpu: VcpuId) -> Option<Exit> {
        let (context, space, _) = self.guest(vcpu)?;
        if context.is_task() {
            return Some(context.task_fault(vector::PROGRAM));
        }
        let reason = context.registers.trap.syndrome & (esr::PIL | esr::PPR | esr::PTR);
        if context.cpu.is_user() || reason != esr::PPR {
            context.cpu.program(&mut context.registers.frame, reason);
            return None;
        }
        for turn in 0..AT_ONCE {
            let operation = guest::instruction(context, space).and_then(decode);
            let Some(operation) = operation else {
                if turn == 0 {
                    context.cpu.program(&mut context.registers.frame, reason);
                }
                return None;
            };
            let now = if operation.needs_time() { sysreg::time() } else { 0 };
            match context.cpu.execute(&mut context.registers.frame, operation, now) {
                Effect::Done => {}
                Effect::Wait if context.cpu.has_interrupt() => return None,
                Effect::Wait => return Some(context.waits()),
                Effect::Reset => return Some(Exit::Reset(ResetKind::Cold)),
                Effect::Illegal => {
                    context.cpu.program(&mut context.registers.frame, esr::PIL);
                    return None;
                }
                Effect::ReadDcr(target, dcr) => {
                    return Some(context.dcr_access(dcr, AccessKind::Read, Pending::ReadDcr(target)));
                }
                Effect::WriteDcr(dcr, value) => {
                    let kind = AccessKind::Write(value.into());
                    return Some(context.dcr_access(dcr, kind, Pending::WriteDcr));
                }
            }
            if context.cpu.is_user() || context.cpu.has_interrupt() {
                return None;
            }
        }
        None
    }

    /// Handles a system call. The CPU has stepped over the instruction already.
    pub(crate) fn system_call(&mut self, vcpu: VcpuId) -> bool {
        let Some(context) = self.contexts.get(vcpu) else {
            return false;
        };
        let frame = &context.registers.frame;
        let is_task = context.is_task();
        if hypercall::is_hypercall(frame) && (is_task || !context.cpu.is_user()) {
            return self.hypercall(vcpu);
        }
        if is_task {
            hypercall::answer(&mut context.registers.frame, Err(Error::NotSupported));
        } else {
            context
                .cpu
                .take(&mut context.registers.frame, vector::SYSTEM_CALL);
        }
        false
    }
}
