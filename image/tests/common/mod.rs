// SPDX-License-Identifier: Apache-2.0
//! A small valid system for the tests to start from: two VMs and a task on two pCPUs.

use bulkhead_arch_api::class::AARCH64;
use bulkhead_image::layout::*;
use bulkhead_image::{ImageBuilder, Payload};
use zerocopy::FromZeros;

/// Where the sample's hypervisor is.
pub const LOAD_ADDRESS: u64 = 0x4020_0000;
/// Where the sample's log is.
pub const LOG_BASE: u64 = LOAD_ADDRESS - bulkhead_abi::log::AREA_SIZE as u64;
/// Bytes of the sample's hypervisor.
pub const HYPERVISOR_SIZE: u64 = 0x40_0000;
/// All permissions.
pub const RWX: u32 = MEMORY_READ | MEMORY_WRITE | MEMORY_EXECUTE;

/// A health action for each class of events.
pub const HEALTH: [u8; 8] = [
    0,
    HealthAction::Stop as u8,
    HealthAction::Inject as u8,
    HealthAction::Log as u8,
    HealthAction::Restart as u8,
    HealthAction::Stop as u8,
    0,
    0,
];

/// Returns `text` as a name.
pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Makes a partition with vCPUs from `first_vcpu` on and memory at 0x40000000.
pub fn partition(text: &str, kind: u32, first_vcpu: u32, vcpu_count: u32) -> PartitionRecord {
    PartitionRecord {
        name: name(text),
        entry: 0x4008_0000.into(),
        argument: 0x4000_0000.into(),
        stack: if kind == PARTITION_TASK {
            0x4010_0000.into()
        } else {
            0.into()
        },
        kind: kind.into(),
        flags: FLAG_AUTOSTART.into(),
        first_vcpu: first_vcpu.into(),
        vcpu_count: vcpu_count.into(),
        restart_limit: NONE.into(),
        virtual_lines: if kind == PARTITION_VM {
            288.into()
        } else {
            0.into()
        },
        health: HEALTH,
        ..PartitionRecord::new_zeroed()
    }
}

/// Returns the RAM of a partition at 0x40000000.
pub fn ram(partition: u32, host: u64, size: u64) -> MemoryRecord {
    MemoryRecord {
        partition: partition.into(),
        flags: (RWX | MEMORY_CLEAR).into(),
        guest: 0x4000_0000.into(),
        host: host.into(),
        size: size.into(),
        ..MemoryRecord::new_zeroed()
    }
}

fn controllers() -> Vec<ControllerRecord> {
    let none = NONE.into();
    let zero = 0.into();
    let uart = ControllerRecord {
        role: ROLE_CONSOLE.into(),
        compatible: CONTROLLER_PL011.into(),
        base: [0x0900_0000.into(), zero, zero, zero],
        size: [0x1000.into(), zero, zero, zero],
        lines: [33.into(), none, none, none],
        clock_hz: 24_000_000.into(),
        reserved: 0.into(),
    };
    let gic = ControllerRecord {
        role: ROLE_INTERRUPTS.into(),
        compatible: CONTROLLER_GIC_V3.into(),
        base: [0x0800_0000.into(), 0x080a_0000.into(), zero, zero],
        size: [0x1_0000.into(), 0x0f6_0000.into(), zero, zero],
        lines: [25.into(), none, none, none],
        ..uart
    };
    let timer = ControllerRecord {
        role: ROLE_TIMER.into(),
        compatible: CONTROLLER_ARM_TIMER.into(),
        base: [zero; 4],
        size: [zero; 4],
        lines: [26.into(), 27.into(), 30.into(), none],
        ..uart
    };
    vec![uart, gic, timer]
}

fn virtual_devices(partition: u32, vcpus: u64) -> [VirtualDeviceRecord; 2] {
    let gic = VirtualDeviceRecord {
        partition: partition.into(),
        kind: VIRTUAL_GIC_V3.into(),
        base: [0x0800_0000.into(), 0x080a_0000.into()],
        size: [0x1_0000.into(), (vcpus * 0x2_0000).into()],
        virtual_line: NONE.into(),
        reserved: 0.into(),
    };
    let uart = VirtualDeviceRecord {
        kind: VIRTUAL_PL011.into(),
        base: [0x0900_0000.into(), 0.into()],
        size: [0x1000.into(), 0.into()],
        virtual_line: 33.into(),
        ..gic
    };
    [gic, uart]
}

fn board(builder: &mut ImageBuilder) {
    builder.board.load_address = LOAD_ADDRESS.into();
    builder.board.hypervisor_size = HYPERVISOR_SIZE.into();
    builder.board.image_base = (LOAD_ADDRESS + 0x8_0000).into();
    builder.board.pool_base = (LOAD_ADDRESS + 0x38_0000).into();
    builder.board.pool_size = 0x8_0000.into();
    builder.board.log_base = LOG_BASE.into();
    let pcpu = |hardware_id: u64| PcpuRecord {
        hardware_id: hardware_id.into(),
        policy: POLICY_FIXED_PRIORITY.into(),
        quantum_us: 10_000.into(),
    };
    builder.pcpus = vec![pcpu(0), pcpu(1)];
    let stretch = |base: u64, size: u64, kind: u32| MapRecord {
        base: base.into(),
        size: size.into(),
        kind: kind.into(),
        reserved: 0.into(),
    };
    builder.map = vec![
        stretch(0x4000_0000, 0x8000_0000, MAP_RAM),
        stretch(0x0800_0000, 0x0100_0000, MAP_DEVICE),
        stretch(0x0900_0000, 0x1000, MAP_DEVICE),
    ];
    builder.controllers = controllers();
}

/// Returns the system. Partition 0: VM with two vCPUs and the RTC; 1: VM; 2: task that watches both.
pub fn sample() -> ImageBuilder {
    let mut builder = ImageBuilder::new(&AARCH64, "qemu-virt-aarch64").unwrap();
    board(&mut builder);
    builder.partitions = vec![
        partition("linux", PARTITION_VM, 0, 2),
        partition("control", PARTITION_VM, 2, 1),
        partition("supervisor", PARTITION_TASK, 3, 1),
    ];
    let vcpu = VcpuRecord::plain;
    builder.vcpus = vec![vcpu(0, 0, 4), vcpu(0, 1, 4), vcpu(1, 1, 30), vcpu(2, 0, 20)];
    let rtc = MemoryRecord {
        flags: (MEMORY_READ | MEMORY_WRITE | MEMORY_DEVICE).into(),
        guest: 0x0901_0000.into(),
        ..ram(0, 0x0901_0000, 0x1000)
    };
    builder.memory = vec![
        ram(0, 0x8000_0000, 0x1000_0000),
        ram(1, 0x5000_0000, 0x0100_0000),
        ram(2, 0x5100_0000, 0x0010_0000),
        rtc,
    ];
    let payload = |text: &str, length: u32| Payload {
        name: name(text),
        bytes: (0..length).map(|n| n as u8).collect(),
    };
    builder.payloads = vec![
        payload("linux:kernel", 5000),
        payload("control:image", 4096),
        payload("supervisor:image", 3),
    ];
    let load = |partition: u32, payload: u32, size: u64| LoadRecord {
        partition: partition.into(),
        payload: payload.into(),
        guest: 0x4008_0000.into(),
        offset: 0.into(),
        size: size.into(),
        alternative: 0.into(),
        reserved: 0.into(),
    };
    builder.loads = vec![load(0, 0, 5000), load(1, 1, 4096), load(2, 2, 3)];
    builder.interrupts = vec![InterruptRecord {
        partition: 0.into(),
        line: 34.into(),
        virtual_line: 34.into(),
        trigger: TRIGGER_LEVEL.into(),
        flags: 0.into(),
        latency: 0.into(),
    }];
    builder.virtual_devices = [virtual_devices(0, 2), virtual_devices(1, 1)].concat();
    let capability = |index: u32, kind: u32, object: u32, text: &str| CapabilityRecord {
        partition: 2.into(),
        index: index.into(),
        kind: kind.into(),
        object: object.into(),
        rights: 1.into(),
        detail: 0.into(),
        name: name(text),
    };
    builder.capabilities = vec![
        capability(1, 1, 0, "linux"),
        capability(2, 1, 1, "control"),
        capability(3, 2, 2, "events"),
        capability(4, 3, 0, "clock"),
    ];
    let watch = |watched: u32| WatchRecord {
        watcher: 2.into(),
        watched: watched.into(),
    };
    builder.watches = vec![watch(0), watch(1)];
    builder
}
