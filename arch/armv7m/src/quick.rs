// SPDX-License-Identifier: Apache-2.0
//! The shortest ways, for the everyday operations of an RTOS. These are masks and PSP by instructions that
//! the host tool has replaced, one register of the private peripheral bus or of the device that the kernel
//! lends (`window`), SVC and the return from it.
//!
//! The long way is `traps`: a trap that is not plain here goes there, with nothing done. A trap is plain if
//! it has a VM, its frame in its RAM, its instruction in its code, and one cause. Nothing is remembered from
//! one trap to the next, so the cost of a way depends on its guest alone.

use crate::context::{Context, Registers};
use crate::live::Live;
use crate::machine::Machine;
use crate::masks;
use crate::protection::Plain;
use crate::sysreg::{self, CFSR, MMFAR};
use crate::traps::{BUS_FAULT, MEMORY_FAULT, Quick, SUPERVISOR_CALL, USAGE_FAULT, on_trap};
use crate::window::Loan;
use bulkhead_arch_armv7m_core::status::{BFARVALID, DACCVIOL, IACCVIOL, MMARVALID, PRECISERR, UNDEFINSTR};
use bulkhead_arch_armv7m_core::{ExcReturn, Next, VirtualCore, word_quickly};
use bulkhead_arch_one_pcpu::Counter;
use bulkhead_arch_support::physical;

/// The things that a way may look at besides the guest.
#[derive(Clone, Copy)]
struct Known<'m> {
    plain: &'m Plain,
    counter: &'m Counter,
    loan: &'m Loan,
}

/// Returns the halfwords of an instruction of the partition's code.
#[inline(always)]
fn instruction(at: u32) -> (u16, u16) {
    let word = |address: u32| {
        // SAFETY: a word of code memory: `at` is the address of an instruction there, of four bytes or with
        // more code after it.
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
    /// Calls `act` for the guest that runs, if its frame is plain. If `act` does not look at the masks, as
    /// `late` says, they are taken only where something waits afterwards, and `act` does not deliver it.
    #[inline(always)]
    fn plainly(
        &mut self,
        context: &mut Context,
        late: bool,
        act: impl FnOnce(&mut VirtualCore, &mut Live<'_>, Known<'_>) -> Quick,
    ) -> Quick {
        if !self.plain.has_frame(context.registers.frame) {
            return Quick::Not;
        }
        let Some(space) = self.spaces.get(context.partition) else {
            return Quick::Not;
        };
        if !late {
            masks::take(&context.masks, &mut context.core);
        }
        let mut live = Live::on_ram(&mut context.registers, space);
        let known = Known {
            plain: &self.plain,
            counter: &self.counter,
            loan: &self.loan,
        };
        let quick = act(&mut context.core, &mut live, known);
        if !masks::IS_THERE {
            return quick;
        }
        if !late {
            if quick == Quick::Done {
                masks::show(&mut context.masks, &context.core);
            }
            return quick;
        }
        if quick == Quick::Done && !context.core.is_waited_for() {
            return quick;
        }
        masks::take(&context.masks, &mut context.core);
        if quick != Quick::Done {
            return quick;
        }
        let mut live = Live::on_ram(&mut context.registers, space);
        let quick = Quick::of(context.core.deliver_quickly(&mut live));
        if quick == Quick::Done {
            masks::show(&mut context.masks, &context.core);
        }
        quick
    }
}

/// Handles exception `number` by `act` ([`Machine::plainly`]), or on the long way if `act` does not make it
/// to the end. The answer is that to `entry`.
///
/// # Safety
/// As for [`on_trap`]; `registers` were lent likewise, and if a guest runs, they are the first field of its
/// context.
#[inline(always)]
unsafe fn shortest(
    machine: *mut Machine,
    registers: *mut Registers,
    number: u32,
    late: bool,
    act: impl FnOnce(&mut VirtualCore, &mut Live<'_>, Known<'_>) -> Quick,
) -> u32 {
    // SAFETY: the caller's: no other code uses the machine.
    let lent = unsafe { &mut *machine };
    let quick = if lent.runs {
        // SAFETY: the caller's; contexts are not part of the machine.
        let context = unsafe { &mut *registers.cast::<Context>() };
        lent.plainly(context, late, act)
    } else {
        Quick::Not
    };
    match quick {
        Quick::Done => 0,
        // SAFETY: the caller's; the references that were borrowed above are not used any more.
        Quick::Not => unsafe { on_trap(machine, number) },
        quick => lent.finish(quick),
    }
}

/// Handles SVC.
///
/// # Safety
/// As for [`on_trap`]; `registers` were lent likewise, and if a guest runs, they are the first field of its
/// context.
pub(crate) unsafe extern "C" fn on_call(machine: *mut Machine, _: u32, registers: *mut Registers) -> u32 {
    let act = |core: &mut VirtualCore, live: &mut Live<'_>, _: Known<'_>| match core.call_quickly(live) {
        Ok(false) => Quick::Not,
        called => Quick::of(called.map(|_| core.view_is_shown())),
    };
    // SAFETY: the caller's.
    unsafe { shortest(machine, registers, SUPERVISOR_CALL, false, act) }
}

/// Handles MemManage: the return from an exception, or a load or store of the device that is lent.
///
/// # Safety
/// As for [`on_call`].
pub(crate) unsafe extern "C" fn on_memory(machine: *mut Machine, _: u32, registers: *mut Registers) -> u32 {
    let act = |core: &mut VirtualCore, live: &mut Live<'_>, known: Known<'_>| {
        let pc = live.pc();
        if pc < ExcReturn::LOWEST {
            return access_loan(core, live, pc, known);
        }
        if sysreg::read(CFSR) != IACCVIOL {
            return Quick::Not;
        }
        sysreg::write(CFSR, IACCVIOL);
        match core.exception_return(live) {
            Ok(Next::Run) if core.is_restless() => Quick::Prepare,
            Ok(Next::Run) => Quick::Done,
            Ok(Next::Sleep) => Quick::Sleep,
            Err(_) => Quick::Stuck,
        }
    };
    // SAFETY: the caller's.
    unsafe { shortest(machine, registers, MEMORY_FAULT, false, act) }
}

/// Handles a load or store of a word of the device that is lent.
#[inline(always)]
fn access_loan(core: &mut VirtualCore, live: &mut Live<'_>, pc: u32, known: Known<'_>) -> Quick {
    const REFUSED: u32 = DACCVIOL | MMARVALID;
    let loan = known.loan;
    if !loan.holds(sysreg::read(MMFAR)) || !known.plain.has_code(pc) || sysreg::read(CFSR) != REFUSED {
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
    sysreg::write(CFSR, REFUSED);
    if let Some((line, level)) = loan.line().zip(level) {
        core.set_line(line, level);
        return Quick::Prepare;
    }
    Quick::Done
}

/// Handles BusFault: a load or store of the private peripheral bus.
///
/// # Safety
/// As for [`on_call`].
pub(crate) unsafe extern "C" fn on_bus(machine: *mut Machine, _: u32, registers: *mut Registers) -> u32 {
    const PRECISE: u32 = PRECISERR | BFARVALID;
    let act = |core: &mut VirtualCore, live: &mut Live<'_>, known: Known<'_>| {
        let pc = live.pc();
        if !known.plain.has_code(pc) || sysreg::read(CFSR) != PRECISE {
            return Quick::Not;
        }
        let (first, second) = instruction(pc);
        if !core.access_quickly(live, first, second, || known.counter.read()) {
            return Quick::Not;
        }
        sysreg::write(CFSR, PRECISE);
        if core.has_changed() {
            return Quick::Prepare;
        }
        if masks::IS_THERE {
            return Quick::Done;
        }
        Quick::of(core.deliver_quickly(live))
    };
    // SAFETY: the caller's.
    unsafe { shortest(machine, registers, BUS_FAULT, true, act) }
}

/// Handles UsageFault: a replaced instruction.
///
/// # Safety
/// As for [`on_call`].
pub(crate) unsafe extern "C" fn on_usage(machine: *mut Machine, _: u32, registers: *mut Registers) -> u32 {
    let act = |core: &mut VirtualCore, live: &mut Live<'_>, known: Known<'_>| {
        let pc = live.pc();
        if sysreg::read(CFSR) != UNDEFINSTR || !known.plain.is_replaced(pc) {
            return Quick::Not;
        }
        let (first, second) = instruction(pc);
        if !core.replaced_quickly(live, first, second) {
            return Quick::Not;
        }
        sysreg::write(CFSR, UNDEFINSTR);
        Quick::of(core.deliver_quickly(live))
    };
    // SAFETY: the caller's.
    unsafe { shortest(machine, registers, USAGE_FAULT, false, act) }
}
