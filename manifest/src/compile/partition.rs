// SPDX-License-Identifier: Apache-2.0
//! The records of a partition: itself, its memory, its capabilities.

use bulkhead_image::layout::{
    CapabilityRecord, FLAG_AUTOSTART, FLAG_DIRECT, FLAG_FROZEN_TIME, FLAG_NO_SEMIHOSTING, FLAG_WINDOW_EVENTS,
    MEMORY_CLEAR, MEMORY_DEVICE, MEMORY_EXECUTE, MEMORY_READ, MEMORY_SHARED, MEMORY_WRITE, MemoryRecord,
    NONE, Name, PARTITION_TASK, PARTITION_VM, PartitionRecord, WatchRecord,
};
use bulkhead_image::{ImageBuilder, NameError, Portable, Sha256};

use crate::model::{Access, Kind};
use crate::system::{Mapping, MappingKind, Partition, System};

/// Returns the record of a partition.
pub(super) fn partition_record(
    system: &System,
    partition: &Partition<'_>,
    first_vcpu: usize,
) -> Result<PartitionRecord, NameError> {
    let vm = partition.kind() == Kind::Vm;
    let autostart = if partition.autostart() { FLAG_AUTOSTART } else { 0 };
    let frozen = if partition.frozen_time() {
        FLAG_FROZEN_TIME
    } else {
        0
    };
    let events = if partition.window_events() {
        FLAG_WINDOW_EVENTS
    } else {
        0
    };
    let direct = if partition.direct() { FLAG_DIRECT } else { 0 };
    let machine = &partition.spec.machine;
    let unheard = if machine.semihosting.value {
        0
    } else {
        FLAG_NO_SEMIHOSTING
    };
    let mut health = [0; 8];
    for (class, action) in partition.health() {
        health[class as usize] = action as u8;
    }
    Ok(PartitionRecord {
        name: Name::new(partition.name())?,
        uuid: uuid(&system.board.name, partition.name()),
        entry: partition.entry().into(),
        argument: partition.argument().into(),
        stack: partition.guest.stack.into(),
        watchdog_ns: partition.watchdog_ns().unwrap_or(0).into(),
        kind: if vm { PARTITION_VM } else { PARTITION_TASK }.into(),
        flags: (autostart | frozen | events | unheard | direct).into(),
        first_vcpu: (first_vcpu as u32).into(),
        vcpu_count: (partition.spec.vcpus.len() as u32).into(),
        manifest_line: partition.line().into(),
        restart_limit: partition.restart_limit().unwrap_or(NONE).into(),
        virtual_lines: if vm { machine.lines() } else { 0 }.into(),
        entry_state: u32::from(partition.entry_state().0).into(),
        health,
    })
}

/// Returns a UUID that depends on board and name only (RFC 9562, version 8: made by a rule of ours).
fn uuid(board: &str, name: &str) -> [u8; 16] {
    let digest = Portable.digest(&[b"bulkhead partition\0", board.as_bytes(), b"\0", name.as_bytes()]);
    let mut uuid: [u8; 16] = std::array::from_fn(|index| digest[index]);
    uuid[6] = uuid[6] & 0x0f | 0x80;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// Returns the record of a mapping.
pub(super) fn memory_record(partition: u32, mapping: &Mapping) -> MemoryRecord {
    let Access { read, write, execute } = mapping.access;
    let device = matches!(mapping.kind, MappingKind::Device | MappingKind::Lent);
    let shared = matches!(mapping.kind, MappingKind::Channel | MappingKind::Lent);
    let bits = [
        (read, MEMORY_READ),
        (write, MEMORY_WRITE),
        (execute, MEMORY_EXECUTE),
        (device, MEMORY_DEVICE),
        (
            matches!(
                mapping.kind,
                MappingKind::Ram | MappingKind::Region | MappingKind::Startup | MappingKind::Frames
            ),
            MEMORY_CLEAR,
        ),
        (shared, MEMORY_SHARED),
    ];
    let flags = bits
        .iter()
        .filter(|(set, _)| *set)
        .fold(0, |flags, (_, bit)| flags | bit);
    MemoryRecord {
        partition: partition.into(),
        flags: flags.into(),
        guest: mapping.guest.into(),
        host: mapping.host.into(),
        size: mapping.size.into(),
        manifest_line: mapping.line.into(),
        reserved: 0.into(),
    }
}

/// Writes the capabilities of a partition, and its watches.
pub(super) fn access_records(
    number: u32,
    partition: &Partition<'_>,
    builder: &mut ImageBuilder,
) -> Result<(), NameError> {
    // The kernel gives every partition the capability for itself.
    for capability in partition.capabilities().iter().skip(1) {
        builder.capabilities.push(CapabilityRecord {
            partition: number.into(),
            index: capability.index.into(),
            kind: u32::from(capability.kind as u8).into(),
            object: (capability.object as u32).into(),
            rights: u32::from(capability.rights.0).into(),
            detail: (capability.room
                | capability.event.map_or(0, |event| event.saturating_add(1)) << 8
                | capability.bound)
                .into(),
            name: Name::new(&capability.name)?,
        });
    }
    builder
        .watches
        .extend(partition.watches().iter().map(|watched| WatchRecord {
            watcher: number.into(),
            watched: (*watched as u32).into(),
        }));
    Ok(())
}
