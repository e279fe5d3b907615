// SPDX-License-Identifier: Apache-2.0
//! Names and numbers of partitions.

use bulkhead_abi::framing::HYPERVISOR_CONSOLE;
use bulkhead_arch_api::MAX_PARTITIONS;

use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{Manifest, Placed};

/// The longest name of a partition: a record's field less its NUL.
const NAME_MAX: usize = bulkhead_image::layout::NAME_LEN - 1;
/// The longest name of a capability: a startup record's field less its NUL.
const CAPABILITY_NAME_MAX: usize = 23;

pub(super) fn check(manifest: &Manifest, report: &mut Report) {
    some_partition(manifest, report);
    few_partitions(manifest, report);
    for pcpu in &manifest.pcpus {
        for schedule in &pcpu.schedules {
            well_formed(&schedule.name, "schedule", NAME_MAX, report);
        }
        for domain in &pcpu.domains {
            well_formed(&domain.name, "domain", NAME_MAX, report);
        }
    }
    for network in &manifest.networks {
        well_formed(&network.name, "network", NAME_MAX, report);
    }
    for port in &manifest.ports {
        well_formed(&port.name, "port", NAME_MAX, report);
    }
    for lock in &manifest.locks {
        well_formed(&lock.name, "lock", NAME_MAX, report);
    }
    for partition in &manifest.partitions {
        well_formed(&partition.name, "partition", NAME_MAX, report);
        not_reserved(&partition.name, report);
        for alternative in &partition.alternatives {
            well_formed(&alternative.name, "alternative", NAME_MAX, report);
        }
        for capability in &partition.capabilities {
            well_formed(&capability.name, "capability", CAPABILITY_NAME_MAX, report);
            not_self(&capability.name, report);
        }
    }
}

fn some_partition(manifest: &Manifest, report: &mut Report) {
    if manifest.partitions.is_empty() {
        report.push(
            Diagnostic::at(Code::NoPartition, manifest.place, "the manifest has no partition")
                .help("add a table `[partition.NAME]`; `bulkhead new` writes a manifest to start from"),
        );
    }
}

fn few_partitions(manifest: &Manifest, report: &mut Report) {
    if let Some(extra) = manifest.partitions.get(MAX_PARTITIONS) {
        let message = format!(
            "there are {} partitions, but room for {MAX_PARTITIONS}",
            manifest.partitions.len()
        );
        report.push(
            Diagnostic::at(Code::TooManyPartitions, extra.name.place, message)
                .label(format!("the first one without a number below {MAX_PARTITIONS}"))
                .help("merge or remove partitions"),
        );
    }
}

fn well_formed(name: &Placed<String>, what: &str, max: usize, report: &mut Report) {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let text = &name.value;
    let message = if text.len() > max {
        format!(
            "the name of this {what} has {} characters, more than {max}",
            text.len()
        )
    } else if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        format!("the name {text:?} of a {what} does not start with a letter")
    } else if let Some(odd) = text.chars().find(|c| !allowed(*c)) {
        format!("the name {text:?} of a {what} contains {odd:?}")
    } else {
        return;
    };
    report.push(Diagnostic::at(Code::BadName, name.place, message).help(format!(
        "use a letter, then letters, digits, `-` and `_`, at most {max} in all"
    )));
}

fn not_reserved(name: &Placed<String>, report: &mut Report) {
    if name.value.eq_ignore_ascii_case(HYPERVISOR_CONSOLE) {
        let message = format!("a partition cannot be named `{}`", name.value);
        report.push(
            Diagnostic::at(Code::ReservedName, name.place, message)
                .label("this is the name of the hypervisor's own console")
                .help("choose another name, so that its lines cannot be taken for the hypervisor's"),
        );
    }
}

fn not_self(name: &Placed<String>, report: &mut Report) {
    if name.value == bulkhead_abi::hypercall::SELF_NAME {
        let message = format!("a capability cannot be named `{}`", name.value);
        report.push(
            Diagnostic::at(Code::ReservedName, name.place, message)
                .label("this is the name of the capability every partition has for itself, at index 0")
                .help("remove it, or choose another name"),
        );
    }
}
