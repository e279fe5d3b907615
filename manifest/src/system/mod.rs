// SPDX-License-Identifier: Apache-2.0
//! A checked system, as plain data for those who show it, simulate it or compile it.
//!
//! A [`System`] exists only if no rule found an error: places are disjoint, owners are unique, payloads are
//! loaded and fit. Everything is in the order of the manifest, which is also the order of numbers.

mod scheduling;
mod views;

use bulkhead_abi::hypercall::SELF_CAPABILITY;
use bulkhead_abi::{HealthClass, ObjectKind, Rights};

use crate::board::{Board, Window};
use crate::diagnostic::{Report, Sources};
use crate::guest::{AreaKind, Guest};
use crate::model::{Access, AttachmentSpec, Kind, Manifest, PartitionSpec, Target};
use crate::plan::{self, Plan};
use crate::rules::registers;
use bulkhead_image::layout::HealthAction;
pub(crate) use scheduling::{DEFAULT_QUANTUM, pcpus, policy_of, spec_of, vcpu};
pub use scheduling::{Domain, Pcpu, Reservation, Schedule, TimeWindow, Vcpu};
pub use views::{CpuRow, DeviceRow, InterfaceRow, InterruptRow, MemoryRow, TouchRow};

/// Name under which a partition finds the capability for itself.
pub(crate) const SELF_NAME: &str = "self";
/// A capability a partition holds from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Index in its space.
    pub index: u32,
    /// Name it knows it by.
    pub name: String,
    /// Kind of the object.
    pub kind: ObjectKind,
    /// Number of the partition the object belongs to, of the pCPU for its schedules; 0 for the timer.
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
    /// Its program, executed where it is linked.
    Code,
    /// Registers of a device passed through.
    Device,
    /// The same, in a page with registers of others: not mapped, the hypervisor carries out each access.
    Forwarded,
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

/// Something that the emulator plugs into a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The device.
    pub device: String,
    /// A disk's image, relative to the manifest.
    pub file: Option<String>,
    /// Bytes of a disk that is empty at first and lives for one run.
    pub size: Option<u64>,
    /// Arguments of the emulator; `{file}` stands for a disk's image.
    pub arguments: Vec<String>,
}

/// A region of the MPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpuRegion {
    /// First address of the block.
    pub base: u64,
    /// Bytes of the block.
    pub size: u64,
    /// The eighths of it that are left out, the lowest in bit 0.
    pub left_out: u8,
    /// What the partition may do.
    pub access: Access,
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
    /// Whether the starts of its windows raise events at its gate.
    pub window_events: bool,
    /// Names of its devices.
    pub devices: Vec<String>,
    /// Health action per class.
    pub health: [(HealthClass, HealthAction); 5],
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
    /// Whether it starts in AArch32 state.
    pub aarch32: bool,
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

    /// How many instructions of partition `number` are replaced, and how many undefined ones it has of its own; `None`
    /// where nothing has to be replaced.
    #[must_use]
    pub fn replaced(&self, number: usize) -> Option<(usize, usize)> {
        let guest = self.guests.get(number)?;
        (!guest.residents.is_empty()).then_some((guest.sites.len(), guest.undefined.len()))
    }

    /// The regions of the MPU while partition `number` runs; none of a class that translates addresses.
    #[must_use]
    pub fn mpu_regions(&self, number: usize) -> Vec<MpuRegion> {
        let (Some(spec), Some(guest)) = (self.manifest.partitions.get(number), self.guests.get(number))
        else {
            return Vec::new();
        };
        if guest.residents.is_empty() {
            return Vec::new();
        }
        let regions = plan::in_place::regions(&self.board, spec, guest);
        let region = |region: &bulkhead_arch_regions::Region| MpuRegion {
            base: region.base.into(),
            size: region.size(),
            left_out: region.disabled,
            access: Access {
                read: region.rights.read,
                write: region.rights.write,
                execute: region.rights.execute,
            },
        };
        regions.iter().map(region).collect()
    }

    /// What the emulator plugs into devices.
    #[must_use]
    pub fn attachments(&self) -> Vec<Attachment> {
        let one = |spec: &AttachmentSpec| {
            let device = self.board.device(&spec.device.as_ref()?.value)?;
            let fill = |argument: &String| {
                argument
                    .replace("{device}", &device.name)
                    .replace("{index}", &device.index.to_string())
                    .replace("{read-only}", if spec.read_only { "on" } else { "off" })
            };
            Some(Attachment {
                device: device.name.clone(),
                file: spec.file.as_ref().map(|file| file.value.clone()),
                size: spec.size.as_ref().map(|size| size.value),
                arguments: device.attach(spec.kind).iter().map(fill).collect(),
            })
        };
        self.manifest.attachments.iter().filter_map(one).collect()
    }

    /// CPUs that the board's emulator needs.
    #[must_use]
    pub fn cpu_count(&self) -> usize {
        self.pcpus.len()
    }

    /// Bus address of the hypervisor's log area.
    #[must_use]
    pub fn log_base(&self) -> u64 {
        self.plan.log.base
    }
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
                Target::Schedule(pcpu) => (ObjectKind::Schedule, pcpu.value as usize, Rights::READ),
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
pub(crate) fn health(spec: &PartitionSpec) -> [(HealthClass, HealthAction); 5] {
    let system = if spec.kind == Kind::Task {
        HealthAction::Stop
    } else {
        HealthAction::Inject
    };
    let defaults = [
        (HealthClass::Memory, HealthAction::Stop),
        (HealthClass::System, system),
        (HealthClass::Hypercall, HealthAction::Log),
        (HealthClass::Watchdog, HealthAction::Restart),
        (HealthClass::Task, HealthAction::Stop),
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
                AreaKind::Code => MappingKind::Code,
            },
            guest: part.window.base,
            host: hosts[part.area] + (part.window.base - area.window.base),
            size: part.window.size,
            access: part.access,
            line: sources.line_column(area.place).0,
        });
    }
    let mut seen: Vec<Window> = Vec::new();
    for registers in registers(spec, board) {
        let (kind, window) = if registers.forwarded {
            (MappingKind::Forwarded, registers.window)
        } else {
            (MappingKind::Device, registers.window.pages())
        };
        if !seen.contains(&window) {
            seen.push(window);
            mappings.push(Mapping {
                kind,
                guest: window.base,
                host: window.base,
                size: window.size,
                access: Access::DATA,
                line: sources.line_column(registers.name.place).0,
            });
        }
    }
    mappings
}
