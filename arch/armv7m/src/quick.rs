// SPDX-License-Identifier: Apache-2.0
//! The shortest ways, for what an RTOS does all the time: masks and PSP by instructions that the host tool has replaced, one register of the
//! private peripheral bus or of the device that the kernel lends (`window`), SVC and the return from it.
//!
//! The long way is `traps`; what is not plain here goes there, with nothing done. Plain is: a VM, its frame in its RAM, its instruction in its
//! code, one cause of the trap. Nothing is remembered from one trap to the next, so what a way costs depends on its guest alone.

use crate::clock::Counter;
use crate::entry::Registers;
use crate::live::Live;
use crate::machine::Machine;
use crate::system::{self, BFARVALID, CFSR, MMARVALID, MMFAR};
use crate::traps::{
    BUS_FAULT, DACCVIOL, IACCVIOL, MEMORY_FAULT, PRECISERR, SUPERVISOR_CALL, UNDEFINSTR, USAGE_FAULT, on_trap,
};
use crate::vcpu::Context;
use crate::window::Loan;
use bulkhead_arch_deprivileged::{ExcReturn, Lockup, Next, VirtualCore, word_quickly};
use bulkhead_arch_support::physical;

/// What of the current vCPU's space is plain: its RAM and its code, each as first address and how far from there what is asked about may begin, and
/// what in the code looks like a replaced instruction and is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    pub(crate) ram: (u32, u32),
    pub(crate) code: (u32, u32),
    pub(crate) lookalikes: &'static [u32],
}

impl Plain {
    /// Nothing: no frame and no instruction is at an odd address.
    pub(crate) const NOTHING: Self = Self {
        ram: (1, 0),
        code: (1, 0),
        lookalikes: &[],
    };

    #[inline(always)]
    const fn has_frame(&self, address: u32) -> bool {
        address.wrapping_sub(self.ram.0) <= self.ram.1
    }

    #[inline(always)]
    const fn has_code(&self, address: u32) -> bool {
        address.wrapping_sub(self.code.0) <= self.code.1
    }

    /// Whether what looks like a replaced instruction at `address` is one. Bounded by the logarithm of the number of lookalikes, of which there
    /// mostly are none.
    #[inline(always)]
    fn is_replaced(&self, address: u32) -> bool {
        let mut rest = self.lookalikes;
        while let (before, [middle, after @ ..]) = rest.split_at(rest.len() / 2) {
            if *middle == address {
                return false;
            }
            rest = if *middle < address { after } else { before };
        }
        self.has_code(address)
    }
}

/// What a way may look at besides the guest.
#[derive(Clone, Copy)]
struct Known<'m> {
    plain: &'m Plain,
    counter: &'m Counter,
    loan: &'m Loan,
}

/// How a trap ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quick {
    /// The guest goes on.
    Done,
    /// It goes on when it is prepared.
    Prepare,
    /// It sleeps.
    Sleep,
    /// Its processor has stopped.
    Stuck,
    /// Nothing has been done.
    Not,
}

impl Quick {
    /// By what is left to do: nothing, something, or nothing any more.
    #[inline(always)]
    fn of(result: Result<bool, Lockup>) -> Self {
        match result {
            Ok(true) => Self::Done,
            Ok(false) => Self::Prepare,
            Err(_) => Self::Stuck,
        }
    }
}

/// The halfwords of an instruction of the partition's code.
#[inline(always)]
fn instruction(at: u32) -> (u16, u16) {
    let word = |address: u32| {
        // SAFETY: a word of code memory: `at` is the address of an instruction there, of four bytes or with more code behind it.
        unsafe { physical::read_word32(address as usize) }
    };
    let low = word(at & !3);
    if at & 2 == 0 {
        (low as u16, (low >> 16) as u16)
    } else {
        ((low >> 16) as u16, word((at & !3) + 4) as u16)
    }
}

impl Machine {
    /// Does what `act` does for the guest that runs, if its frame is plain.
    #[inline(always)]
    fn plainly(
        &mut self,
        context: &mut Context,
        act: impl FnOnce(&mut VirtualCore, &mut Live<'_>, Known<'_>) -> Quick,
    ) -> Quick {
        if !self.plain.has_frame(context.registers.frame) {
            return Quick::Not;
        }
        let Some(space) = self.spaces.get(context.partition) else {
            return Quick::Not;
        };
        let mut live = Live::on_ram(&mut context.registers, space);
        let known = Known {
            plain: &self.plain,
            counter: &self.counter,
            loan: &self.loan,
        };
        act(&mut context.core, &mut live, known)
    }
}

/// Exception `number`, if `act` does not make it to the end: on the long way. The answer is that to `entry`.
///
/// # Safety
/// As for [`on_trap`]; `registers` were lent likewise, and if a guest runs, they are the first field of its context.
#[inline(always)]
unsafe fn shortest(
    machine: *mut Machine,
    registers: *mut Registers,
    number: u32,
    act: impl FnOnce(&mut VirtualCore, &mut Live<'_>, Known<'_>) -> Quick,
) -> u32 {
    // SAFETY: the caller's: nobody else uses the machine.
    let lent = unsafe { &mut *machine };
    let quick = if lent.runs {
        // SAFETY: the caller's; contexts are not part of the machine.
        let context = unsafe { &mut *registers.cast::<Context>() };
        lent.plainly(context, act)
    } else {
        Quick::Not
    };
    match quick {
        Quick::Done => 0,
        // SAFETY: the caller's; what was borrowed above is not used any more.
        Quick::Not => unsafe { on_trap(machine, number) },
        quick => lent.finish(quick),
    }
}

/// SVC.
///
/// # Safety
/// As for [`on_trap`]; `registers` were lent likewise, and if a guest runs, they are the first field of its context.
pub(crate) unsafe extern "C" fn on_call(machine: *mut Machine, _: u32, registers: *mut Registers) -> u32 {
    let act = |core: &mut VirtualCore, live: &mut Live<'_>, _: Known<'_>| match core.call_quickly(live) {
        Ok(false) => Quick::Not,
        called => Quick::of(called.map(|_| core.view_is_shown())),
    };
    // SAFETY: the caller's.
    unsafe { shortest(machine, registers, SUPERVISOR_CALL, act) }
}

/// MemManage: the return from an exception, or a load or store of the device that is lent.
///
/// # Safety
/// As for [`on_call`].
pub(crate) unsafe extern "C" fn on_memory(machine: *mut Machine, _: u32, registers: *mut Registers) -> u32 {
    let act = |core: &mut VirtualCore, live: &mut Live<'_>, known: Known<'_>| {
        let pc = live.pc();
        if pc < ExcReturn::LOWEST {
            return access_loan(core, live, pc, known);
        }
        if system::read(CFSR) != IACCVIOL {
            return Quick::Not;
        }
        system::write(CFSR, IACCVIOL);
        match core.exception_return(live) {
            Ok(Next::Run) if core.is_restless() => Quick::Prepare,
            Ok(Next::Run) => Quick::Done,
            Ok(Next::Sleep) => Quick::Sleep,
            Err(_) => Quick::Stuck,
        }
    };
    // SAFETY: the caller's.
    unsafe { shortest(machine, registers, MEMORY_FAULT, act) }
}

/// A load or store of a word of the device that is lent.
#[inline(always)]
fn access_loan(core: &mut VirtualCore, live: &mut Live<'_>, pc: u32, known: Known<'_>) -> Quick {
    const REFUSED: u32 = DACCVIOL | MMARVALID;
    let loan = known.loan;
    if !loan.holds(system::read(MMFAR)) || !known.plain.has_code(pc) || system::read(CFSR) != REFUSED {
        return Quick::Not;
    }
    let (first, second) = instruction(pc);
    let mut level = None;
    let done = word_quickly(live, first, second, |address, stored| {
        loan.access(address, stored, &mut level)
    });
    if !done {
        return Quick::Not;
    }
    system::write(CFSR, REFUSED);
    if let Some((line, level)) = loan.line().zip(level) {
        core.set_line(line, level);
        return Quick::Prepare;
    }
    Quick::Done
}

/// BusFault: a load or store of the private peripheral bus.
///
/// # Safety
/// As for [`on_call`].
pub(crate) unsafe extern "C" fn on_bus(machine: *mut Machine, _: u32, registers: *mut Registers) -> u32 {
    const PRECISE: u32 = PRECISERR | BFARVALID;
    let act = |core: &mut VirtualCore, live: &mut Live<'_>, known: Known<'_>| {
        let pc = live.pc();
        if !known.plain.has_code(pc) || system::read(CFSR) != PRECISE {
            return Quick::Not;
        }
        let (first, second) = instruction(pc);
        if !core.access_quickly(live, first, second, known.counter.read()) {
            return Quick::Not;
        }
        system::write(CFSR, PRECISE);
        if core.has_changed() {
            return Quick::Prepare;
        }
        Quick::of(core.deliver_quickly(live))
    };
    // SAFETY: the caller's.
    unsafe { shortest(machine, registers, BUS_FAULT, act) }
}

/// UsageFault: a replaced instruction.
///
/// # Safety
/// As for [`on_call`].
pub(crate) unsafe extern "C" fn on_usage(machine: *mut Machine, _: u32, registers: *mut Registers) -> u32 {
    let act = |core: &mut VirtualCore, live: &mut Live<'_>, known: Known<'_>| {
        let pc = live.pc();
        if system::read(CFSR) != UNDEFINSTR || !known.plain.is_replaced(pc) {
            return Quick::Not;
        }
        let (first, second) = instruction(pc);
        if !core.replaced_quickly(live, first, second) {
            return Quick::Not;
        }
        system::write(CFSR, UNDEFINSTR);
        Quick::of(core.deliver_quickly(live))
    };
    // SAFETY: the caller's.
    unsafe { shortest(machine, registers, USAGE_FAULT, act) }
}
