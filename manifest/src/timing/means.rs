// SPDX-License-Identifier: Apache-2.0
//! The waits that a partition has the means for. Its program may make use of none.

use bulkhead_abi::{ObjectKind, Rights};

use crate::model::capability::Capability;
use crate::system::{Partition, System};

/// Returns the waits for others that a partition has the means for, other than for messages and events.
pub(super) fn own_waits(system: &System, partition: &Partition<'_>) -> Vec<String> {
    let capabilities = partition.capabilities().into_iter();
    let at_capabilities = capabilities.filter(|capability| !is_for_news(capability));
    let at_capabilities = at_capabilities.filter_map(|capability| wait_at(&capability));
    at_capabilities.chain(other_waits(system, partition)).collect()
}

/// Tells whether the partition can print to the console that all share.
fn prints(partition: &Partition<'_>) -> bool {
    let has_capability = |capability: &Capability| capability.kind == ObjectKind::Console;
    partition.console() || partition.capabilities().iter().any(has_capability)
}

/// Tells whether the wait at a capability is one for a message or an event.
pub(super) fn is_for_news(capability: &Capability) -> bool {
    capability.kind == ObjectKind::EventGate
        || capability.kind == ObjectKind::Port && !capability.rights.contains(Rights::WRITE)
}

/// Returns the wait that a capability is the means for.
pub(super) fn wait_at(capability: &Capability) -> Option<String> {
    wait_by(capability.kind, capability.rights, &capability.name)
}

/// Returns the wait that rights to an object of this kind are the means for. `name` is the capability's, or
/// the object's.
fn wait_by(kind: ObjectKind, rights: Rights, name: &str) -> Option<String> {
    match kind {
        ObjectKind::Port if rights.contains(Rights::WRITE) => {
            Some(format!("an answer to a call by `{name}`"))
        }
        ObjectKind::Port if rights.contains(Rights::READ) => Some(format!("a message at `{name}`")),
        ObjectKind::EventGate if rights.contains(Rights::READ) => Some(format!("an event at `{name}`")),
        ObjectKind::Lock => Some(format!("the lock `{name}`")),
        _ => None,
    }
}

/// Returns the waits that a partition could come to have the means for by grants.
pub(super) fn granted_waits(system: &System, partition: &Partition<'_>) -> Vec<String> {
    let gains = system.gains();
    let gains = gains.get(partition.number).into_iter().flatten();
    let waits = gains.filter_map(|gain| {
        let kind = gain.kind()?;
        let wait = wait_by(kind, gain.rights(), &system.plain_name(kind, gain.object))?;
        Some(format!("{wait}, if others grant it the right"))
    });
    waits.collect()
}

/// Returns the waits of a partition for the servers of its devices.
pub(super) fn served_waits<'p>(partition: &'p Partition<'_>) -> impl Iterator<Item = String> + use<'p> {
    let served = partition.spec.machine.served.iter();
    served.map(|served| format!("the server of `{}`", served.service))
}

/// Returns the waits of a partition that no capability is the means for, and no task can declare.
pub(super) fn other_waits(system: &System, partition: &Partition<'_>) -> Vec<String> {
    let mut waits: Vec<_> = served_waits(partition).collect();
    let printing = system.partitions();
    let printing = printing.iter().filter(|partition| prints(partition)).count();
    if printing > 1 && prints(partition) {
        waits.push("room in the console, which others share".to_owned());
    }
    waits
}
