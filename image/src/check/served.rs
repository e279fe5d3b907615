// SPDX-License-Identifier: Apache-2.0
//! Windows that partitions answer. Relies on the rules of `memory`, `partitions`, `devices` and `registers`.
//!
//! A window is an address range of its client where nothing else is, so each access to it comes to the
//! hypervisor. The memory that the client grants is its own.

use super::board::guest_span;
use super::devices::{line_is_free, touches, virtual_line};
use super::{at, earlier, partitions::machine, refers, require};
use crate::error::{Fault, Table};
use crate::layout::{NONE, SERVED_FAULTS, SERVED_VIRTIO, SERVED_WRITES, ServedRecord};
use crate::limits::MAX_DURATION_NS;
use crate::reader::Image;
use crate::span::Span;
use bulkhead_arch_api::AddressSpace;

/// Events of a gate.
const EVENTS: u32 = 64;

pub(super) fn window(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.served(), index)?;
    let client = machine(image, record.client.get())?;
    refers(record.server.get(), image.partitions().len(), Table::Partitions)?;
    require(record.server != record.client, Fault::SameAs(index))?;
    require(record.reserved.get() == 0, Fault::Reserved)?;
    let flags = SERVED_WRITES | SERVED_FAULTS | SERVED_VIRTIO;
    require(record.flags.get() & !flags == 0, Fault::BadFlags)?;
    require(record.event.get() < EVENTS, Fault::OutOfRange)?;
    let timeout = record.timeout_ns.get();
    require((1..=MAX_DURATION_NS).contains(&timeout), Fault::OutOfRange)?;
    grant(image, record)?;
    apart(image, index, record)?;
    let line = record.virtual_line.get();
    if line == NONE {
        return Ok(());
    }
    virtual_line(image, client, line)?;
    line_is_free(image, record.client.get(), line)
}

fn span(image: &Image<'_>, record: &ServedRecord) -> Result<Span, Fault> {
    Span::granules(record.guest.get(), record.size.get(), image.granule())
}

/// Checks that the memory that the server reaches is in one mapping of the client.
fn grant(image: &Image<'_>, record: &ServedRecord) -> Result<(), Fault> {
    if record.grant_size.get() == 0 {
        return require(record.grant.get() == 0, Fault::OutOfRange);
    }
    let granted = Span::new(record.grant.get(), record.grant_size.get())?;
    for mapping in image.memory_of(record.client.get()) {
        if guest_span(image, mapping)?.covers(granted) {
            return Ok(());
        }
    }
    Err(Fault::OutsideMemory)
}

/// Checks that nothing else of the client is where the window is, and that no other window has its line.
fn apart(image: &Image<'_>, index: u16, record: &ServedRecord) -> Result<(), Fault> {
    let own = span(image, record)?;
    for (mapping, other_index) in image.memory().iter().zip(0..) {
        let same = mapping.partition == record.client;
        require(
            !same || !own.overlaps(guest_span(image, mapping)?),
            Fault::Overlaps(Table::Memory, other_index),
        )?;
    }
    for (device, other_index) in image.virtual_devices().iter().zip(0..) {
        let same = device.partition == record.client;
        require(
            !same || !touches(image, device, (AddressSpace::Memory, own))?,
            Fault::Overlaps(Table::VirtualDevices, other_index),
        )?;
    }
    for (registers, other_index) in image.registers().iter().zip(0..) {
        let same = registers.partition == record.client;
        let seen = Span::new(registers.guest.get(), registers.size.get())?;
        require(
            !same || !own.overlaps(seen),
            Fault::Overlaps(Table::Registers, other_index),
        )?;
    }
    for (other, other_index) in earlier(image.served(), index) {
        let same = other.client == record.client;
        require(
            !same || !own.overlaps(span(image, other)?),
            Fault::Overlaps(Table::Served, other_index),
        )?;
        let line = record.virtual_line;
        let taken = same && line.get() != NONE && other.virtual_line == line;
        require(!taken, Fault::LineTaken(Table::Served, other_index))?;
    }
    Ok(())
}
