// SPDX-License-Identifier: Apache-2.0
//! The devices of a partition, as the board has them.

use super::{Kind, PartitionSpec, Placed};
use crate::board::{Board, Device};
use crate::window::Window;

/// Returns the devices of a partition that exist on the board.
pub(crate) fn owned<'a>(
    partition: &'a PartitionSpec,
    board: &'a Board,
) -> impl Iterator<Item = (&'a Placed<String>, &'a Device)> {
    partition
        .devices
        .iter()
        .filter_map(|name| Some((name, board.device(&name.value)?)))
}

/// Tells whether a device of the partition does DMA that nothing confines, so that the addresses the guest
/// gives it must be bus addresses.
pub(crate) fn does_trusted_dma(partition: &PartitionSpec, board: &Board) -> bool {
    !board.iommu && partition.trusted_dma && owned(partition, board).any(|(_, device)| device.dma)
}

/// Tells whether the RAM of a partition must be at its bus addresses, and the manifest leaves open which
/// these are. Where nothing is translated there are no other addresses.
pub(crate) fn chooses_ram_base(partition: &PartitionSpec, board: &Board) -> bool {
    let translates = board.class.facts().translates;
    translates && partition.machine.ram_base.key.is_none() && needs_identity(partition, board)
}

/// Tells whether the partition sees its memory at the bus addresses. A task asks for these addresses instead.
pub(crate) fn needs_identity(partition: &PartitionSpec, board: &Board) -> bool {
    partition.kind == Kind::Vm && does_trusted_dma(partition, board)
}

/// A window of registers of a partition's device.
pub(crate) struct Registers<'a> {
    pub name: &'a Placed<String>,
    pub device: &'a Device,
    pub window: Window,
    /// Others have registers in the same page: it is not mapped, and the hypervisor carries out each access.
    pub forwarded: bool,
}

/// Returns the registers of a partition's devices.
pub(crate) fn registers<'a>(
    partition: &'a PartitionSpec,
    board: &'a Board,
) -> impl Iterator<Item = Registers<'a>> {
    let is_own = |name: &str| partition.devices.iter().any(|own| own.value == name);
    let shared = move |window: Window| {
        board.devices.iter().any(|other| {
            let here = |theirs: &Window| theirs.pages().overlaps(window.pages());
            !is_own(&other.name) && other.registers.iter().any(here)
        })
    };
    owned(partition, board).flat_map(move |(name, device)| {
        device.registers.iter().map(move |window| Registers {
            name,
            device,
            window: *window,
            forwarded: shared(*window),
        })
    })
}
