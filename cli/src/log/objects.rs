// SPDX-License-Identifier: Apache-2.0
//! The objects of a system. All of them are made at boot from the system image, and a run never makes another
//! one.
//!
//! So the objects of a manifest can be counted before the run ([`counts`]). The hypervisor notes the objects
//! that it has made in its log area. They must be the same ([`difference`]): the partitions by their names,
//! and each vCPU on its pCPU.

use crate::log::log_area::LogArea;
use bulkhead_manifest::System;

/// Returns the number of objects of each kind that the manifest makes.
#[must_use]
pub fn counts(system: &System) -> Vec<(&'static str, usize)> {
    let (partitions, pcpus) = (system.partitions(), system.pcpus());
    let schedules = || pcpus.iter().flat_map(|pcpu| &pcpu.schedules);
    vec![
        ("pCPUs", pcpus.len()),
        ("partitions", partitions.len()),
        (
            "vCPUs",
            partitions.iter().map(|partition| partition.vcpus().len()).sum(),
        ),
        (
            "capabilities",
            partitions
                .iter()
                .map(|partition| partition.capabilities().len())
                .sum(),
        ),
        ("schedules", schedules().count()),
        (
            "windows",
            schedules().map(|schedule| schedule.windows.len()).sum(),
        ),
        ("time domains", pcpus.iter().map(|pcpu| pcpu.domains.len()).sum()),
    ]
}

/// The names of the partitions, and for each vCPU its partition, its index there, and its pCPU.
type Tables = (Vec<String>, Vec<[u8; 3]>);

/// Returns the tables that the log area should hold.
fn built(system: &System) -> Tables {
    let partitions = system.partitions();
    let names = partitions
        .iter()
        .map(|partition| partition.name().to_owned())
        .collect();
    let numbered = (0_u8..).zip(partitions);
    let vcpus = numbered.flat_map(|(number, partition)| {
        let of = (0_u8..).zip(partition.vcpus());
        of.map(move |(index, vcpu)| [number, index, u8::try_from(vcpu.pcpu).unwrap_or(u8::MAX)])
    });
    (names, vcpus.collect())
}

/// Describes the first difference of the board from the manifest. Returns `None` if there is no difference,
/// or if there is nothing to compare: a board that `was_up` (a partition of it did something) has objects,
/// and any other one may have stopped before it made any.
#[must_use]
pub fn difference(system: &System, area: &LogArea<'_>, was_up: bool) -> Option<String> {
    differ(&built(system), &area.tables(), was_up)
}

fn differ((names, vcpus): &Tables, (found_names, found_vcpus): &Tables, was_up: bool) -> Option<String> {
    let nothing = found_names.is_empty() && found_vcpus.is_empty();
    if (nothing && !was_up) || (names == found_names && vcpus == found_vcpus) {
        return None;
    }
    Some(format!(
        "the board has other objects than the manifest: partitions {found_names:?} with vCPUs (partition, index, pCPU) {found_vcpus:?}, \
         not {names:?} with {vcpus:?}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(names: &[&str], vcpus: &[[u8; 3]]) -> Tables {
        (
            names.iter().map(|name| (*name).to_owned()).collect(),
            vcpus.to_vec(),
        )
    }

    #[test]
    fn any_other_object_is_a_difference() {
        let built = tables(&["a", "b"], &[[0, 0, 0], [0, 1, 1], [1, 0, 0]]);
        assert_eq!(differ(&built, &built, true), None);
        let nothing = tables(&[], &[]);
        assert_eq!(differ(&built, &nothing, false), None, "it did not get that far");
        let others = [
            nothing,
            tables(&["a"], &built.1),
            tables(&["a", "c"], &built.1),
            tables(&["a", "b"], &built.1[..2]),
            tables(&["a", "b"], &[[0, 0, 0], [0, 1, 0], [1, 0, 0]]),
        ];
        for other in others {
            let text = differ(&built, &other, true).unwrap();
            assert!(
                text.contains("the board has other objects than the manifest"),
                "{text}"
            );
        }
    }
}
