// SPDX-License-Identifier: Apache-2.0
//! The waits of partitions for which the analysis has no term. A verdict about their deadlines is about their
//! own computing, and says so.

use bulkhead_abi::{ObjectKind, Rights};

use super::waits;
use crate::system::{Capability, Partition, System};

/// A wait that no term of the analysis covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unproved {
    /// The number of the partition that declares work and may wait.
    pub partition: usize,
    /// The name of the partition.
    pub name: String,
    /// The wait, as the end of "not proved: how long NAME waits for".
    pub wait: String,
}

/// Returns the waits of all partitions that declare work. A wait counts if the partition has the means for it
/// and no task declares it: the tool does not know what a program does.
#[must_use]
pub fn unproved(system: &System) -> Vec<Unproved> {
    let all = system.partitions().into_iter().enumerate();
    let declaring = all.filter(|(_, partition)| partition.spec.demand.is_some());
    let waits = declaring.flat_map(|(number, partition)| {
        let at_capabilities = partition.capabilities().into_iter().filter_map(|capability| {
            let wait = wait_at(&capability)?;
            waits::not_proved(system, &partition, &capability, &wait)
        });
        let all: Vec<_> = at_capabilities.chain(other_waits(system, &partition)).collect();
        let name = partition.name().to_owned();
        all.into_iter().map(move |wait| Unproved {
            partition: number,
            name: name.clone(),
            wait,
        })
    });
    waits.collect()
}

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
fn is_for_news(capability: &Capability) -> bool {
    capability.kind == ObjectKind::EventGate
        || capability.kind == ObjectKind::Port && !capability.rights.contains(Rights::WRITE)
}

/// Returns the wait that a capability is the means for.
fn wait_at(capability: &Capability) -> Option<String> {
    let may = |right| capability.rights.contains(right);
    let name = &capability.name;
    match capability.kind {
        ObjectKind::Port if may(Rights::WRITE) => Some(format!("an answer to a call by `{name}`")),
        ObjectKind::Port if may(Rights::READ) => Some(format!("a message at `{name}`")),
        ObjectKind::EventGate if may(Rights::READ) => Some(format!("an event at `{name}`")),
        ObjectKind::Lock => Some(format!("the lock `{name}`")),
        _ => None,
    }
}

/// Returns the waits of a partition that no capability is the means for, and no task can declare.
fn other_waits(system: &System, partition: &Partition<'_>) -> Vec<String> {
    let served = partition.spec.machine.served.iter();
    let mut waits: Vec<_> = served
        .map(|served| format!("the server of `{}`", served.service))
        .collect();
    let printing = system.partitions();
    let printing = printing.iter().filter(|partition| prints(partition)).count();
    if printing > 1 && prints(partition) {
        waits.push("room in the console, which others share".to_owned());
    }
    waits
}
