// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of device registers that the syndrome does not describe: forms with write-back, and
//! pairs. The instruction is read through the guest's own tables and decoded.
//!
//! Another vCPU may write the program or the tables meanwhile. So the decoded form must explain the fault:
//! its address, and its direction. The address of the device access is always the hardware's. A guest that
//! changes the instruction can choose other registers of its own, and nothing else.
//!
//! The work is bounded: one translation by the hardware, one look-up in stage 2, and two accesses.

use crate::abort::{access, faulting_address, memory_fault, misaligned, translate};
use crate::context::{Context, Pending};
use crate::enter::{ALL_REGISTERS, RESUME};
use crate::gic;
use crate::machine::Machine;
use crate::outcome::{Trap, advance, resume_or_wake};
use crate::state::{read_stack_pointer, write_stack_pointer};
use crate::sysreg::read_register;
use bulkhead_arch_aarch64_core::pstate::{AARCH32, is_big_endian};
use bulkhead_arch_aarch64_core::syndrome::is_write;
use bulkhead_arch_aarch64_core::transfer::{Progress, STACK_POINTER, Transfer};
use bulkhead_arch_api::{Access, AccessKind, GuestPhys, Spaces, VcpuSet};

/// Pages are the granule of the guest's translation: an access that leaves its page may go anywhere.
const PAGE: u64 = 4096;

/// Does a load or store that the syndrome does not describe, if the instruction does.
#[cold]
#[inline(never)]
pub(crate) fn emulate(machine: &mut Machine, context: &mut Context, trap: Trap) -> u64 {
    let (syndrome, address) = (trap.syndrome, faulting_address());
    let pstate = read_register!("spsr_el2");
    if pstate & AARCH32 != 0 {
        return memory_fault(context, syndrome, Some(address));
    }
    // The instruction may name any register.
    if !trap.complete {
        return ALL_REGISTERS;
    }
    let Some(program) = translate(read_register!("elr_el2")) else {
        // The guest's tables have lost the program since the trap. The guest finds that out by itself.
        return RESUME;
    };
    let decoded = fetch(machine, context, program).and_then(Transfer::decode);
    let explained = decoded.and_then(|transfer| {
        let base = match transfer.base {
            STACK_POINTER => read_stack_pointer(pstate),
            number => context.read_general(number),
        };
        let explains = transfer.explains(base, read_register!("far_el2"), is_write(syndrome));
        explains.then_some((transfer, base))
    });
    let Some((transfer, base)) = explained else {
        return memory_fault(context, syndrome, Some(address));
    };
    if address.0 & (u64::from(transfer.size) - 1) != 0 {
        return misaligned(context, syndrome, address);
    }
    if address.0 % PAGE + transfer.bytes() > PAGE {
        return memory_fault(context, syndrome, Some(address));
    }
    let progress = Progress::new(transfer, base, is_big_endian(pstate, read_register!("sctlr_el1")));
    perform(machine, context, (syndrome, address, pstate), progress)
}

/// Reads an instruction of the guest's. Returns `None` if the instruction is not in memory.
fn fetch(machine: &Machine, context: &Context, program: GuestPhys) -> Option<u32> {
    let mut bytes = [0; 4];
    let read = machine.copy_in(context.plan.partition, program, &mut bytes);
    read.ok().map(|()| u32::from_le_bytes(bytes))
}

/// Makes the accesses of a transfer. The page belongs to the interrupt controller as a whole, or to devices
/// of the kernel's.
fn perform(
    machine: &mut Machine,
    context: &mut Context,
    (syndrome, address, pstate): (u64, GuestPhys, u64),
    mut progress: Progress,
) -> u64 {
    let size = progress.transfer().size;
    let mut wake = VcpuSet::EMPTY;
    while let Some((at, kind)) = next(context, address, &progress) {
        let (irq, own) = (&mut machine.irq, &mut context.irq);
        let answer = match kind {
            AccessKind::Read => gic::mmio_read(irq, own, at, size),
            AccessKind::Write(value) => gic::mmio_write(irq, own, at, size, value),
        };
        let Some(answer) = answer else {
            context.pending = Pending::Transfer(progress);
            return access(context, syndrome, at, size, kind);
        };
        progress.answered(answer.value);
        wake.insert_all(answer.wake);
    }
    if let Some(stack) = context.finish_transfer(&progress) {
        write_stack_pointer(pstate, stack);
    }
    advance(context, syndrome);
    resume_or_wake(machine, context, wake)
}

/// Returns the place and the kind of the next access of a transfer to `address`.
fn next(context: &Context, address: GuestPhys, progress: &Progress) -> Option<(GuestPhys, AccessKind)> {
    let step = progress.next()?;
    let kind = if progress.transfer().write {
        AccessKind::Write(progress.stored(context.read_general(step.register)))
    } else {
        AccessKind::Read
    };
    Some((GuestPhys(address.0 + step.distance), kind))
}

/// Returns the second access of the instruction whose first one the kernel has answered, if there is one.
#[cold]
#[inline(never)]
pub(crate) fn second(context: &Context, first: &Access) -> Option<Access> {
    let Pending::Transfer(progress) = &context.pending else {
        return None;
    };
    if !progress.is_begun() {
        return None;
    }
    let (address, kind) = next(context, first.address, progress)?;
    let distance = address.0 - first.address.0;
    let mut report = first.report;
    report.address = Some(address);
    report.virtual_address = report.virtual_address.map(|seen| seen.wrapping_add(distance));
    Some(Access {
        address,
        kind,
        report,
        ..*first
    })
}
