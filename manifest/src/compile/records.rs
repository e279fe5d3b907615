// SPDX-License-Identifier: Apache-2.0
//! All records of a system image, and the payloads.

use std::rc::Rc;

use bulkhead_image::layout::{AlternativeRecord, LoadRecord, LookalikeRecord, Name, ResidentRecord};
use bulkhead_image::{ImageBuilder, NameError, Payload, Portable, Sha256};

use super::board::{board_records, schedule_records, vcpu_record};
use super::devices::device_records;
use super::objects::object_records;
use super::partition::{access_records, memory_record, partition_record};
use crate::guest::Guest;
use crate::payload::{Bytes, blob_name};
use crate::system::{MappingKind, System};

/// Returns the records of a system.
pub(super) fn records(system: &System) -> Result<ImageBuilder, NameError> {
    let mut builder = ImageBuilder::new(system.board.class.facts(), &system.board.name)?;
    board_records(system, &mut builder);
    schedule_records(system, &mut builder)?;
    object_records(system, &mut builder)?;
    let mut blobs = Blobs::default();
    for (number, partition) in system.partitions().iter().enumerate() {
        let record = partition_record(system, partition, builder.vcpus.len())?;
        builder.partitions.push(record);
        let number = number as u32;
        let words = partition.spec.machine.mask_words.as_ref();
        let masks = words.map_or(0, |words| words.value.get() as u32);
        for vcpu in partition.vcpus() {
            builder.vcpus.push(vcpu_record(number, &vcpu, masks));
        }
        builder.memory.extend(
            partition
                .mappings()
                .iter()
                .filter(|mapping| mapping.kind != MappingKind::Forwarded)
                .map(|mapping| memory_record(number, mapping)),
        );
        let guest = partition.guest;
        load_records(number, guest, &mut blobs, &mut builder);
        residents(number, partition.name(), guest, &mut builder)?;
        alternative_records(system, number, &mut builder)?;
        device_records(system, number, &mut builder);
        access_records(number, partition, &mut builder)?;
    }
    builder.lookalikes = lookalikes(system);
    builder.payloads = blobs.payloads()?;
    Ok(builder)
}

/// Writes the records of all that is copied: for the partition's own payloads, and for each alternative.
fn load_records(number: u32, guest: &Guest, blobs: &mut Blobs, builder: &mut ImageBuilder) {
    for (guest, alternative) in std::iter::once(guest).chain(&guest.alternatives).zip(0_u32..) {
        for piece in &guest.pieces {
            let payload = blobs.index(&piece.name, &piece.blob);
            builder.loads.push(LoadRecord {
                partition: number.into(),
                payload: payload.into(),
                guest: piece.guest.into(),
                offset: piece.offset.into(),
                size: piece.size.into(),
                alternative: alternative.into(),
                reserved: 0.into(),
            });
        }
    }
}

fn alternative_records(system: &System, number: u32, builder: &mut ImageBuilder) -> Result<(), NameError> {
    let spec = &system.manifest.partitions[number as usize];
    let guests = &system.guests[number as usize].alternatives;
    for (alternative, guest) in spec.alternatives.iter().zip(guests) {
        let (line, _) = system.report.sources.line_column(alternative.name.place);
        builder.alternatives.push(AlternativeRecord {
            name: Name::new(&alternative.name.value)?,
            partition: number.into(),
            manifest_line: line.into(),
            entry: guest.entry.into(),
            argument: guest.argument.into(),
            stack: guest.stack.into(),
        });
    }
    Ok(())
}

/// Blobs without repetition: two partitions that run the same file share one blob.
#[derive(Default)]
struct Blobs {
    all: Vec<(String, Bytes)>,
}

impl Blobs {
    fn index(&mut self, name: &str, blob: &Bytes) -> u32 {
        let same = |other: &Bytes| Rc::ptr_eq(other, blob) || other == blob;
        let found = self.all.iter().position(|(_, other)| same(other));
        found.unwrap_or_else(|| {
            let next = self.all.len();
            self.all.push((name.to_owned(), Rc::clone(blob)));
            next
        }) as u32
    }

    fn payloads(self) -> Result<Vec<Payload>, NameError> {
        let payload = |(name, blob): (String, Bytes)| {
            Ok(Payload {
                name: Name::new(&name)?,
                bytes: blob.to_vec(),
            })
        };
        self.all.into_iter().map(payload).collect()
    }
}

/// Returns the code memory of a partition.
fn residents(
    number: u32,
    partition: &str,
    guest: &Guest,
    builder: &mut ImageBuilder,
) -> Result<(), NameError> {
    for stretch in &guest.residents {
        builder.residents.push(ResidentRecord {
            name: Name::new(&blob_name(partition, "program"))?,
            partition: number.into(),
            reserved: 0.into(),
            address: stretch.address.into(),
            size: (stretch.bytes.len() as u64).into(),
            digest: Portable.digest(&[&stretch.bytes]),
        });
    }
    Ok(())
}

/// Returns the places in the programs of all partitions that look like a replaced instruction.
fn lookalikes(system: &System) -> Vec<LookalikeRecord> {
    let mut addresses: Vec<u32> = system
        .guests
        .iter()
        .flat_map(|guest| guest.lookalikes.iter().copied())
        .collect();
    addresses.sort_unstable();
    let record = |address: u32| LookalikeRecord {
        address: address.into(),
    };
    addresses.into_iter().map(record).collect()
}
