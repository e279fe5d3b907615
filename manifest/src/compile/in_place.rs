// SPDX-License-Identifier: Apache-2.0
//! The records of a class that executes code in place: its controllers, the code memory of partitions, the
//! instructions replaced in it.

use bulkhead_image::layout::{
    CONTROLLER_CMSDK_UART, CONTROLLER_DUAL_TIMER, CONTROLLER_LAN9118, CONTROLLER_NVIC, ControllerRecord,
    LookalikeRecord, NONE, Name, NicRecord, ROLE_CONSOLE, ROLE_INTERRUPTS, ROLE_NETWORK, ROLE_TIMER,
    ResidentRecord, VIRTUAL_LAN9118, VirtualDeviceRecord,
};
use bulkhead_image::{ImageBuilder, NameError, Portable, Sha256};

use super::controller_record;
use crate::board::Board;
use crate::guest::Guest;
use crate::model::Manifest;
use crate::payload::blob_name;
use crate::rules::networks;
use crate::system::System;

/// What the hypervisor drives.
pub(super) fn controllers(manifest: &Manifest, board: &Board) -> Vec<ControllerRecord> {
    let timer = &board.timer;
    let console = board.console.iter().map(|console| {
        controller_record(
            ROLE_CONSOLE,
            CONTROLLER_CMSDK_UART,
            &[console.registers],
            &[console.line, console.line + 1],
            console.clock_hz,
        )
    });
    let others = [
        controller_record(ROLE_INTERRUPTS, CONTROLLER_NVIC, &[], &[], 0),
        controller_record(
            ROLE_TIMER,
            CONTROLLER_DUAL_TIMER,
            &[timer.registers, timer.counter],
            &[timer.line],
            timer.clock_hz,
        ),
    ];
    let uplink = networks::uplink(manifest, board).map(|device| {
        let lines: Vec<u32> = device.interrupts.iter().map(|interrupt| interrupt.line).collect();
        controller_record(ROLE_NETWORK, CONTROLLER_LAN9118, &device.registers, &lines, 0)
    });
    console.chain(others).chain(uplink).collect()
}

/// The interface of a partition to its network: a virtual controller where the board has its own, and what the switch
/// knows of it.
pub(super) fn interface(system: &System, number: u32, builder: &mut ImageBuilder) {
    let spec = &system.manifest.partitions[number as usize];
    let Some(interface) = networks::interface(number as usize, spec) else {
        return;
    };
    let network = networks::number(&system.manifest, &interface.network.value);
    let (Some(network), Some(device)) = (network, networks::controller(&system.board)) else {
        return;
    };
    let window = device.registers.first().copied().unwrap_or_default();
    let line = device.interrupts.first().map_or(NONE, |interrupt| interrupt.line);
    builder.virtual_devices.push(VirtualDeviceRecord {
        partition: number.into(),
        kind: VIRTUAL_LAN9118.into(),
        base: [window.base.into(), 0.into()],
        size: [window.size.into(), 0.into()],
        virtual_line: line.into(),
        reserved: 0.into(),
    });
    let [a, b, c, d, e, f] = interface.address;
    let mut frames = system.plan.frames.iter();
    let memory = frames
        .find(|(owner, _)| *owner == number as usize)
        .map_or(0, |(_, base)| *base);
    builder.nics.push(NicRecord {
        partition: number.into(),
        network: network.into(),
        address: [a, b, c, d, e, f, 0, 0],
        memory: memory.into(),
    });
}

/// The code memory of a partition.
pub(super) fn residents(
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

/// What looks like a replaced instruction in the programs of all partitions.
pub(super) fn lookalikes(system: &System) -> Vec<LookalikeRecord> {
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
