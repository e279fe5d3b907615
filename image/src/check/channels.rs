// SPDX-License-Identifier: Apache-2.0
//! Channels and their sides. Relies on the rules of `memory`, `partitions` and `devices`.
//!
//! Memory that two partitions see is the exception to spatial separation, so the table of sides says all of
//! it: a shared mapping belongs to a side, whole and with no other rights, and a channel overlaps no other
//! one.

use super::devices::{line_is_free, physical_line, virtual_line};
use super::{at, covers, earlier, named, partitions::machine, refers, require, uses};
use crate::error::{Fault, Table};
use crate::layout::{
    ChannelRecord, MEMORY_DEVICE, MEMORY_READ, MEMORY_SHARED, MEMORY_WRITE, MemoryRecord, NONE, SIDE_DEVICE,
    SIDE_EDGE, SIDE_FUNCTION, SIDE_HELD, SIDE_WRITES, SideRecord,
};
use crate::limits::{MAX_FUNCTIONS, MAX_HELD, MAX_PARTITIONS};
use crate::reader::{Image, record as record_at};
use crate::span::Span;
use bulkhead_abi::parts::Part;
use bulkhead_arch_api::class::DeviceRole;

/// Events of a gate.
const EVENTS: u32 = 64;

pub(super) fn channel(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.channels(), index)?;
    named(&record.name)?;
    let span = span(image, record)?;
    let count = record.side_count.get() as usize;
    require((1..=MAX_PARTITIONS).contains(&count), Fault::BadCount)?;
    let mut first = 0_u32;
    for (other, other_index) in earlier(image.channels(), index) {
        require(other.name != record.name, Fault::SameAs(other_index))?;
        let apart = !span.overlaps(self::span(image, other)?);
        require(apart, Fault::Overlaps(Table::Channels, other_index))?;
        first = first.saturating_add(other.side_count.get());
    }
    require(record.first_side.get() == first, Fault::NotConsecutive)?;
    covers(image.channels(), index, image.sides().len(), |record| {
        record.side_count.get()
    })
}

/// Returns the memory of a channel.
fn span(image: &Image<'_>, record: &ChannelRecord) -> Result<Span, Fault> {
    Span::granules(record.host.get(), record.size.get(), image.granule())
}

pub(super) fn side(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.sides(), index)?;
    require(
        record.flags.get() & !(SIDE_WRITES | SIDE_FUNCTION | SIDE_HELD | SIDE_DEVICE | SIDE_EDGE) == 0,
        Fault::BadFlags,
    )?;
    let number = record.channel.get();
    let channel = record_at(image.channels(), number).ok_or(Fault::NoSuch(Table::Channels))?;
    let place = u32::from(index).checked_sub(channel.first_side.get());
    require(
        place.is_some_and(|place| place < channel.side_count.get()),
        Fault::NotConsecutive,
    )?;
    let partition = record.partition.get();
    refers(partition, image.partitions().len(), Table::Partitions)?;
    for (other, other_index) in earlier(image.sides(), index) {
        let same = other.partition == record.partition;
        require(
            !same || other.channel != record.channel,
            Fault::SameAs(other_index),
        )?;
        let line = record.virtual_line.get();
        let taken = same && line != NONE && other.virtual_line.get() == line;
        require(!taken, Fault::LineTaken(Table::Sides, other_index))?;
    }
    bell(image, record)?;
    if is_held(record) {
        require(
            image.facts().protects && uses(image, Part::Lent) && !is_function(record),
            Fault::BadFlags,
        )?;
        require(channel.size.get() <= MAX_HELD, Fault::OutOfRange)?;
    }
    if is_function(record) {
        function(image, index, record)?;
    }
    device(image, record)?;
    let mut mapped = image.memory_of(partition);
    require(
        mapped.any(|mapping| is_of(mapping, record, channel)),
        Fault::OutsideMemory,
    )
}

/// Checks that the doorbell can reach the side.
fn bell(image: &Image<'_>, record: &SideRecord) -> Result<(), Fault> {
    let event = record.event.get();
    require(event == NONE || event < EVENTS, Fault::OutOfRange)?;
    let line = record.virtual_line.get();
    if line == NONE {
        return Ok(());
    }
    let partition = record.partition.get();
    let owner = machine(image, partition)?;
    virtual_line(image, owner, line)?;
    line_is_free(image, partition, line)
}

/// Checks that a side of a device is one that is held and has no doorbell, as all sides of the device, and
/// that no other partition has the line.
fn device(image: &Image<'_>, record: &SideRecord) -> Result<(), Fault> {
    let line = record.line.get();
    if record.flags.get() & SIDE_DEVICE == 0 {
        require(record.flags.get() & SIDE_EDGE == 0, Fault::BadFlags)?;
        return require(line == 0, Fault::Reserved);
    }
    require(is_held(record), Fault::BadFlags)?;
    let has_bell = record.virtual_line.get() != NONE || record.event.get() != NONE;
    require(!has_bell, Fault::OutOfRange)?;
    for other in image.sides_of(record.channel.get()) {
        let both = record.flags.get() ^ other.flags.get();
        let alike = both & (SIDE_DEVICE | SIDE_EDGE) == 0 && other.line == record.line;
        require(alike, Fault::BadFlags)?;
    }
    match line.checked_sub(1) {
        Some(line) => lent_line(image, record, line),
        None => Ok(()),
    }
}

fn lent_line(image: &Image<'_>, record: &SideRecord, line: u32) -> Result<(), Fault> {
    physical_line(image, line)?;
    for (interrupt, index) in image.interrupts().iter().zip(0..) {
        require(
            interrupt.line.get() != line,
            Fault::LineTaken(Table::Interrupts, index),
        )?;
    }
    for (other, index) in image.sides().iter().zip(0..) {
        let taken = other.channel != record.channel && other.line == record.line;
        require(!taken, Fault::LineTaken(Table::Sides, index))?;
    }
    Ok(())
}

/// Tells whether the memory of a channel is the registers of a device.
pub(super) fn is_device(image: &Image<'_>, channel: u32) -> bool {
    let mut sides = image.sides_of(channel).iter();
    sides.any(|side| side.flags.get() & SIDE_DEVICE != 0)
}

/// Tells whether a side is mapped only while it is held.
const fn is_held(record: &SideRecord) -> bool {
    record.flags.get() & SIDE_HELD != 0
}

/// Tells whether a side is a PCI function.
const fn is_function(record: &SideRecord) -> bool {
    record.flags.get() & SIDE_FUNCTION != 0
}

/// Checks that a side can be a PCI function: its VM has a bridge, INTx a line, and the memory is what a base
/// address register can tell.
fn function(image: &Image<'_>, index: u16, record: &SideRecord) -> Result<(), Fault> {
    let mut devices = image.virtual_devices_of(record.partition.get());
    let has_bridge = devices.any(|device| {
        let facts = image.facts().device(device.kind.get());
        facts.is_some_and(|facts| facts.role == DeviceRole::Bridge)
    });
    require(has_bridge, Fault::NoSuch(Table::VirtualDevices))?;
    require(record.virtual_line.get() != NONE, Fault::OutOfRange)?;
    let size = record_at(image.channels(), record.channel.get()).map_or(0, |channel| channel.size.get());
    require(
        size.is_power_of_two() && record.guest.get().is_multiple_of(size),
        Fault::Unaligned,
    )?;
    let others = earlier(image.sides(), index).filter(|(other, _)| is_function(other));
    require((0..MAX_FUNCTIONS).contains(&others.count()), Fault::BadCount)
}

/// Tells whether a mapping belongs to a side.
fn is_of(mapping: &MemoryRecord, side: &SideRecord, channel: &ChannelRecord) -> bool {
    let rights = if is_held(side) {
        0
    } else if side.flags.get() & SIDE_WRITES != 0 {
        MEMORY_READ | MEMORY_WRITE
    } else {
        MEMORY_READ
    };
    let device = if side.flags.get() & SIDE_DEVICE != 0 {
        MEMORY_DEVICE
    } else {
        0
    };
    mapping.partition == side.partition
        && mapping.guest == side.guest
        && mapping.host == channel.host
        && mapping.size == channel.size
        && mapping.flags.get() == MEMORY_SHARED | rights | device
}

/// Tells whether a shared mapping belongs to a side.
pub(super) fn is_shared_by_a_side(image: &Image<'_>, mapping: &MemoryRecord) -> bool {
    image.sides().iter().any(|side| {
        record_at(image.channels(), side.channel.get()).is_some_and(|channel| is_of(mapping, side, channel))
    })
}
