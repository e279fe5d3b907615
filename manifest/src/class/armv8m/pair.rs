// SPDX-License-Identifier: Apache-2.0
//! The rules for systems with two pCPUs.
//!
//! There the memory of VMs is non-secure for its controllers all the time, because a VM may run on the other
//! CPU. A controller refuses what secure code, a task, loads and stores in such memory.
//!
//! No CPU reaches the protection unit of the other one. So one that takes memory back from a holder on the
//! other CPU would have to wait there until the other CPU has obeyed, with interrupts masked.

use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{ChannelSpec, Kind, Manifest, SideSpec};

/// Checks that no VM shares memory with a task, and that no side is held.
pub(super) fn check(manifest: &Manifest, report: &mut Report) {
    if manifest.beyond_first_pcpu().is_none() {
        return;
    }
    let is_task = |side: &&SideSpec| {
        let partition = side.partition.as_ref();
        let mut specs = manifest.partitions.iter();
        let spec = specs.find(|spec| partition.is_some_and(|own| own.value == spec.name.value));
        spec.is_some_and(|spec| spec.kind == Kind::Task)
    };
    for channel in &manifest.channels {
        is_never_taken(channel, report);
        let tasks: Vec<&SideSpec> = channel.sides.iter().filter(is_task).collect();
        let Some(task) = tasks.first().filter(|_| tasks.len() < channel.sides.len()) else {
            continue;
        };
        let message = format!(
            "channel `{}` is between a VM and a task, in a system with two pCPUs",
            channel.name.value
        );
        report.push(
            Diagnostic::at(Code::NotForClass, task.start, message)
                .label("the memory is non-secure for both CPUs, and a task is secure code")
                .help("use a port, make all sides VMs or all tasks, or bind all vCPUs to pCPU 0"),
        );
    }
}

/// Checks that no side of a channel is mapped only while it is held.
fn is_never_taken(channel: &ChannelSpec, report: &mut Report) {
    let held = channel.sides.iter().filter(|side| *side.held);
    let held = held.filter_map(|side| side.held.place);
    let held = held.map(|place| (place, "remove `held` and copy the data through a port"));
    let device = channel.device.as_ref();
    let device = device.map(|device| (device.place, "give the device to one partition, by its `devices`"));
    for (place, way) in held.chain(device) {
        let message = format!(
            "a side of channel `{}` is held, in a system with two pCPUs",
            channel.name.value
        );
        report.push(
            Diagnostic::at(Code::NotForClass, place, message)
                .label("a CPU cannot take memory from a partition of the other CPU")
                .help(format!("bind all vCPUs to pCPU 0, or {way}")),
        );
    }
}
