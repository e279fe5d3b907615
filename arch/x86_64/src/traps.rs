// SPDX-License-Identifier: Apache-2.0
//! The answers to the exits of a guest: some are given here, and others become an [`Exit`].

use crate::context::{Context, Pending, R8, R9, RAX, RCX, RDI, RDX, RSI, RSP};
use crate::guest::{self, UNDEFINED};
use crate::machine::Machine;
use crate::svm::{self, exit};
use crate::{crash, emulate, nmi, physical, platform, ports, registers, sysreg};
use bulkhead_abi::log::{Exits, count};
use bulkhead_abi::{HealthClass, Operation};
use bulkhead_arch_api::{Exit, GuestPhys, Hypercall, Line};
use bulkhead_arch_x86_64_core::decode::Mode;
use core::sync::atomic::AtomicU32;

/// [`Exit::Failed`] code: VMRUN refused the state of a task.
const FAILED_STATE: u64 = 2;
/// Bytes of VMMCALL, of HLT, and of INVD and WBINVD.
const CALL_LENGTH: u8 = 3;
const HALT_LENGTH: u8 = 1;
const CACHE_LENGTH: u8 = 2;

/// Counts an exit by its cause.
#[inline(always)]
fn tally(context: &Context, cause: impl FnOnce(&Exits) -> &AtomicU32) {
    if let Some(counters) = context.counters {
        count(cause(&counters.exits));
    }
}

/// Handles the exit of a guest. `None`: it goes on.
pub(crate) fn handle(machine: &mut Machine, context: &mut Context) -> Option<Exit> {
    let code = context.vmcb.get(svm::EXIT_CODE);
    context.set_general(RAX, context.vmcb.get(svm::RAX));
    context.set_general(RSP, context.vmcb.get(svm::RSP));
    let priority = context.vmcb.task_priority();
    if priority != context.task_priority {
        note_task_priority(machine, context, priority);
    }
    let event = context.vmcb.get(svm::EXIT_EVENT);
    // An event whose delivery led to the exit is delivered again. The emulator leaves old bits here without
    // the valid one.
    context.event = if event & svm::EVENT_VALID != 0 { event } else { 0 };
    match code {
        exit::INTERRUPT => {
            tally(context, |exits| &exits.interrupts);
            machine.take_interrupt()
        }
        exit::HYPERCALL => {
            tally(context, |exits| &exits.calls);
            hypercall(context)
        }
        exit::NESTED_FAULT => {
            tally(context, |exits| &exits.accesses);
            emulate::nested_fault(machine, context)
        }
        exit::PORT => {
            tally(context, |exits| &exits.accesses);
            ports::access(machine, context)
        }
        exit::CPUID => {
            tally(context, |exits| &exits.instructions);
            registers::cpuid(context)
        }
        exit::MSR => {
            tally(context, |exits| &exits.instructions);
            registers::model_specific(machine, context)
        }
        exit::HALT => {
            tally(context, |exits| &exits.idle);
            halt(machine, context)
        }
        _ => handle_rare(machine, context, code),
    }
}

/// Handles an exit that is not frequent.
fn handle_rare(machine: &mut Machine, context: &mut Context, code: u64) -> Option<Exit> {
    tally(context, |exits| match code {
        exit::NMI | exit::SMI | exit::WINDOW => &exits.interrupts,
        exit::RETURN | exit::CR4_WRITE | exit::CR8_WRITE => &exits.instructions,
        exit::INVD | exit::WRITE_BACK => &exits.instructions,
        exit::DEBUG_REGISTER..=exit::DEBUG_REGISTER_LAST => &exits.instructions,
        _ => &exits.other,
    });
    match code {
        // The window is open: the next entry delivers.
        exit::WINDOW | exit::NMI | exit::SMI | exit::INIT => {
            machine.looks = true;
            None
        }
        exit::CR4_WRITE | exit::CR8_WRITE => registers::write_control(machine, context),
        exit::RETURN => {
            nmi::step(machine, context);
            None
        }
        exit::INVD | exit::WRITE_BACK => {
            // Caches are coherent, and their contents belong to no vCPU alone.
            let next = guest::behind(context, CACHE_LENGTH);
            context.go_to(next);
            None
        }
        exit::MACHINE_CHECK => crash::machine_check(),
        exit::EXCEPTION..=exit::EXCEPTION_LAST if context.is_task() => Some(exception(context, code)),
        exit::EXCEPTION..=exit::EXCEPTION_LAST => {
            context.event = if code == exit::DEBUG && context.step.is_some() {
                nmi::stepped(machine, context)
            } else {
                endless(context, code)
            };
            None
        }
        exit::DEBUG_REGISTER..=exit::DEBUG_REGISTER_LAST if !context.is_task() => {
            open_debug_registers(context);
            None
        }
        exit::SHUTDOWN => Some(shutdown(context)),
        _ if code & 0xFFFF_FFFF == exit::INVALID => Some(if context.is_task() {
            Exit::Failed { code: FAILED_STATE }
        } else {
            // A VM sets its own control registers. A processor refuses a bit of CR3 where the VM sets it
            // (APM volume 2, 3.1.2); emulators notice it at VMRUN (15.5.1).
            shutdown(context)
        }),
        _ => guest::refused(context, svm::exception(UNDEFINED, None), None),
    }
}

/// Notes that the guest has written CR8.
#[cold]
fn note_task_priority(machine: &mut Machine, context: &mut Context, priority: u8) {
    machine.looks = true;
    context.task_priority = priority;
    if let Some(mut apic) = platform::apic(context.id) {
        apic.set_task_priority(priority << 4);
    }
}

/// Returns the exit of a hypercall. The instruction is over. The one that does nothing is answered here.
///
/// A program of a VM's system has none of the VM's rights. For it the instruction is not there, as on a
/// processor without AMD-V.
fn hypercall(context: &mut Context) -> Option<Exit> {
    if !context.is_task() && context.vmcb.level() != 0 {
        context.event = svm::exception(UNDEFINED, None);
        return None;
    }
    let next = guest::behind(context, CALL_LENGTH);
    context.go_to(next);
    let operation = context.general(RAX) as u16;
    if operation == Operation::Null as u16 {
        for register in [RAX, RDI, RSI, RDX, RCX] {
            context.set_general(register, 0);
        }
        return None;
    }
    context.pending = Pending::Call;
    // Outside 64-bit mode the upper halves are undefined (APM volume 1, 3.4.1).
    let seen = match guest::mode(context) {
        Mode::Bits64 => u64::MAX,
        Mode::Bits16 | Mode::Bits32 => u32::MAX.into(),
    };
    Some(Exit::Hypercall(Hypercall {
        operation,
        arguments: [RDI, RSI, RDX, RCX, R8, R9].map(|register| context.general(register) & seen),
    }))
}

/// Handles HLT. A task cannot execute it.
fn halt(machine: &mut Machine, context: &mut Context) -> Option<Exit> {
    let next = guest::behind(context, HALT_LENGTH);
    context.go_to(next);
    machine.halt(context)
}

/// Returns the exit of an exception of a task, which has no handlers.
fn exception(context: &mut Context, code: u64) -> Exit {
    const PAGE_FAULT: u64 = exit::EXCEPTION + 14;
    context.pending = Pending::Nothing;
    (context.reflect, context.skip_to) = (0, None);
    let mut report = guest::report(context, HealthClass::Task, None);
    if code == PAGE_FAULT {
        report.virtual_address = Some(context.vmcb.get(svm::EXIT_INFO_2));
        report.class = HealthClass::Memory;
        report.address = report.virtual_address.map(GuestPhys);
    }
    Exit::Fault(report)
}

/// Returns the event of an exception of a VM that exits only so that the VM cannot lock interrupts out.
fn endless(context: &Context, code: u64) -> u64 {
    const ALIGNMENT: u64 = 17;
    let vector = code - exit::EXCEPTION;
    let error = (vector == ALIGNMENT).then(|| context.vmcb.get(svm::EXIT_INFO_1) as u32);
    svm::exception(vector as u8, error)
}

/// Gives the guest DR0 to DR3, as they are after a reset. The guest then repeats its access.
#[cold]
fn open_debug_registers(context: &mut Context) {
    context.vmcb.open_debug_registers();
    context.debug = Some([0; 4]);
    context.rare = true;
    sysreg::write_debug([0; 4]);
}

/// Returns the exit of a guest that cannot go on: it could not deliver an exception, which stops a processor
/// for good, or its registers have a state that no processor has.
#[cold]
#[inline(never)]
fn shutdown(context: &mut Context) -> Exit {
    context.pending = Pending::Nothing;
    (context.reflect, context.skip_to) = (0, None);
    Exit::Fault(guest::report(context, HealthClass::System, None))
}

impl Machine {
    /// Takes and handles the interrupt that is pending with the highest priority.
    #[inline(always)]
    pub(crate) fn take_interrupt(&mut self) -> Option<Exit> {
        let vector = sysreg::take_interrupt()?;
        self.handle_vector(vector)
    }

    /// Handles an interrupt that the processor has taken.
    pub(crate) fn handle_vector(&mut self, vector: u8) -> Option<Exit> {
        match vector {
            physical::TIMER => {
                physical::end();
                self.timer_fired().then_some(Exit::Deadline)
            }
            physical::SIGNAL => {
                physical::end();
                Some(Exit::Signal)
            }
            physical::KICK => {
                physical::end();
                None
            }
            // A line of the 8259, which its owner has given any vector. No other line comes to this pCPU.
            _ if self.direct => None,
            // The kernel ends the interrupt of a line. A spurious one has no line and no end.
            _ => physical::line_of(vector).map(|line| Exit::Interrupt(Line(line))),
        }
    }
}
