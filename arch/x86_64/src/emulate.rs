// SPDX-License-Identifier: Apache-2.0
//! Accesses to memory that the nested tables do not allow: registers of virtual devices, or nothing.

use crate::context::{Context, Pending};
use crate::guest::{self, PROTECTION};
use crate::machine::Machine;
use crate::{platform, svm, trees};
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::{Access, AccessKind, AddressSpace, Exit, GuestPhys, VcpuSet};
use bulkhead_arch_x86_64_core::decode::{self, Operand, Operation, extend};
use bulkhead_arch_x86_64_core::lapic::{Delivery, Effect, Ipi, Target};

/// EXITINFO1 of a nested page fault (APM volume 2, 15.25.6): an instruction fetch; a walk of the guest's
/// tables.
const FETCH: u64 = 1 << 4;
const WALK: u64 = 1 << 33;
/// Bytes of the windows of APICs.
const APIC_WINDOW: u64 = 0x1000;

/// RFLAGS: CF, PF, AF, ZF, SF, OF.
const CARRY: u64 = 1;
const PARITY: u64 = 1 << 2;
const ADJUST: u64 = 1 << 4;
const ZERO: u64 = 1 << 6;
const SIGN: u64 = 1 << 7;
const OVERFLOW: u64 = 1 << 11;
const ALL_FLAGS: u64 = CARRY | PARITY | ADJUST | ZERO | SIGN | OVERFLOW;

/// Handles a nested page fault.
pub(crate) fn nested_fault(machine: &mut Machine, context: &mut Context) -> Option<Exit> {
    let cause = context.vmcb.get(svm::EXIT_INFO_1);
    let address = GuestPhys(context.vmcb.get(svm::EXIT_INFO_2));
    let [own, io] = platform::WINDOWS.map(|window| address.0.wrapping_sub(window));
    let is_apic = own < APIC_WINDOW || io < APIC_WINDOW;
    let is_memory = || !is_apic && trees::is_memory(context.plan.partition, address);
    let decoded = if cause & (FETCH | WALK) != 0 || context.is_task() || is_memory() {
        None
    } else {
        guest::memory_access(context)
    };
    let Some(found) = decoded else {
        context.reflect = svm::exception(PROTECTION, Some(0));
        context.pending = Pending::Nothing;
        context.skip_to = None;
        return Some(Exit::Fault(guest::report(
            context,
            HealthClass::Memory,
            Some(address),
        )));
    };
    let next = guest::behind(context, found.length);
    let kind = match found.operation {
        Operation::Load { .. } | Operation::Test { .. } => AccessKind::Read,
        Operation::StoreRegister(register) => AccessKind::Write(truncate(context.read(register), found.size)),
        Operation::StoreValue(value) => AccessKind::Write(truncate(value, found.size)),
    };
    if own < APIC_WINDOW {
        let (value, effect) = local(machine, context, own, kind)?;
        complete(context, &found, next, value);
        return take_effect(machine, context, effect);
    }
    if io < APIC_WINDOW {
        let store = match kind {
            AccessKind::Read => None,
            AccessKind::Write(value) => Some(value as u32),
        };
        let partition = context.plan.partition;
        let (value, wake) = platform::access_ioapic(partition, io, store, machine.pcpu);
        complete(context, &found, next, value.into());
        return woken(wake);
    }
    context.pending = Pending::Memory { access: found, next };
    context.reflect = svm::exception(PROTECTION, Some(0));
    context.skip_to = Some(next);
    Some(Exit::Access(Access {
        space: AddressSpace::Memory,
        address,
        size: found.size,
        kind,
        report: guest::report(context, HealthClass::Memory, Some(address)),
    }))
}

/// Returns the exit of an access that gave vCPUs something to do.
pub(crate) fn woken(wake: VcpuSet) -> Option<Exit> {
    (!wake.is_empty()).then_some(Exit::Wake(wake))
}

/// Carries out an access to the local APIC in memory. A register is at each multiple of 16. Returns the value
/// of a load, and what a store asks for.
#[inline(always)]
fn local(
    machine: &mut Machine,
    context: &mut Context,
    offset: u64,
    kind: AccessKind,
) -> Option<(u64, Effect)> {
    let now = context.now();
    let number = (offset >> 4) as u32;
    let mut apic = platform::apic(context.id)?;
    apic.use_memory();
    Some(match kind {
        // In x2APIC mode, and while it is off, nothing is there.
        _ if apic.is_extended() || offset & 0xF != 0 => (0, Effect::Nothing),
        AccessKind::Read => (apic.read(number, now).unwrap_or(0), Effect::Nothing),
        AccessKind::Write(value) => {
            let effect = apic.write(number, value & 0xFFFF_FFFF, now);
            machine.looks |= apic.must_be_looked_at(number);
            let priority = apic.task_priority();
            if priority >> 4 != context.task_priority {
                context.set_task_priority(priority);
            }
            (0, effect.unwrap_or(Effect::Nothing))
        }
    })
}

/// Does what a store to the local APIC asks for.
#[inline(always)]
pub(crate) fn take_effect(machine: &mut Machine, context: &mut Context, effect: Effect) -> Option<Exit> {
    match effect {
        Effect::Nothing => None,
        Effect::Send(Ipi {
            vector,
            delivery: Delivery::Fixed,
            target: Target::Physical(id),
        }) if id < context.plan.count.into() && id != context.plan.index.into() => woken(
            platform::send_vector(&context.plan, id as u8, vector, machine.pcpu),
        ),
        effect => act(machine, context, effect),
    }
}

/// Does what a store asks for that is neither nothing nor a vector for one other vCPU.
#[inline(never)]
fn act(machine: &mut Machine, context: &mut Context, effect: Effect) -> Option<Exit> {
    let partition = context.plan.partition;
    match effect {
        Effect::Nothing => None,
        Effect::End(vector) => woken(platform::end(partition, vector, machine.pcpu)),
        Effect::Send(ipi) => {
            let sender = context.plan.index.into();
            let sent = platform::send(partition, ipi, false, sender, machine.pcpu);
            if sent.starting != 0 {
                context.starting = (sent.starting, ipi.vector);
                machine.looks = true;
            }
            let mut wake = sent.wake;
            // The sender looks at its own interrupts anyway.
            wake.0 &= !VcpuSet::of(context.id).0;
            woken(wake)
        }
    }
}

const fn truncate(value: u64, size: u8) -> u64 {
    match size {
        1 => value & 0xFF,
        2 => value & 0xFFFF,
        4 => value & 0xFFFF_FFFF,
        _ => value,
    }
}

/// Completes an access to memory with what a load has read.
pub(crate) fn finish(context: &mut Context, value: u64) {
    let Pending::Memory { access, next } = context.pending else {
        return;
    };
    context.pending = Pending::Nothing;
    complete(context, &access, next, value);
}

/// Completes this access, after which the guest goes on at `next`.
#[inline(always)]
fn complete(context: &mut Context, access: &decode::Access, next: u64, value: u64) {
    let size = access.size;
    let value = truncate(value, size);
    match access.operation {
        Operation::Load {
            register,
            into,
            signed,
        } => {
            let value = if signed { extend(value, size) } else { value };
            context.write(register, into, value);
        }
        Operation::StoreRegister(_) | Operation::StoreValue(_) => {}
        Operation::Test { with, compares } => compare(context, size, value, with, compares),
    }
    context.go_to(next);
}

/// Sets the flags of a comparison of a value of `size` bytes with an operand, or of an AND.
#[inline(never)]
fn compare(context: &mut Context, size: u8, value: u64, with: Operand, compares: bool) {
    let other = match with {
        Operand::Register(register) => context.read(register),
        Operand::Value(value) => value,
    };
    let flags = context.vmcb.get(svm::RFLAGS) & !ALL_FLAGS;
    let new = flags_of(value, truncate(other, size), size, compares);
    context.vmcb.set(svm::RFLAGS, flags | new);
}

/// Returns the flags of a comparison, or of an AND.
fn flags_of(first: u64, second: u64, size: u8, compares: bool) -> u64 {
    let sign = 1 << (u32::from(size) * 8 - 1);
    let result = truncate(
        if compares {
            first.wrapping_sub(second)
        } else {
            first & second
        },
        size,
    );
    let when = |is: bool, flag: u64| if is { flag } else { 0 };
    let common = when(result == 0, ZERO)
        | when(result & sign != 0, SIGN)
        | when((result as u8).count_ones().is_multiple_of(2), PARITY);
    if !compares {
        return common;
    }
    common
        | when(first < second, CARRY)
        | when((first ^ second) & (first ^ result) & sign != 0, OVERFLOW)
        | when((first ^ second ^ result) & 0x10 != 0, ADJUST)
}
