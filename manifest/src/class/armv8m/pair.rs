// SPDX-License-Identifier: Apache-2.0
//! The rule for systems with two pCPUs.
//!
//! There the memory of VMs is non-secure for its controllers all the time, because a VM may run on the other
//! CPU. A controller refuses what secure code, a task, loads and stores in such memory.

use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{Kind, Manifest, SideSpec};

/// Checks that no VM shares memory with a task.
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
