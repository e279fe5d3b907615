// SPDX-License-Identifier: Apache-2.0
//! The rules a system image obeys beyond its format.
//!
//! One function per rule, one file per subject. A rule sees a record and its index and returns a [`Fault`];
//! [`each`] adds where that was. Rules may rely on the format, and on the rules that [`all`] runs before them.
//!
//! | file | rules |
//! |---|---|
//! | `board` | the hypervisor's memory, pCPUs, address map, controllers |
//! | `partitions` | names, kinds, flags, vCPUs and where they are bound, entry, argument, stack |
//! | `memory` | mappings apart from each other, from the hypervisor and from its devices; loads |
//! | `devices` | virtual devices, interrupt lines |
//! | `nics` | interfaces to networks, their memory |
//! | `registers` | device registers that the hypervisor touches for their owner |
//! | `schedules` | budgets of vCPUs, schedules and their windows, time domains |
//! | `residents` | code memory of partitions, and instructions replaced in it |
//! | `access` | capabilities, watches |

mod access;
mod board;
mod devices;
mod memory;
mod nics;
mod partitions;
mod registers;
mod residents;
mod schedules;

use crate::error::{Fault, ImageError, Table};
use crate::layout::Name;
use crate::reader::Image;
pub(crate) use board::runs_in_place;

/// Checks every rule.
pub(crate) fn all(image: &Image<'_>) -> Result<(), ImageError> {
    board::check(image)?;
    memory::check(image)?;
    partitions::check(image)?;
    devices::check(image)?;
    nics::check(image)?;
    registers::check(image)?;
    residents::check(image)?;
    schedules::check(image)?;
    access::check(image)
}

/// Applies a rule to every record of a table.
fn each<R>(
    table: Table,
    records: &[R],
    rule: impl Fn(u16, &R) -> Result<(), Fault>,
) -> Result<(), ImageError> {
    for (record, index) in records.iter().zip(0..) {
        rule(index, record).map_err(|fault| ImageError::Record {
            table,
            index: index.into(),
            fault,
        })?;
    }
    Ok(())
}

/// The records before `index`, with their indices: what a pairwise rule compares a record with.
fn earlier<R>(records: &[R], index: u16) -> impl Iterator<Item = (&R, u16)> {
    records.iter().zip(0..index)
}

/// `fault` unless `holds`.
fn require(holds: bool, fault: Fault) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(fault) }
}

/// `index` is the index of a record of a table with `count` records.
fn refers(index: u32, count: usize, table: Table) -> Result<(), Fault> {
    require((index as usize) < count, Fault::NoSuch(table))
}

/// The name is one.
fn named(name: &Name) -> Result<(), Fault> {
    require(name.text().is_ok(), Fault::BadName)
}
