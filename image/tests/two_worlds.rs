// SPDX-License-Identifier: Apache-2.0
//! Images of class `armv8m`: controllers say which world reaches memory and devices.

#[allow(dead_code, reason = "the sample of the other class is not used here")]
mod common;
#[allow(dead_code, reason = "code memory has the same rules on each class")]
mod microcontroller;

use bulkhead_arch_api::class::{ARMV7M, ARMV8M};
use bulkhead_image::layout::*;
use bulkhead_image::{Fault, Image, ImageBuilder, ImageError, Portable, Table};
use common::name;
use microcontroller::{CODE, RAM, controller, gated, mapping, sample_of};

/// Returns a memory protection controller.
fn guard(registers: u64, memory: u64, size: u64) -> ControllerRecord {
    let mut record = controller(ROLE_SECURITY, CONTROLLER_ARM_MPC, &[registers, memory], &[]);
    record.base[1] = memory.into();
    record.size[1] = size.into();
    record
}

/// Returns the sample on a microcontroller with two worlds.
fn worlds() -> ImageBuilder {
    let mut builder = sample_of(&ARMV8M);
    builder.controllers.extend([
        controller(ROLE_SECURITY, CONTROLLER_IOTKIT_SECURITY, &[0x5008_0000], &[]),
        guard(0x5800_7000, 0, 0x40_0000),
        guard(0x5800_8000, 0x2000_0000, 0x20_0000),
    ]);
    builder.registers = vec![gated(0x84, 6)];
    builder
}

/// Adds a VM with a device whose gate the device of the other VM has already.
fn share_gate(builder: &mut ImageBuilder) {
    let [code, ram] = [CODE, RAM].map(|base| base + 0x1000);
    builder.partitions.push(PartitionRecord {
        name: name("other"),
        first_vcpu: 1.into(),
        entry: (code + 0x101).into(),
        argument: code.into(),
        stack: (ram + 0x1000).into(),
        ..builder.partitions[0]
    });
    builder.vcpus.push(VcpuRecord::plain(1, 0, 4));
    let own = |base: u64, size: u64, flags: u32| MemoryRecord {
        partition: 1.into(),
        ..mapping(base, size, flags)
    };
    builder.memory.extend([
        own(code, 0x400, MEMORY_READ | MEMORY_EXECUTE),
        own(ram, 0x1000, MEMORY_READ | MEMORY_WRITE | MEMORY_CLEAR),
    ]);
    builder.registers.push(RegistersRecord {
        partition: 1.into(),
        ..gated(0x84, 6)
    });
}

#[test]
fn a_level_of_a_device_can_be_the_event_of_a_task() {
    let task = |class| {
        let mut builder = sample_of(class);
        builder.partitions[0].kind = PARTITION_TASK.into();
        builder.partitions[0].virtual_lines = 0.into();
        builder.partitions[0].argument = CODE.into();
        builder.virtual_devices.clear();
        builder.interrupts[0].virtual_line = 59.into();
        builder
    };
    let mut builder = task(&ARMV8M);
    builder.controllers.extend(worlds().controllers.split_off(3));
    builder.registers = vec![gated(0x84, 6)];
    assert_eq!(builder.build().map(drop), Ok(()));
    builder.interrupts[0].virtual_line = 64.into();
    let error = |fault| {
        Err(ImageError::Record {
            table: Table::Interrupts,
            index: 0,
            fault,
        })
    };
    assert_eq!(builder.build().map(drop), error(Fault::OutOfRange));
    let other = task(&ARMV7M);
    assert_eq!(other.build().map(drop), error(Fault::NotForTask));
}

#[rustfmt::skip] // One case per line.
#[test]
fn rules_of_two_worlds() {
    type Change = fn(&mut ImageBuilder);
    let bytes = worlds().build().unwrap();
    let image = Image::check(&bytes, &ARMV8M, &Portable).unwrap();
    assert_eq!((image.granule(), image.controllers().len()), (1024, 6));
    let cases: [(Change, Table, u32, Fault); 20] = [
        (|b| b.controllers.push(b.controllers[3]), Table::Controllers, 6, Fault::Overlaps(Table::Controllers, 3)),
        (|b| b.controllers.push(controller(ROLE_SECURITY, CONTROLLER_IOTKIT_SECURITY, &[0x5009_0000], &[])), Table::Controllers, 6, Fault::SameAs(3)),
        (|b| b.controllers.push(guard(0x5800_9000, 0x1000, 0x1000)), Table::Controllers, 6, Fault::Overlaps(Table::Controllers, 4)),
        (|b| b.controllers.push(guard(0x5800_8000, 0x2020_0000, 0x1000)), Table::Controllers, 6, Fault::Overlaps(Table::Controllers, 5)),
        (|b| b.controllers[5] = guard(0x5800_8000, 0x3000_0000, 0x1000), Table::Controllers, 5, Fault::OutsideRam),
        (|b| b.controllers[5] = guard(0x5800_8000, 0x2000_0000, 0x60_0000), Table::Controllers, 5, Fault::OutsideRam),
        (|b| b.controllers[5] = guard(0x5800_8000, 0x2000_0000, 0), Table::Controllers, 5, Fault::WindowTooSmall),
        (|b| b.controllers[5] = guard(0x5800_8000, 0x2000_0400, 0x1000), Table::Controllers, 5, Fault::Unaligned),
        (|b| b.controllers[5].role = ROLE_TIMER.into(), Table::Controllers, 5, Fault::UnknownKind),
        (|b| { b.controllers.remove(3); }, Table::Registers, 0, Fault::NoSuch(Table::Controllers)),
        (|b| b.registers = vec![gated(0x82, 6)], Table::Registers, 0, Fault::Unaligned),
        (|b| b.registers = vec![gated(0x1000, 6)], Table::Registers, 0, Fault::OutOfRange),
        (|b| b.registers = vec![gated(u32::MAX - 3, 6)], Table::Registers, 0, Fault::OutOfRange),
        (|b| b.registers = vec![gated(0x84, 32)], Table::Registers, 0, Fault::OutOfRange),
        (|b| b.registers = vec![gated(0x10, 6)], Table::Registers, 0, Fault::OutOfRange),
        (share_gate, Table::Registers, 1, Fault::SameAs(0)),
        (|b| b.registers[0].flags = 0.into(), Table::Registers, 0, Fault::BadFlags),
        (|b| (b.registers[0].guest, b.registers[0].host) = (0x4000_6000.into(), 0x4000_6000.into()), Table::Registers, 0, Fault::OutsideMemory),
        (|b| b.memory[0].size = 0x420.into(), Table::Memory, 0, Fault::Unaligned),
        (|b| b.vcpus[0].masks = (RAM as u32 + 0xfe0).into(), Table::Vcpus, 0, Fault::BadArgument),
    ];
    for (number, (change, table, index, fault)) in cases.into_iter().enumerate() {
        let mut builder = worlds();
        change(&mut builder);
        let expected = ImageError::Record { table, index, fault };
        assert_eq!(builder.build().map(drop), Err(expected), "case {number}");
    }
}
