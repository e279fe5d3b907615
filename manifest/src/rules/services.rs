// SPDX-License-Identifier: Apache-2.0
//! Services: who serves which VM, and where the VM finds the device.

use bulkhead_image::{MAX_DURATION_NS, MAX_SERVED};

use crate::board::{Board, Class};
use crate::class;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::machine::taken_by_other;
use crate::model::served::{all, names};
use crate::model::{Access, ClientSpec, Kind, Manifest, PartitionSpec, Placed, ServiceKind, ServiceSpec};
use crate::nearest::nearest;
use crate::rules::machine::line_exists;
use crate::units::PAGE;
use crate::window::Window;

/// Bytes in which clients share a disk.
const DISK_UNIT: u64 = PAGE;

pub(super) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    if let Some(extra) = all(manifest).nth(MAX_SERVED) {
        let message = format!("services have more than {MAX_SERVED} clients in all");
        report.push(Diagnostic::at(Code::BadService, extra.2.start, message).help("remove some"));
    }
    for service in &manifest.services {
        let class = Class::of_board(board);
        if !class::host(class).finds_services() {
            let message = format!("a VM on a board of class `{}` finds no services", class.name());
            report.push(
                Diagnostic::at(Code::NotForClass, service.name.place, message).help("remove the service"),
            );
            continue;
        }
        has_clients(service, report);
        server_can_serve(service, manifest, report);
        timeout_is_possible(service, report);
        for (index, client) in service.clients.iter().enumerate() {
            client_is_possible(service, index, manifest, report);
            disk_is_possible(service, client, report);
            reaches_members(service, client, report);
            device_has_a_place(client, manifest, board, report);
        }
        parts_are_apart(service, report);
    }
}

fn bad(place: Place, message: String, help: impl Into<String>) -> Diagnostic {
    Diagnostic::at(Code::BadService, place, message).help(help)
}

fn has_clients(service: &ServiceSpec, report: &mut Report) {
    let name = &service.name;
    if service.clients.is_empty() && !report.blames(name.place) {
        let message = format!("service `{}` has no client", name.value);
        report.push(bad(
            name.place,
            message,
            "add a table `[[service.NAME.client]]` for each VM",
        ));
    }
}

fn help_with_names<'n>(name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("there are: {}", known.collect::<Vec<_>>().join(", ")),
    }
}

fn find<'a>(manifest: &'a Manifest, name: &Placed<String>, report: &mut Report) -> Option<&'a PartitionSpec> {
    let mut partitions = manifest.partitions.iter();
    let found = partitions.find(|partition| partition.name.value == name.value);
    if found.is_none() {
        let names = manifest.partitions.iter().map(|partition| &*partition.name.value);
        let message = format!("partition `{}` does not exist", name.value);
        report.push(bad(name.place, message, help_with_names(&name.value, names)));
    }
    found
}

fn server_can_serve(service: &ServiceSpec, manifest: &Manifest, report: &mut Report) {
    let Some(name) = &service.partition else { return };
    let Some(server) = find(manifest, name, report) else {
        return;
    };
    let own = &server.name.value;
    let (message, help) = if server.kind == Kind::Vm {
        (
            format!("`{own}` is a VM, which does not learn of its windows"),
            "name a task".to_owned(),
        )
    } else if !server.serves() {
        (
            format!("`{own}` has no capability for the windows that it serves"),
            "add `windows = { service = true }` to its capabilities".to_owned(),
        )
    } else if !server.can_wait() {
        (
            format!("`{own}` cannot wait for its clients"),
            format!("add `events = {{ event-gate = \"{own}\", rights = [\"read\"] }}` to its capabilities"),
        )
    } else {
        return;
    };
    report.push(bad(name.place, message, help));
}

fn timeout_is_possible(service: &ServiceSpec, report: &mut Report) {
    let Some(given) = service.timeout.given() else {
        return;
    };
    if !(1..=MAX_DURATION_NS).contains(&given.value.get()) {
        let message = "a client waits for 1ns at least, and for 1000s at most".to_owned();
        report.push(bad(given.place, message, "give the server some milliseconds"));
    }
}

fn client_is_possible(service: &ServiceSpec, index: usize, manifest: &Manifest, report: &mut Report) {
    let Some(client) = service.clients.get(index) else {
        return;
    };
    let Some(name) = &client.partition else { return };
    let Some(partition) = find(manifest, name, report) else {
        return;
    };
    let earlier = service.clients.iter().take(index);
    let mut earlier = earlier.filter_map(|other| other.partition.as_ref());
    if let Some(first) = earlier.find(|other| other.value == name.value) {
        let message = format!("`{}` is a client of `{}` twice", name.value, service.name.value);
        report.push(
            Diagnostic::at(Code::DuplicateName, name.place, message)
                .also(first.place, "first named here")
                .help("give it another service"),
        );
    }
    if partition.kind == Kind::Task {
        let message = format!(
            "`{}` is a task, which has no drivers for virtio devices",
            name.value
        );
        report.push(Diagnostic::at(Code::NotForTask, name.place, message).help("give the task a port"));
    }
    if !matches!(*client.access, Access::DATA | Access::READ) {
        let place = client.access.place.unwrap_or(client.start);
        let message = "a server executes nothing in the RAM of its client".to_owned();
        report.push(bad(place, message, "give \"rw\" or \"r\""));
    }
}

fn disk_is_possible(service: &ServiceSpec, client: &ClientSpec, report: &mut Report) {
    let keys = [client.offset.as_ref(), client.size.as_ref()].map(|size| size.map(|size| size.place));
    let given = keys.into_iter().flatten().chain(client.read_only.place).next();
    let is_disk = service.kind == ServiceKind::Block;
    if let (false, Some(place)) = (is_disk, given) {
        let message = format!(
            "a client of kind \"{}\" has no part of a disk",
            service.kind.name()
        );
        report.push(bad(place, message, "remove it"));
    }
    if !is_disk {
        return;
    }
    if client.size.is_none() && !report.blames(client.start) {
        let message = "a client of a disk has no part of it".to_owned();
        report.push(bad(
            client.start,
            message,
            "give `size`, and `offset` if it is not the first part",
        ));
    }
    for size in [client.offset.as_ref(), client.size.as_ref()]
        .into_iter()
        .flatten()
    {
        if !size.value.get().is_multiple_of(DISK_UNIT) {
            let message = format!("a part of a disk is a multiple of {DISK_UNIT} bytes");
            report.push(bad(size.place, message, "round it"));
        }
    }
}

fn part(client: &ClientSpec) -> Option<Window> {
    Some(Window {
        base: client.offset.as_ref().map_or(0, |offset| offset.value.get()),
        size: client.size.as_ref()?.value.get(),
    })
}

/// Reports parts of a disk that overlap, unless no client writes them.
fn parts_are_apart(service: &ServiceSpec, report: &mut Report) {
    for (index, client) in service.clients.iter().enumerate() {
        let Some(own) = part(client) else { continue };
        let shares = |other: &&ClientSpec| {
            let is_written = !*other.read_only || !*client.read_only;
            is_written && part(other).is_some_and(|other| other.overlaps(own))
        };
        if let Some(other) = service.clients.iter().take(index).find(shares) {
            let message = format!(
                "two clients of `{}` would write the same part of its disk",
                service.name.value
            );
            report.push(
                bad(
                    client.start,
                    message,
                    "move one of them by `offset`, or make both `read-only`",
                )
                .also(other.start, "the other client"),
            );
        }
    }
}

fn reaches_members(service: &ServiceSpec, client: &ClientSpec, report: &mut Report) {
    for name in client.reaches.iter().flatten() {
        let members = service
            .clients
            .iter()
            .filter_map(|other| other.partition.as_ref());
        let members = members.map(|name| &*name.value);
        if service.kind != ServiceKind::Network {
            let message = format!("a client of kind \"{}\" sends no frames", service.kind.name());
            report.push(bad(name.place, message, "remove `reaches`"));
        } else if !members.clone().any(|member| member == name.value) {
            let message = format!("`{}` is no client of `{}`", name.value, service.name.value);
            report.push(bad(name.place, message, help_with_names(&name.value, members)));
        }
    }
}

/// Reports a line that does not exist or is taken. The rules of memory look at the registers.
fn device_has_a_place(client: &ClientSpec, manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    let mut partitions = manifest.partitions.iter();
    let Some(spec) = partitions.find(|spec| names(client.partition.as_ref(), &spec.name.value)) else {
        return;
    };
    let Some(own) = spec
        .machine
        .served
        .iter()
        .find(|served| served.place == client.start)
    else {
        return;
    };
    let place = client.interrupt.as_ref().map_or(client.start, |line| line.place);
    if !line_exists("the device's", own.line, place, spec, board, report) {
        return;
    }
    if let Some(owner) = taken_by_other(spec, board, own.line, Some(client.start)) {
        let message = format!("line {} of the device is {owner}", own.line);
        report.push(Diagnostic::at(Code::BadLine, place, message).help("give the device another line"));
    }
}
