// SPDX-License-Identifier: Apache-2.0
//! A checked system, as plain data for those who show it, simulate it or compile it.
//!
//! A [`System`] exists only if no rule found an error: places are disjoint, owners are unique, payloads are
//! loaded and fit. Everything is in the order of the manifest, which is also the order of numbers.

use bulkhead_abi::hypercall::SELF_CAPABILITY;
use bulkhead_abi::{HealthClass, ObjectKind, Rights};

use crate::board::{Board, Trigger, Window};
use crate::diagnostic::{Report, Sources};
use crate::guest::{AreaKind, Guest};
use crate::model::{Access, Action, Kind, Manifest, PartitionSpec, Policy, Target, right_names};
use crate::plan::Plan;
use crate::rules::owned;

/// Name under which a partition finds the capability for itself.
pub(crate) const SELF_NAME: &str = "self";
/// Turn of a vCPU under `fixed-priority` unless the manifest says otherwise.
const DEFAULT_QUANTUM: u64 = 10_000_000;

/// A pCPU that the system uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pcpu {
    /// Its number.
    pub number: u32,
    /// The CPU's own identification.
    pub hardware_id: u64,
    /// How it is scheduled.
    pub policy: Policy,
    /// Turn of a vCPU among its equals, in nanoseconds; 0 if the policy has none.
    pub quantum_ns: u64,
}

/// A virtual CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vcpu {
    /// The pCPU it is bound to.
    pub pcpu: u32,
    /// Larger is more important.
    pub priority: u32,
}

/// A capability a partition holds from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Index in its space.
    pub index: u32,
    /// Name it knows it by.
    pub name: String,
    /// Kind of the object.
    pub kind: ObjectKind,
    /// Number of the partition the object belongs to; 0 for the timer.
    pub object: usize,
    /// What it may do.
    pub rights: Rights,
}

/// What is behind a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingKind {
    /// The partition's RAM.
    Ram,
    /// A region of the manifest.
    Region,
    /// The startup page of a task.
    Startup,
    /// Registers of a device passed through.
    Device,
}

/// A mapping in a partition's space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// What is there.
    pub kind: MappingKind,
    /// Where the partition sees it.
    pub guest: u64,
    /// Where it is on the board.
    pub host: u64,
    /// Bytes.
    pub size: u64,
    /// What the partition may do.
    pub access: Access,
    /// Line of the manifest that asks for it.
    pub line: u32,
}

/// A partition.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// VM or task.
    pub kind: Kind,
    /// Line of the manifest where it starts.
    pub line: u32,
    /// Its vCPUs.
    pub vcpus: Vec<Vcpu>,
    /// Its memory and devices.
    pub mappings: Vec<Mapping>,
    /// Its capabilities; the first is for itself.
    pub capabilities: Vec<Capability>,
    /// Numbers of the partitions it watches.
    pub watches: Vec<usize>,
    /// Names of its devices.
    pub devices: Vec<String>,
    /// Health action per class.
    pub health: [(HealthClass, Action); 5],
    /// Whether it has a console.
    pub console: bool,
    /// Whether its time stands still while it waits.
    pub frozen_time: bool,
    /// Whether it is started at boot.
    pub autostart: bool,
    /// Whether a device of its can overwrite any memory.
    pub unconfined_dma: bool,
    /// Longest time between kicks in nanoseconds.
    pub watchdog_ns: Option<u64>,
    /// Restarts by a health action.
    pub restart_limit: Option<u32>,
    /// First instruction.
    pub entry: u64,
    /// First argument: device tree or startup page.
    pub argument: u64,
    /// Initial stack pointer of a task.
    pub stack: u64,
    /// The generated device tree of a VM.
    pub device_tree: Vec<u8>,
}

/// A checked system.
#[derive(Clone, Debug)]
pub struct System {
    pub(crate) board: Board,
    pub(crate) manifest: Manifest,
    pub(crate) guests: Vec<Guest>,
    pub(crate) plan: Plan,
    pub(crate) pcpus: Vec<Pcpu>,
    pub(crate) partitions: Vec<Partition>,
    pub(crate) report: Report,
}

/// A line of the memory map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRow {
    /// Bus address.
    pub host: u64,
    /// Bytes.
    pub size: u64,
    /// Name of the partition, `bulkhead` for the hypervisor.
    pub owner: String,
    /// What it is, in a word or two.
    pub what: String,
    /// Where the partition sees it.
    pub guest: Option<u64>,
    /// What the owner may do with it.
    pub access: String,
}

/// A pCPU and who runs on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuRow {
    /// The pCPU.
    pub pcpu: Pcpu,
    /// Partition, index of the vCPU within it, priority; most important first.
    pub vcpus: Vec<(String, usize, u32)>,
}

/// An interrupt line and who owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptRow {
    /// Line of the board.
    pub line: u32,
    /// The device behind it.
    pub device: String,
    /// Name of the partition, `bulkhead` for the hypervisor.
    pub owner: String,
    /// Line the partition sees.
    pub virtual_line: Option<u32>,
    /// How it is signalled.
    pub trigger: Trigger,
}

/// A device of the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRow {
    /// Its name.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// Its registers.
    pub registers: Vec<Window>,
    /// The partition that owns it, `bulkhead` for the hypervisor.
    pub owner: Option<String>,
}

/// One way in which a partition can act on something that is not its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchRow {
    /// Who.
    pub partition: String,
    /// What.
    pub object: String,
    /// How: rights, or a sentence.
    pub how: String,
}

/// Name of the hypervisor as an owner.
const HYPERVISOR: &str = bulkhead_abi::framing::HYPERVISOR_CONSOLE;

impl System {
    /// The board.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The partitions, by number.
    #[must_use]
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// The pCPUs the system uses, by number.
    #[must_use]
    pub fn pcpus(&self) -> &[Pcpu] {
        &self.pcpus
    }

    /// Warnings.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The files the system was read from.
    #[must_use]
    pub fn sources(&self) -> &Sources {
        &self.report.sources
    }

    /// Everything in the board's memory and every register window that has an owner, by bus address.
    #[must_use]
    pub fn memory_map(&self) -> Vec<MemoryRow> {
        let hypervisor = self.plan.hypervisor;
        let row = |what: &str, window: Window, access: &str| MemoryRow {
            host: window.base,
            size: window.size,
            owner: HYPERVISOR.to_owned(),
            what: what.to_owned(),
            guest: None,
            access: access.to_owned(),
        };
        let mut rows = vec![row("hypervisor, payloads", hypervisor, "rwx")];
        rows.extend(
            self.board
                .hypervisor_devices()
                .map(|(name, window)| row(name, window, "rw")),
        );
        for partition in &self.partitions {
            rows.extend(partition.mappings.iter().map(|mapping| MemoryRow {
                host: mapping.host,
                size: mapping.size,
                owner: partition.name.clone(),
                what: match mapping.kind {
                    MappingKind::Ram => "RAM".to_owned(),
                    MappingKind::Region => "region".to_owned(),
                    MappingKind::Startup => "startup page".to_owned(),
                    MappingKind::Device => self.devices_at(mapping).join(", "),
                },
                guest: Some(mapping.guest),
                access: mapping.access.name(),
            }));
        }
        rows.sort_by_key(|row| row.host);
        rows
    }

    fn devices_at(&self, mapping: &Mapping) -> Vec<String> {
        let page = Window {
            base: mapping.host,
            size: mapping.size,
        };
        let inside =
            |device: &&crate::board::Device| device.registers.iter().any(|window| window.overlaps(page));
        self.board
            .devices
            .iter()
            .filter(inside)
            .map(|device| device.name.clone())
            .collect()
    }

    /// Who runs where.
    #[must_use]
    pub fn cpu_assignment(&self) -> Vec<CpuRow> {
        let on = |number: u32| {
            let mut vcpus: Vec<_> = self
                .partitions
                .iter()
                .flat_map(|partition| {
                    partition
                        .vcpus
                        .iter()
                        .enumerate()
                        .map(move |(index, vcpu)| (partition, index, vcpu))
                })
                .filter(|(_, _, vcpu)| vcpu.pcpu == number)
                .map(|(partition, index, vcpu)| (partition.name.clone(), index, vcpu.priority))
                .collect();
            vcpus.sort_by_key(|(_, _, priority)| std::cmp::Reverse(*priority));
            vcpus
        };
        self.pcpus
            .iter()
            .map(|pcpu| CpuRow {
                pcpu: pcpu.clone(),
                vcpus: on(pcpu.number),
            })
            .collect()
    }

    /// Who owns which interrupt line, by line.
    #[must_use]
    pub fn interrupts(&self) -> Vec<InterruptRow> {
        let (timer, controller) = (&self.board.timer, &self.board.controller);
        let own = [
            (timer.hypervisor, "timer (hypervisor)"),
            (timer.virtual_line, "timer (virtual)"),
            (timer.physical, "timer (physical)"),
            (controller.maintenance, "interrupt-controller (maintenance)"),
            (self.board.console.line, "console"),
        ];
        let mut rows: Vec<_> = own
            .into_iter()
            .map(|(line, device)| InterruptRow {
                line,
                device: device.to_owned(),
                owner: HYPERVISOR.to_owned(),
                virtual_line: None,
                trigger: Trigger::Level,
            })
            .collect();
        for spec in &self.manifest.partitions {
            for (_, device) in owned(spec, &self.board) {
                rows.extend(device.interrupts.iter().map(|interrupt| InterruptRow {
                    line: interrupt.line,
                    device: device.name.clone(),
                    owner: spec.name.value.clone(),
                    virtual_line: Some(interrupt.line),
                    trigger: interrupt.trigger,
                }));
            }
        }
        rows.sort_by_key(|row| row.line);
        rows
    }

    /// The devices of the board and who owns them.
    #[must_use]
    pub fn devices(&self) -> Vec<DeviceRow> {
        let mut rows: Vec<DeviceRow> = Vec::new();
        for (name, window) in self.board.hypervisor_devices() {
            match rows.last_mut() {
                Some(last) if last.name == name => last.registers.push(window),
                _ => rows.push(DeviceRow {
                    name: name.to_owned(),
                    description: String::new(),
                    registers: vec![window],
                    owner: Some(HYPERVISOR.to_owned()),
                }),
            }
        }
        rows.extend(self.board.devices.iter().map(|device| {
            DeviceRow {
                name: device.name.clone(),
                description: device.description.clone(),
                registers: device.registers.clone(),
                owner: self
                    .partitions
                    .iter()
                    .find(|p| p.devices.contains(&device.name))
                    .map(|p| p.name.clone()),
            }
        }));
        rows
    }

    /// Every way in which a partition can act on something beyond its own memory and console.
    #[must_use]
    pub fn who_can_touch_what(&self) -> Vec<TouchRow> {
        let mut rows = Vec::new();
        for (number, partition) in self.partitions.iter().enumerate() {
            let mut row = |object: String, how: String| {
                rows.push(TouchRow {
                    partition: partition.name.clone(),
                    object,
                    how,
                })
            };
            for device in &partition.devices {
                row(format!("device {device}"), "registers and interrupts".to_owned());
            }
            if partition.unconfined_dma {
                row(
                    "all memory".to_owned(),
                    "DMA that no IOMMU confines (trusted-dma)".to_owned(),
                );
            }
            for capability in partition
                .capabilities
                .iter()
                .filter(|capability| capability.index != SELF_CAPABILITY)
            {
                let name = self
                    .partitions
                    .get(capability.object)
                    .map_or("", |target| &target.name);
                let own = capability.object == number;
                let object = match capability.kind {
                    ObjectKind::Partition => format!("partition {name}"),
                    ObjectKind::EventGate => format!("event gate of {name}"),
                    ObjectKind::Timer => "system clock".to_owned(),
                    ObjectKind::Console if own => "own console".to_owned(),
                    ObjectKind::Console => format!("console of {name}"),
                };
                row(object, right_names(capability.rights).join(", "));
            }
            for watched in &partition.watches {
                let name = self.partitions.get(*watched).map_or("", |target| &target.name);
                row(
                    format!("partition {name}"),
                    "is told about state changes".to_owned(),
                );
            }
        }
        rows
    }

    /// What the manifest names as the image of partition `number`: a path relative to it, or `@...`.
    #[must_use]
    pub fn image_name(&self, number: usize) -> Option<&str> {
        self.manifest
            .partitions
            .get(number)?
            .image
            .as_ref()
            .map(|image| image.value.as_str())
    }

    /// CPUs that the board's emulator needs.
    #[must_use]
    pub fn cpu_count(&self) -> usize {
        self.pcpus.len()
    }
}

/// The pCPUs up to the highest one that a vCPU is bound to.
pub(crate) fn pcpus(manifest: &Manifest, board: &Board) -> Vec<Pcpu> {
    let bound = manifest
        .partitions
        .iter()
        .flat_map(|partition| &partition.vcpus)
        .filter_map(|vcpu| vcpu.pcpu.as_ref());
    let count = bound.map(|pcpu| pcpu.value as usize + 1).max().unwrap_or(0);
    let hardware = board.cpus.iter().take(count).zip(0_u32..);
    hardware
        .map(|(id, number)| {
            let spec = manifest
                .pcpus
                .iter()
                .find(|pcpu| pcpu.name.value == number.to_string());
            let policy = spec.map_or(Policy::FixedPriority, |spec| spec.policy);
            let quantum = spec
                .and_then(|spec| spec.quantum.as_ref())
                .map_or(DEFAULT_QUANTUM, |quantum| quantum.value);
            let quantum_ns = if policy == Policy::Pinned { 0 } else { quantum };
            Pcpu {
                number,
                hardware_id: *id,
                policy,
                quantum_ns,
            }
        })
        .collect()
}

/// The capabilities of a partition: its own first, then those of the manifest.
pub(crate) fn capabilities(number: usize, spec: &PartitionSpec, manifest: &Manifest) -> Vec<Capability> {
    let find = |name: &str| {
        manifest
            .partitions
            .iter()
            .position(|partition| partition.name.value == name)
    };
    let itself = Capability {
        index: SELF_CAPABILITY,
        name: SELF_NAME.to_owned(),
        kind: ObjectKind::Partition,
        object: number,
        rights: Rights::ALL,
    };
    let named = spec
        .capabilities
        .iter()
        .zip(SELF_CAPABILITY + 1..)
        .filter_map(|(capability, index)| {
            let (kind, object, default) = match capability.targets.first()? {
                Target::Partition(name) => (ObjectKind::Partition, find(&name.value)?, Rights::READ),
                Target::EventGate(name) => (ObjectKind::EventGate, find(&name.value)?, Rights::READ),
                Target::Timer => (ObjectKind::Timer, 0, Rights::READ),
                Target::Console => (ObjectKind::Console, number, Rights::READ.union(Rights::WRITE)),
            };
            let rights = capability.rights.as_ref().map_or(default, |rights| {
                rights
                    .iter()
                    .fold(Rights::NONE, |all, right| all.union(right.value))
            });
            Some(Capability {
                index,
                name: capability.name.value.clone(),
                kind,
                object,
                rights,
            })
        });
    std::iter::once(itself).chain(named).collect()
}

/// The actions of the manifest over the defaults.
pub(crate) fn health(spec: &PartitionSpec) -> [(HealthClass, Action); 5] {
    let system = if spec.kind == Kind::Task {
        Action::Stop
    } else {
        Action::Inject
    };
    let defaults = [
        (HealthClass::Memory, Action::Stop),
        (HealthClass::System, system),
        (HealthClass::Hypercall, Action::Log),
        (HealthClass::Watchdog, Action::Restart),
        (HealthClass::Task, Action::Stop),
    ];
    defaults.map(|(class, default)| {
        let given = spec.health.iter().find(|(other, _)| *other == class);
        (class, given.map_or(default, |(_, action)| action.value))
    })
}

/// The mappings of a partition with the places of `plan`.
pub(crate) fn mappings(
    spec: &PartitionSpec,
    guest: &Guest,
    hosts: &[u64],
    board: &Board,
    sources: &Sources,
) -> Vec<Mapping> {
    let mut mappings = Vec::new();
    for part in &guest.parts {
        let area = &guest.areas[part.area];
        mappings.push(Mapping {
            kind: match area.kind {
                AreaKind::Ram => MappingKind::Ram,
                AreaKind::Region => MappingKind::Region,
                AreaKind::Startup => MappingKind::Startup,
            },
            guest: part.window.base,
            host: hosts[part.area] + (part.window.base - area.window.base),
            size: part.window.size,
            access: part.access,
            line: sources.line_column(area.place).0,
        });
    }
    let mut pages: Vec<Window> = Vec::new();
    for (name, device) in owned(spec, board) {
        for page in device.registers.iter().map(|window| window.pages()) {
            if !pages.contains(&page) {
                pages.push(page);
                mappings.push(Mapping {
                    kind: MappingKind::Device,
                    guest: page.base,
                    host: page.base,
                    size: page.size,
                    access: Access::DATA,
                    line: sources.line_column(name.place).0,
                });
            }
        }
    }
    mappings
}
