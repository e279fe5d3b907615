// SPDX-License-Identifier: Apache-2.0
//! Virtual devices and interrupt lines. Relies on the rules of `memory` and `partitions`.

use super::board::{guest_span, host_span, in_ram};
use super::guards::guards_devices;
use super::partitions::{machine, owner};
use super::{at, earlier, require, uses};
use crate::error::{Fault, Table};
use crate::layout::{
    INTERRUPT_CRITICAL, INTERRUPT_EARLY, InterruptRecord, MAX_EARLY_NS, MAX_LATENCY_NS, MEMORY_CLEAR,
    MEMORY_DEVICE, MEMORY_WRITE, MemoryRecord, NONE, PARTITION_VM, PartitionRecord, ROLE_INTERRUPTS,
    TRIGGER_EDGE, TRIGGER_LEVEL, VIRTUAL_CFI_FLASH, VirtualDeviceRecord,
};
use crate::reader::Image;
use crate::span::Span;
use bulkhead_abi::parts::Part;
use bulkhead_arch_api::class::{DeviceFacts, DeviceRole, device::FLASH_ALIGN};
use bulkhead_arch_api::{AddressSpace, VirtualLine};
use core::ops::Range;

/// First number that is no line of a device on any controller (Arm IHI 0069 section 2.2, table 2-1).
const FIRST_SPECIAL_LINE: u32 = 1020;
/// First vector that is no exception of the processor (Intel SDM 3A, 6.2).
const FIRST_VECTOR: u8 = 32;
/// Events of a gate.
const EVENTS: u32 = 64;
pub(super) fn device(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.virtual_devices(), index)?;
    let owner = machine(image, record.partition.get())?;
    let facts = image
        .facts()
        .device(record.kind.get())
        .ok_or(Fault::UnknownKind)?;
    shape(image, owner, record, facts)?;
    works_on_board(image, facts)?;
    apart(image, index, record)?;
    for line in lines(image, record) {
        virtual_line(image, owner, line)?;
    }
    Ok(())
}

/// Checks that the line, if there is one, is a vector, or a shared line of the partition's virtual
/// controller.
pub(super) fn virtual_line(image: &Image<'_>, owner: &PartitionRecord, line: u32) -> Result<(), Fault> {
    if image.facts().vectors
        && VirtualLine(line)
            .as_vector()
            .is_some_and(|vector| vector >= FIRST_VECTOR)
    {
        return Ok(());
    }
    let limit = owner.virtual_lines.get().min(FIRST_SPECIAL_LINE);
    require(
        (image.facts().first_device_line..limit).contains(&line),
        Fault::OutOfRange,
    )
}

/// Checks that a line of the board can be a device's, and is none of the hypervisor's own.
pub(super) fn physical_line(image: &Image<'_>, line: u32) -> Result<(), Fault> {
    require(
        (image.facts().first_device_line..FIRST_SPECIAL_LINE).contains(&line),
        Fault::OutOfRange,
    )?;
    for (controller, other_index) in image.controllers().iter().zip(0..) {
        let own = controller.lines.iter().any(|own| own.get() == line);
        require(!own, Fault::LineTaken(Table::Controllers, other_index))?;
    }
    Ok(())
}

/// Checks that no device, virtual or the partition's own, has this line of a partition.
pub(super) fn line_is_free(image: &Image<'_>, partition: u32, line: u32) -> Result<(), Fault> {
    for (device, index) in image.virtual_devices().iter().zip(0..) {
        let taken = device.partition.get() == partition && lines(image, device).contains(&line);
        require(!taken, Fault::LineTaken(Table::VirtualDevices, index))?;
    }
    for (interrupt, index) in image.interrupts().iter().zip(0..) {
        let taken = interrupt.partition.get() == partition && interrupt.virtual_line.get() == line;
        require(!taken, Fault::LineTaken(Table::Interrupts, index))?;
    }
    Ok(())
}

/// Checks that number and size of the windows fit the device.
fn shape(
    image: &Image<'_>,
    owner: &PartitionRecord,
    record: &VirtualDeviceRecord,
    facts: &DeviceFacts,
) -> Result<(), Fault> {
    require(record.reserved.get() == 0, Fault::Reserved)?;
    match facts.role {
        DeviceRole::Network => require(
            super::nics::has_one(image, record.partition.get()),
            Fault::NoSuch(Table::Nics),
        )?,
        DeviceRole::Gate => require(record.virtual_line.get() != NONE, Fault::OutOfRange)?,
        DeviceRole::Controller => require(owner.virtual_lines.get() != 0, Fault::OutOfRange)?,
        DeviceRole::Flash => banks(image, record)?,
        DeviceRole::Bridge => {
            let is_alone = record.virtual_line.get() == NONE;
            require(is_alone && uses(image, Part::Functions), Fault::OutOfRange)?;
        }
        DeviceRole::Console(_) => {}
    }
    for ((window, base), size) in facts.windows.iter().zip(record.base).zip(record.size) {
        let vcpus = if window.is_per_vcpu {
            owner.vcpu_count.get()
        } else {
            1
        };
        let least = window.size.saturating_mul(vcpus.into());
        require(size.get() >= least, Fault::WindowTooSmall)?;
        let unused = least == 0;
        require(!unused || (size.get() == 0 && base.get() == 0), Fault::OutOfRange)?;
    }
    Ok(())
}

/// Checks that each bank of a flash is memory of the partition that it may not store to and that no code
/// clears, in RAM, aligned on both sides.
fn banks(image: &Image<'_>, record: &VirtualDeviceRecord) -> Result<(), Fault> {
    let is_alone = record.virtual_line.get() == NONE;
    require(is_alone && uses(image, Part::Flash), Fault::OutOfRange)?;
    for window in windows(image, record) {
        let (_, window) = window?;
        let mut mappings = image.memory_of(record.partition.get());
        require(
            mappings.any(|mapping| is_bank(image, mapping, window)),
            Fault::OutsideMemory,
        )?;
    }
    Ok(())
}

/// Tells whether the memory of a flash's bank is this mapping.
fn is_bank(image: &Image<'_>, mapping: &MemoryRecord, window: Span) -> bool {
    let place = [mapping.guest.get(), mapping.host.get(), mapping.size.get()];
    let is_plain = mapping.flags.get() & (MEMORY_WRITE | MEMORY_CLEAR | MEMORY_DEVICE) == 0;
    is_plain
        && place.iter().all(|number| number.is_multiple_of(FLASH_ALIGN))
        && guest_span(image, mapping).is_ok_and(|span| span == window)
        && host_span(image, mapping).is_ok_and(|host| in_ram(image, host))
}

/// Checks that a virtual device works with the board's own interrupt controller.
fn works_on_board(image: &Image<'_>, facts: &DeviceFacts) -> Result<(), Fault> {
    let physical = image
        .controllers()
        .iter()
        .find(|record| record.role.get() == ROLE_INTERRUPTS);
    let same = physical.is_none_or(|record| record.compatible.get() == facts.needs);
    require(facts.needs == 0 || same, Fault::UnknownKind)
}

/// Returns the windows of a device, each with its address space.
fn windows(
    image: &Image<'_>,
    record: &VirtualDeviceRecord,
) -> impl Iterator<Item = Result<(AddressSpace, Span), Fault>> {
    let granule = image.granule();
    let class = image.facts();
    let facts = class
        .device(record.kind.get())
        .filter(|_| class.has_other_spaces());
    // Registers that take less than a granule leave the rest of it to no partition: no memory is mapped
    // there.
    let spaces = facts.map_or([(AddressSpace::Memory, granule); 2], |facts| {
        facts
            .windows
            .map(|window| (window.space, granule.min(window.size.next_power_of_two())))
    });
    let windows = record.base.into_iter().zip(record.size).zip(spaces);
    let used = windows.filter(|((_, size), _)| size.get() != 0);
    used.map(move |((base, size), (space, granule))| {
        let span = match space {
            AddressSpace::Memory => Span::granules(base.get(), size.get(), granule)?,
            AddressSpace::Ports | AddressSpace::Registers => Span::new(base.get(), size.get())?,
        };
        Ok((space, span))
    })
}

/// Tells whether a window of the device shares an address with `span`.
#[inline(never)]
pub(super) fn touches(
    image: &Image<'_>,
    record: &VirtualDeviceRecord,
    (space, span): (AddressSpace, Span),
) -> Result<bool, Fault> {
    for window in windows(image, record) {
        let (own, window) = window?;
        if own == space && window.overlaps(span) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the lines of the partition's virtual controller that the device raises.
fn lines(image: &Image<'_>, record: &VirtualDeviceRecord) -> Range<u32> {
    let first = record.virtual_line.get();
    let count = match image.facts().device(record.kind.get()) {
        Some(device) if first != NONE => device.lines,
        _ => 0,
    };
    first..first.saturating_add(count)
}

/// Checks that there is one device of a kind, and nothing else of the partition where its windows are.
fn apart(image: &Image<'_>, index: u16, record: &VirtualDeviceRecord) -> Result<(), Fault> {
    if let (Some(first), Some(second)) = (windows(image, record).next(), windows(image, record).nth(1)) {
        let ((one, first), (other, second)) = (first?, second?);
        require(
            one != other || !first.overlaps(second),
            Fault::Overlaps(Table::VirtualDevices, index),
        )?;
    }
    for window in windows(image, record) {
        let (AddressSpace::Memory, window) = window? else {
            continue;
        };
        for (mapping, other_index) in image.memory().iter().zip(0..) {
            let same = mapping.partition == record.partition;
            let is_own = record.kind.get() == VIRTUAL_CFI_FLASH && is_bank(image, mapping, window);
            require(
                !same || is_own || !window.overlaps(guest_span(image, mapping)?),
                Fault::Overlaps(Table::Memory, other_index),
            )?;
        }
    }
    let siblings =
        earlier(image.virtual_devices(), index).filter(|(other, _)| other.partition == record.partition);
    for (other, other_index) in siblings {
        require(other.kind != record.kind, Fault::SameAs(other_index))?;
        let (own, taken) = (lines(image, record), lines(image, other));
        let taken = own.start < taken.end && taken.start < own.end;
        require(!taken, Fault::LineTaken(Table::VirtualDevices, other_index))?;
        for window in windows(image, record) {
            require(
                !touches(image, other, window?)?,
                Fault::Overlaps(Table::VirtualDevices, other_index),
            )?;
        }
    }
    Ok(())
}

/// Checks the interrupt of a task's device: an event at the gate of the task. Where tasks reach their devices
/// by trap only, it is an edge.
fn event_of_task(image: &Image<'_>, record: &InterruptRecord) -> Result<(), Fault> {
    let is_known = record.trigger.get() == TRIGGER_EDGE || guards_devices(image);
    require(
        is_known && record.flags.get() == 0 && record.latency.get() == 0,
        Fault::NotForTask,
    )?;
    require(record.virtual_line.get() < EVENTS, Fault::OutOfRange)
}

/// Checks that handlers of one partition start early, all for one time.
fn early_start(image: &Image<'_>, record: &InterruptRecord, index: u16) -> Result<(), Fault> {
    let is_early = |record: &InterruptRecord| record.flags.get() & INTERRUPT_EARLY != 0;
    if !is_early(record) {
        return Ok(());
    }
    require(uses(image, Part::EarlyHandlers), Fault::BadFlags)?;
    require(
        (1..=MAX_EARLY_NS).contains(&record.latency.get()),
        Fault::OutOfRange,
    )?;
    let is_alike =
        |other: &InterruptRecord| other.partition == record.partition && other.latency == record.latency;
    let mut others = earlier(image.interrupts(), index).filter(|(other, _)| is_early(other));
    require(others.all(|(other, _)| is_alike(other)), Fault::BadFlags)
}

pub(super) fn interrupt(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.interrupts(), index)?;
    let owner = owner(image, record.partition.get())?;
    let is_task = owner.kind.get() != PARTITION_VM;
    require(
        matches!(record.trigger.get(), TRIGGER_LEVEL | TRIGGER_EDGE),
        Fault::UnknownKind,
    )?;
    require(record.latency.get() <= MAX_LATENCY_NS, Fault::OutOfRange)?;
    let known = INTERRUPT_CRITICAL | INTERRUPT_EARLY;
    require(record.flags.get() & !known == 0, Fault::BadFlags)?;
    early_start(image, record, index)?;
    let (line, seen_as) = (record.line.get(), record.virtual_line.get());
    if is_task {
        event_of_task(image, record)?;
    } else {
        virtual_line(image, owner, seen_as)?;
    }
    physical_line(image, line)?;
    for (device, other_index) in image.virtual_devices().iter().zip(0..) {
        let taken = device.partition == record.partition && lines(image, device).contains(&seen_as);
        require(!taken, Fault::LineTaken(Table::VirtualDevices, other_index))?;
    }
    for (other, other_index) in earlier(image.interrupts(), index) {
        let same = other.partition == record.partition && other.virtual_line == record.virtual_line;
        let taken = same && !is_task;
        require(
            other.line != record.line && !taken,
            Fault::LineTaken(Table::Interrupts, other_index),
        )?;
    }
    Ok(())
}
