// SPDX-License-Identifier: Apache-2.0
//! Capabilities and watches.

use bulkhead_abi::Rights;
use bulkhead_abi::hypercall::capability_slots;
use bulkhead_abi::size::TABLES;

use super::secrets;
use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{
    CapabilitySpec, Manifest, PartitionSpec, Placed, Policy, ServiceSpec, Target, policy_of, right_names,
    side,
};
use crate::nearest::nearest;
use crate::place::channels;

pub(super) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    let slots = capability_slots(board.map_or(TABLES, |board| board.class.facts().tables));
    for partition in &manifest.partitions {
        few_capabilities(partition, slots, report);
        for capability in &partition.capabilities {
            one_object(capability, report);
            some_right(capability, report);
            target_exists(capability, manifest, report);
            holder_has_a_side(capability, partition, manifest, report);
            rights_have_meaning(capability, partition, report);
            rights_differ(capability, report);
            console_is_there(capability, partition, report);
            serves_something(capability, partition, manifest, report);
        }
        secrets::check(partition, manifest, report);
        watched_exist(partition, manifest, report);
        watcher_can_wait(partition, report);
    }
}

fn few_capabilities(partition: &PartitionSpec, slots: usize, report: &mut Report) {
    // Index 0 is the partition itself.
    let others = slots.saturating_sub(1);
    if let Some(extra) = partition.capabilities.get(others) {
        let message = format!(
            "partition `{}` has more than {others} capabilities",
            partition.name.value
        );
        report.push(
            Diagnostic::at(Code::TooManyCapabilities, extra.name.place, message)
                .label("no slot is left for this one")
                .help("remove some"),
        );
    }
}

fn one_object(capability: &CapabilitySpec, report: &mut Report) {
    if capability.targets().len() != 1 {
        let number = if capability.targets().is_empty() {
            "no object"
        } else {
            "several objects"
        };
        let message = format!("capability `{}` names {number}", capability.name.value);
        report.push(
            Diagnostic::at(Code::CapabilityShape, capability.name.place, message)
                .help("give exactly one of `partition = \"NAME\"`, `event-gate = \"NAME\"`, `timer = true`, `console = true`, `schedule = PCPU`, `port = \"NAME\"`, `lock = \"NAME\"`, `channel = \"NAME\"`, `device = \"NAME\"`, `interrupt = \"NAME\"`, `service = true`, `secret = \"device\"`"),
        );
    }
}

/// Reports a list without rights. Such a list is an error of its own only if all its words are understood.
fn some_right(capability: &CapabilitySpec, report: &mut Report) {
    let Some(rights) = &capability.rights else { return };
    if rights.value.is_empty() && !report.blames(rights.place) {
        let message = format!("capability `{}` gives no right", capability.name.value);
        report.push(
            Diagnostic::at(Code::CapabilityRight, rights.place, message)
                .label("its holder could do nothing with the object")
                .help("list a right, or remove `rights` for the default"),
        );
    }
}

/// Reports a right that is listed twice: the second one is perhaps not the word that was meant.
fn rights_differ(capability: &CapabilitySpec, report: &mut Report) {
    let listed = capability.listed();
    for (index, right) in listed.iter().enumerate() {
        let mut earlier = listed.iter().take(index);
        if let Some(first) = earlier.find(|other| other.value == right.value) {
            let names = right_names(right.value).join(", ");
            let message = format!(
                "capability `{}` lists the right \"{names}\" twice",
                capability.name.value
            );
            report.push(
                Diagnostic::at(Code::DuplicateName, right.place, message)
                    .also(first.place, "first listed here")
                    .help("list it once"),
            );
        }
    }
}

/// Reports a capability for a console that the partition does not have.
fn console_is_there(capability: &CapabilitySpec, holder: &PartitionSpec, report: &mut Report) {
    if holder.console || !capability.console {
        return;
    }
    let key = holder.keys.iter().find(|key| key.value == "console");
    let message = format!(
        "capability `{}` is for the console of `{}`, which has none",
        capability.name.value, holder.name.value
    );
    let found = Diagnostic::at(Code::CapabilityTarget, capability.name.place, message)
        .help("remove the capability, or `console = false`");
    report.push(match key {
        Some(key) => found.also(key.place, "taken away here"),
        None => found,
    });
}

/// Reports a capability for windows of a partition that serves no client.
fn serves_something(
    capability: &CapabilitySpec,
    holder: &PartitionSpec,
    manifest: &Manifest,
    report: &mut Report,
) {
    let name = &holder.name.value;
    let is_own = |spec: &ServiceSpec| spec.partition.as_ref().is_some_and(|own| own.value == *name);
    if !capability.service || manifest.services.iter().any(is_own) {
        return;
    }
    let message = format!(
        "capability `{}` is for windows that `{name}` serves, which serves nobody",
        capability.name.value
    );
    report.push(
        Diagnostic::at(Code::CapabilityTarget, capability.name.place, message).help(format!(
            "add a table `[service.NAME]` with `partition = \"{name}\"`"
        )),
    );
}

fn help_with_name(name: &str, manifest: &Manifest) -> String {
    let names = manifest
        .partitions
        .iter()
        .map(|partition| partition.name.value.as_str());
    match nearest(name, names.clone()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("the partitions are: {}", names.collect::<Vec<_>>().join(", ")),
    }
}

fn exists(name: &str, manifest: &Manifest) -> bool {
    manifest
        .partitions
        .iter()
        .any(|partition| partition.name.value == name)
}

fn target_exists(capability: &CapabilitySpec, manifest: &Manifest, report: &mut Report) {
    for target in capability.targets() {
        if let Target::Schedule(pcpu) = target {
            pcpu_has_schedules(capability, pcpu, manifest, report);
        }
        if let Target::Port(port) = target {
            let names = manifest.ports.iter().map(|port| port.name.value.as_str());
            queue_exists(capability, "port", port, names, report);
        }
        if let Target::Lock(lock) = target {
            let names = manifest.locks.iter().map(|lock| lock.name.value.as_str());
            queue_exists(capability, "lock", lock, names, report);
        }
        let (Target::Partition(name) | Target::EventGate(name)) = target else {
            continue;
        };
        if !exists(&name.value, manifest) {
            let message = format!(
                "capability `{}` names a partition `{}` that does not exist",
                capability.name.value, name.value
            );
            report.push(
                Diagnostic::at(Code::CapabilityTarget, name.place, message)
                    .help(help_with_name(&name.value, manifest)),
            );
        }
    }
}

fn pcpu_has_schedules(
    capability: &CapabilitySpec,
    pcpu: &Placed<u32>,
    manifest: &Manifest,
    report: &mut Report,
) {
    if policy_of(manifest, pcpu.value) != Policy::Arinc653 {
        let message = format!(
            "capability `{}` names the schedules of pCPU {}, which has none",
            capability.name.value, pcpu.value
        );
        report.push(
            Diagnostic::at(Code::CapabilityTarget, pcpu.place, message)
                .help("name a pCPU with policy \"arinc653\""),
        );
    }
}

/// Reports a capability for an object of a table of its own, a port or a lock, that is none of `names`.
fn queue_exists<'n>(
    capability: &CapabilitySpec,
    kind: &str,
    wanted: &Placed<String>,
    mut names: impl Iterator<Item = &'n str> + Clone,
    report: &mut Report,
) {
    let known = names.clone();
    if names.any(|name| name == wanted.value) {
        return;
    }
    let help = match nearest(&wanted.value, known.clone()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if known.clone().next().is_none() => format!("add a table `[{kind}.{}]`", wanted.value),
        None => format!("the {kind}s are: {}", known.collect::<Vec<_>>().join(", ")),
    };
    let message = format!(
        "capability `{}` names a {kind} `{}` that does not exist",
        capability.name.value, wanted.value
    );
    report.push(Diagnostic::at(Code::CapabilityTarget, wanted.place, message).help(help));
}

/// Reports a capability for a channel that does not exist, or at which the holder has no side.
fn holder_has_a_side(
    capability: &CapabilitySpec,
    holder: &PartitionSpec,
    manifest: &Manifest,
    report: &mut Report,
) {
    let (name, is_device) = match capability.target() {
        Some(Target::Channel(name)) => (name, false),
        Some(Target::Device(name) | Target::Interrupt(name)) => (name, true),
        _ => return,
    };
    let own = &capability.name.value;
    let names = manifest
        .channels
        .iter()
        .map(|channel| channel.name.value.as_str());
    let Some(number) = side::number(manifest, &name.value) else {
        let help = match nearest(&name.value, names.clone()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if manifest.channels.is_empty() => format!("add a table `[channel.{}]`", name.value),
            None => format!("the channels are: {}", names.collect::<Vec<_>>().join(", ")),
        };
        let message = format!(
            "capability `{own}` names a channel `{}` that does not exist",
            name.value
        );
        report.push(Diagnostic::at(Code::CapabilityTarget, name.place, message).help(help));
        return;
    };
    let lends = manifest
        .channels
        .get(number)
        .is_some_and(|channel| channel.device.is_some());
    if lends != is_device {
        let (message, help) = if lends {
            (
                "the registers of a device",
                "give `device = \"NAME\"` or `interrupt = \"NAME\"`",
            )
        } else {
            ("memory and no device", "give `channel = \"NAME\"`")
        };
        let message = format!("capability `{own}`: channel `{}` is {message}", name.value);
        report.push(Diagnostic::at(Code::CapabilityTarget, name.place, message).help(help));
        return;
    }
    let sides = channels::sides_of(manifest, &holder.name.value);
    if !sides.iter().any(|side| side.number == number) {
        let message = format!(
            "capability `{own}` is for channel `{}`, at which `{}` has no side",
            name.value, holder.name.value
        );
        report.push(
            Diagnostic::at(Code::CapabilityTarget, name.place, message).help(format!(
                "add `[[channel.{}.side]]` with `partition = \"{}\"`",
                name.value, holder.name.value
            )),
        );
    }
}

/// Returns the rights that some operation on the object needs.
fn meaningful(target: &Target, own: bool) -> Rights {
    match target {
        Target::Partition(_) => Rights::READ.union(Rights::CONTROL).union(Rights::GRANT),
        // Only the owner can wait at a gate.
        Target::EventGate(_) if own => Rights::READ.union(Rights::WRITE).union(Rights::GRANT),
        Target::EventGate(_) => Rights::WRITE.union(Rights::GRANT),
        Target::Timer => Rights::READ.union(Rights::GRANT),
        Target::Schedule(_) => Rights::READ.union(Rights::CONTROL).union(Rights::GRANT),
        Target::Lock(_) => Rights::WRITE.union(Rights::GRANT),
        Target::Interrupt(_) => Rights::READ.union(Rights::GRANT),
        Target::Secret => Rights::READ,
        Target::Console | Target::Port(_) | Target::Channel(_) | Target::Device(_) | Target::Service => {
            Rights::READ.union(Rights::WRITE).union(Rights::GRANT)
        }
    }
}

fn rights_have_meaning(capability: &CapabilitySpec, holder: &PartitionSpec, report: &mut Report) {
    let [target] = capability.targets()[..] else {
        return;
    };
    let own = matches!(target, Target::EventGate(name) if name.value == holder.name.value);
    let allowed = meaningful(&target, own);
    for right in capability
        .listed()
        .iter()
        .filter(|right| !allowed.contains(right.value))
    {
        let names = right_names(right.value).join(", ");
        let message = format!(
            "the right \"{names}\" has no meaning for the object of capability `{}`",
            capability.name.value
        );
        let known: Vec<_> = right_names(allowed)
            .iter()
            .map(|name| format!("\"{name}\""))
            .collect();
        let mut diagnostic = Diagnostic::at(Code::CapabilityRight, right.place, message)
            .help(format!("rights of this object: {}", known.join(", ")));
        if matches!(target, Target::EventGate(_)) && !own {
            diagnostic = diagnostic.label("only its owner can wait at an event gate");
        }
        report.push(diagnostic);
    }
    if let (Target::EventGate(gate), false, None) = (target, own, &capability.rights) {
        let message = format!(
            "capability `{}` for the gate of another partition has no rights",
            capability.name.value
        );
        report.push(
            Diagnostic::at(Code::CapabilityRight, gate.place, message)
                .label("the default, \"read\", is for the gate's owner only")
                .help("add rights = [\"write\"]"),
        );
    }
}

fn watched_exist(partition: &PartitionSpec, manifest: &Manifest, report: &mut Report) {
    for name in partition
        .watch
        .partitions
        .iter()
        .filter(|name| !exists(&name.value, manifest))
    {
        let message = format!("`{}` is watched, but does not exist", name.value);
        report.push(
            Diagnostic::at(Code::WatchTarget, name.place, message)
                .help(help_with_name(&name.value, manifest)),
        );
    }
    for (index, name) in partition.watch.partitions.iter().enumerate() {
        if let Some(first) = partition.watch.partitions[..index]
            .iter()
            .find(|other| other.value == name.value)
        {
            report.push(
                Diagnostic::at(
                    Code::DuplicateName,
                    name.place,
                    format!("`{}` is watched twice", name.value),
                )
                .also(first.place, "first named here")
                .help("name it once"),
            );
        }
    }
}

fn watcher_can_wait(partition: &PartitionSpec, report: &mut Report) {
    let first = partition.watch.partitions.first().map(|name| name.place);
    let Some(place) = first.or(partition.watch_windows()) else {
        return;
    };
    if !partition.can_wait() {
        let name = &partition.name.value;
        let message = format!("partition `{name}` has a `watch` table, but cannot wait for the events");
        report.push(
            Diagnostic::at(Code::WatchWithoutGate, place, message).help(format!(
                "add `events = {{ event-gate = \"{name}\", rights = [\"read\"] }}` to its capabilities"
            )),
        );
    }
}
