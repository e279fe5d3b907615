// SPDX-License-Identifier: Apache-2.0
//! The records of a class that executes code in place: its controllers, the code memory of partitions, the
//! instructions replaced in it.

use bulkhead_image::layout::{
    CONTROLLER_CMSDK_TIMER, CONTROLLER_CMSDK_UART, CONTROLLER_NVIC, ControllerRecord, Name, ROLE_CONSOLE,
    ROLE_INTERRUPTS, ROLE_TIMER, ResidentRecord, SiteRecord,
};
use bulkhead_image::{ImageBuilder, NameError, Portable, Sha256};

use super::controller_record;
use crate::board::Board;
use crate::guest::Guest;
use crate::payload::blob_name;
use crate::system::System;

/// What the hypervisor drives.
pub(super) fn controllers(board: &Board) -> Vec<ControllerRecord> {
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
            CONTROLLER_CMSDK_TIMER,
            &[timer.registers, timer.counter],
            &[timer.line],
            timer.clock_hz,
        ),
    ];
    console.chain(others).collect()
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

/// The replaced instructions of all partitions.
pub(super) fn sites(system: &System) -> Vec<SiteRecord> {
    let mut sites: Vec<u32> = system
        .guests
        .iter()
        .flat_map(|guest| guest.sites.iter().copied())
        .collect();
    sites.sort_unstable();
    let record = |address: u32| SiteRecord {
        address: address.into(),
    };
    sites.into_iter().map(record).collect()
}
