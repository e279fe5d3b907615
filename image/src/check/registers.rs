// SPDX-License-Identifier: Apache-2.0
//! Device registers that the hypervisor touches for their owner. Relies on the rules of `memory` and
//! `devices`.
//!
//! A forwarded window is smaller than a page and no partition has its page mapped; a window that is only
//! quiesced lies in registers its owner has mapped. Either way no byte of it belongs to anybody else.

use super::board::{guest_span, host_span, only_device};
use super::devices::touches;
use super::guards::{self, GUARDED, guards_devices, is_gated};
use super::partitions::owner;
use super::{at, earlier, require};
use crate::error::{Fault, Table};
use crate::layout::{
    MEMORY_DEVICE, PARTITION_VM, REGISTERS_FORWARDED, REGISTERS_GATED, REGISTERS_QUIESCED, RegistersRecord,
};
use crate::limits::PAGE_SIZE;
use crate::reader::Image;
use crate::span::Span;
use bulkhead_arch_api::AddressSpace;

pub(super) fn window(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.registers(), index)?;
    let owner = owner(image, record.partition.get())?;
    shape(image, record)?;
    guards::gate(image, index, record)?;
    // Where no gate keeps a task apart from registers, it reaches them by trap only.
    let may_map = owner.kind.get() == PARTITION_VM || is_forwarded(record) || GUARDED && is_gated(record);
    require(may_map, Fault::NotForTask)?;
    only_device(image, real(record)?, u16::MAX)?;
    mapped_or_not(image, record)?;
    apart(image, index, record)
}

fn seen(record: &RegistersRecord) -> Result<Span, Fault> {
    Span::new(record.guest.get(), record.size.get())
}

fn real(record: &RegistersRecord) -> Result<Span, Fault> {
    Span::new(record.host.get(), record.size.get())
}

fn is_forwarded(record: &RegistersRecord) -> bool {
    record.flags.get() & REGISTERS_FORWARDED != 0
}

fn shape(image: &Image<'_>, record: &RegistersRecord) -> Result<(), Fault> {
    let flags = record.flags.get();
    let gated = if guards_devices(image) { REGISTERS_GATED } else { 0 };
    require(
        flags != 0 && flags & !(REGISTERS_FORWARDED | REGISTERS_QUIESCED | gated) == 0,
        Fault::BadFlags,
    )?;
    let (guest, host) = (seen(record)?, real(record)?);
    let apart = guest.start ^ host.start;
    require(apart.is_multiple_of(PAGE_SIZE as usize), Fault::Unaligned)?;
    let (offset, value) = (record.quiesce_offset.get(), record.quiesce_value.get());
    if flags & REGISTERS_QUIESCED == 0 {
        return require(offset == 0 && value == 0, Fault::Reserved);
    }
    let register = u64::from(offset);
    let aligned = (host.start as u32).wrapping_add(offset).is_multiple_of(4);
    let inside = register.saturating_add(4) <= record.size.get();
    require(aligned, Fault::Unaligned)?;
    require(inside, Fault::OutOfRange)
}

/// Checks that no partition has mapped a forwarded window, and that only the owner has mapped another one.
fn mapped_or_not(image: &Image<'_>, record: &RegistersRecord) -> Result<(), Fault> {
    let (guest, host) = (seen(record)?, real(record)?);
    let mut mapped = false;
    for (mapping, index) in image.memory().iter().zip(0..) {
        let own = mapping.partition == record.partition;
        let covers = mapping.flags.get() & MEMORY_DEVICE != 0 && host_span(image, mapping)?.covers(host);
        if (own || guards::is_of_side(mapping)) && covers && !is_forwarded(record) {
            mapped |= own;
            continue;
        }
        let clash =
            host.overlaps(host_span(image, mapping)?) || own && guest.overlaps(guest_span(image, mapping)?);
        require(!clash, Fault::Overlaps(Table::Memory, index))?;
    }
    for (device, index) in image.virtual_devices().iter().zip(0..) {
        let clash =
            device.partition == record.partition && touches(image, device, (AddressSpace::Memory, guest))?;
        require(!clash, Fault::Overlaps(Table::VirtualDevices, index))?;
    }
    require(mapped || is_forwarded(record), Fault::OutsideMemory)
}

fn apart(image: &Image<'_>, index: u16, record: &RegistersRecord) -> Result<(), Fault> {
    let (guest, host) = (seen(record)?, real(record)?);
    for (other, other_index) in earlier(image.registers(), index) {
        let same = other.partition == record.partition;
        let clash = host.overlaps(real(other)?) || same && guest.overlaps(seen(other)?);
        require(!clash, Fault::Overlaps(Table::Registers, other_index))?;
    }
    Ok(())
}
