// SPDX-License-Identifier: Apache-2.0
//! The bounds that the analysis gives for a system, by partition. They are the column "done within" of
//! `check`, for a comparison with a run.

use bulkhead_manifest::{System, timing};
use std::collections::BTreeMap;

/// Returns the bounds of each partition's declared tasks, in nanoseconds. A task is done at the latest this
/// long after its release. A bound is `None` if the task is not shown to be in time.
#[must_use]
pub fn bounds(system: &System) -> BTreeMap<String, Vec<Option<u64>>> {
    let mut bounds: BTreeMap<String, Vec<Option<u64>>> = BTreeMap::new();
    for pcpu in timing::pcpus(system) {
        for verdict in pcpu.verdicts() {
            let vcpu = pcpu.vcpus.get(verdict.slot);
            if let Some(partition) = vcpu.and_then(|vcpu| system.partition(vcpu.partition)) {
                let name = partition.name().to_owned();
                bounds.entry(name).or_default().push(verdict.bound.ok());
            }
        }
    }
    bounds
}
