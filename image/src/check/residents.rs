// SPDX-License-Identifier: Apache-2.0
//! Code memory of partitions, and what in it looks like a replaced instruction. Relies on the rules of
//! `memory`.
//!
//! A digest covers exactly the code that runs: a stretch lies in a mapping that its owner cannot write, and
//! every lookalike lies in such a stretch. Their order is what a binary search needs.

use super::board::{host_span, in_code, not_the_hypervisors};
use super::{at, earlier, named, refers, require};
use crate::error::{Fault, Table};
use crate::layout::{MEMORY_DEVICE, MEMORY_READ, MEMORY_WRITE, ResidentRecord};
use crate::reader::Image;
use crate::span::Span;

fn span(record: &ResidentRecord) -> Result<Span, Fault> {
    Span::new(record.address.get(), record.size.get())
}

pub(super) fn resident(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.residents(), index)?;
    named(&record.name)?;
    require(record.reserved.get() == 0, Fault::Reserved)?;
    let partition = record.partition.get();
    refers(partition, image.partitions().len(), Table::Partitions)?;
    let own = span(record)?;
    require(in_code(image, own), Fault::OutsideCode)?;
    not_the_hypervisors(image, own)?;
    let mut constant = image
        .memory_of(partition)
        .filter(|mapping| mapping.flags.get() & (MEMORY_READ | MEMORY_WRITE | MEMORY_DEVICE) == MEMORY_READ);
    require(
        constant.any(|mapping| host_span(image, mapping).is_ok_and(|mapped| mapped.covers(own))),
        Fault::OutsideMemory,
    )?;
    for (other, other_index) in earlier(image.residents(), index) {
        require(
            !own.overlaps(span(other)?),
            Fault::Overlaps(Table::Residents, other_index),
        )?;
    }
    Ok(())
}

pub(super) fn lookalike(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let before = index.checked_sub(1).map(|before| at(image.lookalikes(), before));
    let before = before.transpose()?;
    let address = at(image.lookalikes(), index)?.address.get();
    require(
        before.is_none_or(|before| before.address.get() < address),
        Fault::NotAscending,
    )?;
    require(address.is_multiple_of(2), Fault::Unaligned)?;
    let instruction = Span::new(address.into(), 2)?;
    let inside = image
        .residents()
        .iter()
        .any(|resident| span(resident).is_ok_and(|span| span.covers(instruction)));
    require(inside, Fault::OutsideCode)
}
