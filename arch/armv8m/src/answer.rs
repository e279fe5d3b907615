// SPDX-License-Identifier: Apache-2.0
//! The answers to a partition's trap: some traps are answered here, and others become an exit.
//!
//! **Hypercalls.** A task uses SVC. A VM branches to [`HYPERCALL_GATE`], an address of Secure memory: the CPU
//! refuses that with a SecureFault, whose frame has the address as PC. So there is no Secure code that a VM
//! could enter. A VM may also use the instruction of class `armv7m`, if its own UsageFault is not enabled:
//! the same program runs on both classes.

use crate::context::{Context, OF_SECURE, Pending};
use crate::live::Live;
use crate::machine::Machine;
use crate::protection::Space;
use crate::sysreg::{self, BFAR, CFSR, HFSR, MMFAR, SFAR, SFSR, SHCSR, other_space};
use crate::traps::SUPERVISOR_CALL;
use crate::view::View;
use bulkhead_abi::hypercall::{HYPERCALL_GATE, HYPERCALL_INSTRUCTION, function_id};
use bulkhead_abi::{HealthClass, Operation};
use bulkhead_arch_api::{Access, AccessKind, AddressSpace, Exit, FaultReport, GuestPhys, VcpuId};
use bulkhead_arch_armv7m_core::status::{
    BFARVALID, DACCVIOL, IBUSERR, MMARVALID, MSTKERR, MUNSTKERR, PRECISERR, STKERR, UNDEFINSTR, UNSTKERR,
};
use bulkhead_arch_armv7m_core::{Guest, take_hypercall};
use bulkhead_arch_armv8m_core::status::{AUVIOL, INVEP, INVER, SFARVALID};
use bulkhead_arch_armv8m_core::transfer::Transfer;

/// Syndrome of a VM whose processor would have stopped for good.
const LOCKUP: u64 = 0xF << 32;
/// The identifier of the null hypercall.
const NULL: u32 = function_id(Operation::Null);
/// The number of the exception HardFault.
const HARD_FAULT: u32 = 3;
/// CFSR: a stack pointer is at its limit (UFSR.STKOF, D1.2.271).
const STKOF: u32 = 1 << 20;
/// CFSR: that, or the protection unit has refused a frame.
const NO_FRAME: u32 = STKOF | MSTKERR;
/// HFSR: a fault of another exception has become a HardFault (D1.2.125).
const FORCED: u32 = 1 << 30;
/// SHCSR: MemManage and UsageFault are pending.
const OWN_PENDED: u32 = 1 << 12 | 1 << 13;
/// The number of the exception SecureFault.
const SECURE_FAULT: u32 = 7;
/// A frame could not be pushed or popped.
const FRAME: u32 = MSTKERR | STKERR | MUNSTKERR | UNSTKERR;
/// Bits of CFSR that are UsageFaults.
const USAGE: u32 = 0xFFFF_0000;

/// The report of the CPU about a fault.
struct Cause {
    /// The exception that says most of it.
    exception: u32,
    /// Its status register.
    status: u32,
    /// The address, if one is valid.
    address: Option<u32>,
    /// CFSR of the Non-secure world, which describes a fault that the VM cannot take itself.
    own: u32,
}

/// SHCSR (D1.2.240): faults and SVCall that are pending.
const PENDED: u32 = 0xF << 12 | 3 << 20;

/// Forgets Secure faults that wait: one instruction can make several (B3.24), and a fault that waits would be
/// taken for one of the partition that runs next.
pub(crate) fn forget_pending() {
    sysreg::write(SHCSR, sysreg::read(SHCSR) & !PENDED);
}

impl Cause {
    /// Takes the CPU's description of a fault, so that the next fault finds only its own.
    fn take(exception: u32) -> Self {
        let secure = sysreg::read(SFSR);
        let status = sysreg::read(CFSR);
        forget_pending();
        let own = other_space().read32(CFSR);
        if secure != 0 {
            let address = (secure & SFARVALID != 0).then(|| sysreg::read(SFAR));
            sysreg::write(SFSR, secure);
            sysreg::write(CFSR, status);
            return Self {
                exception: SECURE_FAULT,
                status: secure,
                address,
                own,
            };
        }
        let address = if status & MMARVALID != 0 {
            Some(sysreg::read(MMFAR))
        } else {
            (status & BFARVALID != 0).then(|| sysreg::read(BFAR))
        };
        sysreg::write(CFSR, status);
        let is_hard = status == 0 && exception == HARD_FAULT;
        Self {
            exception,
            status: if is_hard { sysreg::read(HFSR) } else { status },
            address,
            own,
        }
    }

    fn report(&self, class: HealthClass, pc: u32) -> FaultReport {
        FaultReport {
            class,
            syndrome: u64::from(self.exception) << 32 | u64::from(self.status),
            pc: pc.into(),
            address: self.address.map(|address| GuestPhys(address.into())),
            virtual_address: None,
        }
    }
}

/// Answers the null hypercall, which asks nothing of the kernel. Its PC is after it already. Returns false if
/// it is another one.
fn is_null(live: &mut Live<'_>) -> bool {
    let is_null = live.register(0) == NULL;
    if is_null {
        live.set_register(0, 0);
    }
    is_null
}

/// Forgets a HardFault that a VM does not take. After one that the VM takes, its handler finds FORCED, also
/// if an access of the handler is answered before.
fn forget_hard() {
    if sysreg::faultmask() == 0 {
        sysreg::write(HFSR, FORCED);
    }
}

/// A vCPU at its trap, with its space.
pub(crate) struct Trapped<'m> {
    pub(crate) context: &'m mut Context,
    pub(crate) space: &'m Space,
    /// The way to the VM's memory, which is closed again when this value ends.
    _view: View,
}

impl Trapped<'_> {
    /// Returns the partition with its frame.
    pub(crate) fn live(&mut self) -> Live<'_> {
        Live::new(&mut self.context.registers, self.space)
    }

    /// Returns the exit of a VM whose processor has stopped.
    pub(crate) fn stuck(&mut self) -> Exit {
        self.context.pending = Pending::Stuck;
        Exit::Fault(FaultReport {
            class: HealthClass::System,
            syndrome: LOCKUP,
            pc: self.live().register(15).into(),
            address: None,
            virtual_address: None,
        })
    }

    /// Reports a fault. The manifest says what happens.
    fn fault(&mut self, class: HealthClass, cause: &Cause) -> Exit {
        self.context.pending = Pending::Fault;
        let pc = self.live().register(15);
        Exit::Fault(cause.report(class, pc))
    }

    /// Answers a hypercall by an instruction of `length` bytes that the PC is still at, or returns its exit.
    fn hypercall(&mut self, length: u32) -> Option<Exit> {
        take_hypercall(&mut self.live(), length).map(Exit::Hypercall)
    }

    /// Answers a frame that the CPU could not push or pop: the stack pointer points to memory that is not the
    /// partition's.
    fn no_frame(&mut self, cause: &Cause) -> Exit {
        self.context.pending = Pending::Fault;
        let frame = self.context.registers.frame;
        let mut report = cause.report(HealthClass::Memory, 0);
        report.address = Some(GuestPhys(frame.into()));
        Exit::Fault(report)
    }

    /// Answers a load or store that was refused: it went to a virtual device, or to something that is not the
    /// partition's.
    fn access(&mut self, cause: &Cause) -> Exit {
        let live = self.live();
        let pc = live.register(15);
        let Some(transfer) = Transfer::at_pc(&live).filter(|found| !self.space.has(found.access.address))
        else {
            return self.fault(HealthClass::Memory, cause);
        };
        let access = transfer.access;
        let address = GuestPhys(access.address.into());
        self.context.pending = Pending::Access;
        Exit::Access(Access {
            space: AddressSpace::Memory,
            address,
            size: access.size,
            kind: access
                .store
                .map_or(AccessKind::Read, |value| AccessKind::Write(value.into())),
            report: FaultReport {
                address: Some(address),
                ..cause.report(HealthClass::Memory, pc)
            },
        })
    }

    /// Tells whether the VM's own stack limit or protection unit has refused the frame of this exception, so
    /// that what is there is old. The bits of CFSR stay set until the VM clears them, `new` are those that
    /// the hypervisor sees for the first time. The VM may have taken the fault that they tell of itself.
    fn is_lost(&self, number: u32, cause: &Cause, new: u32) -> bool {
        if cause.exception != SECURE_FAULT {
            return number == HARD_FAULT && new & NO_FRAME != 0;
        }
        let registers = &self.context.registers;
        let limit = if registers.is_on_process_stack() {
            sysreg::process_limit()
        } else {
            sysreg::main_limit()
        };
        // The CPU leaves a stack pointer at the limit.
        new & STKOF != 0 && registers.frame == limit || other_space().read32(SHCSR) & OWN_PENDED != 0
    }

    /// Answers a SecureFault of a VM that is no call.
    fn of_worlds(&mut self, cause: &Cause, pc: u32) -> Option<Exit> {
        if cause.status & INVER != 0 {
            // The VM's handler has ended, and `entry` has found where to.
            return None;
        }
        let is_access = cause.status & (AUVIOL | INVEP) == AUVIOL && self.space.readable(pc, 2);
        Some(if is_access {
            self.access(cause)
        } else {
            self.fault(HealthClass::Memory, cause)
        })
    }

    /// Answers an exception of a VM.
    fn of_vm(&mut self, number: u32, cause: &Cause) -> Option<Exit> {
        let new = cause.own & !core::mem::replace(&mut self.context.own_faults, cause.own);
        if cause.own & NO_FRAME != 0 && self.is_lost(number, cause, new) {
            // If the fault of the frame has not become a HardFault, the VM's own handler waits.
            let waits = cause.exception == SECURE_FAULT && other_space().read32(SHCSR) & OWN_PENDED != 0;
            return if waits { None } else { self.own_fault() };
        }
        let mut live = self.live();
        if !live.has_frame() {
            return Some(self.no_frame(cause));
        }
        let pc = live.register(15);
        if cause.exception == SECURE_FAULT {
            if number == HARD_FAULT {
                forget_hard();
            }
            if cause.status & (INVER | INVEP) != INVEP || pc != HYPERCALL_GATE {
                return self.of_worlds(cause, pc);
            }
            // The call returns to where its caller wants.
            let back = live.register(14);
            live.set_register(15, back & !1);
            if is_null(&mut live) {
                return None;
            }
            return self.hypercall(0);
        }
        if cause.status == 0 && number != HARD_FAULT {
            // Nothing has happened: the fault of another partition was still pending.
            return None;
        }
        if cause.own & UNDEFINSTR != 0 && live.fetch(pc) == Some(HYPERCALL_INSTRUCTION) {
            other_space().write32(CFSR, UNDEFINSTR);
            sysreg::write(HFSR, FORCED);
            return self.hypercall(2);
        }
        if cause.status & PRECISERR != 0 || cause.status & IBUSERR != 0 {
            return Some(self.fault(HealthClass::Memory, cause));
        }
        self.own_fault()
    }

    /// Answers a fault of a VM's own that the VM cannot take itself: its HardFault.
    fn own_fault(&mut self) -> Option<Exit> {
        match self.hard_fault() {
            Some(()) => None,
            None => Some(self.stuck()),
        }
    }

    /// Answers an exception of a task.
    fn of_task(&mut self, cause: &Cause) -> Exit {
        sysreg::write(HFSR, FORCED);
        if cause.status & FRAME != 0 || !self.live().has_frame() {
            return self.no_frame(cause);
        }
        if cause.status & USAGE == 0 && cause.status & (DACCVIOL | PRECISERR) != 0 {
            return self.access(cause);
        }
        let class = if cause.status & USAGE != 0 {
            HealthClass::Task
        } else {
            HealthClass::Memory
        };
        self.fault(class, cause)
    }
}

impl Machine {
    /// Returns a vCPU that has been adopted and whose partition has a space.
    pub(crate) fn trapped(&mut self, vcpu: VcpuId) -> Option<Trapped<'_>> {
        let context = self.contexts.get(vcpu)?;
        let space = self.spaces.get(context.partition)?;
        let _view = View::of(&space.share, &self.attribution.shown);
        Some(Trapped {
            context,
            space,
            _view,
        })
    }

    /// Handles an exception of a vCPU's own making.
    pub(crate) fn trap(&mut self, vcpu: VcpuId, number: u32) -> Option<Exit> {
        if self.wants_floats(vcpu, number) && self.borrow_floats(vcpu) {
            Cause::take(number);
            return None;
        }
        let mut trapped = self.trapped(vcpu)?;
        let is_task = trapped.context.is_task();
        if is_task && trapped.context.registers.exc_return & OF_SECURE == 0 {
            // It has left for the Non-secure world, where it has nothing. The VM that has this world would
            // find the task's fault in its own status.
            other_space().write32(CFSR, Cause::take(number).own);
            sysreg::write(HFSR, FORCED);
            return Some(trapped.stuck());
        }
        if number == SUPERVISOR_CALL && is_task {
            if is_null(&mut trapped.live()) {
                return None;
            }
            return trapped.hypercall(0);
        }
        let cause = Cause::take(number);
        if number == SUPERVISOR_CALL {
            // No VM has Secure code that could call. It was pending for another partition.
            return None;
        }
        if is_task {
            Some(trapped.of_task(&cause))
        } else {
            trapped.of_vm(number, &cause)
        }
    }
}
