// SPDX-License-Identifier: Apache-2.0
//! Every rule of the image check, with the smallest change of a valid system that breaks it.

mod common;

use bulkhead_abi::framing::HYPERVISOR_CONSOLE;
use bulkhead_arch_api::class::AARCH64;
use bulkhead_image::layout::*;
use bulkhead_image::{
    Fault, Image, ImageBuilder, ImageError, MAX_REGIONS_PER_PARTITION, MAX_VCPUS_PER_PCPU, Open, Portable,
    Table,
};
use common::{HYPERVISOR_SIZE, LOAD_ADDRESS, LOG_BASE, RWX, name, partition, ram, sample};

type Change = fn(&mut ImageBuilder);

/// A change, and the record and fault it leads to.
type Case = (Change, Table, u32, Fault);

fn refused(cases: &[Case]) {
    for (number, (change, table, index, fault)) in cases.iter().enumerate() {
        let mut builder = sample();
        change(&mut builder);
        let expected = ImageError::Record {
            table: *table,
            index: *index,
            fault: *fault,
        };
        assert_eq!(builder.build().map(drop), Err(expected), "case {number}");
    }
}

/// Puts the sample on a board with a GICv2.
fn gic_v2(builder: &mut ImageBuilder) {
    let gic = &mut builder.controllers[1];
    gic.compatible = CONTROLLER_GIC_V2.into();
    gic.base = [0x0800_0000, 0x0801_0000, 0x0803_0000, 0x0804_0000].map(Into::into);
    gic.size = [0x1_0000, 0x2000, 0x1_0000, 0x2000].map(Into::into);
    let controllers = builder.virtual_devices.iter_mut();
    for device in controllers.filter(|device| device.kind.get() == VIRTUAL_GIC_V3) {
        device.kind = VIRTUAL_GIC_V2.into();
        device.base = [0x0800_0000, 0x0801_0000].map(Into::into);
        device.size = [0x1000, 0x2000].map(Into::into);
    }
}

fn accepted(changes: &[Change]) {
    for (number, change) in changes.iter().enumerate() {
        let mut builder = sample();
        change(&mut builder);
        assert!(builder.build().is_ok(), "case {number}: {:?}", builder.build());
    }
}

#[test]
fn the_sample_is_valid_and_reads_back() {
    let builder = sample();
    let bytes = builder.build().unwrap();
    assert_eq!(bytes.len() as u64, builder.len());
    let image = Image::check(&bytes, &AARCH64, &Portable).unwrap();
    assert_eq!(image.board_name(), "qemu-virt-aarch64");
    assert_eq!(image.partitions(), builder.partitions);
    assert_eq!(image.payload(0), builder.payloads[0].bytes);
    assert_eq!(image.payload(3), []);
    assert_eq!(image.vcpus_of(0), &builder.vcpus[..2]);
    assert_eq!(image.vcpus_of(3), []);
    assert_eq!(image.memory_of(0).count(), 2);
    assert_eq!(image.loads_of(1, 0).count(), 1);
    assert_eq!(image.loads_of(1, 1).count(), 0);
    assert_eq!(image.virtual_devices_of(2).count(), 0);
}

fn trace(builder: &mut ImageBuilder, base: u64) {
    builder.board.trace_base = base.into();
    builder.board.trace_records = 0x100.into();
}

#[test]
#[rustfmt::skip] // One case per line.
fn board() {
    refused(&[
        (|b| b.board.trace_base = 0x1000.into(), Table::Board, 0, Fault::Empty),
        (|b| b.board.trace_short_exits = 1.into(), Table::Board, 0, Fault::Empty),
        (|b| b.board.trace_short_exits = 2.into(), Table::Board, 0, Fault::OutOfRange),
        (|b| b.board.trace_records = 0x300.into(), Table::Board, 0, Fault::OutOfRange),
        (|b| b.board.trace_records = 0x80.into(), Table::Board, 0, Fault::OutOfRange),
        (|b| trace(b, 0), Table::Board, 0, Fault::OutsideRam),
        (|b| trace(b, LOAD_ADDRESS + 8), Table::Board, 0, Fault::Unaligned),
        (|b| trace(b, LOAD_ADDRESS), Table::Board, 0, Fault::InHypervisor),
        (|b| trace(b, LOG_BASE), Table::Board, 0, Fault::InHypervisor),
        (|b| b.board.load_address = (LOAD_ADDRESS + 1).into(), Table::Board, 0, Fault::Unaligned),
        (|b| b.board.hypervisor_size = 0.into(), Table::Board, 0, Fault::Empty),
        (|b| b.board.load_address = 0x1000.into(), Table::Board, 0, Fault::OutsideRam),
        (|b| b.board.hypervisor_size = 0x1000.into(), Table::Board, 0, Fault::OutsideHypervisor),
        (|b| b.board.pool_size = 0.into(), Table::Board, 0, Fault::Empty),
        (|b| b.board.pool_base = (LOAD_ADDRESS + HYPERVISOR_SIZE).into(), Table::Board, 0, Fault::OutsideHypervisor),
        (|b| b.board.image_base = (LOAD_ADDRESS - 0x1000).into(), Table::Board, 0, Fault::OutsideHypervisor),
        (|b| b.board.image_base = (LOAD_ADDRESS + 8).into(), Table::Board, 0, Fault::Unaligned),
        (|b| b.board.pool_base = b.board.image_base, Table::Board, 0, Fault::InHypervisor),
        (|b| b.board.log_base = (LOG_BASE + 8).into(), Table::Board, 0, Fault::Unaligned),
        (|b| b.board.log_base = 0x1000.into(), Table::Board, 0, Fault::OutsideRam),
        (|b| b.board.log_base = LOAD_ADDRESS.into(), Table::Board, 0, Fault::InHypervisor),
        (|b| b.board_name.bytes = [0; NAME_LEN], Table::Board, 0, Fault::BadName),
    ]);
}

#[test]
#[rustfmt::skip] // One case per line.
fn pcpus_and_map() {
    refused(&[
        (|b| b.pcpus[1].hardware_id = 0.into(), Table::Pcpus, 1, Fault::SameAs(0)),
        (|b| b.pcpus[0].policy = 0.into(), Table::Pcpus, 0, Fault::UnknownKind),
        (|b| b.pcpus[1].quantum_us = 0.into(), Table::Pcpus, 1, Fault::OutOfRange),
        (|b| b.map[0].kind = 3.into(), Table::Map, 0, Fault::UnknownKind),
        (|b| b.map[1].reserved = 1.into(), Table::Map, 1, Fault::Reserved),
        (|b| b.map[2].size = 0x800.into(), Table::Map, 2, Fault::Unaligned),
        (|b| b.map[2].base = 0x08ff_f000.into(), Table::Map, 2, Fault::Overlaps(Table::Map, 1)),
        (|b| b.map[0].size = (!0xfff_u64).into(), Table::Map, 0, Fault::Overflow),
    ]);
}

#[test]
#[rustfmt::skip] // One case per line.
fn controllers() {
    refused(&[
        (|b| b.controllers[0].role = 9.into(), Table::Controllers, 0, Fault::UnknownKind),
        (|b| b.controllers[0].compatible = CONTROLLER_GIC_V3.into(), Table::Controllers, 0, Fault::UnknownKind),
        (|b| b.controllers[0].compatible = CONTROLLER_GIC_V2.into(), Table::Controllers, 0, Fault::UnknownKind),
        (|b| b.controllers[1].compatible = CONTROLLER_CADENCE_UART.into(), Table::Controllers, 1, Fault::UnknownKind),
        (|b| b.controllers[1].compatible = CONTROLLER_GIC_V2.into(), Table::Controllers, 1, Fault::WindowTooSmall),
        (|b| { gic_v2(b); b.controllers[1].base[3] = 0x0803_f000.into() }, Table::Controllers, 1, Fault::Overlaps(Table::Controllers, 1)),
        (|b| b.controllers[2].reserved = 1.into(), Table::Controllers, 2, Fault::Reserved),
        (|b| b.controllers[2].base[3] = 1.into(), Table::Controllers, 2, Fault::Empty),
        (|b| b.controllers[0].base[0] = 0x7000_0000.into(), Table::Controllers, 0, Fault::InRam),
        (|b| b.controllers[1].size[1] = 0x100_0000.into(), Table::Controllers, 1, Fault::Overlaps(Table::Controllers, 0)),
        (|b| b.controllers[2].lines[0] = 27.into(), Table::Controllers, 2, Fault::LineTaken(Table::Controllers, 2)),
        (|b| b.controllers[2].lines[0] = 33.into(), Table::Controllers, 2, Fault::LineTaken(Table::Controllers, 0)),
        (|b| b.controllers.push(ControllerRecord { base: [0x0a00_0000, 0, 0, 0].map(Into::into), ..b.controllers[0] }), Table::Controllers, 3, Fault::SameAs(0)),
        (|b| b.controllers[0].base[0] = 0x0900_0004.into(), Table::Controllers, 0, Fault::Unaligned),
        (|b| b.controllers[0].size[0] = 0x1800.into(), Table::Controllers, 0, Fault::Unaligned),
        (|b| b.controllers[0].size[0] = 0.into(), Table::Controllers, 0, Fault::WindowTooSmall),
        (|b| b.controllers[1].size[0] = 0x1000.into(), Table::Controllers, 1, Fault::WindowTooSmall),
        (|b| b.controllers[1].size[1] = 0x1_0000.into(), Table::Controllers, 1, Fault::WindowTooSmall),
    ]);
}

#[test]
fn other_controllers_fit_as_well() {
    accepted(&[gic_v2, |b| {
        b.controllers[0].compatible = CONTROLLER_CADENCE_UART.into();
    }]);
}

#[test]
#[rustfmt::skip] // One case per line.
fn partitions() {
    refused(&[
        (|b| b.partitions[1].name = b.partitions[0].name, Table::Partitions, 1, Fault::SameAs(0)),
        (|b| b.partitions[1].name = name(HYPERVISOR_CONSOLE), Table::Partitions, 1, Fault::BadName),
        (|b| b.partitions[1].name.bytes[0] = 0xff, Table::Partitions, 1, Fault::BadName),
        (|b| b.partitions[0].kind = 7.into(), Table::Partitions, 0, Fault::UnknownKind),
        (|b| b.partitions[0].entry_state = 2.into(), Table::Partitions, 0, Fault::OutOfRange),
        (|b| b.partitions[0].flags = 32.into(), Table::Partitions, 0, Fault::BadFlags),
        (|b| b.partitions[2].entry_state = 1.into(), Table::Partitions, 2, Fault::NotForTask),
        (|b| b.partitions[2].flags = FLAG_NO_SEMIHOSTING.into(), Table::Partitions, 2, Fault::NotForTask),
        (|b| b.partitions[0].flags = FLAG_FROZEN_TIME.into(), Table::Partitions, 0, Fault::FrozenShared),
        (|b| b.partitions[2].virtual_lines = 32.into(), Table::Partitions, 2, Fault::NotForTask),
        (|b| b.partitions[0].virtual_lines = 33.into(), Table::Partitions, 0, Fault::OutOfRange),
        (|b| b.partitions[0].virtual_lines = 1056.into(), Table::Partitions, 0, Fault::OutOfRange),
        (|b| b.partitions[0].health[1] = 0, Table::Partitions, 0, Fault::UnknownAction),
        (|b| b.partitions[0].health[5] = 6, Table::Partitions, 0, Fault::UnknownAction),
        (|b| b.partitions[0].health[6] = HealthAction::Log as u8, Table::Partitions, 0, Fault::UnknownAction),
        (|b| b.partitions[0].entry = 0.into(), Table::Partitions, 0, Fault::BadEntry),
        (|b| b.partitions[0].entry = 0x5000_0000.into(), Table::Partitions, 0, Fault::BadEntry),
        (|b| b.memory[1].flags = MEMORY_READ.into(), Table::Partitions, 1, Fault::BadEntry),
        (|b| b.partitions[0].argument = 0x0901_0000.into(), Table::Partitions, 0, Fault::BadArgument),
        (|b| b.partitions[0].stack = 0x4000_1000.into(), Table::Partitions, 0, Fault::BadStack),
        (|b| b.partitions[2].stack = 0.into(), Table::Partitions, 2, Fault::BadStack),
        (|b| b.partitions[2].stack = 0x4000_1008.into(), Table::Partitions, 2, Fault::BadStack),
        (|b| b.partitions[2].stack = 0x4010_0010.into(), Table::Partitions, 2, Fault::BadStack),
    ]);
}

#[test]
#[rustfmt::skip] // One case per line.
fn vcpus() {
    refused(&[
        (|b| b.partitions[1].vcpu_count = 0.into(), Table::Partitions, 1, Fault::BadCount),
        (|b| b.partitions[1].vcpu_count = 9.into(), Table::Partitions, 1, Fault::BadCount),
        (|b| b.partitions[1].first_vcpu = 1.into(), Table::Partitions, 1, Fault::NotConsecutive),
        (|b| b.partitions[2].vcpu_count = 2.into(), Table::Partitions, 2, Fault::NotConsecutive),
        (|b| b.partitions[1].vcpu_count = 8.into(), Table::Partitions, 1, Fault::NotConsecutive),
        (|b| b.vcpus[2].partition = 0.into(), Table::Partitions, 1, Fault::NotConsecutive),
        (|b| b.vcpus.push(b.vcpus[3]), Table::Partitions, 2, Fault::NotConsecutive),
        (|b| b.vcpus[3].priority = 32.into(), Table::Vcpus, 3, Fault::OutOfRange),
        (|b| b.vcpus[3].masks = 0x4000_1000.into(), Table::Vcpus, 3, Fault::BadArgument),
        (|b| b.vcpus[3].pcpu = 2.into(), Table::Vcpus, 3, Fault::NoSuch(Table::Pcpus)),
        (|b| b.pcpus[1].policy = POLICY_PINNED.into(), Table::Vcpus, 2, Fault::NotAlone),
    ]);
}

#[test]
#[rustfmt::skip] // One case per line.
fn memory() {
    refused(&[
        (|b| b.memory[0].flags = 0.into(), Table::Memory, 0, Fault::BadFlags),
        (|b| b.memory[0].flags = (MEMORY_READ | 64).into(), Table::Memory, 0, Fault::BadFlags),
        (|b| b.memory[0].flags = (MEMORY_READ | MEMORY_SHARED).into(), Table::Memory, 0, Fault::NoSuch(Table::Sides)),
        (|b| b.memory[0].flags = (MEMORY_READ | MEMORY_SHARED | MEMORY_EXECUTE).into(), Table::Memory, 0, Fault::BadFlags),
        (|b| b.memory[3].flags = (MEMORY_READ | MEMORY_DEVICE | MEMORY_EXECUTE).into(), Table::Memory, 3, Fault::BadFlags),
        (|b| b.memory[3].flags = (MEMORY_READ | MEMORY_DEVICE | MEMORY_CLEAR).into(), Table::Memory, 3, Fault::BadFlags),
        (|b| b.memory[0].reserved = 1.into(), Table::Memory, 0, Fault::Reserved),
        (|b| b.memory[3].partition = 3.into(), Table::Memory, 3, Fault::NoSuch(Table::Partitions)),
        (|b| b.memory[0].size = 0.into(), Table::Memory, 0, Fault::Empty),
        (|b| b.memory[0].size = 0x1001.into(), Table::Memory, 0, Fault::Unaligned),
        (|b| b.memory[0].guest = 0x4000_0800.into(), Table::Memory, 0, Fault::Unaligned),
        (|b| b.memory[0].host = 0x8000_0800.into(), Table::Memory, 0, Fault::Unaligned),
        (|b| b.memory[0].guest = (!0xfff_u64).into(), Table::Memory, 0, Fault::Overflow),
        (|b| b.memory[0].host = (!0xfff_u64).into(), Table::Memory, 0, Fault::Overflow),
        (|b| b.memory[0].host = 0xb800_0000.into(), Table::Memory, 0, Fault::OutsideRam),
        (|b| b.memory[1].host = LOG_BASE.into(), Table::Memory, 1, Fault::InHypervisor),
        (|b| trace(b, b.memory[0].host.get()), Table::Memory, 0, Fault::InHypervisor),
        (|b| b.memory[0].host = (LOAD_ADDRESS + HYPERVISOR_SIZE - 0x1000).into(), Table::Memory, 0, Fault::InHypervisor),
        (|b| b.memory[1].host = 0x8fff_f000.into(), Table::Memory, 1, Fault::Overlaps(Table::Memory, 0)),
        (|b| b.memory[3].guest = 0x4fff_f000.into(), Table::Memory, 3, Fault::Overlaps(Table::Memory, 0)),
        (|b| b.memory[3].host = 0x4000_0000.into(), Table::Memory, 3, Fault::InRam),
        (|b| b.memory[3].host = 0x0900_0000.into(), Table::Memory, 3, Fault::Overlaps(Table::Controllers, 0)),
    ]);
    accepted(&[
        |b| b.memory[1].host = (LOAD_ADDRESS + HYPERVISOR_SIZE).into(),
        |b| { b.memory.push(MemoryRecord { guest: 0x6000_0000.into(), ..b.memory[0] }) },
        |b| b.memory[3].host = 0x0801_0000.into(),
    ]);
}

#[test]
fn vcpus_are_in_the_order_of_their_partitions() {
    let mut builder = sample();
    builder
        .vcpus
        .sort_by_key(|vcpu| [1, 0, 2][vcpu.partition.get() as usize]);
    builder.partitions[0].first_vcpu = 1.into();
    builder.partitions[1].first_vcpu = 0.into();
    let fault = Fault::NotConsecutive;
    assert_eq!(
        builder.build(),
        Err(ImageError::Record {
            table: Table::Partitions,
            index: 0,
            fault
        })
    );
}

#[test]
fn a_pcpu_has_a_limited_number_of_vcpus() {
    let mut builder = sample();
    let (vcpu, linux) = (builder.vcpus[0], builder.partitions[0]);
    let numbers = 3..3 + MAX_VCPUS_PER_PCPU as u32 / 4;
    for number in numbers.clone() {
        let first = builder.vcpus.len() as u32;
        let record = partition(&format!("p{number}"), PARTITION_VM, first, 4);
        builder.partitions.push(PartitionRecord {
            virtual_lines: 0.into(),
            ..record
        });
        builder.memory.push(ram(
            number,
            0x5200_0000 + u64::from(number) * 0x10_0000,
            0x10_0000,
        ));
        let bound = VcpuRecord {
            partition: number.into(),
            pcpu: 1.into(),
            ..vcpu
        };
        builder.vcpus.extend([bound; 4]);
    }
    // Two of the sample's own are on that pCPU already.
    let index = linux.vcpu_count.get() + 2 + MAX_VCPUS_PER_PCPU as u32 - 2;
    let fault = Fault::BadCount;
    assert_eq!(
        builder.build(),
        Err(ImageError::Record {
            table: Table::Vcpus,
            index,
            fault
        })
    );
    builder
        .vcpus
        .iter_mut()
        .filter(|vcpu| vcpu.partition == 0)
        .for_each(|vcpu| vcpu.pcpu = 0.into());
    builder.vcpus[2].pcpu = 0.into();
    assert!(builder.build().is_ok());
}

#[test]
fn a_partition_has_a_limited_number_of_mappings() {
    let mut builder = sample();
    for number in 2..MAX_REGIONS_PER_PARTITION as u64 {
        let guest = (0x6000_0000 + number * 0x1000).into();
        builder.memory.push(MemoryRecord {
            guest,
            ..ram(0, 0x5200_0000 + number * 0x1000, 0x1000)
        });
    }
    assert!(builder.build().is_ok());
    builder.memory.push(MemoryRecord {
        guest: 0x7000_0000.into(),
        ..ram(0, 0x5300_0000, 0x1000)
    });
    let index = builder.memory.len() as u32 - 1;
    let fault = Fault::BadCount;
    assert_eq!(
        builder.build(),
        Err(ImageError::Record {
            table: Table::Memory,
            index,
            fault
        })
    );
}

#[test]
#[rustfmt::skip] // One case per line.
fn loads_and_payloads() {
    refused(&[
        (|b| b.loads[0].partition = 3.into(), Table::Loads, 0, Fault::NoSuch(Table::Partitions)),
        (|b| b.loads[0].payload = 3.into(), Table::Loads, 0, Fault::NoSuch(Table::Payloads)),
        (|b| b.loads[0].size = 0.into(), Table::Loads, 0, Fault::Empty),
        (|b| b.loads[0].size = 5001.into(), Table::Loads, 0, Fault::OutsidePayload),
        (|b| b.loads[0].offset = 1.into(), Table::Loads, 0, Fault::OutsidePayload),
        (|b| b.loads[0].offset = u64::MAX.into(), Table::Loads, 0, Fault::OutsidePayload),
        (|b| b.loads[0].guest = u64::MAX.into(), Table::Loads, 0, Fault::Overflow),
        (|b| b.loads[0].guest = 0x4fff_ffff.into(), Table::Loads, 0, Fault::OutsideMemory),
        (|b| b.loads[0].guest = 0x0901_0000.into(), Table::Loads, 0, Fault::OutsideMemory),
        (|b| { b.loads.push(LoadRecord { guest: 0x4008_1387.into(), ..b.loads[0] }) }, Table::Loads, 3, Fault::Overlaps(Table::Loads, 0)),
        (|b| b.payloads[1].bytes.clear(), Table::Payloads, 1, Fault::Empty),
        (|b| b.payloads[1].name.bytes[0] = 7, Table::Payloads, 1, Fault::BadName),
    ]);
    accepted(&[
        |b| { b.loads.push(LoadRecord { guest: 0x4008_1388.into(), ..b.loads[0] }) },
    ]);
}

/// Returns the interrupt of an event gate, with a window it must not have.
fn gate(line: u32, size: u64) -> VirtualDeviceRecord {
    VirtualDeviceRecord {
        partition: 0.into(),
        kind: VIRTUAL_EVENT_GATE.into(),
        base: [0.into(), 0.into()],
        size: [size.into(), 0.into()],
        virtual_line: line.into(),
        reserved: 0.into(),
    }
}

#[test]
#[rustfmt::skip] // One case per line.
fn virtual_devices() {
    refused(&[
        (|b| b.virtual_devices[0].partition = 3.into(), Table::VirtualDevices, 0, Fault::NoSuch(Table::Partitions)),
        (|b| b.virtual_devices[0].partition = 2.into(), Table::VirtualDevices, 0, Fault::NotForTask),
        (|b| b.virtual_devices[0].kind = 9.into(), Table::VirtualDevices, 0, Fault::UnknownKind),
        (|b| b.virtual_devices[1] = gate(47, 0x1000), Table::VirtualDevices, 1, Fault::OutOfRange),
        (|b| b.virtual_devices[1] = gate(NONE, 0), Table::VirtualDevices, 1, Fault::OutOfRange),
        (|b| b.virtual_devices[1] = gate(288, 0), Table::VirtualDevices, 1, Fault::OutOfRange),
        (|b| b.virtual_devices.push(gate(33, 0)), Table::VirtualDevices, 4, Fault::LineTaken(Table::VirtualDevices, 1)),
        (|b| b.virtual_devices.extend([gate(47, 0), gate(48, 0)]), Table::VirtualDevices, 5, Fault::SameAs(4)),
        (|b| b.virtual_devices[0].kind = VIRTUAL_GIC_V2.into(), Table::VirtualDevices, 0, Fault::UnknownKind),
        (|b| { gic_v2(b); b.virtual_devices[0].size[1] = 0x1000.into() }, Table::VirtualDevices, 0, Fault::WindowTooSmall),
        (|b| { let v3 = b.virtual_devices.clone(); gic_v2(b); b.virtual_devices = v3 }, Table::VirtualDevices, 0, Fault::UnknownKind),
        (|b| b.virtual_devices[0].reserved = 3.into(), Table::VirtualDevices, 0, Fault::Reserved),
        (|b| b.virtual_devices[0].size[0] = 0x1000.into(), Table::VirtualDevices, 0, Fault::WindowTooSmall),
        (|b| b.virtual_devices[0].size[1] = 0x2_0000.into(), Table::VirtualDevices, 0, Fault::WindowTooSmall),
        (|b| b.virtual_devices[0].base[1] = 0x0800_f000.into(), Table::VirtualDevices, 0, Fault::Overlaps(Table::VirtualDevices, 0)),
        (|b| b.virtual_devices[0].base[0] = 0x0800_0004.into(), Table::VirtualDevices, 0, Fault::Unaligned),
        (|b| b.virtual_devices[1].base[1] = 4.into(), Table::VirtualDevices, 1, Fault::OutOfRange),
        (|b| b.virtual_devices[1].base[0] = 0x0800_0000.into(), Table::VirtualDevices, 1, Fault::Overlaps(Table::VirtualDevices, 0)),
        (|b| b.virtual_devices[1].base[0] = 0x4fff_f000.into(), Table::VirtualDevices, 1, Fault::Overlaps(Table::Memory, 0)),
        (|b| b.virtual_devices[1].virtual_line = 31.into(), Table::VirtualDevices, 1, Fault::OutOfRange),
        (|b| b.virtual_devices[1].virtual_line = 288.into(), Table::VirtualDevices, 1, Fault::OutOfRange),
        (|b| b.virtual_devices[0].virtual_line = 33.into(), Table::VirtualDevices, 1, Fault::LineTaken(Table::VirtualDevices, 0)),
        (|b| b.virtual_devices[3].partition = 0.into(), Table::VirtualDevices, 3, Fault::SameAs(1)),
        (|b| b.partitions[1].virtual_lines = 0.into(), Table::VirtualDevices, 2, Fault::OutOfRange),
    ]);
}

/// Guest addresses and bytes of the banks of the sample's flash, and where its memory is.
const BANKS: [u64; 2] = [0, 0x0400_0000];
const BANK: u64 = 0x0400_0000;
const FLASH: u64 = 0xA000_0000;

/// Gives the second VM a parallel flash: memory 4 and 5, virtual device 4.
fn flash(builder: &mut ImageBuilder) {
    for (guest, host) in BANKS.into_iter().zip([FLASH, FLASH + BANK]) {
        builder.memory.push(MemoryRecord {
            flags: (MEMORY_READ | MEMORY_EXECUTE).into(),
            guest: guest.into(),
            ..ram(1, host, BANK)
        });
    }
    builder.virtual_devices.push(VirtualDeviceRecord {
        partition: 1.into(),
        kind: VIRTUAL_CFI_FLASH.into(),
        base: BANKS.map(Into::into),
        size: [BANK.into(); 2],
        virtual_line: NONE.into(),
        reserved: 0.into(),
    });
}

/// Changes the memory of the second bank of a VM's flash.
fn bank(builder: &mut ImageBuilder, change: fn(&mut MemoryRecord)) {
    flash(builder);
    change(&mut builder.memory[5]);
}

#[test]
#[rustfmt::skip] // One case per line.
fn flashes() {
    accepted(&[flash]);
    refused(&[
        // The hypervisor alone stores into a bank: the VM must not.
        (|b| bank(b, |m| m.flags = RWX.into()), Table::VirtualDevices, 4, Fault::OutsideMemory),
        // A reset keeps it.
        (|b| bank(b, |m| m.flags = (MEMORY_READ | MEMORY_EXECUTE | MEMORY_CLEAR).into()), Table::VirtualDevices, 4, Fault::OutsideMemory),
        (|b| { flash(b); b.memory.pop(); }, Table::VirtualDevices, 4, Fault::OutsideMemory),
        (|b| bank(b, |m| m.partition = 0.into()), Table::VirtualDevices, 4, Fault::OutsideMemory),
        (|b| bank(b, |m| m.size = (BANK / 2).into()), Table::VirtualDevices, 4, Fault::OutsideMemory),
        (|b| bank(b, |m| m.host = (FLASH + BANK + 0x1000).into()), Table::VirtualDevices, 4, Fault::OutsideMemory),
        (|b| { flash(b); b.virtual_devices[4].virtual_line = 40.into() }, Table::VirtualDevices, 4, Fault::OutOfRange),
        (|b| { flash(b); b.virtual_devices[4].size[1] = (1 << 20).into() }, Table::VirtualDevices, 4, Fault::OutsideMemory),
        (|b| { flash(b); b.virtual_devices[4].base[1] = 0x0200_0000.into() }, Table::VirtualDevices, 4, Fault::OutsideMemory),
        (|b| { flash(b); b.virtual_devices.push(b.virtual_devices[4]) }, Table::VirtualDevices, 5, Fault::SameAs(4)),
        (|b| { flash(b); b.virtual_devices[4].partition = 2.into() }, Table::VirtualDevices, 4, Fault::NotForTask),
    ]);
}

#[test]
#[rustfmt::skip] // One case per line.
fn interrupts() {
    refused(&[
        (|b| b.interrupts[0].flags = 4.into(), Table::Interrupts, 0, Fault::BadFlags),
        // Handlers that start early: for no time, for too long, and of two partitions.
        (|b| b.interrupts[0].flags = 2.into(), Table::Interrupts, 0, Fault::OutOfRange),
        (|b| { b.interrupts[0].flags = 2.into(); b.interrupts[0].latency = 1_000_001.into() }, Table::Interrupts, 0, Fault::OutOfRange),
        (|b| {
            b.interrupts[0].flags = 2.into();
            b.interrupts[0].latency = 1_000.into();
            b.interrupts.push(InterruptRecord { line: 35.into(), partition: 1.into(), ..b.interrupts[0] });
        }, Table::Interrupts, 1, Fault::BadFlags),
        (|b| b.interrupts[0].latency = 10_000_001.into(), Table::Interrupts, 0, Fault::OutOfRange),
        (|b| b.interrupts[0].partition = 9.into(), Table::Interrupts, 0, Fault::NoSuch(Table::Partitions)),
        (|b| b.interrupts[0].partition = 2.into(), Table::Interrupts, 0, Fault::NotForTask),
        (|b| b.interrupts[0].trigger = 2.into(), Table::Interrupts, 0, Fault::UnknownKind),
        (|b| b.interrupts[0].line = 31.into(), Table::Interrupts, 0, Fault::OutOfRange),
        (|b| b.interrupts[0].line = 1020.into(), Table::Interrupts, 0, Fault::OutOfRange),
        (|b| b.interrupts[0].line = 33.into(), Table::Interrupts, 0, Fault::LineTaken(Table::Controllers, 0)),
        (|b| b.interrupts[0].virtual_line = NONE.into(), Table::Interrupts, 0, Fault::OutOfRange),
        (|b| b.interrupts[0].virtual_line = 288.into(), Table::Interrupts, 0, Fault::OutOfRange),
        (|b| b.interrupts[0].virtual_line = 33.into(), Table::Interrupts, 0, Fault::LineTaken(Table::VirtualDevices, 1)),
        (|b| { b.interrupts.push(InterruptRecord { partition: 1.into(), ..b.interrupts[0] }) }, Table::Interrupts, 1, Fault::LineTaken(Table::Interrupts, 0)),
        (|b| { b.interrupts.push(InterruptRecord { line: 35.into(), ..b.interrupts[0] }) }, Table::Interrupts, 1, Fault::LineTaken(Table::Interrupts, 0)),
    ]);
}

#[test]
#[rustfmt::skip] // One case per line.
fn capabilities_and_watches() {
    refused(&[
        (|b| b.capabilities[0].kind = 6.into(), Table::Capabilities, 0, Fault::WrongPolicy),
        (|b| b.capabilities[0].partition = 3.into(), Table::Capabilities, 0, Fault::NoSuch(Table::Partitions)),
        (|b| b.capabilities[0].object = 3.into(), Table::Capabilities, 0, Fault::NoSuch(Table::Partitions)),
        (|b| b.capabilities[3].object = 1.into(), Table::Capabilities, 3, Fault::OutOfRange),
        (|b| b.capabilities[0].index = 0.into(), Table::Capabilities, 0, Fault::OutOfRange),
        (|b| b.capabilities[0].index = 64.into(), Table::Capabilities, 0, Fault::OutOfRange),
        (|b| b.capabilities[1].partition = 0.into(), Table::Capabilities, 1, Fault::NotConsecutive),
        (|b| b.capabilities[1].index = 1.into(), Table::Capabilities, 1, Fault::SameAs(0)),
        (|b| b.capabilities[1].name = name("linux"), Table::Capabilities, 1, Fault::SameAs(0)),
        (|b| b.capabilities[1].name.bytes = [0; NAME_LEN], Table::Capabilities, 1, Fault::BadName),
        (|b| b.capabilities[0].kind = 0.into(), Table::Capabilities, 0, Fault::UnknownKind),
        (|b| b.capabilities[0].kind = 257.into(), Table::Capabilities, 0, Fault::UnknownKind),
        (|b| b.capabilities[0].rights = 0.into(), Table::Capabilities, 0, Fault::BadRights),
        (|b| b.capabilities[0].rights = 16.into(), Table::Capabilities, 0, Fault::BadRights),
        (|b| b.capabilities[0].rights = 257.into(), Table::Capabilities, 0, Fault::BadRights),
        (|b| b.capabilities[0].detail = 1.into(), Table::Capabilities, 0, Fault::Reserved),
        (|b| b.watches[0].watcher = 3.into(), Table::Watches, 0, Fault::NoSuch(Table::Partitions)),
        (|b| b.watches[1].watched = 3.into(), Table::Watches, 1, Fault::NoSuch(Table::Partitions)),
        (|b| b.watches[1].watched = 0.into(), Table::Watches, 1, Fault::SameAs(0)),
    ]);
}

/// Adds one schedule of pCPU 0 with a window for each of its partitions (0 and 2).
fn arinc653(builder: &mut ImageBuilder) {
    builder.pcpus[0].policy = POLICY_ARINC653.into();
    let schedule = |text: &str, first_window: u32, window_count: u32| ScheduleRecord {
        name: name(text),
        pcpu: 0.into(),
        first_window: first_window.into(),
        window_count: window_count.into(),
        reserved: 0.into(),
        frame_ns: 10_000_000.into(),
    };
    let window = |partition: u32, offset: u64, duration: u64| WindowRecord {
        partition: partition.into(),
        flags: WINDOW_PERIOD_START.into(),
        offset_ns: offset.into(),
        duration_ns: duration.into(),
    };
    builder.schedules = vec![schedule("normal", 0, 2), schedule("service", 2, 1)];
    builder.windows = vec![
        window(0, 0, 4_000_000),
        window(2, 4_000_000, 6_000_000),
        window(2, 0, 10_000_000),
    ];
}

/// Adds two domains of pCPU 1, with one partition each (0 and 1).
fn domains(builder: &mut ImageBuilder) {
    builder.pcpus[1].policy = POLICY_DOMAINS.into();
    let domain = |text: &str| DomainRecord {
        name: name(text),
        pcpu: 1.into(),
        reserved: 0.into(),
        budget_ns: 1_000_000.into(),
    };
    builder.domains = vec![domain("control"), domain("comfort")];
    builder.vcpus[1].domain = 1.into();
    builder.vcpus[2].domain = 0.into();
}

/// Adds a server of vCPU 2 on pCPU 1.
fn server(builder: &mut ImageBuilder, kind: u32, budget: u64, period: u64, deadline: u64) {
    let vcpu = &mut builder.vcpus[2];
    vcpu.server = kind.into();
    vcpu.budget_ns = budget.into();
    vcpu.period_ns = period.into();
    vcpu.deadline_ns = deadline.into();
}

fn edf(builder: &mut ImageBuilder) {
    builder.pcpus[1].policy = POLICY_EDF.into();
    server(builder, SERVER_CONSTANT_BANDWIDTH, 2, 9, 7);
}

#[test]
fn every_policy_has_its_tables() {
    accepted(&[
        arinc653,
        domains,
        edf,
        |b| server(b, SERVER_SPORADIC, 2, 9, 0),
        |b| server(b, SERVER_DEFERRABLE, 9, 9, 0),
    ]);
    let mut builder = sample();
    arinc653(&mut builder);
    domains(&mut builder);
    let bytes = builder.build().unwrap();
    let image = Image::check(&bytes, &AARCH64, &Portable).unwrap();
    let second = image.schedules_of(0).nth(1).unwrap();
    assert_eq!(image.name(&second.name), "service");
    assert_eq!(image.windows_of(second), &builder.windows[2..]);
    assert_eq!(image.schedules_of(1).count(), 0);
    assert_eq!(image.domains_of(1).count(), 2);
}

#[test]
#[rustfmt::skip] // One case per line.
fn schedules() {
    refused(&[
        (|b| b.pcpus[0].policy = POLICY_ARINC653.into(), Table::Pcpus, 0, Fault::WrongPolicy),
        (|b| { arinc653(b); b.pcpus[0].policy = POLICY_FIXED_PRIORITY.into() }, Table::Schedules, 0, Fault::WrongPolicy),
        (|b| { arinc653(b); b.schedules[0].reserved = 1.into() }, Table::Schedules, 0, Fault::Reserved),
        (|b| { arinc653(b); b.schedules[0].pcpu = 9.into() }, Table::Schedules, 0, Fault::NoSuch(Table::Pcpus)),
        (|b| { arinc653(b); b.schedules[0].frame_ns = 0.into() }, Table::Schedules, 0, Fault::OutOfRange),
        (|b| { arinc653(b); b.schedules[0].frame_ns = u64::MAX.into() }, Table::Schedules, 0, Fault::OutOfRange),
        (|b| { arinc653(b); b.schedules[1].name = b.schedules[0].name }, Table::Schedules, 1, Fault::SameAs(0)),
        (|b| { arinc653(b); b.schedules[1].name.bytes[0] = 0xff }, Table::Schedules, 1, Fault::BadName),
        (|b| { arinc653(b); b.schedules[1].first_window = 1.into() }, Table::Schedules, 1, Fault::NotConsecutive),
        (|b| { arinc653(b); b.schedules[1].window_count = 0.into() }, Table::Schedules, 1, Fault::BadCount),
        (|b| { arinc653(b); b.schedules[1].window_count = 2.into() }, Table::Schedules, 1, Fault::NotConsecutive),
        (|b| { arinc653(b); b.windows.pop(); }, Table::Schedules, 1, Fault::NotConsecutive),
        (|b| { arinc653(b); b.schedules[1].window_count = u32::MAX.into() }, Table::Schedules, 0, Fault::BadCount),
        (|b| { arinc653(b); b.windows[0].flags = 2.into() }, Table::Windows, 0, Fault::BadFlags),
        (|b| { arinc653(b); b.windows[0].partition = 3.into() }, Table::Windows, 0, Fault::NoSuch(Table::Partitions)),
        (|b| { arinc653(b); b.windows[0].partition = 1.into() }, Table::Windows, 0, Fault::NotBound),
        (|b| { arinc653(b); b.windows[0].duration_ns = 0.into() }, Table::Windows, 0, Fault::OutOfRange),
        (|b| { arinc653(b); b.windows[1].duration_ns = 6_000_001.into() }, Table::Windows, 1, Fault::OutsideFrame),
        (|b| { arinc653(b); b.windows[1].offset_ns = u64::MAX.into() }, Table::Windows, 1, Fault::OutsideFrame),
        (|b| { arinc653(b); b.windows[1].offset_ns = 3_999_999.into() }, Table::Windows, 1, Fault::Overlaps(Table::Windows, 0)),
        (|b| { arinc653(b); b.windows.swap(0, 1) }, Table::Windows, 1, Fault::Overlaps(Table::Windows, 0)),
    ]);
    let mut builder = sample();
    arinc653(&mut builder);
    let one = ScheduleRecord { window_count: 1.into(), ..builder.schedules[1] };
    builder.windows = vec![builder.windows[2]; 9];
    builder.schedules = (0..9_u32).map(|n| ScheduleRecord { name: name(&format!("s{n}")), first_window: n.into(), ..one }).collect();
    let expected = ImageError::Record { table: Table::Schedules, index: 8, fault: Fault::BadCount };
    assert_eq!(builder.build().map(drop), Err(expected));
}

#[test]
#[rustfmt::skip] // One case per line.
fn domains_and_servers() {
    refused(&[
        (|b| b.pcpus[1].policy = POLICY_DOMAINS.into(), Table::Pcpus, 1, Fault::WrongPolicy),
        (|b| { domains(b); b.pcpus[1].policy = POLICY_PINNED.into(); b.vcpus[1].pcpu = 0.into() }, Table::Domains, 0, Fault::WrongPolicy),
        (|b| { domains(b); b.domains[1].reserved = 1.into() }, Table::Domains, 1, Fault::Reserved),
        (|b| { domains(b); b.domains[1].pcpu = 9.into() }, Table::Domains, 1, Fault::NoSuch(Table::Pcpus)),
        (|b| { domains(b); b.domains[1].budget_ns = 0.into() }, Table::Domains, 1, Fault::OutOfRange),
        (|b| { domains(b); b.domains[1].name = b.domains[0].name }, Table::Domains, 1, Fault::SameAs(0)),
        (|b| { domains(b); b.vcpus[1].domain = 2.into() }, Table::Vcpus, 1, Fault::NoSuch(Table::Domains)),
        (|b| { domains(b); b.vcpus[1].domain = NONE.into() }, Table::Vcpus, 1, Fault::NoSuch(Table::Domains)),
        (|b| b.vcpus[1].domain = 0.into(), Table::Vcpus, 1, Fault::WrongPolicy),
        (|b| { domains(b); server(b, SERVER_SPORADIC, 1, 2, 0) }, Table::Vcpus, 2, Fault::WrongPolicy),
        (|b| server(b, 4, 1, 2, 0), Table::Vcpus, 2, Fault::UnknownKind),
        (|b| server(b, SERVER_NONE, 1, 2, 0), Table::Vcpus, 2, Fault::OutOfRange),
        (|b| server(b, SERVER_SPORADIC, 0, 2, 0), Table::Vcpus, 2, Fault::OutOfRange),
        (|b| server(b, SERVER_SPORADIC, 3, 2, 0), Table::Vcpus, 2, Fault::OutOfRange),
        (|b| server(b, SERVER_SPORADIC, 1, u64::MAX, 0), Table::Vcpus, 2, Fault::OutOfRange),
        (|b| server(b, SERVER_DEFERRABLE, 1, 2, 2), Table::Vcpus, 2, Fault::OutOfRange),
        (|b| server(b, SERVER_CONSTANT_BANDWIDTH, 1, 2, 2), Table::Vcpus, 2, Fault::WrongPolicy),
        (|b| { edf(b); server(b, SERVER_SPORADIC, 2, 9, 0) }, Table::Vcpus, 2, Fault::WrongPolicy),
        (|b| { edf(b); server(b, SERVER_CONSTANT_BANDWIDTH, 2, 9, 10) }, Table::Vcpus, 2, Fault::OutOfRange),
        (|b| { edf(b); server(b, SERVER_CONSTANT_BANDWIDTH, 2, 9, 1) }, Table::Vcpus, 2, Fault::OutOfRange),
        (|b| { edf(b); server(b, SERVER_CONSTANT_BANDWIDTH, 2, 9, 0) }, Table::Vcpus, 2, Fault::OutOfRange),
    ]);
}

#[test]
fn tables_have_limits() {
    let mut builder = sample();
    builder.partitions.clear();
    assert_eq!(
        builder.build(),
        Err(ImageError::Count {
            table: Table::Partitions,
            found: 0
        })
    );
    let mut builder = sample();
    builder.partitions = vec![partition("many", PARTITION_VM, 0, 1); 33];
    assert_eq!(
        builder.build(),
        Err(ImageError::Count {
            table: Table::Partitions,
            found: 33
        })
    );
    let mut builder = sample();
    builder.pcpus = vec![builder.pcpus[0]; 9];
    assert_eq!(
        builder.build(),
        Err(ImageError::Count {
            table: Table::Pcpus,
            found: 9
        })
    );
}

#[test]
fn reasons_fit_on_a_line() {
    let fault = Fault::LineTaken(Table::VirtualDevices, 127);
    let error = ImageError::Record {
        table: Table::VirtualDevices,
        index: 127,
        fault,
    };
    assert_eq!(
        error.to_string(),
        "virtual device 127: line taken by virtual device 127"
    );
    let error = ImageError::PayloadDigest {
        index: 2,
        name: name("linux:kernel"),
    };
    assert_eq!(error.to_string(), "payload 2 \"linux:kernel\": digest mismatch");
    let error = ImageError::Truncated {
        found: 5,
        expected: 9,
    };
    assert_eq!(error.to_string(), "image truncated: 5 of 9 bytes");
    assert_eq!(ImageError::TablesDigest.to_string(), "tables: digest mismatch");
}

/// Returns the system with two alternatives of partition 1.
fn with_alternatives() -> ImageBuilder {
    let mut builder = sample();
    for name in ["b", "c"] {
        builder.alternatives.push(AlternativeRecord {
            name: Name::new(name).unwrap(),
            partition: 1.into(),
            manifest_line: 7.into(),
            entry: 0x4008_0000.into(),
            argument: 0.into(),
            stack: 0.into(),
        });
    }
    for number in [1_u32, 2] {
        let load = LoadRecord {
            alternative: number.into(),
            ..builder.loads[1]
        };
        builder.loads.push(load);
    }
    builder
}

#[test]
fn alternatives_are_found_and_their_loads_may_overlap() {
    let bytes = with_alternatives().build().unwrap();
    let image = Image::check(&bytes, &AARCH64, &Portable).unwrap();
    assert_eq!(image.alternatives_of(1).count(), 2);
    assert_eq!(image.alternatives_of(0).count(), 0);
    assert_eq!(image.loads_of(1, 2).count(), 1);
    assert_eq!(image.loads_of(1, 3).count(), 0);
}

#[test]
#[rustfmt::skip] // One case per line.
fn alternatives_that_cannot_be_are_refused() {
    let cases: &[Case] = &[
        (|b| { b.alternatives[0].partition = 3.into(); b.loads.truncate(3); }, Table::Alternatives, 0, Fault::NoSuch(Table::Partitions)),
        (|b| b.alternatives[1].partition = 0.into(), Table::Loads, 4, Fault::NoSuch(Table::Alternatives)),
        (|b| { b.alternatives[1].partition = 0.into(); b.loads.pop(); }, Table::Alternatives, 1, Fault::NotConsecutive),
        (|b| b.alternatives[1].name = b.alternatives[0].name, Table::Alternatives, 1, Fault::SameAs(0)),
        (|b| b.alternatives[0].entry = 0.into(), Table::Alternatives, 0, Fault::BadEntry),
        (|b| b.alternatives[0].argument = 8.into(), Table::Alternatives, 0, Fault::BadArgument),
        (|b| b.alternatives[0].stack = 16.into(), Table::Alternatives, 0, Fault::BadStack),
        (|b| b.loads[3].alternative = 3.into(), Table::Loads, 3, Fault::NoSuch(Table::Alternatives)),
        (|b| b.loads[3].alternative = 0.into(), Table::Loads, 3, Fault::Overlaps(Table::Loads, 1)),
        (|b| b.loads[3].reserved = 1.into(), Table::Loads, 3, Fault::Reserved),
    ];
    for (change, table, index, fault) in cases {
        let mut builder = with_alternatives();
        change(&mut builder);
        let expected = ImageError::Record {
            table: *table,
            index: *index,
            fault: *fault,
        };
        assert_eq!(builder.build().unwrap_err(), expected);
    }
}

/// Returns registers of 512 bytes at the end of a page that no partition has, forwarded to a VM.
fn window(partition: u32, guest: u64) -> RegistersRecord {
    RegistersRecord {
        partition: partition.into(),
        flags: (REGISTERS_FORWARDED | REGISTERS_QUIESCED).into(),
        guest: guest.into(),
        host: (0x0a00_0000 + guest % 0x1000).into(),
        size: 0x200.into(),
        quiesce_offset: 0x70.into(),
        quiesce_value: 0.into(),
        gate_offset: 0.into(),
        gate_bit: 0.into(),
    }
}

/// Returns the registers of the clock that partition 0 has mapped, quiesced.
fn clock() -> RegistersRecord {
    RegistersRecord {
        flags: REGISTERS_QUIESCED.into(),
        host: 0x0901_0000.into(),
        ..window(0, 0x0901_0000)
    }
}

#[test]
#[rustfmt::skip] // One case per line.
fn registers() {
    accepted(&[
        |b| b.registers = vec![window(0, 0x0a00_3e00), window(1, 0x0a00_3c00), clock()],
        |b| b.registers = vec![window(2, 0x0a00_3e00)],
        // Two partitions may see what is theirs at one address.
        |b| b.registers = vec![window(0, 0x0a00_3e00), RegistersRecord { host: 0x0a00_1e00.into(), ..window(1, 0x0a00_3e00) }],
        |b| b.registers = vec![RegistersRecord { flags: REGISTERS_FORWARDED.into(), quiesce_offset: 0.into(), ..window(0, 0x0a00_3e00) }],
    ]);
    refused(&[
        (|b| b.registers = vec![window(9, 0x0a00_3e00)], Table::Registers, 0, Fault::NoSuch(Table::Partitions)),
        // A task reaches registers by trap only.
        (|b| b.registers = vec![RegistersRecord { flags: REGISTERS_QUIESCED.into(), ..window(2, 0x0a00_3e00) }], Table::Registers, 0, Fault::NotForTask),
        (|b| b.registers = vec![RegistersRecord { flags: 0.into(), ..window(0, 0x0a00_3e00) }], Table::Registers, 0, Fault::BadFlags),
        (|b| b.registers = vec![RegistersRecord { flags: 4.into(), ..window(0, 0x0a00_3e00) }], Table::Registers, 0, Fault::BadFlags),
        (|b| b.registers = vec![RegistersRecord { size: 0.into(), ..window(0, 0x0a00_3e00) }], Table::Registers, 0, Fault::Empty),
        (|b| b.registers = vec![RegistersRecord { host: (u64::MAX - 0xff).into(), ..window(0, 0x0a00_3f00) }], Table::Registers, 0, Fault::Overflow),
        (|b| b.registers = vec![RegistersRecord { host: 0x0a00_3c00.into(), ..window(0, 0x0a00_3e00) }], Table::Registers, 0, Fault::Unaligned),
        (|b| b.registers = vec![RegistersRecord { quiesce_offset: 0x72.into(), ..window(0, 0x0a00_3e00) }], Table::Registers, 0, Fault::Unaligned),
        (|b| b.registers = vec![RegistersRecord { quiesce_offset: 0x200.into(), ..window(0, 0x0a00_3e00) }], Table::Registers, 0, Fault::OutOfRange),
        (|b| b.registers = vec![RegistersRecord { flags: REGISTERS_FORWARDED.into(), ..window(0, 0x0a00_3e00) }], Table::Registers, 0, Fault::Reserved),
        (|b| b.registers = vec![RegistersRecord { host: 0x5000_0e00.into(), ..window(0, 0x0a00_3e00) }], Table::Registers, 0, Fault::InRam),
        // The hypervisor's UART.
        (|b| b.registers = vec![RegistersRecord { host: 0x0900_0e00.into(), ..window(1, 0x0a00_3e00) }], Table::Registers, 0, Fault::Overlaps(Table::Controllers, 0)),
        // The clock of partition 0, for another and for itself.
        (|b| b.registers = vec![RegistersRecord { host: 0x0901_0e00.into(), ..window(1, 0x0a00_3e00) }], Table::Registers, 0, Fault::Overlaps(Table::Memory, 3)),
        (|b| b.registers = vec![RegistersRecord { host: 0x0901_0e00.into(), ..window(0, 0x0a00_3e00) }], Table::Registers, 0, Fault::Overlaps(Table::Memory, 3)),
        (|b| b.registers = vec![RegistersRecord { partition: 1.into(), ..clock() }], Table::Registers, 0, Fault::Overlaps(Table::Memory, 3)),
        // Guest addresses of its RAM, and of its virtual UART.
        (|b| b.registers = vec![window(0, 0x4000_0e00)], Table::Registers, 0, Fault::Overlaps(Table::Memory, 0)),
        (|b| b.registers = vec![window(0, 0x0900_0e00)], Table::Registers, 0, Fault::Overlaps(Table::VirtualDevices, 1)),
        // Quiesced only, but not mapped.
        (|b| b.registers = vec![RegistersRecord { flags: REGISTERS_QUIESCED.into(), ..window(0, 0x0a00_3e00) }], Table::Registers, 0, Fault::OutsideMemory),
        (|b| b.registers = vec![window(0, 0x0a00_3e00), window(1, 0x0a01_3e00)], Table::Registers, 1, Fault::Overlaps(Table::Registers, 0)),
        (|b| b.registers = vec![window(0, 0x0a00_3e00), RegistersRecord { host: 0x0b00_0e00.into(), ..window(0, 0x0a00_3e00) }], Table::Registers, 1, Fault::Overlaps(Table::Registers, 0)),
    ]);
}

#[test]
fn an_image_that_lies_after_another_class_binary_is_refused() {
    // The sample says that it lies where this test has no memory. Every boot shows the other side.
    let bytes = sample().build().expect("the sample is sound");
    assert!(Image::check(&bytes, &AARCH64, &Portable).is_ok());
    assert_eq!(
        Image::check_here(&bytes, &AARCH64, &Portable, &Open).err(),
        Some(ImageError::Elsewhere)
    );
}
