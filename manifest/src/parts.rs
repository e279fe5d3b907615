// SPDX-License-Identifier: Apache-2.0
//! The parts of the kernel that a system uses, each with the line that needs it.
//!
//! The manifest says it all, but for calls of a debugger: the programs themselves say whether they can make
//! such calls. So a manifest that is only read gives the parts of every system that it can become, but for
//! `semihosting`, and a checked [`System`] gives all of its parts.
#![deny(clippy::arithmetic_side_effects)]

use bulkhead_abi::Rights;
pub use bulkhead_abi::parts::{FULL, Part, Parts, TAILORED, VARIANTS, Variant, variant_for};
use bulkhead_abi::size::Tables;
use bulkhead_arch_api::class::DeviceRole;
use bulkhead_arch_api::class::driver::Role;

use crate::board::Class;
use crate::class;
use crate::diagnostic::{Place, Sources};
use crate::guest::DebuggerCall;
use crate::model::{CapabilitySpec, Kind, Manifest, PartitionSpec, Policy, Target, TextPlace};
use crate::system::System;

/// A part that a system uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedPart {
    /// The part.
    pub part: Part,
    /// The line of the manifest that needs it first. `None`: no line does.
    pub line: Option<u32>,
    /// The thing that needs it, in words.
    pub why: String,
}

/// Returns the parts of the kernel that systems on boards of a class can use.
#[must_use]
pub fn of_class(class: Class) -> Parts {
    let facts = class.facts();
    let has = |role: DeviceRole| facts.devices.iter().any(|device| device.role == role);
    let limited = [
        (Part::Functions, has(DeviceRole::Bridge)),
        (Part::Networks, has(DeviceRole::Network)),
        (Part::Flash, has(DeviceRole::Flash)),
        (Part::Lent, facts.protects),
        (Part::Services, class::host(class).finds_services()),
        (Part::Upcalls, facts.upcalls),
        (Part::Semihosting, facts.semihosting),
        (Part::EarlyHandlers, facts.delays_interrupts),
        (Part::MaskWords, facts.replaces_instructions),
        (Part::FrameRing, has(DeviceRole::Network)),
        (Part::SecondPcpu, has_second(class)),
        (Part::TaskLines, facts.guards_memory()),
        (Part::TaskFloats, facts.guards_memory()),
        (Part::HeldRegions, holds_regions(class)),
    ];
    let lacked = limited.into_iter().filter(|(_, can)| !can);
    Parts::ALL.without(lacked.fold(Parts::NONE, |set, (part, _)| set.with(part)))
}

/// Returns the parts of a class that its class binaries have which are built ahead.
#[must_use]
pub fn ahead_of_class(class: Class) -> Parts {
    let ahead = of_class(class).without(TAILORED);
    if holds_regions(class) {
        ahead.without(Parts::of(&[Part::Lent]))
    } else {
        ahead
    }
}

/// Tells whether memory that is held is regions of a unit, for which few systems of a class have room.
fn holds_regions(class: Class) -> bool {
    class.facts().protects && class.facts().runs_in_place()
}

/// Tells whether a second pCPU is a part for a class, and not what its tables are for anyway.
fn has_second(class: Class) -> bool {
    let mut drivers = class.facts().drivers.iter();
    class.facts().tables == Tables::Small && drivers.any(|driver| driver.role == Role::Processors)
}

/// Returns these parts as a set.
#[must_use]
pub fn set_of(used: &[UsedPart]) -> Parts {
    used.iter().fold(Parts::NONE, |set, used| set.with(used.part))
}

impl System {
    /// Returns the parts that the system uses, in their order. `is_traced` tells whether the run has rings of
    /// the trace for which the manifest does not ask.
    #[must_use]
    pub fn parts(&self, is_traced: bool) -> Vec<UsedPart> {
        let mut found = Found::default();
        found.of_manifest(&self.manifest, Some(self.board.class));
        let programs = self.manifest.partitions.iter().zip(&self.guests);
        for (spec, guest) in programs {
            let mut all = std::iter::once(guest).chain(&guest.alternatives);
            let call = all.find_map(|guest| guest.debugger_call);
            if let (Some(image), Some(call)) = (&spec.image, call) {
                let why = match call {
                    DebuggerCall::Instruction(_) => {
                        format!("the program of `{}` can call a debugger", spec.name.value)
                    }
                    DebuggerCall::Hidden(address) => format!(
                        "the program of `{}` calls a debugger if it jumps to {address:#x}, within another \
                         instruction or data",
                        spec.name.value
                    ),
                };
                found.add(Part::Semihosting, Some(image.place), why);
            }
        }
        found.finish(is_traced, &self.report.sources)
    }
}

/// Returns the parts that every system of this manifest uses.
pub(crate) fn of_manifest(
    manifest: &Manifest,
    class: Option<Class>,
    is_traced: bool,
    sources: &Sources,
) -> Vec<UsedPart> {
    let mut found = Found::default();
    found.of_manifest(manifest, class);
    found.finish(is_traced, sources)
}

/// The needs that were found, the first one of each part.
#[derive(Default)]
struct Found(Vec<(Part, Option<Place>, String)>);

impl Found {
    /// Notes that something needs a part.
    fn add(&mut self, part: Part, place: Option<Place>, why: String) {
        if self.0.iter().all(|(other, ..)| *other != part) {
            self.0.push((part, place, why));
        }
    }

    /// Notes what the tables of a manifest need.
    fn of_manifest(&mut self, manifest: &Manifest, class: Option<Class>) {
        self.of_objects(manifest);
        for pcpu in &manifest.pcpus {
            let part = match **pcpu.policy {
                Policy::Edf => Part::Edf,
                Policy::Arinc653 => Part::Arinc653,
                Policy::Domains => Part::Domains,
                Policy::Own => Part::OwnPolicy,
                Policy::FixedPriority | Policy::Pinned => continue,
            };
            let why = match pcpu.own_policy() {
                Some(Ok(own)) => format!(
                    "pCPU {} has the policy of the crate `{}`",
                    pcpu.name.value, own.name
                ),
                _ => format!("pCPU {} has policy `{part}`", pcpu.name.value),
            };
            self.add(part, pcpu.policy.place, why);
        }
        for partition in &manifest.partitions {
            if let Some(bound) = &partition.early_handlers {
                let why = format!("partition `{}` has `early-handlers`", partition.name.value);
                self.add(Part::EarlyHandlers, Some(bound.place), why);
            }
            if let Some(words) = &partition.machine.mask_words {
                let why = format!("partition `{}` has `machine.mask-words`", partition.name.value);
                self.add(Part::MaskWords, Some(words.place), why);
            }
            if let Some(place) = partition.frame_ring.key.filter(|_| *partition.frame_ring) {
                let why = format!("partition `{}` has `frame-ring`", partition.name.value);
                self.add(Part::FrameRing, Some(place), why);
            }
            let floats = partition.floating_point.key.filter(|_| *partition.floating_point);
            if let Some(place) = floats.filter(|_| class.is_some_and(|class| class.facts().guards_memory())) {
                let why = format!("the task `{}` has floating point", partition.name.value);
                self.add(Part::TaskFloats, Some(place), why);
            }
            if let Some(flash) = &partition.flash {
                let why = format!("partition `{}` has a flash", partition.name.value);
                self.add(Part::Flash, Some(flash.place), why);
            }
        }
        let text = &manifest.log.text;
        if text.value == TextPlace::Board {
            let by_default = if text.key.is_some() { "" } else { ", by default" };
            self.add(Part::Text, text.key, format!("the board prints text{by_default}"));
        }
        if let Some(signature) = &manifest.signature {
            self.add(
                Part::Signature,
                Some(signature.place),
                "the table `signature`".to_owned(),
            );
        }
        if let Some(trace) = &manifest.trace {
            self.add(Part::Trace, Some(trace.place), "the table `trace`".to_owned());
        }
        let lent = self.0.iter().find(|(part, ..)| *part == Part::Lent);
        if let Some((_, place, why)) = lent.filter(|_| class.is_some_and(holds_regions)) {
            let (place, why) = (*place, why.clone());
            self.add(Part::HeldRegions, place, why);
        }
        let second = manifest.beyond_first_pcpu();
        if let Some(pcpu) = second.filter(|_| class.is_some_and(has_second)) {
            let why = format!("a vCPU is on pCPU {}", pcpu.value);
            self.add(Part::SecondPcpu, Some(pcpu.place), why);
        }
        let mut tasks = manifest.partitions.iter().filter(|spec| spec.kind == Kind::Task);
        let driver = tasks.find_map(|task| Some((task, task.devices.first()?)));
        if let Some((task, device)) =
            driver.filter(|_| class.is_some_and(|class| class.facts().guards_memory()))
        {
            let why = format!("the task `{}` has devices", task.name.value);
            self.add(Part::TaskLines, Some(device.place), why);
        }
        if class.is_none_or(|class| class.facts().upcalls) {
            self.of_tasks(manifest);
        }
    }

    /// Notes what channels, ports, locks, services, networks and secrets need.
    fn of_objects(&mut self, manifest: &Manifest) {
        for partition in &manifest.partitions {
            let mut own = partition.capabilities.iter();
            if let Some(secret) = own.find_map(|own| own.secret.as_ref()) {
                let why = format!("partition `{}` has a secret", partition.name.value);
                self.add(Part::Secrets, Some(secret.place), why);
            }
        }
        for channel in &manifest.channels {
            let name = &channel.name;
            self.add(
                Part::Channels,
                Some(name.place),
                format!("channel `{}`", name.value),
            );
            if let Some(device) = &channel.device {
                let why = format!("channel `{}` lends device `{}`", name.value, device.value);
                self.add(Part::Lent, Some(device.place), why);
            }
            for side in &channel.sides {
                if *side.held && side.held.key.is_some() {
                    let why = format!("a side of channel `{}` is held", name.value);
                    self.add(Part::Lent, side.held.key, why);
                }
                if *side.pci {
                    let why = format!("a side of channel `{}` is a PCI function", name.value);
                    self.add(Part::Functions, side.pci.key, why);
                }
            }
        }
        let ports = manifest.ports.iter().map(|port| (Part::Ports, &port.name));
        let locks = manifest.locks.iter().map(|lock| (Part::Locks, &lock.name));
        let services = manifest.services.iter();
        let services = services.map(|service| (Part::Services, &service.name));
        let networks = manifest.networks.iter();
        let networks = networks.map(|network| (Part::Networks, &network.name));
        for (part, name) in ports.chain(locks).chain(services).chain(networks) {
            let kind = part.name().trim_end_matches('s');
            self.add(part, Some(name.place), format!("{kind} `{}`", name.value));
        }
    }

    /// Notes what tasks can ask for. A task asks for upcalls by a capability for a gate that the manifest
    /// gives it, or that a holder may pass on.
    fn of_tasks(&mut self, manifest: &Manifest) {
        let is_task = |partition: &&PartitionSpec| partition.kind == Kind::Task;
        if !manifest.partitions.iter().any(|partition| is_task(&partition)) {
            return;
        }
        for partition in &manifest.partitions {
            for capability in partition.capabilities.iter().filter(|own| waits(own)) {
                let (name, owner) = (&capability.name.value, &partition.name.value);
                let why = if partition.kind == Kind::Task {
                    format!("task `{owner}` can ask for upcalls by `{name}`")
                } else if capability.gives(Rights::GRANT) {
                    format!("`{owner}` can pass `{name}` on to a task, which can then ask for upcalls")
                } else {
                    continue;
                };
                self.add(Part::Upcalls, Some(capability.name.place), why);
            }
        }
    }

    /// Returns the parts in their order, and with them those that they are built on. `is_traced`: this run
    /// has a trace for which the manifest does not ask.
    fn finish(mut self, is_traced: bool, sources: &Sources) -> Vec<UsedPart> {
        if is_traced {
            self.add(Part::Trace, None, "this run is traced".to_owned());
        }
        let used: Vec<Part> = self.0.iter().map(|(part, ..)| *part).collect();
        for user in used {
            for part in user.needs().iter() {
                self.add(part, None, format!("`{user}` needs it"));
            }
        }
        self.0.sort_by_key(|(part, ..)| *part);
        let used = self.0.into_iter().map(|(part, place, why)| UsedPart {
            part,
            line: place.map(|place| sources.line_column(place).0),
            why,
        });
        used.collect()
    }
}

/// Tells whether a capability lets its holder wait for events.
fn waits(capability: &CapabilitySpec) -> bool {
    let is_gate = matches!(capability.target(), Some(Target::EventGate(_)));
    is_gate && (capability.rights.is_none() || capability.gives(Rights::READ))
}
