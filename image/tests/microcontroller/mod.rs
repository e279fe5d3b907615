// SPDX-License-Identifier: Apache-2.0
//! A small valid system on a microcontroller for the tests to start from.

use crate::common::{HEALTH, name};
use bulkhead_arch_api::ClassFacts;
use bulkhead_image::layout::*;
use bulkhead_image::{ImageBuilder, Portable, Sha256};
use zerocopy::FromZeros;

/// The code of the VM.
pub const CODE: u64 = 0x10_0000;
/// The RAM of the VM.
pub const RAM: u64 = 0x2010_0000;
/// The contents of the code.
pub const CONTENTS: [u8; 600] = [0xbf; 600];

/// Returns a mapping at its bus address, for partition 0.
pub fn mapping(base: u64, size: u64, flags: u32) -> MemoryRecord {
    MemoryRecord {
        flags: flags.into(),
        guest: base.into(),
        host: base.into(),
        size: size.into(),
        ..MemoryRecord::new_zeroed()
    }
}

/// Returns a controller with windows of a page.
pub fn controller(role: u32, compatible: u32, windows: &[u64], lines: &[u32]) -> ControllerRecord {
    let at = |index: usize| windows.get(index).copied().unwrap_or(0);
    ControllerRecord {
        role: role.into(),
        compatible: compatible.into(),
        base: std::array::from_fn(|index| at(index).into()),
        size: std::array::from_fn(|index| if at(index) == 0 { 0 } else { 0x1000 }.into()),
        lines: std::array::from_fn(|index| lines.get(index).copied().unwrap_or(NONE).into()),
        clock_hz: 25_000_000.into(),
        reserved: 0.into(),
    }
}

fn board(class: &'static ClassFacts) -> ImageBuilder {
    let mut builder = ImageBuilder::new(class, "mps2").unwrap();
    builder.board.hypervisor_size = 0x2_0000.into();
    builder.board.image_base = 0xa400.into();
    builder.board.pool_base = 0x2000_0000.into();
    builder.board.pool_size = 0x7000.into();
    builder.board.log_base = 0x2000_7000.into();
    builder.pcpus = vec![PcpuRecord {
        hardware_id: 0.into(),
        policy: POLICY_FIXED_PRIORITY.into(),
        quantum_us: 10_000.into(),
    }];
    let stretch = |base: u64, size: u64, kind: u32| MapRecord {
        base: base.into(),
        size: size.into(),
        kind: kind.into(),
        reserved: 0.into(),
    };
    builder.map = vec![
        stretch(0, 0x40_0000, MAP_CODE),
        stretch(0x2000_0000, 0x40_0000, MAP_RAM),
    ];
    builder.controllers = vec![
        controller(ROLE_CONSOLE, CONTROLLER_CMSDK_UART, &[0x4000_4000], &[0, 1]),
        controller(ROLE_INTERRUPTS, CONTROLLER_NVIC, &[], &[]),
        controller(
            ROLE_TIMER,
            CONTROLLER_DUAL_TIMER,
            &[0x4000_0000, 0x4002_8000],
            &[8],
        ),
    ];
    builder
}

/// Returns one VM on a microcontroller.
pub fn sample_of(class: &'static ClassFacts) -> ImageBuilder {
    let mut builder = board(class);
    builder.partitions = vec![PartitionRecord {
        name: name("rtos"),
        entry: (CODE + 0x101).into(),
        argument: CODE.into(),
        stack: (RAM + 0x1000).into(),
        kind: PARTITION_VM.into(),
        flags: FLAG_AUTOSTART.into(),
        vcpu_count: 1.into(),
        restart_limit: NONE.into(),
        virtual_lines: 32.into(),
        health: HEALTH,
        ..PartitionRecord::new_zeroed()
    }];
    builder.vcpus = vec![VcpuRecord::plain(0, 0, 4)];
    builder.memory = vec![
        mapping(CODE, 0x400, MEMORY_READ | MEMORY_EXECUTE),
        mapping(RAM, 0x1000, MEMORY_READ | MEMORY_WRITE | MEMORY_CLEAR),
        mapping(0x4000_5000, 0x1000, MEMORY_READ | MEMORY_WRITE | MEMORY_DEVICE),
    ];
    builder.virtual_devices = vec![VirtualDeviceRecord {
        partition: 0.into(),
        kind: VIRTUAL_CMSDK_UART.into(),
        base: [0x4000_4000.into(), 0.into()],
        size: [0x1000.into(), 0.into()],
        virtual_line: 0.into(),
        reserved: 0.into(),
    }];
    builder.interrupts = vec![InterruptRecord {
        partition: 0.into(),
        line: 2.into(),
        virtual_line: 2.into(),
        trigger: TRIGGER_LEVEL.into(),
        ..InterruptRecord::new_zeroed()
    }];
    builder.residents = vec![ResidentRecord {
        name: name("rtos:program"),
        partition: 0.into(),
        reserved: 0.into(),
        address: CODE.into(),
        size: (CONTENTS.len() as u64).into(),
        digest: Portable.digest(&[&CONTENTS]),
    }];
    let lookalike = |address: u64| LookalikeRecord {
        address: (address as u32).into(),
    };
    builder.lookalikes = vec![
        lookalike(CODE + 0x102),
        lookalike(CODE + 0x110),
        lookalike(CODE + 0x112),
    ];
    builder
}

/// Returns the registers of the device of partition 0, with a gate.
pub fn gated(offset: u32, bit: u32) -> RegistersRecord {
    RegistersRecord {
        flags: REGISTERS_GATED.into(),
        guest: 0x4000_5000.into(),
        host: 0x4000_5000.into(),
        size: 0x1000.into(),
        gate_offset: offset.into(),
        gate_bit: bit.into(),
        ..RegistersRecord::new_zeroed()
    }
}
