// SPDX-License-Identifier: Apache-2.0
//! The waits of partitions for which the analysis has no term. A verdict about their deadlines is about their
//! own computing, and says so.

use bulkhead_abi::{ObjectKind, Rights};

use crate::system::{Partition, System};

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

/// Returns the waits of all partitions that declare work. A wait counts if the partition has the means for
/// it: the tool does not know what a program does.
#[must_use]
pub fn unproved(system: &System) -> Vec<Unproved> {
    let prints = system
        .partitions()
        .iter()
        .filter(|partition| prints(partition))
        .count();
    let all = system.partitions().into_iter().enumerate();
    let declaring = all.filter(|(_, partition)| partition.spec.demand.is_some());
    let waits = declaring.flat_map(|(number, partition)| {
        let all = waits(&partition, prints).into_iter();
        let name = partition.name().to_owned();
        all.map(move |wait| Unproved {
            partition: number,
            name: name.clone(),
            wait,
        })
    });
    waits.collect()
}

/// Tells whether the partition can print to the console that all share.
fn prints(partition: &Partition<'_>) -> bool {
    let has_capability = |capability: &crate::system::Capability| capability.kind == ObjectKind::Console;
    partition.console() || partition.capabilities().iter().any(has_capability)
}

fn waits(partition: &Partition<'_>, printing: usize) -> Vec<String> {
    let mut waits = Vec::new();
    for capability in partition.capabilities() {
        let may = |right| capability.rights.contains(right);
        match capability.kind {
            ObjectKind::Port if may(Rights::WRITE) => {
                waits.push(format!("an answer to a call by `{}`", capability.name));
            }
            ObjectKind::Lock => waits.push(format!("the lock `{}`", capability.name)),
            _ => {}
        }
    }
    for served in &partition.spec.machine.served {
        waits.push(format!("the server of `{}`", served.service));
    }
    if printing > 1 && prints(partition) {
        waits.push("room in the console, which others share".to_owned());
    }
    waits
}
