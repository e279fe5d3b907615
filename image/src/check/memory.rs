// SPDX-License-Identifier: Apache-2.0
//! Mappings and loads: the rules that spatial separation rests on. Relies on the rules of `board`.

use super::board::{guest_span, host_span, in_code, in_ram, not_the_hypervisors, only_device};
use super::channels::is_shared_by_a_side;
use super::{at, earlier, named, refers, require};
use crate::error::{Fault, Table};
use crate::layout::{
    MEMORY_CLEAR, MEMORY_DEVICE, MEMORY_EXECUTE, MEMORY_READ, MEMORY_SHARED, MEMORY_WRITE, MemoryRecord,
};
use crate::limits::MAX_REGIONS_PER_PARTITION;
use crate::reader::{Image, record as record_at};
use crate::span::Span;

const PERMISSIONS: u32 = MEMORY_READ | MEMORY_WRITE | MEMORY_EXECUTE;

pub(super) fn mapping(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.memory(), index)?;
    flags(record)?;
    refers(
        record.partition.get(),
        image.partitions().len(),
        Table::Partitions,
    )?;
    place(image, record)?;
    let is_shared = record.flags.get() & MEMORY_SHARED != 0;
    require(
        !is_shared || is_shared_by_a_side(image, record),
        Fault::NoSuch(Table::Sides),
    )?;
    apart(image, index, record)
}

fn flags(record: &MemoryRecord) -> Result<(), Fault> {
    let flags = record.flags.get();
    require(record.reserved.get() == 0, Fault::Reserved)?;
    require(
        flags & !(PERMISSIONS | MEMORY_DEVICE | MEMORY_CLEAR | MEMORY_SHARED) == 0,
        Fault::BadFlags,
    )?;
    // The side of a channel may have no right until it is held.
    require(flags & (PERMISSIONS | MEMORY_SHARED) != 0, Fault::BadFlags)?;
    // Instruction fetches from registers have side effects; clearing registers has others.
    require(
        flags & MEMORY_DEVICE == 0 || flags & (MEMORY_EXECUTE | MEMORY_CLEAR) == 0,
        Fault::BadFlags,
    )?;
    // The others may be using it when one side starts, and code comes from payloads alone.
    require(
        flags & MEMORY_SHARED == 0 || flags & (MEMORY_EXECUTE | MEMORY_CLEAR) == 0,
        Fault::BadFlags,
    )
}

/// Checks that the mapping is where it may be: RAM in RAM but not the hypervisor's, devices neither in RAM
/// nor the hypervisor's; constants can be in code memory.
fn place(image: &Image<'_>, record: &MemoryRecord) -> Result<(), Fault> {
    guest_span(image, record)?;
    let host = host_span(image, record)?;
    let identical = record.guest == record.host;
    require(identical || !image.facts().runs_in_place(), Fault::NotIdentical)?;
    if record.flags.get() & MEMORY_DEVICE == 0 {
        let constant = record.flags.get() & (MEMORY_WRITE | MEMORY_CLEAR) == 0;
        let inside = in_ram(image, host) || constant && in_code(image, host);
        require(inside, Fault::OutsideRam)?;
        return not_the_hypervisors(image, host);
    }
    only_device(image, host, u16::MAX)
}

/// Checks that no partition sees two things at one address, and that no two partitions see one thing but a
/// channel. (A partition may see its own memory at two addresses.)
fn apart(image: &Image<'_>, index: u16, record: &MemoryRecord) -> Result<(), Fault> {
    let (guest, host) = (guest_span(image, record)?, host_span(image, record)?);
    let mut siblings = 0_usize;
    for (other, other_index) in earlier(image.memory(), index) {
        let overlaps = if other.partition == record.partition {
            siblings = siblings.saturating_add(1);
            guest.overlaps(guest_span(image, other)?)
        } else {
            host.overlaps(host_span(image, other)?) && !is_one_channel(record, other)
        };
        require(!overlaps, Fault::Overlaps(Table::Memory, other_index))?;
    }
    require(siblings < MAX_REGIONS_PER_PARTITION, Fault::BadCount)
}

/// Tells whether two mappings belong to one channel. Both are mappings of sides, and channels are apart.
fn is_one_channel(one: &MemoryRecord, other: &MemoryRecord) -> bool {
    let both = one.flags.get() & other.flags.get();
    both & MEMORY_SHARED != 0 && one.host == other.host && one.size == other.size
}

pub(super) fn payload(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.payloads(), index)?;
    named(&record.name)?;
    require(record.size.get() != 0, Fault::Empty)
}

pub(super) fn load(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.loads(), index)?;
    let partition = record.partition.get();
    refers(partition, image.partitions().len(), Table::Partitions)?;
    require(record.reserved.get() == 0, Fault::Reserved)?;
    let alternative = record.alternative.get();
    require(
        alternative == 0 || image.alternatives_of(partition).count() >= alternative as usize,
        Fault::NoSuch(Table::Alternatives),
    )?;
    let payload = record_at(image.payloads(), record.payload.get()).ok_or(Fault::NoSuch(Table::Payloads))?;
    let guest = Span::new(record.guest.get(), record.size.get())?;
    let end = record
        .offset
        .get()
        .checked_add(record.size.get())
        .ok_or(Fault::OutsidePayload)?;
    require(end <= payload.size.get(), Fault::OutsidePayload)?;
    let mut mappings = image.memory_of(partition);
    require(
        mappings.any(|mapping| loads_into(image, mapping, guest)),
        Fault::OutsideMemory,
    )?;
    for (other, other_index) in earlier(image.loads(), index)
        .filter(|(other, _)| other.partition == record.partition && other.alternative == record.alternative)
    {
        let other = Span::new(other.guest.get(), other.size.get())?;
        require(!guest.overlaps(other), Fault::Overlaps(Table::Loads, other_index))?;
    }
    Ok(())
}

/// Tells whether `guest` lies in `mapping`, and the hypervisor can copy there: neither registers nor code
/// memory, nor the memory of a channel, which others may be using.
fn loads_into(image: &Image<'_>, mapping: &MemoryRecord, guest: Span) -> bool {
    mapping.flags.get() & (MEMORY_DEVICE | MEMORY_SHARED) == 0
        && host_span(image, mapping).is_ok_and(|host| in_ram(image, host))
        && guest_span(image, mapping).is_ok_and(|span| span.covers(guest))
}
