// SPDX-License-Identifier: Apache-2.0
//! The networks of a manifest: their numbers, their interfaces, and the connection with the outside.

use super::{Manifest, PartitionSpec, Placed};
use crate::board::{Board, Device};
use crate::driver::{Controller, Driver, Role};
use crate::units::Duration;

/// A partition's interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface<'a> {
    pub network: &'a Placed<String>,
    pub address: [u8; 6],
}

/// Returns the Ethernet controller of a board that the class has a driver for. VMs find the same controller.
pub(crate) fn controller(board: &Board) -> Option<&Device> {
    driven(board).map(|(device, _)| device)
}

fn driven(board: &Board) -> Option<(&Device, &'static Driver)> {
    let mut drivers = board
        .drivers
        .iter()
        .copied()
        .filter(|driver| driver.role == Role::Network);
    drivers.find_map(|driver| {
        let is_it = |device: &&Device| device.compatible.iter().any(|name| name == driver.compatible);
        Some((board.devices.iter().find(is_it)?, driver))
    })
}

/// Returns the controller that the hypervisor drives as the uplink.
pub(crate) fn uplink_controller(manifest: &Manifest, board: &Board) -> Option<Controller> {
    let device = uplink(manifest, board)?;
    let (_, driver) = driven(board).filter(|(driven, _)| driven.name == device.name)?;
    Some(Controller {
        driver,
        windows: device.registers.clone(),
        guarded: None,
        lines: device
            .interrupts
            .iter()
            .map(|interrupt| interrupt.line.get())
            .collect(),
        clock_hz: 0,
    })
}

/// Returns the interface of partition `number`, if it has one.
pub(crate) fn interface(number: usize, partition: &PartitionSpec) -> Option<Interface<'_>> {
    let network = partition.network.as_ref()?;
    let given = partition.mac.as_ref().and_then(|mac| parse(&mac.value));
    // A locally administered address (IEEE 802, 8.2.2).
    let own = [2, b'b', b'u', b'l', b'k', number as u8];
    Some(Interface {
        network,
        address: given.unwrap_or(own),
    })
}

/// Returns the number of a network in the system image. The network with an uplink has number 0.
pub(crate) fn number(manifest: &Manifest, name: &str) -> Option<u32> {
    let network = manifest
        .networks
        .iter()
        .find(|network| network.name.value == name)?;
    if network.uplink.is_some() {
        return Some(0);
    }
    let mut inner = manifest
        .networks
        .iter()
        .filter(|network| network.uplink.is_none());
    let position = inner.position(|network| network.name.value == name)?;
    u32::try_from(position.checked_add(1)?).ok()
}

/// Returns the device that the hypervisor drives for a network.
pub(crate) fn uplink<'b>(manifest: &Manifest, board: &'b Board) -> Option<&'b Device> {
    let mut uplinks = manifest
        .networks
        .iter()
        .filter_map(|network| network.uplink.as_ref());
    board.device(&uplinks.next()?.value)
}

/// Returns budget and period of the network with an uplink in microseconds, and zeros if there is no uplink.
pub(crate) fn intake(manifest: &Manifest) -> (u32, u32) {
    let Some(network) = manifest.networks.iter().find(|network| network.uplink.is_some()) else {
        return (0, 0);
    };
    let microseconds = |given: &Duration| u32::try_from(given.get() / 1000).unwrap_or(u32::MAX);
    (microseconds(&network.budget), microseconds(&network.period))
}

/// Writes an address as in a manifest.
pub(crate) fn format(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

/// Reads an address of a manifest.
pub(crate) fn parse(text: &str) -> Option<[u8; 6]> {
    let digits = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bytes: Vec<u8> = text
        .split(':')
        .map(|part| u8::from_str_radix(part, 16).ok().filter(|_| digits(part)))
        .collect::<Option<_>>()?;
    bytes.try_into().ok()
}
