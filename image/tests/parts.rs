// SPDX-License-Identifier: Apache-2.0
//! The parts of the kernel that an image names: all of them are there, and the image uses no other.

mod common;

use bulkhead_abi::own_policy::number;
use bulkhead_abi::parts::{Part, Parts};
use bulkhead_arch_api::class::AARCH64;
use bulkhead_image::layout::*;
use bulkhead_image::{Fault, Image, ImageBuilder, ImageError, Portable, Table, name_policy, need_part};
use common::{name, ram, sample};
use zerocopy::FromZeros;

/// Builds the sample with a change. The image names all parts but one.
fn built(part: Part, change: impl FnOnce(&mut ImageBuilder)) -> Result<Vec<u8>, ImageError> {
    let mut builder = sample();
    change(&mut builder);
    builder.board.parts = Parts::ALL.without(Parts::of(&[part])).0.into();
    builder.build()
}

fn fault(table: Table, index: u32, fault: Fault) -> ImageError {
    ImageError::Record { table, index, fault }
}

/// Returns a record of zeros. The directory is read before any record.
fn zeros<R: FromZeros>() -> R {
    R::new_zeroed()
}

#[test]
fn an_image_that_names_no_part_uses_none() {
    let mut builder = sample();
    builder.board.parts = 0.into();
    assert!(builder.build().is_ok(), "{:?}", builder.build());
}

#[test]
fn tables_of_a_part_that_is_not_named_are_empty() {
    type Change = fn(&mut ImageBuilder);
    let tables: [(Part, Table, Change); 9] = [
        (Part::Arinc653, Table::Schedules, |b| b.schedules.push(zeros())),
        (Part::Arinc653, Table::Windows, |b| b.windows.push(zeros())),
        (Part::Domains, Table::Domains, |b| b.domains.push(zeros())),
        (Part::Networks, Table::Nics, |b| b.nics.push(zeros())),
        (Part::Ports, Table::Ports, |b| b.ports.push(zeros())),
        (Part::Locks, Table::Locks, |b| b.locks.push(zeros())),
        (Part::Channels, Table::Channels, |b| b.channels.push(zeros())),
        (Part::Channels, Table::Sides, |b| b.sides.push(zeros())),
        (Part::Services, Table::Served, |b| b.served.push(zeros())),
    ];
    for (part, table, change) in tables {
        let expected = ImageError::Count { table, found: 1 };
        assert_eq!(built(part, change), Err(expected), "{part}");
    }
}

#[test]
fn the_policy_of_a_pcpu_is_named() {
    let edf = |b: &mut ImageBuilder| b.pcpus[1].policy = POLICY_EDF.into();
    assert_eq!(
        built(Part::Edf, edf),
        Err(fault(Table::Pcpus, 1, Fault::WrongPolicy))
    );
    assert!(built(Part::Trace, edf).is_ok());
}

#[test]
fn the_trace_is_named() {
    let trace = |b: &mut ImageBuilder| {
        b.board.trace_records = 0x100.into();
        b.board.trace_base = 0xA000_0000.into();
    };
    assert_eq!(
        built(Part::Trace, trace),
        Err(fault(Table::Board, 0, Fault::OutOfRange))
    );
    assert!(built(Part::Edf, trace).is_ok());
}

#[test]
fn virtual_devices_of_parts_are_named() {
    let device = |kind: u32| VirtualDeviceRecord {
        partition: 1.into(),
        kind: kind.into(),
        virtual_line: NONE.into(),
        ..zeros()
    };
    for (part, kind) in [
        (Part::Flash, VIRTUAL_CFI_FLASH),
        (Part::Functions, VIRTUAL_PCI_BRIDGE),
    ] {
        let found = built(part, |b| b.virtual_devices.push(device(kind)));
        assert_eq!(found, Err(fault(Table::VirtualDevices, 4, Fault::OutOfRange)));
    }
}

#[test]
fn a_held_side_is_named() {
    let held = |builder: &mut ImageBuilder| {
        let (host, size) = (0xA000_0000, 0x1000);
        builder.channels.push(ChannelRecord {
            name: name("pixels"),
            host: host.into(),
            size: size.into(),
            first_side: 0.into(),
            side_count: 2.into(),
        });
        for partition in 0..2_u32 {
            builder.memory.push(MemoryRecord {
                flags: MEMORY_SHARED.into(),
                guest: 0x1000_0000.into(),
                ..ram(partition, host, size)
            });
            builder.sides.push(SideRecord {
                partition: partition.into(),
                guest: 0x1000_0000.into(),
                virtual_line: NONE.into(),
                event: NONE.into(),
                flags: (SIDE_HELD | SIDE_WRITES).into(),
                ..zeros()
            });
        }
    };
    assert_eq!(
        built(Part::Lent, held),
        Err(fault(Table::Sides, 0, Fault::BadFlags))
    );
    assert!(built(Part::Trace, held).is_ok(), "{:?}", built(Part::Trace, held));
}

// No hypervisor has a part with the number 31.
#[test]
fn a_part_that_is_not_there_is_refused_before_anything_else() {
    let mut builder = sample();
    builder.board.parts = (1 << 31).into();
    builder.partitions.clear();
    let expected = ImageError::Lacks { part: "?" };
    assert_eq!(builder.build(), Err(expected));
    assert_eq!(expected.to_string(), "lacking part ?");
}

// The host takes each policy of a user's own, if the image names its part.
#[test]
fn a_policy_of_a_users_own_is_named() {
    let own = |b: &mut ImageBuilder| b.pcpus[1].policy = number("mine").into();
    assert_eq!(
        built(Part::OwnPolicy, own),
        Err(fault(Table::Pcpus, 1, Fault::OutOfRange))
    );
    assert!(built(Part::Trace, own).is_ok(), "{:?}", built(Part::Trace, own));
    let mut builder = sample();
    builder.board.parts = Parts::of(&[Part::OwnPolicy]).0.into();
    let mut bytes = builder.build().unwrap();
    assert!(name_policy(&mut bytes, "mine"));
    let image = Image::check(&bytes, &AARCH64, &Portable).unwrap();
    assert_eq!(image.pcpus()[0].policy.get(), number("mine"));
}

#[test]
fn a_forged_image_needs_a_part_more() {
    let mut builder = sample();
    builder.board.parts = 0.into();
    let mut bytes = builder.build().unwrap();
    assert!(!need_part(&mut bytes, "no-such-part"));
    assert!(need_part(&mut bytes, "ports"));
    let image = Image::check(&bytes, &AARCH64, &Portable).unwrap();
    assert_eq!(image.board().parts.get(), Parts::of(&[Part::Ports]).0);
}
