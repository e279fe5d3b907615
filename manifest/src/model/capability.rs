// SPDX-License-Identifier: Apache-2.0
//! The capabilities that a partition holds from the start.

use bulkhead_abi::hypercall::{SELF_CAPABILITY, SELF_NAME};
use bulkhead_abi::{ObjectKind, Rights};
use bulkhead_image::layout::{SECRET_OF_DEVICE, SECRET_OF_PROGRAM, SECRET_OF_SYSTEM};

use super::partition::SecretBound;
use super::{Manifest, PartitionSpec, Target, port, side};

/// A capability that a partition holds from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// The index in the partition's space.
    pub index: u32,
    /// The name by which the partition knows the capability.
    pub name: String,
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The number of the partition that the object belongs to, of the pCPU of schedules, or of the port; 0
    /// for the timer.
    pub object: usize,
    /// The operations that the holder may carry out.
    pub rights: Rights,
    /// Of a capability for a port: the messages of the holder for which the port keeps room.
    pub room: u32,
    /// Of a capability for a secret: what it follows from, as the image has it.
    pub bound: u32,
    /// Of a capability for a port: the event that a message which has to wait raises at the holder's gate.
    pub event: Option<u32>,
}

/// Returns the capabilities of a partition: its own first, then the capabilities of the manifest.
pub(crate) fn capabilities(number: usize, spec: &PartitionSpec, manifest: &Manifest) -> Vec<Capability> {
    let find = |name: &str| {
        manifest
            .partitions
            .iter()
            .position(|partition| partition.name.value == name)
    };
    let itself = Capability {
        index: SELF_CAPABILITY,
        name: SELF_NAME.to_owned(),
        kind: ObjectKind::Partition,
        object: number,
        rights: Rights::ALL,
        room: 0,
        bound: 0,
        event: None,
    };
    let named = spec
        .capabilities
        .iter()
        .zip(SELF_CAPABILITY + 1..)
        .filter_map(|(capability, index)| {
            let (kind, object, default) = match capability.target()? {
                Target::Partition(name) => (ObjectKind::Partition, find(&name.value)?, Rights::READ),
                Target::EventGate(name) => (ObjectKind::EventGate, find(&name.value)?, Rights::READ),
                Target::Timer => (ObjectKind::Timer, 0, Rights::READ),
                Target::Schedule(pcpu) => (ObjectKind::Schedule, pcpu.value as usize, Rights::READ),
                Target::Port(name) => (
                    ObjectKind::Port,
                    port::number(manifest, &name.value)?,
                    Rights::READ,
                ),
                Target::Lock(name) => (
                    ObjectKind::Lock,
                    port::lock_number(manifest, &name.value)?,
                    Rights::WRITE,
                ),
                Target::Channel(name) => (
                    ObjectKind::Channel,
                    side::number(manifest, &name.value)?,
                    Rights::READ.union(Rights::WRITE),
                ),
                Target::Device(name) => (
                    ObjectKind::Device,
                    side::number(manifest, &name.value)?,
                    Rights::READ.union(Rights::WRITE),
                ),
                Target::Interrupt(name) => (
                    ObjectKind::Interrupt,
                    side::number(manifest, &name.value)?,
                    Rights::READ,
                ),
                Target::Console => (ObjectKind::Console, number, Rights::READ.union(Rights::WRITE)),
                Target::Service => (ObjectKind::Service, number, Rights::READ.union(Rights::WRITE)),
                Target::Secret => (ObjectKind::Secret, number, Rights::READ),
            };
            let rights = capability.rights.as_ref().map_or(default, |rights| {
                rights
                    .value
                    .iter()
                    .fold(Rights::NONE, |all, right| all.union(right.value))
            });
            Some(Capability {
                index,
                name: capability.name.value.clone(),
                kind,
                object,
                rights,
                room: port::room(manifest, spec, capability),
                bound: capability.secret.as_ref().map_or(0, |bound| match bound.value {
                    SecretBound::Device => SECRET_OF_DEVICE,
                    SecretBound::Program => SECRET_OF_PROGRAM,
                    SecretBound::System => SECRET_OF_SYSTEM,
                }),
                event: capability.event.as_ref().map(|event| event.value.get()),
            })
        });
    std::iter::once(itself).chain(named).collect()
}
