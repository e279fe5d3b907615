// SPDX-License-Identifier: Apache-2.0
//! The records of objects that partitions share: ports, locks, channels, services.

use bulkhead_image::layout::{
    ChannelRecord, LockRecord, NONE, Name, PORT_IDENTIFIES, PortRecord, SERVED_FAULTS, SERVED_VIRTIO,
    SERVED_WRITES, SIDE_DEVICE, SIDE_EDGE, SIDE_FUNCTION, SIDE_HELD, SIDE_WRITES, ServedRecord, SideRecord,
};
use bulkhead_image::{ImageBuilder, NameError};

use crate::board::{Device, Trigger};
use crate::guest::AreaKind;
use crate::model::served::all;
use crate::model::side::lent;
use crate::model::{
    ChannelSpec, ClientSpec, Late, LockSpec, Manifest, PartitionSpec, Placed, PortSpec, ServiceSpec, SideSpec,
};
use crate::system::System;

/// Writes the records of ports, locks, channels and services.
pub(super) fn object_records(system: &System, builder: &mut ImageBuilder) -> Result<(), NameError> {
    for port in &system.manifest.ports {
        builder.ports.push(port_record(port)?);
    }
    for lock in &system.manifest.locks {
        builder.locks.push(lock_record(lock)?);
    }
    channel_records(system, builder)?;
    builder.served = served_records(&system.manifest);
    Ok(())
}

/// Returns the record of a port.
fn port_record(port: &PortSpec) -> Result<PortRecord, NameError> {
    Ok(PortRecord {
        name: Name::new(&port.name.value)?,
        message_size: port.message_size.get().into(),
        depth: port.depth.get().into(),
        flags: if port.identify { PORT_IDENTIFIES } else { 0 }.into(),
        reserved: 0.into(),
    })
}

/// Returns the record of a lock.
fn lock_record(lock: &LockSpec) -> Result<LockRecord, NameError> {
    Ok(LockRecord {
        name: Name::new(&lock.name.value)?,
    })
}

/// Writes the records of the channels and their sides.
fn channel_records(system: &System, builder: &mut ImageBuilder) -> Result<(), NameError> {
    let partitions = &system.manifest.partitions;
    for (number, channel) in system.manifest.channels.iter().enumerate() {
        let host = system.plan.channels.get(number).copied().unwrap_or(0);
        let first = builder.sides.len();
        let lent = lent(channel, &system.board);
        builder.channels.push(channel_record(channel, host, first)?);
        for side in &channel.sides {
            let is_it = |spec: &PartitionSpec| {
                let name = side.partition.as_ref();
                name.is_some_and(|name| name.value == spec.name.value)
            };
            let Some(owner) = partitions.iter().position(is_it) else {
                continue;
            };
            let mut areas = system
                .guests
                .get(owner)
                .map_or(&[][..], |guest| &guest.areas)
                .iter();
            let area = areas.find(
                |area| matches!(area.kind, AreaKind::Channel(own) | AreaKind::Lent(own) if own == number),
            );
            let guest = area.map_or(0, |area| area.window.base);
            let place = SidePlace {
                channel: number,
                partition: owner,
                guest,
            };
            builder.sides.push(side_record(side, place, lent));
        }
    }
    Ok(())
}

/// Returns the record of a channel whose first side has this number.
fn channel_record(channel: &ChannelSpec, host: u64, first: usize) -> Result<ChannelRecord, NameError> {
    Ok(ChannelRecord {
        name: Name::new(&channel.name.value)?,
        host: host.into(),
        size: channel.size.as_ref().map_or(0, |size| size.value.get()).into(),
        first_side: (first as u32).into(),
        side_count: (channel.sides.len() as u32).into(),
    })
}

/// The numbers and the address in the record of a side.
struct SidePlace {
    channel: usize,
    partition: usize,
    /// The address at which the partition sees the memory.
    guest: u64,
}

/// Returns the record of a side.
fn side_record(side: &SideSpec, place: SidePlace, device: Option<&Device>) -> SideRecord {
    let line = device.and_then(|device| device.interrupts.first());
    let bits = [
        (device.is_some(), SIDE_DEVICE),
        (line.is_some_and(|line| line.trigger == Trigger::Edge), SIDE_EDGE),
        (side.access.write, SIDE_WRITES),
        (*side.pci, SIDE_FUNCTION),
        (*side.held, SIDE_HELD),
    ];
    let set = bits.iter().filter(|(set, _)| *set);
    let flags = set.fold(0, |flags, (_, bit)| flags | bit);
    SideRecord {
        channel: (place.channel as u32).into(),
        partition: (place.partition as u32).into(),
        guest: place.guest.into(),
        virtual_line: side
            .interrupt
            .as_ref()
            .map_or(NONE, |line| line.value.get())
            .into(),
        event: side.event.as_ref().map_or(NONE, |event| event.value.get()).into(),
        flags: flags.into(),
        line: line.map_or(0, |line| line.line.get().saturating_add(1)).into(),
    }
}

/// Returns the records of all windows.
fn served_records(manifest: &Manifest) -> Vec<ServedRecord> {
    let find = |name: &Option<Placed<String>>| {
        let mut partitions = manifest.partitions.iter();
        let name = name.as_ref()?;
        partitions.position(|partition| partition.name.value == name.value)
    };
    let record = |(number, service, client): (usize, &ServiceSpec, &ClientSpec)| {
        let (server, owner) = (find(&service.partition)?, find(&client.partition)?);
        let spec = &manifest.partitions[owner];
        let served = spec
            .machine
            .served
            .iter()
            .find(|served| served.number == number)?;
        let bits = [
            (client.access.write, SERVED_WRITES),
            (*service.late == Late::Fault, SERVED_FAULTS),
        ];
        let set = bits.iter().filter(|(set, _)| *set);
        Some(ServedRecord {
            client: (owner as u32).into(),
            server: (server as u32).into(),
            guest: served.window.base.into(),
            size: served.window.size.into(),
            grant: spec.machine.ram_base.get().into(),
            grant_size: spec.memory.as_ref()?.value.get().into(),
            timeout_ns: service.timeout.get().into(),
            virtual_line: served.line.into(),
            event: service.event.get().into(),
            flags: set.fold(SERVED_VIRTIO, |flags, (_, bit)| flags | bit).into(),
            reserved: 0.into(),
        })
    };
    all(manifest).filter_map(record).collect()
}
