// SPDX-License-Identifier: Apache-2.0
//! Ports and locks: the class has them, and the hypervisor has room for them and for the messages.

use bulkhead_abi::hypercall::capability_slots;
use bulkhead_abi::size::Tables;
use bulkhead_image::MessageLimits;

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::port::{Division, receives_from, sends_to, words};
use crate::model::{CapabilitySpec, Manifest, PartitionSpec, Target};

/// Reports room and events that a capability cannot have.
fn details_have_meaning(manifest: &Manifest, report: &mut Report) {
    for capability in manifest
        .partitions
        .iter()
        .flat_map(|partition| &partition.capabilities)
    {
        let port = match capability.target() {
            Some(Target::Port(name)) => Some(&*name.value),
            _ => None,
        };
        let sends = port.is_some_and(|port| sends_to(capability, port));
        let receives = port.is_some_and(|port| receives_from(capability, port));
        if let Some(room) = capability.room.as_ref().filter(|_| !sends) {
            let message = format!("capability `{}` sends nothing to a port", capability.name.value);
            report.push(
                Diagnostic::at(Code::BadPort, room.place, message)
                    .label("room for its messages")
                    .help("remove `room`, or name a port and the right `write`"),
            );
        }
        if let Some(event) = capability.event.as_ref().filter(|_| !receives) {
            let message = format!(
                "capability `{}` receives nothing from a port",
                capability.name.value
            );
            report.push(
                Diagnostic::at(Code::BadPort, event.place, message)
                    .label("an event for its messages")
                    .help("remove `event`, or name a port and the right `read`"),
            );
        }
    }
}

/// Reports a port that has not the room that its senders name, a port where one sender can keep the others
/// out, and a port whose messages are to raise events at several gates.
fn room_is_there(manifest: &Manifest, report: &mut Report) {
    for port in &manifest.ports {
        let name = &port.name.value;
        let (division, depth) = (Division::of(manifest, port), port.depth.get());
        if division.named > depth {
            let message = format!(
                "port `{name}` keeps room for {} messages, but has {depth}",
                division.named
            );
            report.push(
                Diagnostic::at(Code::BadPort, port.name.place, message)
                    .help("raise its `depth`, or lower `room` of some senders"),
            );
        } else if division.unnamed != 0 && division.senders > 1 && !division.has_one_each(port) {
            let message = format!("port `{name}` has no room for a message of each sender");
            let needed = division.needed();
            report.push(
                Diagnostic::at(Code::CrowdedPort, port.name.place, message)
                    .label("one sender can keep the others out")
                    .help(format!(
                        "give it `depth = {needed}` or more, or give `room` to those that must get in"
                    )),
            );
        }
        let all = manifest
            .partitions
            .iter()
            .flat_map(|partition| &partition.capabilities);
        let mut events = all
            .filter(|capability| receives_from(capability, name))
            .filter_map(|capability| capability.event.as_ref());
        if let (Some(first), Some(second)) = (events.next(), events.next()) {
            let message = format!("a message of port `{name}` is to raise two events");
            report.push(
                Diagnostic::at(Code::BadPort, second.place, message)
                    .also(first.place, "the other one")
                    .help("remove one of them"),
            );
        }
    }
}

/// Reports a stretch of a server or of a lock's owner that takes no time.
fn stretches_take_time(manifest: &Manifest, report: &mut Report) {
    let services = manifest.ports.iter().map(|port| ("service", &port.service));
    let holds = manifest.locks.iter().map(|lock| ("hold", &lock.hold));
    for (key, time) in services.chain(holds) {
        let Some(time) = time.as_ref().filter(|time| time.value.get() == 0) else {
            continue;
        };
        report.push(
            Diagnostic::at(Code::BadPort, time.place, format!("`{key}` is 0"))
                .label("the time of those who wait")
                .help(format!("give the longest computing time, or leave `{key}` out")),
        );
    }
}

pub(super) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    let tables = board.map_or(Tables::Large, |board| board.class.facts().tables);
    let limits = MessageLimits::of(tables);
    let ports = manifest.ports.iter().map(|port| port.name.place);
    let locks = manifest.locks.iter().map(|lock| lock.name.place);
    few("ports", ports, limits.ports, report);
    few("locks", locks, limits.locks, report);
    messages_fit(manifest, limits.words, report);
    details_have_meaning(manifest, report);
    room_is_there(manifest, report);
    circles_are_refused(manifest, report);
    calls_have_slots(manifest, capability_slots(tables), report);
    stretches_take_time(manifest, report);
}

/// Warns of a server whose space has not a slot for a call of each vCPU that may call: without a slot the
/// call of an important vCPU ends with `NoSpace` while other calls wait.
fn calls_have_slots(manifest: &Manifest, slots: usize, report: &mut Report) {
    for server in &manifest.partitions {
        let serves = |port: &str| server.capabilities.iter().any(|own| receives_from(own, port));
        let served: Vec<&str> = manifest
            .ports
            .iter()
            .map(|port| port.name.value.as_str())
            .filter(|port| serves(port))
            .collect();
        let may_call = |caller: &&PartitionSpec| {
            let sends = |own: &CapabilitySpec| served.iter().any(|port| sends_to(own, port));
            !std::ptr::eq(*caller, server) && caller.capabilities.iter().any(sends)
        };
        let callers = manifest.partitions.iter().filter(may_call);
        let callers: usize = callers.map(|caller| caller.vcpus.len()).sum();
        // Index 0 is the partition itself.
        let left = slots.saturating_sub(server.capabilities.len()).saturating_sub(1);
        if callers > left {
            let message = format!(
                "partition `{}` has slots for {left} calls at a time, but {callers} vCPUs may call",
                server.name.value
            );
            report.push(
                Diagnostic::at(Code::CrowdedServer, server.name.place, message)
                    .label(format!(
                        "{} of its {slots} slots have capabilities",
                        slots.saturating_sub(left)
                    ))
                    .help("remove capabilities of it, or give the right `write` to fewer partitions"),
            );
        }
    }
}

/// Warns of a port of several receivers, each of which may wait for a caller of the port. The hypervisor does
/// not refuse a circle of waits through such a port: any of the receivers could answer.
fn circles_are_refused(manifest: &Manifest, report: &mut Report) {
    for port in &manifest.ports {
        let name = &port.name.value;
        let may = |right: fn(&CapabilitySpec, &str) -> bool| {
            let all = manifest.partitions.iter();
            all.filter(move |holder| holder.capabilities.iter().any(|own| right(own, name)))
        };
        let receivers: Vec<&PartitionSpec> = may(receives_from).collect();
        let vcpus: usize = receivers.iter().map(|receiver| receiver.vcpus.len()).sum();
        if vcpus < 2 {
            continue;
        }
        let mut callers =
            may(sends_to).filter(|caller| !receivers.iter().any(|other| std::ptr::eq(*other, *caller)));
        let closes = |caller: &&PartitionSpec| {
            let mut all = receivers.iter();
            all.all(|receiver| may_wait_for(manifest, receiver, caller))
        };
        if let Some(caller) = callers.find(closes) {
            let caller = &caller.name.value;
            let message = format!("calls by `{caller}` to port `{name}` can wait in a circle for ever");
            report.push(
                Diagnostic::at(Code::CallCircle, port.name.place, message)
                    .label(format!(
                        "several vCPUs may receive here, and all of them may call `{caller}`, or another that does"
                    ))
                    .help("let one vCPU receive, so that such a call is refused; or give each call a deadline"),
            );
        }
    }
}

/// Tells whether a partition may wait for an answer of another one, directly or through others.
fn may_wait_for(manifest: &Manifest, from: &PartitionSpec, to: &PartitionSpec) -> bool {
    let mut found: Vec<&PartitionSpec> = vec![from];
    let mut next = 0;
    while let Some(caller) = found.get(next).copied() {
        next = next.saturating_add(1);
        let ports = manifest.ports.iter().map(|port| port.name.value.as_str());
        for port in ports.filter(|port| caller.capabilities.iter().any(|own| sends_to(own, port))) {
            for other in &manifest.partitions {
                let receives = other.capabilities.iter().any(|own| receives_from(own, port));
                if receives && std::ptr::eq(other, to) {
                    return true;
                }
                if receives && !found.iter().any(|known| std::ptr::eq(*known, other)) {
                    found.push(other);
                }
            }
        }
    }
    false
}

/// Reports the first object after the last one for which there is room.
fn few(kind: &str, mut places: impl ExactSizeIterator<Item = Place>, room: usize, report: &mut Report) {
    let count = places.len();
    if let Some(extra) = places.nth(room) {
        let message = format!("there are {count} {kind}, but room for {room}");
        report.push(Diagnostic::at(Code::BadPort, extra, message).help(format!("merge or remove {kind}")));
    }
}

/// Reports the first port whose messages have no room after the messages of the ports before it.
fn messages_fit(manifest: &Manifest, room: usize, report: &mut Report) {
    let mut sum = 0_usize;
    for port in &manifest.ports {
        sum = sum.saturating_add(words(port));
        if sum > room {
            let (needed, room) = (sum.saturating_mul(8), room.saturating_mul(8));
            let message = format!(
                "the messages of the ports up to `{}` need {needed} bytes, but there are {room}",
                port.name.value
            );
            report.push(
                Diagnostic::at(Code::BadPort, port.name.place, message)
                    .help("lower `depth` or `message-size` of some ports"),
            );
            return;
        }
    }
}
