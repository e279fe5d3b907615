// SPDX-License-Identifier: Apache-2.0
//! The numbers of records: the tables of an image hold them, or not.

use bulkhead_image::{
    MAX_ALTERNATIVES_PER_PARTITION, MAX_LOADS, MAX_MEMORY, MAX_REGIONS_PER_PARTITION, MAX_REGISTERS,
};

use super::CompileError;
use super::devices::register_records;
use super::own_map;
use super::records::records;
use crate::class;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::system::System;

/// Reports a system with more mappings or pieces of payloads than an image can hold.
pub(crate) fn fits_tables(system: &System, report: &mut Report) -> Option<()> {
    let (mut mappings, mut pieces, mut windows) = (0_usize, 0_usize, 0_usize);
    for (number, partition) in system.partitions().iter().enumerate() {
        let (spec, guest, own) = (partition.spec, partition.guest, partition.mappings().len());
        mappings = mappings.saturating_add(own);
        for guest in std::iter::once(guest).chain(&guest.alternatives) {
            pieces = pieces.saturating_add(guest.pieces.len());
        }
        let alternatives = guest.alternatives.len();
        windows = windows.saturating_add(register_records(system, number as u32).count());
        let (count, limit, what) = if own > MAX_REGIONS_PER_PARTITION {
            (own, MAX_REGIONS_PER_PARTITION, "mappings for one partition")
        } else if mappings > MAX_MEMORY {
            (mappings, MAX_MEMORY, "mappings in all")
        } else if alternatives > MAX_ALTERNATIVES_PER_PARTITION {
            let most = MAX_ALTERNATIVES_PER_PARTITION;
            (alternatives, most, "alternatives for one partition")
        } else if windows > MAX_REGISTERS {
            (windows, MAX_REGISTERS, "windows of device registers in all")
        } else if pieces > MAX_LOADS {
            (pieces, MAX_LOADS, "pieces of payloads in all")
        } else {
            continue;
        };
        let message = format!(
            "partition `{}` makes {count} {what}, more than {limit}",
            spec.name.value
        );
        report.push(
            Diagnostic::at(Code::TooManyMappings, spec.name.place, message)
                .help("merge regions, link ELF files with fewer segments, or drop alternatives"),
        );
        return None;
    }
    Some(())
}

/// Reports a board that the hypervisor cannot map with the tables that a class binary has.
pub(crate) fn fits_own_map(system: &System, report: &mut Report) -> Option<()> {
    let most = class::host(system.board.class).own_tables();
    let tables = own_map::tables(system, &records(system).ok()?);
    if tables <= most {
        return Some(());
    }
    let message = format!(
        "the hypervisor needs {tables} tables to map RAM and devices of board `{}`, more than {most}",
        system.board.name
    );
    let place = system.manifest.board.as_ref().map(|board| board.place);
    report.push(
        Diagnostic::at(Code::TooManyMappings, place.unwrap_or_default(), message)
            .help("give the board fewer stretches of RAM, or let them begin and end at multiples of 2 MiB"),
    );
    None
}

/// Returns the number of records in each table of the system's image, for a class binary that is built for
/// this system alone (`abi/src/size.rs`). `words` count the messages that wait in ports.
///
/// # Errors
/// A name does not fit into a record.
pub fn table_counts(system: &System) -> Result<Vec<(&'static str, usize)>, CompileError> {
    let image = records(system)?;
    let of_partition = image
        .partitions
        .iter()
        .map(|partition| partition.vcpu_count.get());
    let words = image.ports.iter().map(|port| port.words() as usize);
    // A line that is lent takes the place of one that is owned.
    let lent = image.sides.iter().filter(|side| side.line.get() != 0).count();
    Ok(vec![
        ("pcpus", image.pcpus.len()),
        // The kernel takes a place in the spaces of all partitions apart by its bits.
        ("partitions", image.partitions.len().next_power_of_two()),
        ("vcpus", image.vcpus.len()),
        ("vcpus_per_partition", of_partition.max().unwrap_or(0) as usize),
        ("ports", image.ports.len()),
        ("words", words.fold(0, usize::saturating_add)),
        ("locks", image.locks.len()),
        ("channels", image.channels.len()),
        ("sides", image.sides.len()),
        ("memory", image.memory.len()),
        ("loads", image.loads.len()),
        ("payloads", image.payloads.len()),
        ("interrupts", image.interrupts.len().saturating_add(lent)),
        ("devices", image.virtual_devices.len()),
        ("registers", image.registers.len()),
        ("translation", own_map::tables(system, &image)),
    ])
}
