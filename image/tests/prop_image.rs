// SPDX-License-Identifier: Apache-2.0
//! No bytes make the reader panic, nothing damaged passes, and what passes keeps every promise.
//!
//! Damage is what storage and cables do: a flipped bit, a cut-off end, noise. The other attack is a
//! *re-signed* image: the digest is right and the contents are hostile; then either a rule refuses it, or it
//! must be a system that [`keeps_its_promises`] cannot fault. That function states the promises anew, without
//! the reader's own code.

mod common;

use bulkhead_arch_api::class::AARCH64;
use bulkhead_image::layout::*;
use bulkhead_image::{
    HEADER_LEN, Image, ImageBuilder, ImageError, Payload, Portable, claimed_length, sign_tables,
};
use common::{LOAD_ADDRESS, RWX, name, ram, sample};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use std::mem::offset_of;
use std::ops::Range;

fn check(bytes: &[u8]) -> Result<Image<'_>, ImageError> {
    let image = Image::check(bytes, &AARCH64, &Portable)?;
    image.check_payloads(&Portable)?;
    Ok(image)
}

fn range(start: u64, size: u64) -> Range<u64> {
    assert!(size > 0);
    start..start.checked_add(size).expect("a range that wraps")
}

fn disjoint(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.end <= b.start || b.end <= a.start
}

fn within(inner: &Range<u64>, outer: &Range<u64>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Checks that memory of different partitions, of the hypervisor and of its devices is apart.
fn keeps_partitions_apart(image: &Image<'_>) {
    let own = range(
        image.board().load_address.get(),
        image.board().hypervisor_size.get(),
    );
    let ram: Vec<_> = image.map().iter().filter(|entry| entry.kind == MAP_RAM).collect();
    let ram: Vec<_> = ram
        .iter()
        .map(|entry| range(entry.base.get(), entry.size.get()))
        .collect();
    let windows = image
        .controllers()
        .iter()
        .flat_map(|c| c.base.iter().zip(c.size.iter()));
    let windows: Vec<_> = windows
        .filter(|w| w.1.get() > 0)
        .map(|w| range(w.0.get(), w.1.get()))
        .collect();
    for (index, record) in image.memory().iter().enumerate() {
        let (guest, host) = (
            range(record.guest.get(), record.size.get()),
            range(record.host.get(), record.size.get()),
        );
        assert_eq!((guest.start | host.start | record.size.get()) % 4096, 0);
        assert!(disjoint(&host, &own));
        assert!(windows.iter().all(|window| disjoint(&host, window)));
        if record.flags.get() & MEMORY_DEVICE == 0 {
            assert!(ram.iter().any(|stretch| within(&host, stretch)));
        } else {
            assert!(ram.iter().all(|stretch| disjoint(&host, stretch)));
        }
        for other in &image.memory()[..index] {
            if other.partition == record.partition {
                assert!(disjoint(&guest, &range(other.guest.get(), other.size.get())));
            } else {
                assert!(disjoint(&host, &range(other.host.get(), other.size.get())));
            }
        }
    }
}

/// Checks that every index is one, every line has one owner, every vCPU one partition.
fn keeps_its_references(image: &Image<'_>) {
    let partitions = image.partitions().len();
    let valid = |partition: u32| (partition as usize) < partitions;
    let mut vcpu = 0;
    for (number, record) in image.partitions().iter().enumerate() {
        assert_eq!(record.first_vcpu.get() as usize, vcpu);
        let own = image.vcpus_of(number as u32);
        assert!((1..=8).contains(&own.len()));
        assert!(own.iter().all(|record| record.partition.get() as usize == number));
        vcpu += own.len();
        assert!(!image.name(&record.name).is_empty());
    }
    assert_eq!(vcpu, image.vcpus().len());
    assert!(
        image
            .vcpus()
            .iter()
            .all(|vcpu| (vcpu.pcpu.get() as usize) < image.pcpus().len() && vcpu.priority.get() < 32)
    );
    assert!(image.memory().iter().all(|record| valid(record.partition.get())));
    for load in image.loads() {
        let payload = image.payload(load.payload.get()).len() as u64;
        assert!(valid(load.partition.get()) && load.offset.get() + load.size.get() <= payload);
        let guest = range(load.guest.get(), load.size.get());
        let mut ram = image
            .memory_of(load.partition.get())
            .filter(|m| m.flags.get() & MEMORY_DEVICE == 0);
        assert!(ram.any(|mapping| within(&guest, &range(mapping.guest.get(), mapping.size.get()))));
    }
    let mut lines: Vec<_> = image
        .interrupts()
        .iter()
        .map(|interrupt| interrupt.line.get())
        .collect();
    lines.extend(
        image
            .controllers()
            .iter()
            .flat_map(|c| c.lines.iter().map(|line| line.get()))
            .filter(|l| *l != NONE),
    );
    let count = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), count);
    assert!(
        image
            .interrupts()
            .iter()
            .all(|interrupt| valid(interrupt.partition.get()))
    );
    assert!(
        image
            .virtual_devices()
            .iter()
            .all(|device| valid(device.partition.get()))
    );
    assert!(
        image
            .capabilities()
            .iter()
            .all(|c| valid(c.partition.get()) && valid(c.object.get()) && c.index.get() < 64)
    );
    assert!(
        image
            .watches()
            .iter()
            .all(|watch| valid(watch.watcher.get()) && valid(watch.watched.get()))
    );
}

fn keeps_its_promises(image: &Image<'_>) {
    keeps_partitions_apart(image);
    keeps_its_references(image);
}

/// A partition of a random system: kind, vCPUs, pages of memory, bytes of its payload.
type Plan = (bool, u32, u64, u32);

/// Returns a valid system: memory one after the other, vCPUs spread over the pCPUs.
fn build(plans: &[Plan], pcpus: u32) -> ImageBuilder {
    let mut builder = ImageBuilder {
        interrupts: vec![],
        virtual_devices: vec![],
        watches: vec![],
        alternatives: vec![],
        registers: vec![],
        ..sample()
    };
    (builder.partitions, builder.vcpus, builder.memory) = (vec![], vec![], vec![]);
    (builder.loads, builder.payloads, builder.capabilities) = (vec![], vec![], vec![]);
    let pcpu = |number: u32| PcpuRecord {
        hardware_id: u64::from(number).into(),
        ..builder.pcpus[0]
    };
    builder.pcpus = (0..pcpus).map(pcpu).collect();
    let mut host = 0x8000_0000;
    for (number, (is_task, vcpus, pages, bytes)) in (0_u32..).zip(plans) {
        let kind = if *is_task { PARTITION_TASK } else { PARTITION_VM };
        let base = 0x4000_0000_u64;
        let record = PartitionRecord {
            entry: base.into(),
            stack: if *is_task {
                (base + pages * 4096).into()
            } else {
                0.into()
            },
            ..common::partition(&format!("p{number}"), kind, builder.vcpus.len() as u32, *vcpus)
        };
        builder.partitions.push(record);
        for index in 0..*vcpus {
            let pcpu = (number + index) % pcpus;
            builder.vcpus.push(VcpuRecord::plain(number, pcpu, number % 32));
        }
        builder.memory.push(ram(number, host, pages * 4096));
        host += pages * 4096;
        let payload = builder.payloads.len() as u32;
        builder.payloads.push(Payload {
            name: name("image"),
            bytes: vec![number as u8; *bytes as usize],
        });
        let (guest, offset, size) = (base.into(), 0.into(), u64::from(*bytes).into());
        builder.loads.push(LoadRecord {
            partition: number.into(),
            payload: payload.into(),
            guest,
            offset,
            size,
            alternative: 0.into(),
            reserved: 0.into(),
        });
    }
    builder
}

fn plans() -> impl Strategy<Value = (Vec<Plan>, u32)> {
    let plan = (any::<bool>(), 1..=4_u32, 2..600_u64, 1..8192_u32);
    (prop::collection::vec(plan, 1..=8), 1..=8_u32)
}

/// Offsets of the tables in the sample, so that corruption hits records and not padding.
fn tables_len(bytes: &[u8]) -> usize {
    u64::from_le_bytes(bytes[24..32].try_into().unwrap()) as usize
}

/// Values that sit at the edges of something.
fn nasty() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..64_u64,
        Just(u64::MAX),
        Just(u64::from(u32::MAX)),
        Just(!0xfff),
        Just(LOAD_ADDRESS),
        Just(0x4000_0000),
        Just(0x8000_0000),
        (0..64_u32).prop_map(|bit| 1 << bit),
        (0..64_u32).prop_map(|bit| (1 << bit) - 1),
        (0..0x9000_u64).prop_map(|page| page << 12),
    ]
}

fn config(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x0069_6D61_6765),
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn what_is_built_reads_back((plans, pcpus) in plans()) {
        let builder = build(&plans, pcpus);
        let bytes = builder.build().unwrap();
        prop_assert_eq!(bytes.len() as u64, builder.len());
        prop_assert_eq!(claimed_length(&bytes[..HEADER_LEN]), Ok(builder.len()));
        let image = check(&bytes).unwrap();
        keeps_its_promises(&image);
        prop_assert_eq!(image.board(), &builder.board);
        prop_assert_eq!(image.pcpus(), builder.pcpus);
        prop_assert_eq!(image.map(), builder.map);
        prop_assert_eq!(image.controllers(), builder.controllers);
        prop_assert_eq!(image.partitions(), builder.partitions);
        prop_assert_eq!(image.vcpus(), builder.vcpus);
        prop_assert_eq!(image.memory(), builder.memory);
        prop_assert_eq!(image.loads(), builder.loads);
        for (index, payload) in (0..).zip(&builder.payloads) {
            prop_assert_eq!(image.payload(index), &payload.bytes[..]);
            prop_assert_eq!(&image.payloads()[index as usize].name, &payload.name);
        }
    }

    /// Shows that the size does not depend on what the records say, only on how many there are.
    #[test]
    fn the_length_is_known_before_the_addresses((plans, pcpus) in plans(), address in any::<u64>()) {
        let mut builder = build(&plans, pcpus);
        let before = builder.len();
        builder.board.pool_base = address.into();
        builder.memory.iter_mut().for_each(|record| record.host = address.into());
        prop_assert_eq!(builder.len(), before);
        prop_assert_eq!(builder.build_unchecked().len() as u64, before);
    }

    #[test]
    fn noise_is_no_image(bytes in prop::collection::vec(any::<u8>(), 0..4096), magic in any::<bool>()) {
        let mut bytes = bytes;
        if magic {
            let length = bytes.len().min(MAGIC.len());
            bytes[..length].copy_from_slice(&MAGIC[..length]);
        }
        prop_assert!(check(&bytes).is_err());
        sign_tables(&mut bytes);
        prop_assert!(check(&bytes).is_err());
        prop_assert!(claimed_length(&bytes).is_ok() == (bytes.len() >= HEADER_LEN && magic));
    }
}

proptest! {
    #![proptest_config(config(2048))]

    /// Makes images whose digest is right: the contents are not what a tool of ours would write.
    #[test]
    fn a_resigned_image_is_refused_or_keeps_its_promises(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u32, nasty()), 1..4),
    ) {
        let mut bytes = sample().build().unwrap();
        let end = tables_len(&bytes);
        for (place, width, value) in changes {
            let width = 1 << (width + 1).min(3);
            // Records are made of 32- and 64-bit fields, which all tables align to 4.
            let at = 64 + (place.index(end - 64 - width) & !3);
            bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        sign_tables(&mut bytes);
        if let Ok(image) = check(&bytes) {
            keeps_its_promises(&image);
        }
    }

    /// Puts fields of one record into another. One record takes the place of another: plausible values where
    /// they do not belong.
    #[test]
    fn transplanted_fields_are_refused_or_keep_the_promises(
        moves in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..4_usize), 1..6),
    ) {
        let mut bytes = sample().build().unwrap();
        let end = tables_len(&bytes);
        for (from, to, words) in moves {
            let length = words * 4;
            let place = |index: prop::sample::Index| HEADER_LEN + (index.index(end - HEADER_LEN - length) & !3);
            let (from, to) = (place(from), place(to));
            bytes.copy_within(from..from + length, to);
        }
        sign_tables(&mut bytes);
        if let Ok(image) = check(&bytes) {
            keeps_its_promises(&image);
        }
    }
}

/// Flips every bit of the sample, one after the other: refused, and named for what it is.
#[test]
fn every_flipped_bit_is_noticed() {
    let good = sample().build().unwrap();
    let tables = tables_len(&good);
    let payload = |offset: usize| {
        (0..3).find(|index| {
            let image = check(&good).unwrap();
            let record = &image.payloads()[*index];
            range(record.offset.get(), record.size.get()).contains(&(offset as u64))
        })
    };
    let owner: Vec<_> = (0..good.len()).map(payload).collect();
    let mut bytes = good.clone();
    // A hypervisor without keys does not look at the signature.
    let start = offset_of!(Header, signature);
    let signature = start..start + SIGNATURE_LEN;
    for offset in (0..good.len()).filter(|offset| !signature.contains(offset)) {
        // All bits of the header, where each means something else; elsewhere one per byte, all positions in
        // turn.
        let bits = if offset < HEADER_LEN {
            0..8
        } else {
            offset % 8..offset % 8 + 1
        };
        for bit in bits {
            bytes[offset] ^= 1 << bit;
            let error = check(&bytes).expect_err("a flipped bit is accepted");
            match (error, owner[offset]) {
                (ImageError::PayloadDigest { index, .. }, Some(expected)) => {
                    assert_eq!(index as usize, expected)
                }
                (ImageError::TablesDigest, None) => assert!(offset < tables),
                (ImageError::Padding { .. } | ImageError::NoEnd { .. }, None) => assert!(offset >= tables),
                // Fields of the header that are looked at before the digest.
                (_, None) => assert!(offset < 32, "offset {offset}: {error}"),
                (_, Some(_)) => panic!("offset {offset}: {error}"),
            }
            bytes[offset] ^= 1 << bit;
        }
    }
    assert_eq!(bytes, good);
}

/// Tries every shorter file: refused as truncated, with both lengths, from the first byte that lets anyone
/// know.
#[test]
fn every_truncation_is_named() {
    let good = sample().build().unwrap();
    for found in 0..good.len() {
        let error = check(&good[..found]).expect_err("a shorter image is accepted");
        let expected = if found < HEADER_LEN {
            HEADER_LEN
        } else {
            good.len()
        };
        match error {
            ImageError::NotAnImage => assert!(found < MAGIC.len()),
            error => assert_eq!(
                error,
                ImageError::Truncated {
                    found: found as u64,
                    expected: expected as u64
                }
            ),
        }
    }
}

/// Shows what a target sees of a shorter file: the memory after it, with anything in it, up to the length it
/// claims.
#[test]
fn a_truncation_is_noticed_without_a_file_size() {
    let good = sample().build().unwrap();
    for found in (HEADER_LEN..good.len()).step_by(61) {
        for filler in [0, 0xff] {
            let mut bytes = good.clone();
            bytes[found..].fill(filler);
            assert_eq!(
                check(&bytes).err(),
                Some(ImageError::NoEnd {
                    expected: good.len() as u64
                }),
                "{found}"
            );
        }
    }
}

#[test]
fn format_class_and_length_are_named() {
    let good = sample().build().unwrap();
    let changed = |offset: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[offset] = value;
        check(&bytes).err()
    };
    assert_eq!(changed(8, 99), Some(ImageError::Format { found: 99 }));
    assert_eq!(
        changed(12, 9),
        Some(ImageError::Class {
            found: 9,
            expected: AARCH64.number
        })
    );
    let mut longer = good.clone();
    longer.push(0);
    let (found, expected) = (longer.len() as u64, good.len() as u64);
    assert_eq!(
        check(&longer).err(),
        Some(ImageError::TooLong { found, expected })
    );
    assert_eq!(
        check(b"BULKHEAD").err(),
        Some(ImageError::Truncated {
            found: 8,
            expected: HEADER_LEN as u64
        })
    );
}

#[test]
fn the_sample_uses_every_table() {
    let bytes = sample().build().unwrap();
    let image = check(&bytes).unwrap();
    keeps_its_promises(&image);
    let used = [
        image.memory().len(),
        image.interrupts().len(),
        image.capabilities().len(),
        image.watches().len(),
    ];
    assert!(used.iter().all(|count| *count > 0));
    assert!(
        image
            .memory()
            .iter()
            .any(|record| record.flags.get() & RWX == RWX)
    );
}
