// SPDX-License-Identifier: Apache-2.0
//! The answers to a guest's trap: some traps are answered here, and others become an exit.
//!
//! A guest's own business is finished here by the model of its processor: its private peripheral bus,
//! replaced instructions, exception entry and return, and faults that its own processor would have reported.
//! Everything that concerns others is an exit: accesses to addresses that are not the partition's,
//! hypercalls, sleep.
//!
//! **Hypercalls.** A VM uses `UDF #0xB1`, because SVC is its own; a task uses SVC. See `bulkhead_abi`.

use crate::context::{Pending, own_deadline};
use crate::fp;
use crate::live::Live;
use crate::sysreg::{self, PENDED, SHCSR};
use crate::trapped::Trapped;
use crate::traps::take_hard_fault;
use crate::window::Loan;
use bulkhead_abi::HealthClass;
use bulkhead_abi::hypercall::HYPERCALL_INSTRUCTION;
use bulkhead_arch_api::{
    Access, AccessKind, AddressSpace, Exit, FaultReport, GuestPhys, HostCall, ResetKind,
};
use bulkhead_arch_armv7m_core::status::{MUNSTKERR, UNDEFINSTR};
use bulkhead_arch_armv7m_core::{
    Cause, ExcReturn, Fault, Guest, GuestAccess as Elsewhere, Late, Lockup, Next, PRIVATE_BUS, SEMIHOSTING,
    Several, Trapped as Emulated, frame_size, take_hypercall,
};

/// SHCSR (B3.2.13): SVCall waits.
const CALL_PENDED: u32 = 1 << 15;

/// Returns the report of a fault at `pc` that concerns others.
fn report(cause: &Cause, pc: u32) -> FaultReport {
    FaultReport {
        class: HealthClass::Memory,
        syndrome: u64::from(cause.exception.0) << 32 | u64::from(cause.status),
        pc: pc.into(),
        address: cause.address.map(|address| GuestPhys(address.into())),
        virtual_address: None,
    }
}

impl Trapped<'_> {
    /// Returns the exit that a result of the processor's model leads to, if any.
    fn done(&mut self, result: Result<(), Lockup>) -> Option<Exit> {
        result.is_err().then(|| self.stuck())
    }

    /// Answers a fault that the guest's own processor would have reported. A task has no such processor.
    pub(crate) fn own_fault(&mut self, fault: Fault) -> Option<Exit> {
        if self.is_task {
            return Some(self.task_fault(fault));
        }
        let (core, mut live) = self.parts();
        let result = core.raise(&mut live, fault);
        self.done(result)
    }

    /// Reports a fault that concerns others. The manifest says what happens.
    pub(crate) fn foreign_fault(&mut self, cause: &Cause) -> Option<Exit> {
        *self.pending = Pending::Fault(cause.fault());
        let pc = self.parts().1.register(15);
        Some(Exit::Fault(report(cause, pc)))
    }

    /// Answers a frame that the CPU could not push or pop. The guest's stack pointer points to memory that is
    /// not the guest's, or to memory that the guest's own protection unit denies, which is the guest's own
    /// business.
    pub(crate) fn no_frame(&mut self, cause: &Cause) -> Option<Exit> {
        // If the frame was meant for the guest's own exception, this exception waits after the fault.
        let waiting = sysreg::read(SHCSR);
        sysreg::write(SHCSR, waiting & !PENDED);
        // A HardFault for which there was to be a frame is over.
        take_hard_fault();
        // The CPU has noted room for floating-point registers all the same, and must not fill this room
        // later.
        fp::drop_lazy();
        let frame = self.registers.frame;
        let size = frame_size(ExcReturn(self.registers.exc_return).extended());
        let fault = cause.frame_fault();
        if !self.is_task && self.core.guest_regions().is_some() && self.space.writable(frame, size) {
            if waiting & CALL_PENDED != 0 {
                self.core.call_waits();
            }
            if cause.has(UNDEFINSTR) {
                self.core.unmasks();
            }
            let result = if cause.has(MUNSTKERR) {
                // The hypervisor has left the contents of the frame there.
                let mut live = Live::new(self.registers, self.space);
                self.core.unstacking_failed(&mut live, frame, fault)
            } else {
                let mut live = Live::without_frame(self.registers, self.space);
                self.core.stacking_failed(&mut live, frame, fault)
            };
            return self.done(result);
        }
        *self.pending = Pending::Stacking(frame, fault);
        let mut report = report(cause, 0);
        report.address = Some(GuestPhys(frame.into()));
        Some(Exit::Fault(report))
    }

    /// Looks for a store that the bus has refused a few instructions after it was made (B1.5.14). A fault
    /// that is not the business of the guest's processor is reported as exactly as it is known.
    pub(crate) fn late_fault(&mut self, cause: &Cause, now: u64) -> Option<Exit> {
        let space = self.space;
        let (core, mut live) = self.parts();
        core.advance(now);
        let pc = live.register(15);
        let found = core.store_refused_late(&mut live, |address| !space.writable(address, 1), now);
        let (pc, address) = match found {
            Late::Done => return None,
            Late::Elsewhere { at, address } => (at, Some(GuestPhys(address.into()))),
            Late::Unknown => (pc, None),
        };
        *self.pending = Pending::Fault(cause.fault());
        Some(Exit::Fault(FaultReport {
            address,
            ..report(cause, pc)
        }))
    }

    /// Handles SVC: the guest's own, or a task's hypercall.
    pub(crate) fn supervisor_call(&mut self) -> Option<Exit> {
        if self.is_task {
            return self.hypercall(0);
        }
        let (core, mut live) = self.parts();
        let result = core.supervisor_call(&mut live);
        self.done(result)
    }

    /// Answers a PC at an address that cannot be executed.
    pub(crate) fn fetch_refused(&mut self, cause: &Cause) -> Option<Exit> {
        let pc = self.parts().1.register(15);
        if pc >= ExcReturn::LOWEST && !self.is_task {
            let (core, mut live) = self.parts();
            let result = core.exception_return(&mut live);
            return self.next(result);
        }
        // A refusal by the guest's own unit is its own business, be the address in the partition's code or in
        // its RAM, which no partition may execute.
        let view = self.core.guest_regions();
        if self.space.executable(pc & !3, 4) || view.is_some_and(|view| !view.executable(pc)) {
            return self.own_fault(cause.fault());
        }
        self.foreign_fault(cause)
    }

    /// Answers a load or store that was refused. The access went to the guest's processor itself, to a
    /// virtual device, or to something that is not the guest's.
    pub(crate) fn access_refused(&mut self, cause: &Cause, now: u64, loan: &Loan) -> Option<Exit> {
        let is_own = cause
            .address
            .is_some_and(|address| address < PRIVATE_BUS && !self.space.rights(address).is_none());
        if is_own && self.core.guest_regions().is_some() {
            return self.own_fault(cause.fault());
        }
        if is_own && !self.is_task {
            return self.foreign_fault(cause);
        }
        let is_task = self.is_task;
        let (core, mut live) = self.parts();
        let emulated = if is_task {
            Ok(core.foreign_access(&live))
        } else {
            core.access_trapped(&mut live, now)
        };
        match emulated {
            Ok(Emulated::Done) => None,
            Ok(Emulated::NoAccess) => self.several_refused(cause, loan),
            Ok(Emulated::Elsewhere(access)) => Some(self.access_exit(cause, &access)),
            Err(_) => Some(self.stuck()),
        }
    }

    /// Answers a load or store of several registers, or an instruction that is none. Only the device that is
    /// lent takes accesses of several registers.
    #[inline(never)]
    fn several_refused(&mut self, cause: &Cause, loan: &Loan) -> Option<Exit> {
        let (core, mut live) = self.parts();
        let mut level = None;
        let several = core.access_several(&mut live, |address, stored| {
            loan.access(address, stored, &mut level)
        });
        if let Some((line, level)) = loan.line().zip(level) {
            core.set_line(line, level);
        }
        match several {
            Several::Done => None,
            Several::Last(access) if loan.holds(access.address) => Some(self.access_exit(cause, &access)),
            Several::Last(_) | Several::Refused => {
                let exit = self.foreign_fault(cause);
                // A program whose own protection unit has not refused the address finds nothing there, as
                // with an access to one register.
                if let Some(address) = cause.address {
                    *self.pending = Pending::Fault(Fault::bus(address));
                }
                exit
            }
        }
    }

    /// Returns the exit for a load or store that the kernel answers.
    fn access_exit(&mut self, cause: &Cause, access: &Elsewhere) -> Exit {
        let pc = self.parts().1.register(15);
        let address = GuestPhys(access.address.into());
        *self.pending = Pending::Access;
        Exit::Access(Access {
            space: AddressSpace::Memory,
            address,
            size: access.size,
            kind: access
                .store
                .map_or(AccessKind::Read, |value| AccessKind::Write(value.into())),
            report: FaultReport {
                address: Some(address),
                ..report(cause, pc)
            },
        })
    }

    /// Answers an undefined instruction: an instruction that the host tool put there, a hypercall, or the
    /// guest's own. Where `is_own` says so, an instruction is the guest's own and not one of the host tool's.
    pub(crate) fn undefined(&mut self, cause: &Cause, is_own: impl Fn(u32) -> bool) -> Option<Exit> {
        let is_task = self.is_task;
        let (core, mut live) = self.parts();
        let pc = live.register(15);
        if !is_task && !is_own(pc) {
            if let Some(done) = core.access_unprivileged(&mut live) {
                return match done {
                    Ok(Emulated::Done) => None,
                    Ok(Emulated::Elsewhere(access)) => Some(self.access_exit(cause, &access)),
                    Ok(Emulated::NoAccess) => self.foreign_fault(cause),
                    Err(_) => Some(self.stuck()),
                };
            }
            if let Some(result) = core.replaced_instruction(&mut live) {
                return self.next(result);
            }
            if live.fetch(pc) == Some(HYPERCALL_INSTRUCTION) {
                return self.hypercall(2);
            }
        }
        self.own_fault(cause.fault())
    }

    /// Handles BKPT, which no debugger has taken. The instruction is a call of a debugger by code that is
    /// privileged on the guest's own processor, or else the guest's fault.
    #[inline(never)]
    pub(crate) fn breakpoint(&mut self, status: u32, time: (u64, u32)) -> Option<Exit> {
        let is_answered = self.semihosting && self.core.privileged();
        let (core, mut live) = self.parts();
        if is_answered && live.fetch(live.register(15)) == Some(SEMIHOSTING) {
            return core.host_called(&mut live, time).map(|call| match call {
                HostCall::Failed(0) => Exit::Reset(ResetKind::Off),
                call => Exit::Host(call),
            });
        }
        self.own_fault(Fault::Hard { status })
    }

    /// Lets the guest go on or sleep.
    pub(crate) fn next(&mut self, result: Result<Next, Lockup>) -> Option<Exit> {
        match result {
            Ok(Next::Run) => None,
            Ok(Next::Sleep) if self.core.has_work() => None,
            Ok(Next::Sleep) => Some(Exit::Idle {
                until: own_deadline(self.core),
            }),
            Err(_) => Some(self.stuck()),
        }
    }

    /// Answers a hypercall by an instruction of `length` bytes at which the PC still is.
    fn hypercall(&mut self, length: u32) -> Option<Exit> {
        take_hypercall(&mut self.parts().1, length).map(Exit::Hypercall)
    }
}
