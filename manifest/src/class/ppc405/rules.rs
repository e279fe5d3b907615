// SPDX-License-Identifier: Apache-2.0
//! The rules for boards of class `ppc405`: one CPU, RAM where the class binary is linked, VMs with one vCPU.

use super::super::Refuse;
use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{Manifest, PartitionSpec};
use crate::window::Window;

/// Keys of a partition that have no meaning on such a board, with the reason.
const FOREIGN: [(&str, &str); 4] = [
    ("init", "`@debian/initramfs` has no programs for this CPU"),
    ("modules", "the kernel for this CPU has no modules"),
    (
        "trusted-dma",
        "no device of these boards accesses memory by itself",
    ),
    (
        "device-tree-overlay",
        "the device tree has no labels that an overlay could name",
    ),
];

/// Refuses facts that no board of the class can have. `log` is directly below the class binary.
pub(super) fn check_board(board: &Board, log: Window, refuse: &mut Refuse<'_>) {
    if board.cpus.len() > 1 {
        refuse(
            "cpus",
            "a board of class `ppc405` has one CPU".to_owned(),
            "list one CPU",
        );
    }
    if !board.ram.iter().any(|ram| ram.contains(log)) {
        refuse(
            "ram",
            format!(
                "the class binary of `ppc405` is linked for RAM from {:#x} on",
                log.base
            ),
            "a board without RAM there needs a class binary that is linked for another place",
        );
    }
}

pub(super) fn check(manifest: &Manifest, report: &mut Report) {
    for partition in &manifest.partitions {
        for (key, why) in FOREIGN {
            if let Some(found) = partition.keys.iter().find(|found| found.value == key) {
                report.push(foreign(&format!("`{key}`"), why, found.place));
            }
        }
        if let Some(place) = partition.machine.gic.key {
            let why = "every VM has the interrupt controller of the CPU";
            report.push(foreign("`machine.gic`", why, place));
        }
        one_vcpu(partition, report);
    }
}

fn foreign(what: &str, why: &str, place: Place) -> Diagnostic {
    let message = format!("{what} has no meaning on a board of class `ppc405`");
    Diagnostic::at(Code::NotForClass, place, message)
        .label(why)
        .help("remove it, or choose a board of another class")
}

fn one_vcpu(partition: &PartitionSpec, report: &mut Report) {
    if partition.vcpus.len() > 1 {
        let place = partition.vcpus.key.unwrap_or(partition.name.place);
        let message = format!(
            "partition `{}` has more vCPUs than the board has CPUs",
            partition.name.value
        );
        report.push(Diagnostic::at(Code::NotForClass, place, message).help("give it one"));
    }
}
