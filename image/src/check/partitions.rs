// SPDX-License-Identifier: Apache-2.0
//! Partitions and their vCPUs. Relies on the rules of `memory`.

use super::{at, covers, earlier, refers, require};
use crate::error::{Fault, Table};
use crate::layout::{
    FLAG_AUTOSTART, FLAG_DIRECT, FLAG_FROZEN_TIME, FLAG_NO_SEMIHOSTING, FLAG_WINDOW_EVENTS, HealthAction,
    MASK_WORDS_SIZE, MEMORY_DEVICE, MEMORY_EXECUTE, MEMORY_READ, MEMORY_SHARED, MEMORY_WRITE, PARTITION_TASK,
    PARTITION_VM, POLICY_PINNED, PartitionRecord, VcpuRecord,
};
use crate::limits::{MAX_ALTERNATIVES_PER_PARTITION, MAX_VCPUS_PER_PARTITION, MAX_VCPUS_PER_PCPU};
use crate::reader::{Image, record as record_at};
use crate::span::Span;
use bulkhead_abi::HealthClass;
use bulkhead_abi::framing::HYPERVISOR_CONSOLE;

/// Priorities are below.
const PRIORITIES: u32 = 32;
/// Interrupt lines of a virtual controller come in groups of this many.
const LINE_GROUP: u32 = 32;
/// Lines a virtual controller can have: the special INTIDs start in the last group (Arm IHI 0069 section
/// 2.2).
const MAX_LINES: u32 = 1024;
/// Alignment of a stack that calls can be made on (AAPCS64 section 6.4.5.1).
const STACK_ALIGN: u64 = 16;
/// Alignment of the main stack pointer after reset (Arm DDI 0403E, section B1.4.7).
const MAIN_STACK_ALIGN: u64 = 4;

pub(super) fn partition(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.partitions(), index)?;
    name(image, index, record)?;
    kind_and_flags(record)?;
    let states = image.facts().entry_states.len();
    require((record.entry_state.get() as usize) < states, Fault::OutOfRange)?;
    actions(record)?;
    vcpus(image, index, record)?;
    direct(image, record)?;
    let state = (record.entry.get(), record.argument.get(), record.stack.get());
    first_state(image, index.into(), record, state)
}

/// Checks that a partition that takes the interrupts of its pCPU itself has the pCPU for itself, that the
/// pCPU is not the one that boots, and that nothing makes the kernel set a deadline there.
fn direct(image: &Image<'_>, record: &PartitionRecord) -> Result<(), Fault> {
    if record.flags.get() & FLAG_DIRECT == 0 {
        return Ok(());
    }
    let own = image.vcpus().get(record.first_vcpu.get() as usize);
    let pcpu = own.map_or(0, |vcpu| vcpu.pcpu.get());
    let on_it = image.vcpus().iter().filter(|vcpu| vcpu.pcpu.get() == pcpu);
    let policy = image.pcpus().get(pcpu as usize).map(|pcpu| pcpu.policy.get());
    let is_alone = record.vcpu_count.get() == 1 && on_it.count() == 1;
    let has_time = record.watchdog_ns.get() != 0 || record.flags.get() & FLAG_FROZEN_TIME != 0;
    require(
        image.facts().direct && is_alone && pcpu != 0 && policy == Some(POLICY_PINNED) && !has_time,
        Fault::BadFlags,
    )
}

/// Checks that there are no more vCPUs after the vCPUs of the last partition.
pub(super) fn last(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    covers(image.partitions(), index, image.vcpus().len(), |record| {
        record.vcpu_count.get()
    })
}

fn name(image: &Image<'_>, index: u16, record: &PartitionRecord) -> Result<(), Fault> {
    let text = record.name.text().map_err(|_| Fault::BadName)?;
    require(text != HYPERVISOR_CONSOLE, Fault::BadName)?;
    for (other, other_index) in earlier(image.partitions(), index) {
        require(other.name != record.name, Fault::SameAs(other_index))?;
    }
    Ok(())
}

fn kind_and_flags(record: &PartitionRecord) -> Result<(), Fault> {
    require(
        matches!(record.kind.get(), PARTITION_VM | PARTITION_TASK),
        Fault::UnknownKind,
    )?;
    let flags = record.flags.get();
    require(
        flags & !(FLAG_AUTOSTART | FLAG_FROZEN_TIME | FLAG_WINDOW_EVENTS | FLAG_NO_SEMIHOSTING | FLAG_DIRECT)
            == 0,
        Fault::BadFlags,
    )?;
    require(
        flags & FLAG_FROZEN_TIME == 0 || record.vcpu_count.get() == 1,
        Fault::FrozenShared,
    )?;
    require(
        flags & (FLAG_NO_SEMIHOSTING | FLAG_DIRECT) == 0 && record.entry_state.get() == 0
            || record.kind.get() == PARTITION_VM,
        Fault::NotForTask,
    )?;
    let lines = record.virtual_lines.get();
    require(lines == 0 || record.kind.get() == PARTITION_VM, Fault::NotForTask)?;
    require(
        lines.is_multiple_of(LINE_GROUP) && lines <= MAX_LINES,
        Fault::OutOfRange,
    )
}

fn actions(record: &PartitionRecord) -> Result<(), Fault> {
    for (action, number) in record.health.iter().zip(0_u8..) {
        let known = HealthAction::from_number(*action).is_some();
        let expected = HealthClass::from_number(number).is_some();
        require(if expected { known } else { *action == 0 }, Fault::UnknownAction)?;
    }
    Ok(())
}

/// Checks that the partition's vCPUs start where the vCPUs of the partition before it end.
fn vcpus(image: &Image<'_>, index: u16, record: &PartitionRecord) -> Result<(), Fault> {
    let count = record.vcpu_count.get();
    require(
        count >= 1 && count as usize <= MAX_VCPUS_PER_PARTITION,
        Fault::BadCount,
    )?;
    let before = earlier(image.partitions(), index);
    let first = before.fold(0_u64, |sum, (other, _)| {
        sum.saturating_add(other.vcpu_count.get().into())
    });
    require(u64::from(record.first_vcpu.get()) == first, Fault::NotConsecutive)?;
    let own = image.vcpus_of(index.into());
    require(own.len() == count as usize, Fault::NotConsecutive)?;
    require(
        own.iter().all(|vcpu| vcpu.partition.get() == u32::from(index)),
        Fault::NotConsecutive,
    )
}

/// Checks that an alternative is named, belongs to a partition, is in order, and starts as a partition may.
pub(super) fn alternative(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.alternatives(), index)?;
    record.name.text().map_err(|_| Fault::BadName)?;
    let partition = record.partition.get();
    let owner = record_at(image.partitions(), partition).ok_or(Fault::NoSuch(Table::Partitions))?;
    let mut siblings = 0_usize;
    for (other, other_index) in earlier(image.alternatives(), index) {
        require(other.partition.get() <= partition, Fault::NotConsecutive)?;
        if other.partition == record.partition {
            siblings = siblings.saturating_add(1);
            require(other.name != record.name, Fault::SameAs(other_index))?;
        }
    }
    require(siblings < MAX_ALTERNATIVES_PER_PARTITION, Fault::BadCount)?;
    let state = (record.entry.get(), record.argument.get(), record.stack.get());
    first_state(image, partition, owner, state)
}

/// Checks that entry, argument and stack are in memory with the permissions they need.
fn first_state(
    image: &Image<'_>,
    index: u32,
    record: &PartitionRecord,
    (entry, argument, stack): (u64, u64, u64),
) -> Result<(), Fault> {
    let inside = |address: u64, permission: u32| {
        image.memory_of(index).any(|mapping| {
            mapping.flags.get() & (permission | MEMORY_DEVICE) == permission
                && Span::new(mapping.guest.get(), mapping.size.get()).is_ok_and(|span| span.contains(address))
        })
    };
    let in_place = image.facts().runs_in_place();
    let bits = image.facts().entry_bits;
    require(
        entry & bits == bits && inside(entry & !bits, MEMORY_EXECUTE),
        Fault::BadEntry,
    )?;
    let vm = record.kind.get() == PARTITION_VM;
    let table = in_place && vm;
    require(
        argument == 0 && !table || inside(argument, MEMORY_READ),
        Fault::BadArgument,
    )?;
    if vm && !in_place {
        return require(stack == 0, Fault::BadStack);
    }
    let align = if vm { MAIN_STACK_ALIGN } else { STACK_ALIGN };
    // A stack grows down from an address that need not be in memory itself.
    let top = stack.checked_sub(align).ok_or(Fault::BadStack)?;
    require(
        stack.is_multiple_of(align) && inside(top, MEMORY_WRITE),
        Fault::BadStack,
    )
}

pub(super) fn vcpu(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.vcpus(), index)?;
    masks(image, record)?;
    require(record.priority.get() < PRIORITIES, Fault::OutOfRange)?;
    refers(record.pcpu.get(), image.pcpus().len(), Table::Pcpus)?;
    let neighbours = earlier(image.vcpus(), index)
        .filter(|(other, _)| other.pcpu == record.pcpu)
        .count();
    require(neighbours < MAX_VCPUS_PER_PCPU, Fault::BadCount)?;
    let pinned =
        record_at(image.pcpus(), record.pcpu.get()).is_some_and(|pcpu| pcpu.policy.get() == POLICY_PINNED);
    require(!pinned || neighbours == 0, Fault::NotAlone)
}

/// Checks that mask words are of a VM whose code is replaced in place, and in memory that the VM may write.
fn masks(image: &Image<'_>, record: &VcpuRecord) -> Result<(), Fault> {
    const DATA: u32 = MEMORY_READ | MEMORY_WRITE;
    let address = record.masks.get();
    if address == 0 {
        return Ok(());
    }
    require(image.facts().replaces_instructions, Fault::BadArgument)?;
    machine(image, record.partition.get())?;
    require(address.is_multiple_of(MASK_WORDS_SIZE), Fault::Unaligned)?;
    let words = Span::new(address.into(), MASK_WORDS_SIZE.into())?;
    let mut own = image
        .memory_of(record.partition.get())
        .filter(|mapping| mapping.flags.get() & (DATA | MEMORY_DEVICE | MEMORY_SHARED) == DATA);
    require(
        own.any(|mapping| {
            Span::new(mapping.guest.get(), mapping.size.get()).is_ok_and(|span| span.covers(words))
        }),
        Fault::OutsideMemory,
    )
}

/// Returns the partition that owns a device.
pub(super) fn owner<'a>(image: &Image<'a>, partition: u32) -> Result<&'a PartitionRecord, Fault> {
    record_at(image.partitions(), partition).ok_or(Fault::NoSuch(Table::Partitions))
}

/// Returns the partition that owns virtual hardware, which must be a VM.
pub(super) fn machine<'a>(image: &Image<'a>, partition: u32) -> Result<&'a PartitionRecord, Fault> {
    let owner = owner(image, partition)?;
    require(owner.kind.get() == PARTITION_VM, Fault::NotForTask)?;
    Ok(owner)
}
