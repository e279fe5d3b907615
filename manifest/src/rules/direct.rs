// SPDX-License-Identifier: Apache-2.0
//! Partitions that take the interrupts of their pCPU themselves.

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{Clock, Kind, Manifest, PartitionSpec, Policy};

/// Checks a partition that has `direct = true`. The hypervisor has no timer on its pCPU, and no other vCPU
/// may run there.
pub(super) fn check(partition: &PartitionSpec, manifest: &Manifest, board: &Board, report: &mut Report) {
    let Some(place) = partition.direct.key.filter(|_| partition.direct.value) else {
        return;
    };
    let name = &partition.name.value;
    let mut refuse = |message: String, help: &str| {
        report.push(Diagnostic::at(Code::BadDirect, place, message).help(help));
    };
    if !board.class.facts().direct {
        let message = format!("no partition of class `{}` can be `direct`", board.class.name());
        return refuse(message, "remove `direct`, or choose a board of another class");
    }
    if partition.kind != Kind::Vm {
        refuse(
            format!("task `{name}` is `direct`"),
            "only a VM has interrupts of its own",
        );
    }
    let [vcpu] = &partition.vcpus.value[..] else {
        return refuse(
            format!(
                "`{name}` is `direct` and has {} vCPUs",
                partition.vcpus.value.len()
            ),
            "give it one vCPU",
        );
    };
    if partition.watchdog.is_some() {
        refuse(
            format!("`{name}` is `direct` and has a watchdog"),
            "remove `watchdog`: the hypervisor has no timer on that pCPU",
        );
    }
    if partition.time.value == Clock::Frozen {
        refuse(
            format!("`{name}` is `direct` and its time is frozen"),
            "remove `time`: nobody else runs on its pCPU",
        );
    }
    let Some(pcpu) = vcpu.pcpu.as_ref().map(|pcpu| pcpu.value) else {
        return;
    };
    if pcpu == 0 {
        return refuse(
            format!("`{name}` is `direct` on pCPU 0"),
            "choose another pCPU: pCPU 0 has the board's console and the time limit of runs",
        );
    }
    let of_pcpu = manifest
        .pcpus
        .iter()
        .find(|spec| spec.name.value == pcpu.to_string());
    if of_pcpu.is_none_or(|spec| **spec.policy != Policy::Pinned) {
        refuse(
            format!("`{name}` is `direct` on pCPU {pcpu}, whose policy is not `pinned`"),
            "add policy = \"pinned\" to the pCPU's table",
        );
    }
    if let Some(other) = other_direct(partition, manifest) {
        let message = format!("`{name}` is `direct`, and so is an earlier partition");
        let diagnostic = Diagnostic::at(Code::BadDirect, place, message)
            .also(other, "the earlier one")
            .help("the board has one interval timer whose interrupts need no exit");
        report.push(diagnostic);
    }
}

/// Returns where an earlier partition is `direct`.
fn other_direct(partition: &PartitionSpec, manifest: &Manifest) -> Option<Place> {
    let mut earlier = manifest
        .partitions
        .iter()
        .take_while(|other| other.name.place != partition.name.place);
    earlier
        .find(|other| other.direct.value)
        .and_then(|other| other.direct.key)
}
