// SPDX-License-Identifier: Apache-2.0
//! Events of a task's devices: the task hears them, and nothing else raises the same one.

use bulkhead_abi::hypercall::DEVICE_EVENT;

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::devices::owned;
use crate::model::{Kind, Manifest, PartitionSpec, Placed};
use crate::place::channels::sides_of;

pub(super) fn check(manifest: &Manifest, board: &Board, report: &mut Report) {
    for task in &manifest.partitions {
        let interrupts = owned(task, board).find(|(_, device)| !device.interrupts.is_empty());
        let Some((first, _)) = interrupts.filter(|_| task.kind == Kind::Task) else {
            continue;
        };
        is_heard(task, first, report);
        is_alone(task, first, manifest, report);
    }
}

fn is_heard(task: &PartitionSpec, device: &Placed<String>, report: &mut Report) {
    if task.can_wait() {
        return;
    }
    let name = &task.name.value;
    let message = format!(
        "task `{name}` cannot wait for the interrupts of `{}`",
        device.value
    );
    report.push(
        Diagnostic::at(Code::DeviceEvent, device.place, message)
            .label(format!("each one is event {DEVICE_EVENT} at the task's gate"))
            .help(format!(
                "add `events = {{ event-gate = \"{name}\", rights = [\"read\"] }}` to its capabilities; ignore \
                 this if the task asks its device again and again"
            )),
    );
}

/// Warns of events of other sources that the task takes for interrupts of its devices.
fn is_alone(task: &PartitionSpec, device: &Placed<String>, manifest: &Manifest, report: &mut Report) {
    let name = &task.name.value;
    let sides = sides_of(manifest, name).into_iter();
    let bells = sides.filter_map(|side| {
        let event = side.spec.event.as_ref()?;
        let what = format!("the doorbell of channel `{}`", side.channel.name.value);
        Some((event.value.get(), event.place, what))
    });
    let messages = task.capabilities.iter().filter_map(|capability| {
        let event = capability.event.as_ref()?;
        let what = format!("a message of capability `{}`", capability.name.value);
        Some((event.value.get(), event.place, what))
    });
    let requests = manifest.services.iter().filter_map(|service| {
        let event = service.event.given()?;
        let server = service.partition.as_ref()?;
        let what = format!("a request of service `{}`", service.name.value);
        (server.value == *name).then(|| (event.value.get(), event.place, what))
    });
    let all: Vec<(u32, Place, String)> = bells.chain(messages).chain(requests).collect();
    for (_, place, what) in all.into_iter().filter(|(event, ..)| *event == DEVICE_EVENT) {
        let message = format!("{what} raises event {DEVICE_EVENT} of task `{name}`, as its devices do");
        report.push(
            Diagnostic::at(Code::DeviceEvent, place, message)
                .label("the task cannot tell one from the other")
                .also(device.place, "a device whose interrupts are this event")
                .help("choose another event"),
        );
    }
}
