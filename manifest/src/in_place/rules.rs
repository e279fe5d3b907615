// SPDX-License-Identifier: Apache-2.0
//! The rules for boards of microcontrollers: no address is translated, one CPU.
#![deny(clippy::arithmetic_side_effects)]

use super::protection::{Parts, Protection};
use crate::board::{Board, Class};
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{ChannelSpec, Manifest, PartitionSpec};
use crate::units::format_size;

/// Keys of a partition that have no meaning on such a board, with the reason.
const FOREIGN: [(&str, &str); 7] = [
    ("flash", "the board's own code memory holds the program"),
    ("ramdisk", "a program is all there is"),
    ("init", "a program is all there is"),
    ("modules", "a program is all there is"),
    ("bootargs", "no register and no memory of a reset holds them"),
    ("device-tree-overlay", "there is no device tree"),
    ("alternative", "two programs would need two windows of code"),
];

/// Number of partitions that the tables of the class binary hold.
const PARTITIONS: usize = 8;

pub(crate) fn check(
    manifest: &Manifest,
    board: &Board,
    parts: Parts,
    foreign: &[(&str, &str)],
    report: &mut Report,
) {
    let class = board.class;
    for partition in &manifest.partitions {
        keys_have_a_meaning(partition, class, foreign, report);
        machine_has_a_meaning(partition, class, report);
        granules(partition, class, parts.protection, report);
        one_vcpu(partition, report);
        regions_are_in_place(partition, class, report);
        if parts.instructions.is_some() {
            regions_are_data(partition, report);
        }
    }
    for channel in &manifest.channels {
        channel_is_possible(channel, class, parts.protection, report);
    }
    if let Some(partition) = manifest.partitions.get(PARTITIONS) {
        let message = format!(
            "a board of class `{}` holds {PARTITIONS} partitions, not {}",
            class.name(),
            manifest.partitions.len()
        );
        report.push(
            Diagnostic::at(Code::NotForClass, partition.name.place, message).help("remove some of them"),
        );
    }
}

fn foreign(what: &str, why: &str, class: Class, place: Place) -> Diagnostic {
    let message = format!("{what} has no meaning on a board of class `{}`", class.name());
    Diagnostic::at(Code::NotForClass, place, message)
        .label(why)
        .help("remove it, or choose a board of another class")
}

fn keys_have_a_meaning(partition: &PartitionSpec, class: Class, own: &[(&str, &str)], report: &mut Report) {
    for (key, why) in FOREIGN.iter().chain(own) {
        if let Some(found) = partition.keys.iter().find(|found| found.value == *key) {
            report.push(foreign(&format!("`{key}`"), why, class, found.place));
        }
    }
}

fn machine_has_a_meaning(partition: &PartitionSpec, class: Class, report: &mut Report) {
    let machine = &partition.machine;
    let keys = [
        (
            "`machine.ram-base`",
            machine.ram_base.key,
            "use `place`: the bus address is the partition's own",
        ),
        ("`machine.gic`", machine.gic.key, "every VM has an NVIC"),
    ];
    for (key, place, why) in keys {
        if let Some(place) = place {
            report.push(foreign(key, why, class, place));
        }
    }
    for region in &partition.regions {
        if let Some(payload) = &region.payload {
            report.push(foreign(
                "`payload` of a region",
                "only the program is loaded",
                class,
                payload.place,
            ));
        }
    }
}

/// Checks that the hardware can express the sizes and addresses.
fn granules(partition: &PartitionSpec, class: Class, protection: &dyn Protection, report: &mut Report) {
    let granule = class.facts().granule;
    let [best_size, best_address] = protection.best();
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
                Diagnostic::at(Code::UnalignedSize, size.place, message)
                    .help(format!("give a multiple of {granule} bytes{best_size}")),
            );
        }
    }
    let guests = regions.filter_map(|region| region.guest.as_ref());
    for address in partition.at.iter().chain(guests) {
        if !address.value.is_multiple_of(granule) || address.value.get() >= 1 << 32 {
            let message = format!("the address {:#x} cannot be that of a region", address.value);
            report.push(
                Diagnostic::at(Code::UnalignedAddress, address.place, message)
                    .help(format!("give a multiple of {granule} below 4G{best_address}")),
            );
        }
    }
}

/// Checks that the hardware can give the memory of a channel to a partition in one piece.
fn channel_is_possible(
    channel: &ChannelSpec,
    class: Class,
    protection: &dyn Protection,
    report: &mut Report,
) {
    let Some(size) = &channel.size else { return };
    let bytes = size.value.get();
    if !protection.is_channel(bytes) {
        let message = format!(
            "the size {} cannot be that of a channel of class `{}`",
            format_size(bytes),
            class.name()
        );
        report.push(
            Diagnostic::at(Code::UnalignedSize, size.place, message)
                .help(format!("give {}", protection.channel_sizes())),
        );
        return;
    }
    let fits = |address: u64| {
        let unit = protection.alignment(bytes);
        unit.is_some_and(|unit| address.is_multiple_of(unit))
    };
    if let Some(at) = &channel.at
        && !fits(at.value.get())
    {
        let message = format!("a channel of {} cannot be at {:#x}", format_size(bytes), at.value);
        report.push(
            Diagnostic::at(Code::UnalignedAddress, at.place, message)
                .help(format!("give {}, or remove `place`", protection.channel_places())),
        );
    }
}

/// Checks that regions are in their place: nothing is translated.
fn regions_are_in_place(partition: &PartitionSpec, class: Class, report: &mut Report) {
    for region in &partition.regions {
        if let (Some(guest), Some(at)) = (&region.guest, &region.at)
            && guest.value != at.value
        {
            let message = format!(
                "a region at {:#x} cannot lie at {:#x}: a board of class `{}` translates no address",
                guest.value,
                at.value,
                class.name()
            );
            report.push(
                Diagnostic::at(Code::NotForClass, at.place, message)
                    .also(guest.place, "where the partition sees it")
                    .help("remove `place`"),
            );
        }
    }
}

/// Checks that regions are data: code in a region is not rewritten.
fn regions_are_data(partition: &PartitionSpec, report: &mut Report) {
    for region in partition.regions.iter().filter(|region| region.access.execute) {
        let message = format!("a region of `{}` would be executable", partition.name.value);
        report.push(
            Diagnostic::at(Code::NotForClass, region.start, message)
                .label("instructions that do not trap cannot be replaced there")
                .help("add `access = \"rw\"` or \"r\": code is executed where the program's file has it"),
        );
    }
}

fn one_vcpu(partition: &PartitionSpec, report: &mut Report) {
    if partition.vcpus.len() > 1 {
        let place = partition.vcpus.key.unwrap_or(partition.name.place);
        let message = format!("partition `{}` has more than one vCPU", partition.name.value);
        let help = "give it one: a program for a microcontroller expects one CPU";
        report.push(Diagnostic::at(Code::NotForClass, place, message).help(help));
    }
}
