// SPDX-License-Identifier: Apache-2.0
//! The clients of services: the device that each finds, and the window that its server answers.

use super::{ClientSpec, Manifest, Placed, ServiceSpec};
use crate::diagnostic::Place;
use crate::window::Window;

/// A device that another partition serves to a VM.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    /// Number of the window in the system image.
    pub number: usize,
    /// The name of the service.
    pub service: String,
    /// The registers.
    pub window: Window,
    /// The interrupt line.
    pub line: u32,
    /// The table of the client.
    pub place: Place,
}

/// A window, as its server knows it.
#[derive(Clone, Copy)]
pub(crate) struct ServedWindow<'a> {
    /// Number of the window in the system image.
    pub number: usize,
    pub service: &'a ServiceSpec,
    pub spec: &'a ClientSpec,
    /// The name of the client.
    pub client: &'a str,
    /// The windows of the service to which the client may send frames, as a bitmap.
    pub reaches: u32,
}

/// Returns all clients with their services. The place in the list is the number of the window.
pub(crate) fn all(manifest: &Manifest) -> impl Iterator<Item = (usize, &ServiceSpec, &ClientSpec)> {
    let clients = |service| std::iter::repeat(service).zip(clients_of(service));
    let all = manifest.services.iter().flat_map(clients);
    all.enumerate()
        .map(|(number, (service, client))| (number, service, client))
}

/// Tells whether a key names this partition.
pub(crate) fn names(name: Option<&Placed<String>>, partition: &str) -> bool {
    name.is_some_and(|name| name.value == partition)
}

/// Returns the windows that a partition serves.
pub(crate) fn windows_of<'a>(manifest: &'a Manifest, partition: &str) -> Vec<ServedWindow<'a>> {
    let own = all(manifest).filter(|(_, service, _)| names(service.partition.as_ref(), partition));
    own.map(|(number, service, spec)| ServedWindow {
        number,
        service,
        spec,
        client: spec.partition.as_ref().map_or("", |name| &name.value),
        reaches: reaches(manifest, service, spec),
    })
    .collect()
}

fn reaches(manifest: &Manifest, service: &ServiceSpec, spec: &ClientSpec) -> u32 {
    let others = all(manifest).filter(|(_, other, client)| {
        let may = spec.reaches.as_ref().is_none_or(|list| {
            let mut list = list.iter();
            list.any(|name| names(client.partition.as_ref(), &name.value))
        });
        other.name.value == service.name.value && client.start != spec.start && may
    });
    others.fold(0, |bits, (number, ..)| {
        bits | 1_u32.checked_shl(number as u32).unwrap_or(0)
    })
}

fn clients_of(service: &ServiceSpec) -> &[ClientSpec] {
    &service.clients
}
