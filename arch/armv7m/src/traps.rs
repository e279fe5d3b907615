// SPDX-License-Identifier: Apache-2.0
//! Traps: the way of every exception that interrupts Thread mode, from the moment the guest's registers are
//! saved to the moment they are loaded again or its run is over.
//!
//! `answer` has the answers to a guest's trap, `quick` has the same on the shortest ways.

use crate::context::own_deadline;
use crate::machine::Machine;
use crate::masks;
use crate::starts;
use crate::sysreg::{self, BFAR, CFSR, HFSR, ICSR, MMFAR};
use bulkhead_arch_api::{Clock, Exit, VcpuId};
use bulkhead_arch_armv7m_core::{Cause, Exception, Lockup, Next, Subject};

/// Numbers of exceptions (B1.5.2).
const HARD_FAULT: u32 = 3;
pub(crate) const MEMORY_FAULT: u32 = 4;
pub(crate) const BUS_FAULT: u32 = 5;
pub(crate) const USAGE_FAULT: u32 = 6;
pub(crate) const SUPERVISOR_CALL: u32 = 11;
/// SysTick, which stands for a guest's HardFault (see `entry`).
const STANDS_FOR_HARD_FAULT: u32 = 15;
/// PendSV: the end of an early start (see `early`).
const EARLY_START: u32 = 14;
const FIRST_LINE: u32 = 16;
/// ICSR.PENDSTCLR (B3.2.4).
const CLEAR_SYSTICK: u32 = 1 << 25;

/// Takes the CPU's description of a fault, so that the next fault finds only its own.
fn take_cause(number: u32) -> Cause {
    let status = sysreg::read(CFSR);
    // An address stays in its register even when its valid bit is gone.
    let cause = Cause::read(
        Exception(number as u8),
        status,
        || sysreg::read(MMFAR),
        || sysreg::read(BFAR),
    );
    sysreg::write(CFSR, status);
    cause
}

/// Takes the CPU's description of a HardFault. The HardFault comes before the fault of pushing its frame
/// (B1.5.6), which has left its mark in CFSR.
pub(crate) fn take_hard_fault() -> u32 {
    sysreg::write(ICSR, CLEAR_SYSTICK);
    let status = sysreg::read(HFSR);
    sysreg::write(HFSR, status);
    status
}

/// The end of a trap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quick {
    /// The guest goes on.
    Done,
    /// The guest goes on when it is prepared.
    Prepare,
    /// The guest sleeps.
    Sleep,
    /// The guest's processor has stopped.
    Stuck,
    /// Nothing has been done.
    Not,
}

impl Quick {
    /// Returns the end of a trap by the rest of its work: nothing, something, or nothing any more.
    #[inline(always)]
    pub(crate) fn of(result: Result<bool, Lockup>) -> Self {
        match result {
            Ok(true) => Self::Done,
            Ok(false) => Self::Prepare,
            Err(_) => Self::Stuck,
        }
    }
}

/// Handles every exception that interrupts Thread mode. Returns 0 to go on there.
///
/// # Safety
/// Called by `entry` only: `machine` was lent by `run` or `wait`, which do not use it again until this has
/// answered 1.
pub(crate) unsafe extern "C" fn on_trap(machine: *mut Machine, number: u32) -> u32 {
    // SAFETY: see above.
    let machine = unsafe { &mut *machine };
    let running = machine.current.filter(|_| machine.runs);
    if let Some(context) = running.and_then(|vcpu| machine.contexts.get(vcpu)) {
        masks::take_slowly(&context.masks, &mut context.core);
    }
    let exit = match (number.checked_sub(FIRST_LINE), running) {
        (Some(line), _) if machine.interrupt(line) => return 1,
        (Some(_), _) => None,
        (None, _) if starts::IS_THERE && number == EARLY_START => machine.early_exit(),
        (None, Some(vcpu)) => match machine.guest_trap(vcpu, number) {
            None if machine.is_calm(vcpu, number) => return 0,
            exit => exit,
        },
        (None, None) => crate::crash::crash(machine.idle.frame, number),
    };
    machine.leave(exit, running)
}

impl Machine {
    /// Does the rest of a trap that was not finished on the shortest way. The answer is as from
    /// [`on_trap`].
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

    /// Leaves the handler: back to the guest, which is brought up to date, or out of the guest.
    fn leave(&mut self, exit: Option<Exit>, running: Option<VcpuId>) -> u32 {
        if let (Some(Exit::Idle { .. }), Some(vcpu)) = (&exit, running) {
            self.arm_early(vcpu);
        }
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

    /// Tells whether the guest can go on as it is after an exception of its own making.
    #[inline]
    fn is_calm(&mut self, vcpu: VcpuId, number: u32) -> bool {
        let deadline = self.deadline;
        let (armed, earliest) = (self.armed, self.earliest_own);
        let Some(context) = self.contexts.get(vcpu) else {
            return false;
        };
        let wanted = own_deadline(&context.core).max(earliest).min(deadline);
        let same_time = number != BUS_FAULT || wanted == armed;
        let is_calm = same_time && !context.core.is_restless();
        if is_calm {
            masks::show_all(&mut context.masks, &context.core);
        }
        is_calm
    }

    /// Handles an exception of the guest's own making.
    fn guest_trap(&mut self, vcpu: VcpuId, number: u32) -> Option<Exit> {
        let number = match number {
            STANDS_FOR_HARD_FAULT => HARD_FAULT,
            number => number,
        };
        let (lookalikes, loan, hertz) = (self.lookalikes, self.loan, self.hertz);
        // Only instructions that read or write the timer, or ask for the time, depend on the time.
        let now = if matches!(number, MEMORY_FAULT | BUS_FAULT | HARD_FAULT) {
            self.now().0
        } else {
            0
        };
        let mut trapped = self.trapped(vcpu)?;
        if number == SUPERVISOR_CALL {
            return trapped.supervisor_call();
        }
        let hard_status = if number == HARD_FAULT {
            take_hard_fault()
        } else {
            0
        };
        let cause = take_cause(number);
        match cause.subject() {
            Subject::Frame => trapped.no_frame(&cause),
            Subject::Undefined => trapped.undefined(&cause, |pc| lookalikes.binary_search(&pc).is_ok()),
            Subject::Own => trapped.own_fault(cause.fault()),
            Subject::Fetch => trapped.fetch_refused(&cause),
            Subject::Access => trapped.access_refused(&cause, now, &loan),
            Subject::LateStore => trapped.late_fault(&cause, now),
            Subject::Breakpoint => trapped.breakpoint(hard_status, (now, hertz)),
            Subject::Unknown => trapped.foreign_fault(&cause),
        }
    }
}
