// SPDX-License-Identifier: Apache-2.0
//! Manifests that work as written, but probably not as meant. These are warnings only: users who know better
//! go on.

use crate::board::{Board, Device};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::devices::{does_trusted_dma, owned};
use crate::model::{Manifest, PartitionSpec, PcpuSpec, Placed, Policy, Target, VcpuSpec};
use bulkhead_abi::Rights;
use bulkhead_image::layout::HealthAction;

/// One entry of a translation table maps a block of this size.
const BLOCK: u64 = 2 << 20;

pub(super) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    for partition in &manifest.partitions {
        vcpus_run_side_by_side(partition, report);
        restarts_end(partition, report);
        watchdog_outlasts_a_turn(partition, manifest, report);
        // A class that does not translate addresses maps nothing by pages.
        if board.is_none_or(|board| board.class.facts().translates) {
            memory_is_blocks(partition, report);
        }
        supervisor_gets_its_turn(partition, manifest, report);
        frozen_time_stands(partition, manifest, report);
        if let Some(board) = board {
            dma_ends_with_a_life(partition, board, report);
        }
    }
    urgency_is_said(manifest, report);
}

/// Returns the pCPU and the priority of a vCPU, if both are known.
fn home(vcpu: &VcpuSpec) -> Option<(u32, u32)> {
    Some((vcpu.pcpu.as_ref()?.value, vcpu.priority.get()))
}

fn vcpus_run_side_by_side(partition: &PartitionSpec, report: &mut Report) {
    for (index, vcpu) in partition.vcpus.iter().enumerate() {
        let Some(pcpu) = vcpu.pcpu.as_ref() else { continue };
        let earlier = partition.vcpus[..index]
            .iter()
            .filter_map(|other| other.pcpu.as_ref());
        let Some(first) = earlier.into_iter().find(|other| other.value == pcpu.value) else {
            continue;
        };
        let message = format!(
            "two vCPUs of partition `{}` share pCPU {}",
            partition.name.value, pcpu.value
        );
        report.push(
            Diagnostic::at(Code::SharedPcpu, pcpu.place, message)
                .label("they never run at the same time")
                .also(first.place, "the other one")
                .help("a guest that spins for a lock of its other vCPU spins for a whole quantum: bind it to another pCPU"),
        );
        // One warning for the partition is enough.
        return;
    }
}

/// Returns the first health action in the manifest that starts the partition anew.
fn restart(partition: &PartitionSpec) -> Option<&Placed<HealthAction>> {
    let mut actions = partition.health.actions().map(|(_, action)| action);
    actions.find(|action| matches!(action.value, HealthAction::Restart | HealthAction::RestartWarm))
}

/// Tells whether the watchdog restarts the partition because the manifest says nothing else.
fn watchdog_restarts(partition: &PartitionSpec) -> bool {
    partition.watchdog.is_some() && partition.health.watchdog.is_none()
}

fn restarts_end(partition: &PartitionSpec, report: &mut Report) {
    let restart = restart(partition);
    if let (Some(action), None) = (restart, &partition.restart_limit) {
        let message = format!("partition `{}` is restarted without end", partition.name.value);
        report.push(
            Diagnostic::at(Code::EndlessRestart, action.place, message)
                .label("a fault at every start comes back for ever")
                .help("add a limit, after which it stays failed: restart-limit = 3"),
        );
    }
    let key = partition.keys.iter().find(|key| key.value == "restart-limit");
    if let (Some(key), None, false) = (key, restart, watchdog_restarts(partition)) {
        let message = format!("no health action restarts partition `{}`", partition.name.value);
        report.push(
            Diagnostic::at(Code::UnusedLimit, key.place, message)
                .label("never reached: resets that the partition asks for do not count")
                .help("say what shall restart it, e.g. `memory = \"restart\"` under `health`, or remove the limit"),
        );
    }
}

/// Returns the policy of a pCPU.
fn policy(manifest: &Manifest, pcpu: u32) -> Policy {
    let name = pcpu.to_string();
    let spec = manifest.pcpus.iter().find(|spec| spec.name.value == name);
    spec.map_or(Policy::FixedPriority, |spec| **spec.policy)
}

/// Reports priorities that are equal because the author did not choose them. Equal priorities are fine if the
/// author chose them. A default is not fine if it makes a control loop one of two partitions that take turns.
fn urgency_is_said(manifest: &Manifest, report: &mut Report) {
    let mut seen: Vec<(u32, &PartitionSpec)> = Vec::new();
    for partition in &manifest.partitions {
        for vcpu in &partition.vcpus {
            let Some((pcpu, _)) = home(vcpu).filter(|_| vcpu.priority.place.is_none()) else {
                continue;
            };
            let same = |(other, owner): &&(u32, &PartitionSpec)| {
                *other == pcpu && owner.name.value != partition.name.value
            };
            let Some((_, equal)) = seen.iter().find(same) else {
                seen.push((pcpu, partition));
                continue;
            };
            if policy(manifest, pcpu) != Policy::FixedPriority {
                continue;
            }
            let message = format!(
                "`{}` and `{}` share pCPU {pcpu}, and neither has a priority",
                equal.name.value, partition.name.value
            );
            report.push(
                Diagnostic::at(Code::EqualPriority, vcpu.place, message)
                    .label("they take turns, each as long as the pCPU's `quantum`")
                    .also(equal.name.place, "the other one")
                    .help("give each vCPU a `priority` (higher is more urgent), or another pCPU"),
            );
            // One warning is enough.
            return;
        }
    }
}

fn frozen_time_stands(partition: &PartitionSpec, manifest: &Manifest, report: &mut Report) {
    let Some(place) = partition.frozen() else { return };
    let own = |pcpu: u32| {
        let mut vcpus = partition.vcpus.iter().filter_map(home);
        vcpus.any(|(own, _)| own == pcpu)
    };
    let others = manifest.partitions.iter();
    let others = others.filter(|other| other.name.value != partition.name.value);
    let mut homes = others.flat_map(|other| other.vcpus.iter().filter_map(home));
    if partition.vcpus.iter().any(|vcpu| home(vcpu).is_some()) && !homes.any(|(pcpu, _)| own(pcpu)) {
        let message = format!("time of partition `{}` never stands still", partition.name.value);
        report.push(
            Diagnostic::at(Code::UselessFrozen, place, message)
                .label("it stands still while others have the pCPU, and there are none")
                .help("remove the line, or let another partition share the pCPU"),
        );
    }
}

fn dma_ends_with_a_life(partition: &PartitionSpec, board: &Board, report: &mut Report) {
    if !does_trusted_dma(partition, board) || (restart(partition).is_none() && !watchdog_restarts(partition))
    {
        return;
    }
    let unstoppable = |(_, device): &(_, &Device)| device.dma && device.quiesce.is_none();
    if let Some((name, device)) = owned(partition, board).find(unstoppable) {
        let message = format!(
            "nothing stops the DMA of `{}` when partition `{}` is restarted",
            device.name, partition.name.value
        );
        report.push(
            Diagnostic::at(Code::UnstoppedDma, name.place, message)
                .label("may still write into the memory that is loaded anew")
                .help("name the register that stops the device in the board file: quiesce = { offset = .., value = .. }"),
        );
    }
}

fn watchdog_outlasts_a_turn(partition: &PartitionSpec, manifest: &Manifest, report: &mut Report) {
    let Some(watchdog) = &partition.watchdog else {
        return;
    };
    for (pcpu, priority) in partition.vcpus.iter().filter_map(home) {
        let spec = manifest
            .pcpus
            .iter()
            .find(|spec| spec.name.value == pcpu.to_string());
        if spec.is_some_and(|spec| **spec.policy == Policy::Pinned) {
            continue;
        }
        let quantum = spec.map_or_else(|| PcpuSpec::default().quantum.value, |spec| spec.quantum.value);
        let equal = manifest
            .partitions
            .iter()
            .filter(|other| other.name.value != partition.name.value)
            .find(|other| {
                other
                    .vcpus
                    .iter()
                    .filter_map(home)
                    .any(|home| home == (pcpu, priority))
            });
        if let Some(equal) = equal.filter(|_| watchdog.value <= quantum) {
            let message = format!(
                "the watchdog of partition `{}` is not longer than a turn of `{}`",
                partition.name.value, equal.name.value
            );
            report.push(
                Diagnostic::at(Code::ShortWatchdog, watchdog.place, message)
                    .label("can pass while the other one, of the same priority, has its turn")
                    .also(equal.name.place, "the other one")
                    .help("a longer period, a higher priority, or a shorter `quantum` for the pCPU"),
            );
        }
    }
}

fn memory_is_blocks(partition: &PartitionSpec, report: &mut Report) {
    let Some(memory) = &partition.memory else { return };
    if memory.value.get() > BLOCK && !memory.value.is_multiple_of(BLOCK) {
        let message = format!(
            "the memory of partition `{}` is no multiple of 2M",
            partition.name.value
        );
        report.push(
            Diagnostic::at(Code::OddMemory, memory.place, message)
                .label("its end is mapped page by page")
                .help("a multiple of 2M needs fewer translation tables and fewer entries of the TLB"),
        );
    }
}

fn supervisor_gets_its_turn(partition: &PartitionSpec, manifest: &Manifest, report: &mut Report) {
    for capability in &partition.capabilities {
        let controls = capability.gives(Rights::CONTROL);
        let [Target::Partition(name)] = capability.targets()[..] else {
            continue;
        };
        let target = manifest
            .partitions
            .iter()
            .find(|other| other.name.value == name.value);
        let Some(target) = target.filter(|target| controls && target.name.value != partition.name.value)
        else {
            continue;
        };
        let above = target.vcpus.iter().filter_map(home).any(|(pcpu, priority)| {
            let mut own = partition.vcpus.iter().filter_map(home);
            own.any(|(own_pcpu, own_priority)| own_pcpu == pcpu && own_priority < priority)
        });
        if above {
            let message = format!(
                "`{}` controls `{}`, which has a higher priority on the same pCPU",
                partition.name.value, target.name.value
            );
            report.push(
                Diagnostic::at(Code::WeakSupervisor, name.place, message)
                    .label("if it never waits, nobody gets the pCPU to stop it")
                    .help(format!(
                        "give `{}` the higher priority, or another pCPU",
                        partition.name.value
                    )),
            );
        }
    }
}
