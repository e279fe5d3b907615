// SPDX-License-Identifier: Apache-2.0
//! The waits of partitions for which the analysis has no term. A verdict about their deadlines is about their
//! own computing, and says so.

use super::means::{granted_waits, other_waits, wait_at};
use super::waits;
use crate::system::System;

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
        let granted = granted_waits(system, &partition);
        let all: Vec<_> = at_capabilities
            .chain(other_waits(system, &partition))
            .chain(granted)
            .collect();
        let name = partition.name().to_owned();
        all.into_iter().map(move |wait| Unproved {
            partition: number,
            name: name.clone(),
            wait,
        })
    });
    waits.collect()
}
