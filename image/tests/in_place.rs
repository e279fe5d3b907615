// SPDX-License-Identifier: Apache-2.0
//! Images of class `armv7m`: nothing is translated, code stays where it is linked.

#[allow(dead_code, reason = "the sample of the other class is not used here")]
mod common;
mod microcontroller;

use bulkhead_abi::log::SMALL_AREA_SIZE;
use bulkhead_abi::parts::{Part, Parts};
use bulkhead_arch_api::class::{AARCH64, ARMV7M};
use bulkhead_image::layout::*;
use bulkhead_image::{Fault, Image, ImageBuilder, ImageError, Payload, Portable, Table};
use common::name;
use microcontroller::{CODE, CONTENTS, RAM, controller, gated, mapping, sample_of};
use zerocopy::FromZeros;

/// Returns one VM on a board of class `armv7m`.
fn sample() -> ImageBuilder {
    sample_of(&ARMV7M)
}

#[test]
fn the_sample_is_valid_and_reads_back() {
    let bytes = sample().build().unwrap();
    let image = Image::check(&bytes, &ARMV7M, &Portable).unwrap();
    assert_eq!(image.granule(), 32);
    let lookalikes: Vec<u64> = (CODE..CODE + 0x200)
        .filter(|address| image.is_lookalike(*address as u32))
        .collect();
    assert_eq!(lookalikes, [CODE + 0x102, CODE + 0x110, CODE + 0x112]);
    assert_eq!(image.check_resident(0, &CONTENTS, &Portable), Ok(()));
    assert_eq!(image.check_resident(1, &[], &Portable), Ok(()));
    for damaged in [&CONTENTS[1..], &[0; 600]] {
        let refused = ImageError::ResidentDigest {
            index: 0,
            name: name("rtos:program"),
        };
        assert_eq!(image.check_resident(0, damaged, &Portable), Err(refused));
    }
    assert_eq!(SMALL_AREA_SIZE, 0x1000);
    assert!(Image::check(&bytes, &AARCH64, &Portable).is_err());
}

/// Adds something of four bytes that the hypervisor copies to `guest` at each start.
fn load(builder: &mut ImageBuilder, guest: u64) {
    builder.payloads = vec![Payload {
        name: name("rtos:data"),
        bytes: vec![1, 2, 3, 4],
    }];
    builder.loads = vec![LoadRecord {
        guest: guest.into(),
        size: 4.into(),
        ..LoadRecord::new_zeroed()
    }];
}

#[test]
fn mask_words_are_in_ram_of_the_vm() {
    let mut builder = sample();
    builder.vcpus[0].masks = (RAM as u32 + 0xfe0).into();
    assert_eq!(builder.build().map(drop), Ok(()));
}

#[test]
fn a_payload_is_copied_to_ram() {
    let mut builder = sample();
    load(&mut builder, RAM + 0xffc);
    assert_eq!(builder.build().map(drop), Ok(()));
}

#[rustfmt::skip] // One case per line.
#[test]
fn rules_of_the_class() {
    type Change = fn(&mut ImageBuilder);
    let cases: [(Change, Table, u32, Fault); 34] = [
        (|b| b.board.load_address = 0x2001_0000.into(), Table::Board, 0, Fault::OutsideCode),
        (|b| b.board.pool_base = 0x1000.into(), Table::Board, 0, Fault::OutsideRam),
        (|b| b.board.pool_size = 0x7020.into(), Table::Board, 0, Fault::InHypervisor),
        (|b| b.board.image_base = 0x3_0000.into(), Table::Board, 0, Fault::OutsideHypervisor),
        (|b| b.board.log_base = 0.into(), Table::Board, 0, Fault::OutsideRam),
        (|b| b.memory[1].host = (RAM + 0x1000).into(), Table::Memory, 1, Fault::NotIdentical),
        (|b| b.memory[0].flags = (MEMORY_READ | MEMORY_WRITE).into(), Table::Memory, 0, Fault::OutsideRam),
        (|b| b.memory[0].flags = (MEMORY_EXECUTE | MEMORY_CLEAR).into(), Table::Memory, 0, Fault::OutsideRam),
        (|b| b.memory[1] = mapping(0x2000_6fe0, 0x20, MEMORY_READ), Table::Memory, 1, Fault::InHypervisor),
        (|b| b.memory[1] = mapping(0x2000_7000, 0x20, MEMORY_READ), Table::Memory, 1, Fault::InHypervisor),
        (|b| b.memory[0] = mapping(0x1_ffe0, 0x20, MEMORY_READ), Table::Memory, 0, Fault::InHypervisor),
        (|b| b.memory[2] = mapping(0, 0x1000, MEMORY_READ | MEMORY_DEVICE), Table::Memory, 2, Fault::InRam),
        (|b| b.memory[1].size = 0x1010.into(), Table::Memory, 1, Fault::Unaligned),
        (|b| b.partitions[0].entry = (CODE + 0x100).into(), Table::Partitions, 0, Fault::BadEntry),
        (|b| b.partitions[0].entry = (RAM + 1).into(), Table::Partitions, 0, Fault::BadEntry),
        (|b| b.partitions[0].argument = 0.into(), Table::Partitions, 0, Fault::BadArgument),
        (|b| b.partitions[0].stack = (RAM + 0x1004).into(), Table::Partitions, 0, Fault::BadStack),
        (|b| b.partitions[0].stack = (RAM + 0xffe).into(), Table::Partitions, 0, Fault::BadStack),
        (|b| b.interrupts[0].virtual_line = 1.into(), Table::Interrupts, 0, Fault::LineTaken(Table::VirtualDevices, 0)),
        (|b| b.interrupts[0].line = 8.into(), Table::Interrupts, 0, Fault::LineTaken(Table::Controllers, 2)),
        (|b| b.virtual_devices[0].virtual_line = 31.into(), Table::VirtualDevices, 0, Fault::OutOfRange),
        (|b| b.vcpus[0].masks = (RAM as u32 + 0xff0).into(), Table::Vcpus, 0, Fault::Unaligned),
        (|b| b.vcpus[0].masks = (RAM as u32 + 0x1000).into(), Table::Vcpus, 0, Fault::OutsideMemory),
        (|b| b.vcpus[0].masks = (CODE as u32).into(), Table::Vcpus, 0, Fault::OutsideMemory),
        (|b| b.vcpus[0].masks = 0x4000_5000.into(), Table::Vcpus, 0, Fault::OutsideMemory),
        (|b| b.residents[0].size = 0x401.into(), Table::Residents, 0, Fault::OutsideMemory),
        (|b| b.residents[0].address = RAM.into(), Table::Residents, 0, Fault::OutsideCode),
        (|b| { b.residents.push(b.residents[0]); }, Table::Residents, 1, Fault::Overlaps(Table::Residents, 0)),
        (|b| load(b, CODE), Table::Loads, 0, Fault::OutsideMemory),
        (|b| load(b, CODE + 0x3fc), Table::Loads, 0, Fault::OutsideMemory),
        (|b| load(b, 0x4000_5000), Table::Loads, 0, Fault::OutsideMemory),
        (|b| b.lookalikes.swap(0, 1), Table::Lookalikes, 1, Fault::NotAscending),
        (|b| b.lookalikes[2].address = 0x10_0400.into(), Table::Lookalikes, 2, Fault::OutsideCode),
        (|b| b.registers = vec![gated(0x84, 6)], Table::Registers, 0, Fault::BadFlags),
    ];
    for (number, (change, table, index, fault)) in cases.into_iter().enumerate() {
        let mut builder = sample();
        change(&mut builder);
        let expected = ImageError::Record { table, index, fault };
        assert_eq!(builder.build().map(drop), Err(expected), "case {number}");
    }
}

/// Returns the sample on a network, with an uplink.
fn connected() -> ImageBuilder {
    let mut builder = sample();
    builder.controllers.push(controller(
        ROLE_NETWORK,
        CONTROLLER_LAN9118,
        &[0xa000_0000],
        &[13],
    ));
    builder.virtual_devices.push(VirtualDeviceRecord {
        partition: 0.into(),
        kind: VIRTUAL_LAN9118.into(),
        base: [0xa000_0000.into(), 0.into()],
        size: [0x1_0000.into(), 0.into()],
        virtual_line: 13.into(),
        reserved: 0.into(),
    });
    builder.nics = vec![NicRecord {
        partition: 0.into(),
        network: 0.into(),
        address: [2, 0, 0, 0, 0, 1, 0, 0],
        memory: (RAM + 0x2000).into(),
    }];
    builder
}

#[rustfmt::skip] // One case per line.
#[test]
fn rules_of_networks() {
    type Change = fn(&mut ImageBuilder);
    let bytes = connected().build().unwrap();
    assert_eq!(Image::check(&bytes, &ARMV7M, &Portable).unwrap().nics().len(), 1);
    let cases: [(Change, Table, u32, Fault); 17] = [
        (|b| b.nics[0].partition = 1.into(), Table::VirtualDevices, 1, Fault::NoSuch(Table::Nics)),
        (|b| b.nics.clear(), Table::VirtualDevices, 1, Fault::NoSuch(Table::Nics)),
        (|b| { b.virtual_devices.pop(); }, Table::Nics, 0, Fault::NoSuch(Table::VirtualDevices)),
        (|b| b.virtual_devices[1].size[0] = 0x80.into(), Table::VirtualDevices, 1, Fault::WindowTooSmall),
        (|b| b.virtual_devices[1].virtual_line = 1.into(), Table::VirtualDevices, 1, Fault::LineTaken(Table::VirtualDevices, 0)),
        (|b| b.nics[0].network = 5.into(), Table::Nics, 0, Fault::OutOfRange),
        (|b| b.nics[0].network = 999.into(), Table::Nics, 0, Fault::OutOfRange),
        (|b| b.nics[0].address[0] = 3, Table::Nics, 0, Fault::OutOfRange),
        (|b| b.nics[0].address = [0; 8], Table::Nics, 0, Fault::OutOfRange),
        (|b| b.nics[0].address[7] = 1, Table::Nics, 0, Fault::Reserved),
        (|b| b.nics[0].memory = (RAM + 4).into(), Table::Nics, 0, Fault::Unaligned),
        (|b| b.nics[0].memory = CODE.into(), Table::Nics, 0, Fault::OutsideRam),
        (|b| b.nics[0].memory = 0x2000_6000.into(), Table::Nics, 0, Fault::InHypervisor),
        (|b| b.nics[0].memory = (RAM + 0xfe0).into(), Table::Nics, 0, Fault::Overlaps(Table::Memory, 1)),
        (|b| b.nics.push(b.nics[0]), Table::Nics, 1, Fault::Overlaps(Table::Nics, 0)),
        (|b| b.nics.push(NicRecord { memory: (RAM + 0x8000).into(), ..b.nics[0] }), Table::Nics, 1, Fault::SameAs(0)),
        (|b| b.controllers[3].compatible = CONTROLLER_NVIC.into(), Table::Controllers, 3, Fault::UnknownKind),
    ];
    for (change, table, index, fault) in cases {
        let mut builder = connected();
        change(&mut builder);
        assert_eq!(builder.build().map(drop), Err(ImageError::Record { table, index, fault }));
    }
}

/// Adds a VM that has nothing but code and RAM.
fn second_vm(builder: &mut ImageBuilder) {
    let [first, ..] = &builder.partitions[..] else {
        return;
    };
    builder.partitions.push(PartitionRecord {
        name: name("other"),
        uuid: [1; 16],
        entry: (CODE + 0x1101).into(),
        argument: (CODE + 0x1000).into(),
        stack: (RAM + 0x9000).into(),
        first_vcpu: 1.into(),
        ..*first
    });
    builder.vcpus.push(VcpuRecord::plain(1, 0, 5));
    for (base, size, flags) in [
        (CODE + 0x1000, 0x400, MEMORY_READ | MEMORY_EXECUTE),
        (RAM + 0x8000, 0x1000, MEMORY_READ | MEMORY_WRITE | MEMORY_CLEAR),
    ] {
        builder.memory.push(MemoryRecord {
            partition: 1.into(),
            ..mapping(base, size, flags)
        });
    }
}

/// Returns the image of [`connected`] with a VM that sees the memory for its frames.
fn with_ring() -> ImageBuilder {
    let mut builder = connected();
    builder.nics[0].network = NIC_FRAME_RING.into();
    let flags = MEMORY_READ | MEMORY_WRITE | MEMORY_CLEAR;
    builder.memory.push(mapping(RAM + 0x2000, NIC_MEMORY, flags));
    builder
}

#[test]
fn a_vm_may_see_the_memory_for_its_own_frames_and_all_of_it() {
    type Change = fn(&mut ImageBuilder, usize);
    let bytes = with_ring().build().unwrap();
    assert!(Image::check(&bytes, &ARMV7M, &Portable).is_ok());
    let ring = with_ring().memory.len() - 1;
    let overlaps = Fault::Overlaps(Table::Memory, ring as u16);
    let cases: [(Change, Fault); 10] = [
        (
            |b, _| {
                let early = b.interrupts.first_mut().expect("a line");
                early.flags = INTERRUPT_EARLY.into();
                early.latency = 20_000.into();
            },
            Fault::BadFlags,
        ),
        (|b, _| b.nics[0].network = 0.into(), overlaps),
        (|b, ring| b.memory.truncate(ring), Fault::NoSuch(Table::Memory)),
        (|b, ring| b.memory[ring].size = 0x1000.into(), overlaps),
        (
            |b, ring| b.memory[ring] = mapping(RAM + 0x2000, 0x4000, b.memory[ring].flags.get()),
            overlaps,
        ),
        (
            |b, ring| b.memory[ring].flags = (MEMORY_READ | MEMORY_CLEAR).into(),
            overlaps,
        ),
        (
            |b, ring| b.memory[ring].flags = (MEMORY_READ | MEMORY_WRITE).into(),
            overlaps,
        ),
        (
            |b, ring| b.memory[ring].flags = (b.memory[ring].flags.get() | MEMORY_EXECUTE).into(),
            overlaps,
        ),
        (
            |b, ring| {
                second_vm(b);
                b.memory[ring].partition = 1.into();
            },
            overlaps,
        ),
        (
            |b, _| b.board.parts = Parts::ALL.without(Parts::of(&[Part::FrameRing])).0.into(),
            Fault::OutOfRange,
        ),
    ];
    for (change, fault) in cases {
        let mut builder = with_ring();
        change(&mut builder, ring);
        let refused = ImageError::Record {
            table: Table::Nics,
            index: 0,
            fault,
        };
        assert_eq!(builder.build().map(drop), Err(refused));
    }
}
