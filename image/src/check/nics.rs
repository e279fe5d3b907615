// SPDX-License-Identifier: Apache-2.0
//! Interfaces of VMs to networks. Relies on the rules of `memory` and `devices`.
//!
//! Frames on their way lie in memory that no partition can reach, and an address stands for one interface: so
//! a partition sees the frames that are for it, and no other's.

use super::board::{host_span, in_ram, not_the_hypervisors};
use super::partitions::machine;
use super::{at, earlier, require};
use crate::error::{Fault, Table};
use crate::layout::{NIC_MEMORY, NicRecord};
use crate::reader::Image;
use crate::span::Span;
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
    require(record.network.get() as usize <= NETWORKS, Fault::OutOfRange)?;
    address(record)?;
    memory(image, index, record)?;
    for (other, other_index) in earlier(image.nics(), index) {
        let same_address = other.network == record.network && other.address == record.address;
        require(
            other.partition != record.partition && !same_address,
            Fault::SameAs(other_index),
        )?;
    }
    Ok(())
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

/// Checks that the memory is RAM that no partition has.
fn memory(image: &Image<'_>, index: u16, record: &NicRecord) -> Result<(), Fault> {
    let span = Span::granules(record.memory.get(), NIC_MEMORY, image.granule())?;
    require(in_ram(image, span), Fault::OutsideRam)?;
    not_the_hypervisors(image, span)?;
    for (mapping, other_index) in image.memory().iter().zip(0..) {
        let apart = !span.overlaps(host_span(image, mapping)?);
        require(apart, Fault::Overlaps(Table::Memory, other_index))?;
    }
    for (other, other_index) in earlier(image.nics(), index) {
        let other = Span::granules(other.memory.get(), NIC_MEMORY, image.granule())?;
        require(!span.overlaps(other), Fault::Overlaps(Table::Nics, other_index))?;
    }
    Ok(())
}
