// SPDX-License-Identifier: Apache-2.0
//! pCPUs, vCPUs and their policies.

use std::ops::RangeInclusive;

use bulkhead_arch_api::{MAX_VCPUS, MAX_VCPUS_PER_PARTITION};
use bulkhead_sched::MAX_SLOTS;

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{Kind, Manifest, PartitionSpec, PcpuSpec, Placed, Policy};
use crate::units::{Duration, format_duration};

/// Possible quanta. Below, the scheduler itself would be most of the load; above, round robin would be none
/// any more.
const QUANTUM: RangeInclusive<u64> = 100_000..=10_000_000_000;

pub(super) fn check(manifest: &Manifest, board: &Board, report: &mut Report) {
    for pcpu in &manifest.pcpus {
        pcpu_exists(pcpu, board, report);
        quantum_is_possible(pcpu, report);
        pcpu_is_used(pcpu, manifest, report);
    }
    for partition in &manifest.partitions {
        some_vcpu(partition, report);
        few_vcpus(partition, report);
        vcpus_have_pcpus(partition, board, report);
        frozen_is_alone(partition, report);
    }
    few_vcpus_in_all(manifest, report);
    for number in 0..board.cpus.len() {
        pcpu_can_hold(number as u32, manifest, report);
    }
}

fn no_such_pcpu(place: Place, name: &str, board: &Board) -> Diagnostic {
    let message = format!("board `{}` has no pCPU {name}", board.name);
    Diagnostic::at(Code::UnknownPcpu, place, message).help(format!(
        "its pCPUs are 0 to {}",
        board.cpus.len().saturating_sub(1)
    ))
}

fn pcpu_exists(pcpu: &PcpuSpec, board: &Board, report: &mut Report) {
    let number = pcpu
        .name
        .value
        .parse::<usize>()
        .ok()
        .filter(|number| number.to_string() == pcpu.name.value);
    if number.is_none_or(|number| number >= board.cpus.len()) {
        report.push(no_such_pcpu(pcpu.name.place, &pcpu.name.value, board));
    }
}

fn quantum_is_possible(pcpu: &PcpuSpec, report: &mut Report) {
    let Some(quantum) = pcpu.quantum.given() else {
        return;
    };
    if **pcpu.policy == Policy::Pinned {
        report.push(
            Diagnostic::at(
                Code::UnusedQuantum,
                quantum.place,
                "policy `pinned` has no quantum",
            )
            .help("remove `quantum`"),
        );
    }
    possible_duration("quantum", &quantum, &QUANTUM, report);
}

/// Reports a duration outside `range`.
pub(super) fn possible_duration(
    name: &str,
    given: &Placed<Duration>,
    range: &RangeInclusive<u64>,
    report: &mut Report,
) {
    let value = given.value.get();
    if !range.contains(&value) {
        let side = if value < *range.start() { "short" } else { "long" };
        let message = format!("`{name}` of {} is too {side}", format_duration(value));
        let help = format!(
            "choose {} to {}",
            format_duration(*range.start()),
            format_duration(*range.end())
        );
        report.push(Diagnostic::at(Code::BadDuration, given.place, message).help(help));
    }
}

fn pcpu_is_used(pcpu: &PcpuSpec, manifest: &Manifest, report: &mut Report) {
    if pcpu.name.value.parse::<u32>().is_err() {
        return;
    }
    let mut vcpus = manifest.partitions.iter().flat_map(|partition| &partition.vcpus);
    if !vcpus.any(|vcpu| {
        vcpu.pcpu
            .as_ref()
            .is_some_and(|p| p.value.to_string() == pcpu.name.value)
    }) {
        let message = format!("no vCPU is bound to pCPU {}", pcpu.name.value);
        report.push(
            Diagnostic::at(Code::IdlePcpu, pcpu.name.place, message)
                .help("remove the table, or bind a vCPU to the pCPU"),
        );
    }
}

fn some_vcpu(partition: &PartitionSpec, report: &mut Report) {
    if let (Some(place), true) = (partition.vcpus.key, partition.vcpus.is_empty()) {
        let message = format!("partition `{}` has no vCPU", partition.name.value);
        report.push(
            Diagnostic::at(Code::NoVcpu, place, message)
                .help("give at least one: vcpus = [{ pcpu = 0, priority = 8 }]"),
        );
    }
}

fn few_vcpus(partition: &PartitionSpec, report: &mut Report) {
    let limit = if partition.kind == Kind::Task {
        1
    } else {
        MAX_VCPUS_PER_PARTITION
    };
    if let Some(extra) = partition.vcpus.get(limit) {
        let message = format!(
            "partition `{}` has {} vCPUs, more than {limit}",
            partition.name.value,
            partition.vcpus.len()
        );
        let help = match partition.kind {
            Kind::Task => "a task is one thread: give it one vCPU".to_owned(),
            Kind::Vm => format!("give it at most {limit}"),
        };
        report.push(
            Diagnostic::at(Code::TooManyVcpus, extra.place, message)
                .label("one too many")
                .help(help),
        );
    }
}

fn few_vcpus_in_all(manifest: &Manifest, report: &mut Report) {
    let all: Vec<_> = manifest
        .partitions
        .iter()
        .flat_map(|partition| &partition.vcpus)
        .collect();
    if let Some(extra) = all.get(MAX_VCPUS) {
        let message = format!("the system has {} vCPUs, more than {MAX_VCPUS}", all.len());
        report.push(
            Diagnostic::at(Code::TooManyVcpus, extra.place, message)
                .label("one too many")
                .help("give some partitions fewer vCPUs"),
        );
    }
}

fn vcpus_have_pcpus(partition: &PartitionSpec, board: &Board, report: &mut Report) {
    for pcpu in partition.vcpus.iter().filter_map(|vcpu| vcpu.pcpu.as_ref()) {
        if pcpu.value as usize >= board.cpus.len() {
            report.push(no_such_pcpu(pcpu.place, &pcpu.value.to_string(), board));
        }
    }
}

fn frozen_is_alone(partition: &PartitionSpec, report: &mut Report) {
    if let (Some(place), true) = (partition.frozen(), partition.vcpus.len() > 1) {
        let message = format!(
            "partition `{}` has frozen time and {} vCPUs",
            partition.name.value,
            partition.vcpus.len()
        );
        report.push(
            Diagnostic::at(Code::FrozenSmp, place, message)
                .label("its vCPUs would disagree about the time")
                .help("give it one vCPU, or time = \"real\""),
        );
    }
}

fn pcpu_can_hold(number: u32, manifest: &Manifest, report: &mut Report) {
    let vcpus: Vec<_> = manifest
        .partitions
        .iter()
        .flat_map(|partition| &partition.vcpus)
        .filter_map(|vcpu| vcpu.pcpu.as_ref())
        .filter(|pcpu| pcpu.value == number)
        .collect();
    let pcpu = manifest
        .pcpus
        .iter()
        .find(|pcpu| pcpu.name.value == number.to_string());
    if let (Some(pcpu), [first, second, ..]) =
        (pcpu.filter(|pcpu| **pcpu.policy == Policy::Pinned), &vcpus[..])
    {
        let message = format!("pCPU {number} has policy `pinned`, but {} vCPUs", vcpus.len());
        report.push(
            Diagnostic::at(Code::PinnedShared, second.place, message)
                .label("another vCPU on the same pCPU")
                .also(first.place, "its owner")
                .also(pcpu.name.place, "the pCPU")
                .help("bind it to another pCPU, or use policy \"fixed-priority\""),
        );
    }
    if let Some(extra) = vcpus.get(MAX_SLOTS) {
        let message = format!("pCPU {number} has {} vCPUs, more than {MAX_SLOTS}", vcpus.len());
        report.push(
            Diagnostic::at(Code::CrowdedPcpu, extra.place, message)
                .label("one too many")
                .help("bind some of them to another pCPU"),
        );
    }
}
