// SPDX-License-Identifier: Apache-2.0
//! Health actions and watchdogs.

use std::ops::RangeInclusive;

use bulkhead_abi::HealthClass;

use super::cpus::possible_duration;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{Kind, Manifest, PartitionSpec};
use bulkhead_image::layout::HealthAction;

/// Possible watchdog periods. A period shorter than a restart is pointless; a longer one is surely a wrong
/// unit.
const WATCHDOG: RangeInclusive<u64> = 1_000_000..=1_000_000_000_000;

pub(super) fn check(manifest: &Manifest, report: &mut Report) {
    for partition in &manifest.partitions {
        actions_are_possible(partition, report);
        actions_are_used(partition, report);
        if let Some(watchdog) = &partition.watchdog {
            possible_duration("watchdog", watchdog, &WATCHDOG, report);
        }
        somebody_starts(partition, manifest, report);
    }
}

/// Returns the reason why `action` cannot be taken for `class` in a partition of this kind.
fn impossible(kind: Kind, class: HealthClass, action: HealthAction) -> Option<&'static str> {
    match (kind, class, action) {
        (Kind::Task, _, HealthAction::Inject) => Some("a task has no exception vectors to inject into"),
        (_, HealthClass::Watchdog, HealthAction::Inject) => Some("no architecture has an exception for it"),
        (_, HealthClass::Hypercall, HealthAction::Inject) => {
            Some("the hypercall returns its error anyway; use \"log\"")
        }
        (_, HealthClass::Task, HealthAction::Log) => Some("the task cannot go on from there"),
        _ => None,
    }
}

fn actions_are_possible(partition: &PartitionSpec, report: &mut Report) {
    for (class, action) in partition.health.actions() {
        if let Some(why) = impossible(partition.kind, class, action.value) {
            let message = format!(
                "\"{}\" is impossible for health events of class `{}` here",
                action.value.name(),
                class.name()
            );
            let possible: Vec<_> = HealthAction::ALL
                .iter()
                .filter(|action| impossible(partition.kind, class, **action).is_none())
                .map(|action| format!("\"{}\"", action.name()))
                .collect();
            report.push(
                Diagnostic::at(Code::ImpossibleAction, action.place, message)
                    .label(why)
                    .help(format!("possible: {}", possible.join(", "))),
            );
        }
    }
}

fn actions_are_used(partition: &PartitionSpec, report: &mut Report) {
    for (class, action) in partition.health.actions() {
        let (message, help) = match (partition.kind, class) {
            // A server that is late has such an event, too.
            (_, HealthClass::Watchdog) if partition.watchdog.is_none() && !partition.serves() => (
                "the partition has no watchdog",
                "add a period: watchdog = \"100ms\"",
            ),
            (Kind::Vm, HealthClass::Task) => (
                "only tasks have health events of class `task`",
                "remove the line; a VM handles its own exceptions",
            ),
            _ => continue,
        };
        report.push(Diagnostic::at(Code::UnusedAction, action.place, message).help(help));
    }
}

fn somebody_starts(partition: &PartitionSpec, manifest: &Manifest, report: &mut Report) {
    use crate::model::Target;
    let starts = |other: &PartitionSpec| {
        other.name.value != partition.name.value
            && other.capabilities.iter().any(|capability| {
                matches!(capability.target(), Some(Target::Partition(target)) if target.value == partition.name.value)
                    && capability.gives(bulkhead_abi::Rights::CONTROL)
            })
    };
    if !partition.autostart && !manifest.partitions.iter().any(starts) {
        let message = format!("nobody can start partition `{}`", partition.name.value);
        report.push(
            Diagnostic::at(Code::NeverStarted, partition.name.place, message)
                .help("remove `autostart = false`, or give a partition a capability for it with the right \"control\""),
        );
    }
}
