// SPDX-License-Identifier: Apache-2.0
//! The rules for boards of class `armv7m`: no address is translated, one CPU, programs are ELF files.
#![deny(clippy::arithmetic_side_effects)]

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{ChannelSpec, Manifest, PartitionSpec};
use crate::units::format_size;

/// Keys of a partition that have no meaning on such a board, with the reason.
const FOREIGN: [(&str, &str); 8] = [
    ("flash", "the board's own code memory holds the program"),
    ("ramdisk", "a program is all there is"),
    ("init", "a program is all there is"),
    ("modules", "a program is all there is"),
    ("bootargs", "no register and no memory of a reset holds them"),
    ("device-tree-overlay", "there is no device tree"),
    (
        "trusted-dma",
        "no device of these boards accesses memory by itself",
    ),
    ("alternative", "two programs would need two windows of code"),
];

/// Number of partitions that the tables of the class binary hold.
const PARTITIONS: usize = 8;

pub(super) fn check(manifest: &Manifest, board: &Board, report: &mut Report) {
    for partition in &manifest.partitions {
        keys_have_a_meaning(partition, report);
        machine_has_a_meaning(partition, report);
        granules(partition, board.class.facts().granule, report);
        one_vcpu(partition, report);
        regions_are_data_in_place(partition, report);
    }
    for channel in &manifest.channels {
        channel_is_a_region(channel, board.class.facts().granule, report);
    }
    if let Some(partition) = manifest.partitions.get(PARTITIONS) {
        let message = format!(
            "a board of class `armv7m` holds {PARTITIONS} partitions, not {}",
            manifest.partitions.len()
        );
        report.push(
            Diagnostic::at(Code::NotForClass, partition.name.place, message).help("remove some of them"),
        );
    }
}

fn foreign(what: &str, why: &str, place: Place) -> Diagnostic {
    let message = format!("{what} has no meaning on a board of class `armv7m`");
    Diagnostic::at(Code::NotForClass, place, message)
        .label(why)
        .help("remove it, or choose a board of another class")
}

fn keys_have_a_meaning(partition: &PartitionSpec, report: &mut Report) {
    for (key, why) in FOREIGN {
        if let Some(found) = partition.keys.iter().find(|found| found.value == key) {
            report.push(foreign(&format!("`{key}`"), why, found.place));
        }
    }
}

fn machine_has_a_meaning(partition: &PartitionSpec, report: &mut Report) {
    let machine = &partition.machine;
    let load_at = machine.load_at.as_ref().map(|at| at.place);
    let keys = [
        (
            "`machine.ram-base`",
            machine.ram_base.key,
            "use `place`: the bus address is the partition's own",
        ),
        (
            "`machine.gic`",
            machine.gic.key,
            "every partition has a virtual NVIC",
        ),
        ("`machine.load-at`", load_at, "an ELF file says it itself"),
    ];
    for (key, place, why) in keys {
        if let Some(place) = place {
            report.push(foreign(key, why, place));
        }
    }
    for region in &partition.regions {
        if let Some(payload) = &region.payload {
            report.push(foreign(
                "`payload` of a region",
                "only the program is loaded",
                payload.place,
            ));
        }
    }
}

/// Checks that an MPU can express the sizes and addresses.
fn granules(partition: &PartitionSpec, granule: u64, report: &mut Report) {
    let regions = partition.regions.iter();
    let sizes = partition
        .memory
        .iter()
        .chain(regions.clone().filter_map(|region| region.size.as_ref()));
    for size in sizes {
        if size.value.get() == 0 {
            report.push(
                Diagnostic::at(Code::ZeroSize, size.place, "the size is zero").help("give at least \"1K\""),
            );
        } else if !size.value.is_multiple_of(granule) || size.value.get() > 1 << 31 {
            let message = format!(
                "the size {} cannot be that of a region",
                format_size(size.value.get())
            );
            report.push(
                Diagnostic::at(Code::UnalignedSize, size.place, message).help(format!(
                    "give a multiple of {granule} bytes, at best a power of two"
                )),
            );
        }
    }
    let guests = regions.filter_map(|region| region.guest.as_ref());
    for address in partition.at.iter().chain(guests) {
        if !address.value.is_multiple_of(granule) || address.value.get() >= 1 << 32 {
            let message = format!("the address {:#x} cannot be that of a region", address.value);
            report.push(
                Diagnostic::at(Code::UnalignedAddress, address.place, message).help(format!(
                    "give a multiple of {granule} below 4G, at best a multiple of the size"
                )),
            );
        }
    }
}

/// Checks that the memory of a channel is one region of the MPU.
fn channel_is_a_region(channel: &ChannelSpec, granule: u64, report: &mut Report) {
    let Some(size) = &channel.size else { return };
    let bytes = size.value.get();
    if !bytes.is_power_of_two() || !(granule..=1 << 31).contains(&bytes) {
        let message = format!(
            "the size {} cannot be that of a channel of class `armv7m`",
            format_size(bytes)
        );
        report.push(
            Diagnostic::at(Code::UnalignedSize, size.place, message)
                .help(format!("give a power of two, {granule} at least")),
        );
        return;
    }
    if let Some(at) = &channel.at
        && !at.value.is_multiple_of(bytes)
    {
        let message = format!("a channel of {} cannot be at {:#x}", format_size(bytes), at.value);
        report.push(
            Diagnostic::at(Code::UnalignedAddress, at.place, message)
                .help("give a multiple of its size, or remove `place`"),
        );
    }
}

/// Checks that regions are data in their place: nothing is translated, and code in a region is not rewritten.
fn regions_are_data_in_place(partition: &PartitionSpec, report: &mut Report) {
    for region in &partition.regions {
        if let (Some(guest), Some(at)) = (&region.guest, &region.at)
            && guest.value != at.value
        {
            let message = format!(
                "a region at {:#x} cannot lie at {:#x}: a board of class `armv7m` translates no address",
                guest.value, at.value
            );
            report.push(
                Diagnostic::at(Code::NotForClass, at.place, message)
                    .also(guest.place, "where the partition sees it")
                    .help("remove `place`"),
            );
        }
        if region.access.execute {
            let message = format!("a region of `{}` would be executable", partition.name.value);
            report.push(
                Diagnostic::at(Code::NotForClass, region.start, message)
                    .label("instructions that do not trap cannot be replaced there")
                    .help("add `access = \"rw\"` or \"r\": code is executed where the program's file has it"),
            );
        }
    }
}

fn one_vcpu(partition: &PartitionSpec, report: &mut Report) {
    if partition.vcpus.len() > 1 {
        let place = partition.vcpus.key.unwrap_or(partition.name.place);
        let message = format!(
            "partition `{}` has more vCPUs than the board has CPUs",
            partition.name.value
        );
        report.push(Diagnostic::at(Code::NotForClass, place, message).help("give it one"));
    }
}
