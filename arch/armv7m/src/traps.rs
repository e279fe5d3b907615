// SPDX-License-Identifier: Apache-2.0
//! What took the CPU out of a guest: what is answered here, and what becomes an exit.
//!
//! A guest's own business (its private peripheral bus, replaced instructions, exception entry and return, faults that its
//! own processor would have reported) is finished here by the model of its processor. What concerns
//! others is an exit: accesses to addresses that are not the partition's, hypercalls, sleep.
//!
//! **Hypercalls.** A VM uses `UDF #0xB1`, because SVC is its own; a task uses SVC. See `bulkhead_abi`.

use crate::fp;
use crate::irq::own_deadline;
use crate::live::Live;
use crate::machine::Machine;
use crate::quick::Quick;
use crate::system::{self, BFAR, BFARVALID, CFSR, HFSR, MMARVALID, MMFAR, MSTKERR, SHCSR, STKERR};
use crate::vcpu::{Pending, Trapped};
use crate::window::Loan;
use bulkhead_abi::HealthClass;
use bulkhead_abi::hypercall::{FUNCTION_BASE, HYPERCALL_INSTRUCTION};
use bulkhead_arch_api::{
    Access, AccessKind, Clock, Exit, FaultReport, GuestPhys, HostCall, Hypercall, ResetKind, VcpuId,
};
use bulkhead_arch_deprivileged::{
    Access as Elsewhere, ExcReturn, Fault, Guest, Late, Lockup, Next, PRIVATE_BUS, SEMIHOSTING, Several,
    Trapped as Emulated, UsageStatus, advance_it, frame_size,
};

/// Numbers of exceptions (B1.5.2).
const HARD_FAULT: u32 = 3;
pub(crate) const MEMORY_FAULT: u32 = 4;
pub(crate) const BUS_FAULT: u32 = 5;
pub(crate) const USAGE_FAULT: u32 = 6;
pub(crate) const SUPERVISOR_CALL: u32 = 11;
const FIRST_LINE: u32 = 16;

/// CFSR (B3.2.15): an instruction fetch or an access the unit forbids, a frame that could not be popped.
pub(crate) const IACCVIOL: u32 = 1;
pub(crate) const DACCVIOL: u32 = 1 << 1;
const MUNSTKERR: u32 = 1 << 3;
/// The same of the bus.
const IBUSERR: u32 = 1 << 8;
pub(crate) const PRECISERR: u32 = 1 << 9;
const IMPRECISERR: u32 = 1 << 10;
const UNSTKERR: u32 = 1 << 11;
pub(crate) const UNDEFINSTR: u32 = 1 << 16;
const USAGE_BITS: u32 = 0xFFFF_0000;
const MEMORY_BITS: u32 = 0xFF;
const BUS_BITS: u32 = 0xFF00;
/// SHCSR (B3.2.13): exceptions that wait for another to end.
const PENDED: u32 = 0xF << 12;
const CALL_PENDED: u32 = 1 << 15;

/// What the CPU says about a fault.
#[derive(Clone, Copy)]
struct Cause {
    exception: u32,
    status: u32,
    address: Option<u32>,
}

impl Cause {
    /// Reads it, and takes it away so that the next fault's is its own.
    fn take(exception: u32) -> Self {
        let status = system::read(CFSR);
        // An address stays in its register when its valid bit is gone.
        let address = if status & MMARVALID != 0 {
            Some(system::read(MMFAR))
        } else if status & BFARVALID != 0 {
            Some(system::read(BFAR))
        } else {
            None
        };
        system::write(CFSR, status);
        Self {
            exception,
            status,
            address,
        }
    }

    const fn has(&self, bits: u32) -> bool {
        self.status & bits != 0
    }

    /// The fault as the guest's own processor would report it.
    const fn fault(&self) -> Fault {
        let address = self.address;
        if self.has(USAGE_BITS) {
            Fault::Usage(UsageStatus(self.status & USAGE_BITS))
        } else if self.has(BUS_BITS) {
            Fault::Bus {
                status: self.status & BUS_BITS & !BFARVALID,
                address,
            }
        } else {
            Fault::Memory {
                status: self.status & MEMORY_BITS & !MMARVALID,
                address,
            }
        }
    }

    /// The fault of a frame that could not be pushed or popped. What else is noted there is mostly why there was to be a frame: that an
    /// instruction traps, which it does not on the guest's own processor. Only an access that the protection unit refused is its own.
    const fn frame_fault(&self) -> Fault {
        let (kept, valid) = if self.has(MSTKERR | MUNSTKERR) {
            (MEMORY_BITS, MMARVALID)
        } else {
            (BUS_BITS, BFARVALID)
        };
        Self {
            exception: self.exception,
            status: self.status & kept,
            address: if self.has(valid) { self.address } else { None },
        }
        .fault()
    }

    /// The report of a fault at `pc` that concerns others.
    fn report(&self, pc: u32) -> FaultReport {
        FaultReport {
            class: HealthClass::Memory,
            syndrome: u64::from(self.exception) << 32 | u64::from(self.status),
            pc: pc.into(),
            address: self.address.map(|address| GuestPhys(address.into())),
            virtual_address: None,
        }
    }
}

/// The handler of every exception that interrupts Thread mode: 0 to go on there.
///
/// # Safety
/// Called by `entry` only: `machine` was lent by `run` or `wait`, which use it no more until this has answered 1.
pub(crate) unsafe extern "C" fn on_trap(machine: *mut Machine, number: u32) -> u32 {
    // SAFETY: see above.
    let machine = unsafe { &mut *machine };
    let running = machine.current.filter(|_| machine.runs);
    let exit = match (number.checked_sub(FIRST_LINE), running) {
        (Some(line), _) if machine.interrupt(line) => return 1,
        (Some(_), _) => None,
        (None, Some(vcpu)) => match machine.guest_trap(vcpu, number) {
            None if machine.is_calm(vcpu, number) => return 0,
            exit => exit,
        },
        (None, None) => crate::crash::crash(machine.idle.frame, number),
    };
    machine.leave(exit, running)
}

impl Machine {
    /// The rest of a trap that was not finished on the shortest way; answers as [`on_trap`].
    #[inline(never)]
    pub(crate) fn finish(&mut self, quick: Quick) -> u32 {
        let exit = self.current.and_then(|vcpu| match quick {
            Quick::Stuck => self.trapped(vcpu).map(|mut trapped| trapped.stuck()),
            Quick::Sleep => self
                .trapped(vcpu)
                .and_then(|mut trapped| trapped.next(Ok(Next::Sleep))),
            _ => None,
        });
        self.leave(exit, self.current)
    }

    /// Back to the guest, brought up to date, or out of it.
    fn leave(&mut self, exit: Option<Exit>, running: Option<VcpuId>) -> u32 {
        let exit = match (exit, running) {
            (Some(exit), _) => Some(exit),
            (None, Some(vcpu)) => self.prepare(vcpu),
            (None, None) => {
                self.set_timer(self.deadline);
                None
            }
        };
        match exit {
            None => 0,
            Some(exit) => {
                self.exit = exit;
                1
            }
        }
    }

    /// Whether the guest can go on as it is after an exception of its own making.
    #[inline]
    fn is_calm(&mut self, vcpu: VcpuId, number: u32) -> bool {
        let deadline = self.deadline;
        let (armed, earliest) = (self.armed, self.earliest_own);
        let Some(context) = self.contexts.get(vcpu) else {
            return false;
        };
        let wanted = own_deadline(&context.core).max(earliest).min(deadline);
        let same_time = number != BUS_FAULT || wanted == armed;
        same_time && !context.core.is_restless()
    }

    /// An exception of the guest's own making.
    fn guest_trap(&mut self, vcpu: VcpuId, number: u32) -> Option<Exit> {
        let (lookalikes, loan, hertz) = (self.lookalikes, self.loan, self.hertz);
        // Only what reads or writes the timer, or asks for the time, depends on it.
        let now = if matches!(number, MEMORY_FAULT | BUS_FAULT | HARD_FAULT) {
            self.now().0
        } else {
            0
        };
        let mut trapped = self.trapped(vcpu)?;
        match number {
            SUPERVISOR_CALL => trapped.supervisor_call(),
            USAGE_FAULT => {
                let cause = Cause::take(number);
                if cause.has(MSTKERR | STKERR | MUNSTKERR | UNSTKERR) {
                    trapped.no_frame(&cause)
                } else if cause.has(UNDEFINSTR) {
                    trapped.undefined(&cause, |pc| lookalikes.binary_search(&pc).is_ok())
                } else {
                    trapped.own_fault(cause.fault())
                }
            }
            MEMORY_FAULT | BUS_FAULT => {
                let cause = Cause::take(number);
                if cause.has(MSTKERR | STKERR | MUNSTKERR | UNSTKERR) {
                    trapped.no_frame(&cause)
                } else if cause.has(IACCVIOL | IBUSERR) {
                    trapped.fetch_refused(&cause)
                } else if cause.has(DACCVIOL | PRECISERR) {
                    trapped.access_refused(&cause, now, &loan)
                } else if cause.has(IMPRECISERR) {
                    trapped.late_fault(&cause, now)
                } else {
                    trapped.foreign_fault(&cause)
                }
            }
            HARD_FAULT => {
                let status = system::read(HFSR);
                system::write(HFSR, status);
                // It comes before the fault of pushing its frame (Arm DDI 0403E, B1.5.6), which has left its mark in CFSR.
                let cause = Cause::take(number);
                if cause.has(MSTKERR | STKERR | MUNSTKERR | UNSTKERR) {
                    trapped.no_frame(&cause)
                } else {
                    trapped.breakpoint(status, (now, hertz))
                }
            }
            _ => trapped.foreign_fault(&Cause::take(number)),
        }
    }
}

impl Trapped<'_> {
    /// What the model of the processor made of it.
    fn done(&mut self, result: Result<(), Lockup>) -> Option<Exit> {
        result.is_err().then(|| self.stuck())
    }

    /// A fault that the guest's own processor would have reported. A task has none.
    fn own_fault(&mut self, fault: Fault) -> Option<Exit> {
        if self.is_task {
            return Some(self.task_fault(fault));
        }
        let (core, mut live) = self.parts();
        let result = core.raise(&mut live, fault);
        self.done(result)
    }

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

    /// A fault that concerns others: the manifest says what happens.
    fn foreign_fault(&mut self, cause: &Cause) -> Option<Exit> {
        *self.pending = Pending::Fault(cause.fault());
        let pc = self.parts().1.register(15);
        Some(Exit::Fault(cause.report(pc)))
    }

    /// The CPU could not push or pop a frame: the guest's stack pointer points to memory that is not its own, or that its own
    /// protection unit denies it, which is its own business.
    fn no_frame(&mut self, cause: &Cause) -> Option<Exit> {
        // The exception whose frame it was to be, if it was the guest's own, waits behind this one.
        let waiting = system::read(SHCSR);
        system::write(SHCSR, waiting & !PENDED);
        // The CPU has noted room for floating-point registers all the same: it must not fill it later.
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
            let mut live = Live::without_frame(self.registers, self.space);
            let result = self.core.stacking_failed(&mut live, frame, fault);
            return self.done(result);
        }
        *self.pending = Pending::Stacking(frame, fault);
        let mut report = cause.report(0);
        report.address = Some(GuestPhys(frame.into()));
        Some(Exit::Fault(report))
    }

    /// The bus has refused a store that was made a few instructions ago (B1.5.14): which one is looked for. What is not the business of
    /// the guest's processor is reported as exactly as it is known.
    fn late_fault(&mut self, cause: &Cause, now: u64) -> Option<Exit> {
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
            ..cause.report(pc)
        }))
    }

    /// The guest is left: a store of its that the bus refuses is its own, not that of whoever runs next. It has no
    /// health event: memory that is not its own is refused at once, by the protection unit.
    pub(crate) fn settle_faults(&mut self, now: u64) {
        system::synchronize();
        let status = system::read(CFSR);
        if status == 0 {
            return;
        }
        system::write(CFSR, status);
        system::write(SHCSR, system::read(SHCSR) & !PENDED);
        if status & IMPRECISERR == 0 {
            return;
        }
        if self.is_task {
            if matches!(self.pending, Pending::Nothing) {
                *self.pending = Pending::Late(Fault::Bus {
                    status: IMPRECISERR,
                    address: None,
                });
            }
            return;
        }
        let (core, mut live) = self.parts();
        core.advance(now);
        if core.store_refused_late(&mut live, |_| false, now) != Late::Done {
            core.late_bus_fault();
        }
    }

    /// SVC: the guest's own, or a task's hypercall.
    fn supervisor_call(&mut self) -> Option<Exit> {
        if self.is_task {
            return self.hypercall(0);
        }
        let (core, mut live) = self.parts();
        let result = core.supervisor_call(&mut live);
        self.done(result)
    }

    /// The PC is at an address that cannot be executed.
    fn fetch_refused(&mut self, cause: &Cause) -> Option<Exit> {
        let pc = self.parts().1.register(15);
        if pc >= ExcReturn::LOWEST && !self.is_task {
            let (core, mut live) = self.parts();
            let result = core.exception_return(&mut live);
            return self.next(result);
        }
        // What its own unit refuses is its own business, be it in the partition's code or in its RAM, which nobody may execute.
        let view = self.core.guest_regions();
        if self.space.executable(pc & !3, 4) || view.is_some_and(|view| !view.executable(pc)) {
            return self.own_fault(cause.fault());
        }
        self.foreign_fault(cause)
    }

    /// A load or store was refused: of the guest's processor itself, of a virtual device, or of something that is not the
    /// guest's.
    fn access_refused(&mut self, cause: &Cause, now: u64, loan: &Loan) -> Option<Exit> {
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

    /// A load or store of several registers, or no such instruction: only the device that is lent knows the former.
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
                // To a program whose own protection unit has not refused it, nothing is there, as where it accesses one register.
                if let Some(address) = cause.address {
                    *self.pending = Pending::Fault(Fault::bus(address));
                }
                exit
            }
        }
    }

    /// A load or store that is the kernel's to answer.
    fn access_exit(&mut self, cause: &Cause, access: &Elsewhere) -> Exit {
        let pc = self.parts().1.register(15);
        let address = GuestPhys(access.address.into());
        *self.pending = Pending::Access;
        Exit::Access(Access {
            address,
            size: access.size,
            kind: access
                .store
                .map_or(AccessKind::Read, |value| AccessKind::Write(value.into())),
            report: FaultReport {
                address: Some(address),
                ..cause.report(pc)
            },
        })
    }

    /// An undefined instruction: one the host tool put there, a hypercall, or the guest's own, for which the first kind is not taken if `is_own` says so.
    fn undefined(&mut self, cause: &Cause, is_own: impl Fn(u32) -> bool) -> Option<Exit> {
        let is_task = self.is_task;
        let (core, mut live) = self.parts();
        let pc = live.register(15);
        if !is_task && !is_own(pc) {
            if let Some(result) = core.replaced_instruction(&mut live) {
                return self.next(result);
            }
            if live.fetch(pc) == Some(HYPERCALL_INSTRUCTION) {
                return self.hypercall(2);
            }
        }
        self.own_fault(cause.fault())
    }

    /// BKPT, which no debugger has taken: a call of one by code that is privileged on the guest's own processor, or the guest's fault.
    #[inline(never)]
    fn breakpoint(&mut self, status: u32, time: (u64, u32)) -> Option<Exit> {
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

    /// The guest goes on, or sleeps.
    fn next(&mut self, result: Result<Next, Lockup>) -> Option<Exit> {
        match result {
            Ok(Next::Run) => None,
            Ok(Next::Sleep) if self.core.has_work() => None,
            Ok(Next::Sleep) => Some(Exit::Idle {
                until: own_deadline(self.core),
            }),
            Err(_) => Some(self.stuck()),
        }
    }

    /// A hypercall by an instruction of `length` bytes that the PC is still at.
    fn hypercall(&mut self, length: u32) -> Option<Exit> {
        let (_, mut live) = self.parts();
        let function = live.register(0);
        let next = live.register(15).wrapping_add(length);
        live.set_register(15, next);
        // An undefined instruction may be one of an IT block; of SVC the CPU has counted that itself.
        if length != 0 {
            live.set_xpsr(advance_it(live.xpsr()));
        }
        if function & !0xFFFF != FUNCTION_BASE {
            live.set_register(0, bulkhead_abi::Error::NotSupported as i64 as u32);
            return None;
        }
        let pair = |low: u8, live: &Live<'_>| {
            u64::from(live.register(low)) | u64::from(live.register(low + 1)) << 32
        };
        Some(Exit::Hypercall(Hypercall {
            operation: function as u16,
            arguments: [
                live.register(1).into(),
                pair(2, &live),
                pair(4, &live),
                pair(6, &live),
                pair(8, &live),
                pair(10, &live),
            ],
        }))
    }
}
