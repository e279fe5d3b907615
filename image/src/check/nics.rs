// SPDX-License-Identifier: Apache-2.0
//! Interfaces of VMs to networks. Relies on the rules of `memory` and `devices`.
//!
//! Frames on their way lie in memory that no partition can reach but, if the manifest says so, their own. An
//! address stands for one interface. So a partition sees the frames that are for it, and no other's.

use super::board::{host_span, in_ram, not_the_hypervisors};
use super::partitions::machine;
use super::{at, earlier, require, uses};
use crate::error::{Fault, Table};
use crate::layout::{
    INTERRUPT_EARLY, InterruptRecord, MEMORY_CLEAR, MEMORY_READ, MEMORY_WRITE, MemoryRecord, NIC_FRAME_RING,
    NIC_MEMORY, NicRecord,
};
use crate::reader::Image;
use crate::span::Span;
use bulkhead_abi::parts::Part;
use bulkhead_arch_api::class::DeviceRole;

/// Networks beside the first, which the board's interface is on.
const NETWORKS: usize = 4;

pub(super) fn nic(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.nics(), index)?;
    machine(image, record.partition.get())?;
    let mut devices = image.virtual_devices_of(record.partition.get());
    let has_registers = devices.any(|device| {
        let facts = image.facts().device(device.kind.get());
        facts.is_some_and(|facts| facts.role == DeviceRole::Network)
    });
    require(has_registers, Fault::NoSuch(Table::VirtualDevices))?;
    // As many as could each have one of the interfaces, and the one that has the board's.
    require(number(image, record) as usize <= NETWORKS, Fault::OutOfRange)?;
    address(record)?;
    memory(image, index, record)?;
    if uses(image, Part::FrameRing) && record.network.get() & NIC_FRAME_RING != 0 {
        no_early_start(image, record)?;
    }
    for (other, other_index) in earlier(image.nics(), index) {
        let same_network = number(image, other) == number(image, record);
        let same_address = same_network && other.address == record.address;
        require(
            other.partition != record.partition && !same_address,
            Fault::SameAs(other_index),
        )?;
    }
    Ok(())
}

/// Returns the number of a network, with all bits that an image may not have.
fn number(image: &Image<'_>, record: &NicRecord) -> u32 {
    let ring = if uses(image, Part::FrameRing) {
        NIC_FRAME_RING
    } else {
        0
    };
    record.network.get() & !ring
}

/// Tells whether a partition has a network interface.
pub(super) fn has_one(image: &Image<'_>, partition: u32) -> bool {
    image.nics().iter().any(|nic| nic.partition.get() == partition)
}

/// Checks that the address is one of a station, not of a group (IEEE 802, 8.2).
fn address(record: &NicRecord) -> Result<(), Fault> {
    let [first, _, _, _, _, _, rest @ ..] = record.address;
    require(rest == [0; 2], Fault::Reserved)?;
    require(first & 1 == 0 && record.address != [0; 8], Fault::OutOfRange)
}

/// Checks that the memory is RAM that no partition has. Its own has all of it if the frames are in a ring.
fn memory(image: &Image<'_>, index: u16, record: &NicRecord) -> Result<(), Fault> {
    let span = Span::granules(record.memory.get(), NIC_MEMORY, image.granule())?;
    require(in_ram(image, span), Fault::OutsideRam)?;
    not_the_hypervisors(image, span)?;
    let mut is_missing = record.network.get() & NIC_FRAME_RING != 0;
    for (mapping, other_index) in image.memory().iter().zip(0..) {
        if is_missing && is_ring_of(record, mapping) {
            is_missing = false;
            continue;
        }
        let apart = !span.overlaps(host_span(image, mapping)?);
        require(apart, Fault::Overlaps(Table::Memory, other_index))?;
    }
    require(!is_missing, Fault::NoSuch(Table::Memory))?;
    for (other, other_index) in earlier(image.nics(), index) {
        let other = Span::granules(other.memory.get(), NIC_MEMORY, image.granule())?;
        require(!span.overlaps(other), Fault::Overlaps(Table::Nics, other_index))?;
    }
    Ok(())
}

/// Checks that no handler of the partition runs while the hypervisor copies a frame that the partition sees.
fn no_early_start(image: &Image<'_>, record: &NicRecord) -> Result<(), Fault> {
    let mut lines = image.interrupts().iter();
    let is_early = |line: &InterruptRecord| {
        line.partition == record.partition && line.flags.get() & INTERRUPT_EARLY != 0
    };
    require(!lines.any(is_early), Fault::BadFlags)
}

/// Tells whether a mapping shows a partition the memory for its own frames, all of it, as data that a start
/// clears.
fn is_ring_of(record: &NicRecord, mapping: &MemoryRecord) -> bool {
    mapping.partition == record.partition
        && mapping.flags.get() == MEMORY_READ | MEMORY_WRITE | MEMORY_CLEAR
        && mapping.host == record.memory
        && mapping.size.get() == NIC_MEMORY
}
