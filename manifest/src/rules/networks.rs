// SPDX-License-Identifier: Apache-2.0
//! Networks that VMs share: the members and their addresses, and the connection with the outside.

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::network::{Interface, controller, format, interface, parse};
use crate::model::{Kind, Manifest, NetworkSpec, PartitionSpec, Placed};
use crate::nearest::nearest;
use crate::units::Duration;

/// Number of interfaces that the tables of the class binary hold.
const INTERFACES: usize = 4;

/// The shortest and the longest budget, and period.
const SHORTEST: Duration = Duration::new(10_000);
const LONGEST: Duration = Duration::new(1_000_000_000);

/// Reports budgets that cannot be kept, or that have no use.
fn budgeted(network: &NetworkSpec, report: &mut Report) {
    for (name, given) in [("budget", &network.budget), ("period", &network.period)] {
        let Some(given) = given.given() else {
            continue;
        };
        if network.uplink.is_none() {
            let message = format!(
                "network `{}` has no uplink, so nothing comes from outside",
                network.name.value
            );
            report.push(
                Diagnostic::at(Code::BadNetwork, given.place, message).help(format!("remove `{name}`")),
            );
        } else if !(SHORTEST..=LONGEST).contains(&given.value) {
            let message = format!(
                "`{name}` of network `{}` is not from 10us to 1s",
                network.name.value
            );
            report.push(
                Diagnostic::at(Code::BadNetwork, given.place, message)
                    .help("the defaults are \"2ms\" in \"10ms\""),
            );
        }
    }
    if let Some(given) = network.budget.place.or(network.period.place)
        && network.uplink.is_some()
        && network.budget.value > network.period.value
    {
        let message = format!(
            "the budget of network `{}` is more than its period",
            network.name.value
        );
        report.push(
            Diagnostic::at(Code::BadNetwork, given, message).help("give less, or both the same for no limit"),
        );
    }
}

pub(super) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    for partition in &manifest.partitions {
        addressed(partition, report);
        ring_has_network(partition, report);
        let Some(network) = &partition.network else {
            continue;
        };
        if !manifest
            .networks
            .iter()
            .any(|other| other.name.value == network.value)
        {
            report.push(unknown(network, manifest));
        }
        if partition.kind == Kind::Task {
            let message = format!("`{}` is a task and has no devices", partition.name.value);
            report.push(Diagnostic::at(Code::NotForTask, network.place, message).help("remove `network`"));
        }
    }
    addresses_differ(manifest, report);
    for network in manifest.networks.iter().skip(INTERFACES) {
        let message = format!("there are more than {INTERFACES} networks");
        report.push(Diagnostic::at(Code::BadNetwork, network.name.place, message).help("join some of them"));
    }
    for network in &manifest.networks {
        budgeted(network, report);
    }
    let mut connected = manifest
        .partitions
        .iter()
        .filter_map(|partition| partition.network.as_ref());
    if let Some(network) = connected.nth(INTERFACES) {
        let message = format!("more than {INTERFACES} partitions are on networks");
        report.push(
            Diagnostic::at(Code::BadNetwork, network.place, message)
                .label("the first one without an interface")
                .help("give fewer partitions a network"),
        );
    }
    let mut uplinks = manifest
        .networks
        .iter()
        .filter(|network| network.uplink.is_some());
    if let (Some(first), Some(second)) = (uplinks.next(), uplinks.next()) {
        report.push(
            Diagnostic::at(Code::BadNetwork, second.name.place, "two networks have an uplink")
                .also(first.name.place, "the first")
                .help("one of them can be a network of the VMs among themselves: remove its `uplink`"),
        );
    }
    if let Some(board) = board {
        possible(manifest, board, report);
    }
}

/// Reports an address without a network, and an address that no interface can have.
fn addressed(partition: &PartitionSpec, report: &mut Report) {
    let Some(mac) = &partition.mac else { return };
    let (message, help) = match parse(&mac.value) {
        _ if partition.network.is_none() => (
            format!("`{}` has an address, but no network", partition.name.value),
            "name its `network`, or remove `mac`",
        ),
        None => (
            format!("`{}` is no MAC address", mac.value),
            "give six bytes, as in \"02:00:00:00:00:01\"",
        ),
        Some([first, ..]) if first & 1 != 0 => (
            format!("`{}` is the address of a group", mac.value),
            "clear the lowest bit of its first byte",
        ),
        Some([0, 0, 0, 0, 0, 0]) => (
            format!("`{}` is no MAC address", mac.value),
            "give one, as in \"02:00:00:00:00:01\"",
        ),
        Some(_) => return,
    };
    report.push(Diagnostic::at(Code::BadMac, mac.place, message).help(help));
}

/// Reports a ring of frames without a network.
fn ring_has_network(partition: &PartitionSpec, report: &mut Report) {
    let Some(key) = partition.frame_ring.key.filter(|_| partition.network.is_none()) else {
        return;
    };
    let message = format!("`{}` has `frame-ring`, but no network", partition.name.value);
    report.push(
        Diagnostic::at(Code::BadNetwork, key, message)
            .label("there are no frames")
            .help("name its `network`, or remove `frame-ring`"),
    );
}

fn addresses_differ(manifest: &Manifest, report: &mut Report) {
    let mut seen: Vec<(Interface<'_>, Place)> = Vec::new();
    for (number, partition) in manifest.partitions.iter().enumerate() {
        let Some(own) = interface(number, partition) else {
            continue;
        };
        let place = partition.mac.as_ref().map_or(own.network.place, |mac| mac.place);
        let same = |other: &&(Interface<'_>, Place)| {
            other.0.address == own.address && other.0.network.value == own.network.value
        };
        if let Some((_, first)) = seen.iter().find(same) {
            let message = format!(
                "two partitions on `{}` have the address {}",
                own.network.value,
                format(own.address)
            );
            report.push(
                Diagnostic::at(Code::BadMac, place, message)
                    .also(*first, "the first")
                    .help("give them different ones, or leave `mac` out"),
            );
        }
        seen.push((own, place));
    }
}

fn unknown(network: &Placed<String>, manifest: &Manifest) -> Diagnostic {
    let names = || {
        manifest
            .networks
            .iter()
            .map(|network| network.name.value.as_str())
    };
    let help = match nearest(&network.value, names()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("add a table `[network.{}]`", network.value),
    };
    let message = format!("there is no network `{}`", network.value);
    Diagnostic::at(Code::UnknownNetwork, network.place, message).help(help)
}

/// Checks that the place of the virtual controller is not also the place of the real one.
fn has_room(partition: &PartitionSpec, board: &Board, report: &mut Report) {
    let (Some(network), Some(device)) = (&partition.network, controller(board)) else {
        return;
    };
    if let Some(own) = partition.devices.iter().find(|name| name.value == device.name) {
        let message = format!(
            "`{}` has both the controller `{}` and a virtual one, which is found at the same place",
            partition.name.value, own.value
        );
        report.push(
            Diagnostic::at(Code::VirtualOverlap, own.place, message)
                .also(network.place, "the virtual one")
                .help("remove one of them"),
        );
    }
}

/// Checks that the board has the hardware that networks need.
fn possible(manifest: &Manifest, board: &Board, report: &mut Report) {
    let able = controller(board).is_some();
    for partition in &manifest.partitions {
        has_room(partition, board, report);
    }
    for network in &manifest.networks {
        if able {
            if let Some(uplink) = &network.uplink {
                uplink_is_free(uplink, network, manifest, board, report);
            }
            continue;
        }
        let message = format!("board `{}` has no networks that VMs share", board.name);
        report.push(
            Diagnostic::at(Code::BadNetwork, network.name.place, message)
                .label("the hypervisor has no driver for an Ethernet controller of its")
                .help("give the controller to one VM with `devices`, or choose another board"),
        );
    }
}

fn uplink_is_free(
    uplink: &Placed<String>,
    network: &NetworkSpec,
    manifest: &Manifest,
    board: &Board,
    report: &mut Report,
) {
    let able = controller(board).filter(|device| device.name == uplink.value);
    if able.is_none() {
        let names = controller(board).map_or("", |device| device.name.as_str());
        let message = format!("`{}` cannot be the uplink of a network", uplink.value);
        report.push(
            Diagnostic::at(Code::BadNetwork, uplink.place, message)
                .help(format!("Ethernet controllers of board `{}`: {names}", board.name)),
        );
    }
    let owners = manifest
        .partitions
        .iter()
        .flat_map(|partition| &partition.devices);
    for owned in owners.filter(|name| name.value == uplink.value) {
        let message = format!(
            "`{}` is the uplink of network `{}`, and given to a partition",
            uplink.value, network.name.value
        );
        report.push(
            Diagnostic::at(Code::DeviceTwice, owned.place, message)
                .also(uplink.place, "the uplink")
                .help("put the partition on the network instead, with `network`"),
        );
    }
}
