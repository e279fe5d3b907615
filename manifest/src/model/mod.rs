// SPDX-License-Identifier: Apache-2.0
//! A manifest as its author wrote it, typed, defaults filled in, every value with its place.
//!
//! Reading never fails: the shape check has already said what is wrong with a value that has the wrong
//! type, and such a value is treated as absent here, so that one mistake gives one finding.

mod read;
mod scheduling;
mod timing;

use bulkhead_abi::{HealthClass, Rights};
use bulkhead_image::layout::HealthAction;

use crate::diagnostic::Place;
pub(crate) use read::read;
pub(crate) use scheduling::{DomainSpec, PcpuSpec, ScheduleSpec, VcpuSpec, WindowSpec};
pub use scheduling::{Policy, ServerKind};
pub(crate) use timing::{DemandSpec, TaskSpec, WorkKind, WorkSpec};

/// A value and where it is written.
#[derive(Clone, Debug)]
pub(crate) struct Placed<T> {
    pub value: T,
    pub place: Place,
}

/// Kind of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A VM.
    Vm,
    /// A task.
    Task,
}

impl Kind {
    /// The word for it in a manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Task => "task",
        }
    }
}

/// What a partition may do with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Access {
    /// Loads.
    pub read: bool,
    /// Stores.
    pub write: bool,
    /// Instruction fetches.
    pub execute: bool,
}

impl Access {
    /// Everything.
    pub const ALL: Self = Self {
        read: true,
        write: true,
        execute: true,
    };
    /// Loads and stores.
    pub const DATA: Self = Self {
        read: true,
        write: true,
        execute: false,
    };
    /// Loads only.
    pub const READ: Self = Self {
        read: true,
        write: false,
        execute: false,
    };

    /// As in a manifest: `rwx`.
    #[must_use]
    pub fn name(self) -> String {
        let letters = [(self.read, 'r'), (self.write, 'w'), (self.execute, 'x')];
        letters
            .iter()
            .filter(|(allowed, _)| *allowed)
            .map(|(_, letter)| letter)
            .collect()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub board: Option<Placed<String>>,
    pub pcpus: Vec<PcpuSpec>,
    pub partitions: Vec<PartitionSpec>,
    pub networks: Vec<NetworkSpec>,
    pub attachments: Vec<AttachmentSpec>,
    /// Records of each pCPU's ring of the trace, if the system is always traced.
    pub trace: Option<Placed<u32>>,
    pub place: Place,
}

/// What an emulator can plug into a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachmentKind {
    /// A disk.
    Disk,
    /// A network.
    Network,
}

impl AttachmentKind {
    /// The word for it in messages and board files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Network => "network",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct AttachmentSpec {
    pub place: Place,
    pub kind: AttachmentKind,
    pub device: Option<Placed<String>>,
    pub file: Option<Placed<String>>,
    pub size: Option<Placed<u64>>,
    pub read_only: bool,
}

/// A network that VMs share.
#[derive(Clone, Debug)]
pub(crate) struct NetworkSpec {
    pub name: Placed<String>,
    /// Device of the board that connects it with the outside.
    pub uplink: Option<Placed<String>>,
    /// Time for frames from outside in each period.
    pub budget: Option<Placed<u64>>,
    pub period: Option<Placed<u64>>,
}

#[derive(Clone, Debug)]
pub(crate) struct RegionSpec {
    pub place: Place,
    pub guest: Option<Placed<u64>>,
    pub size: Option<Placed<u64>>,
    pub payload: Option<Placed<String>>,
    pub access: Access,
    pub at: Option<Placed<u64>>,
}

/// What a capability names.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Partition(Placed<String>),
    EventGate(Placed<String>),
    Timer,
    Console,
    /// The schedules of a pCPU.
    Schedule(Placed<u32>),
}

#[derive(Clone, Debug)]
pub(crate) struct CapabilitySpec {
    pub name: Placed<String>,
    /// Every object it names; exactly one if it is right.
    pub targets: Vec<Target>,
    pub rights: Option<Vec<Placed<Rights>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct MachineSpec {
    pub ram_base: u64,
    pub ram_base_place: Option<Place>,
    /// GIC version the manifest asks for.
    pub gic_version: Option<Placed<u64>>,
    pub distributor: u64,
    pub redistributor: u64,
    pub redistributor_place: Option<Place>,
    pub cpu_interface: u64,
    pub cpu_interface_place: Option<Place>,
    pub lines: u32,
    pub gic_place: Option<Place>,
    pub uart_base: u64,
    pub uart_base_place: Option<Place>,
    pub uart_line: u32,
    pub uart_line_place: Option<Place>,
    pub uart_place: Option<Place>,
    pub gate_line: u32,
    pub gate_place: Option<Place>,
    pub load_at: Option<Placed<u64>>,
    pub entry: Option<Placed<u64>>,
    pub semihosting: bool,
    pub semihosting_place: Option<Place>,
}

/// Other payloads of a partition; what is not given is as in the partition's own section.
#[derive(Clone, Debug)]
pub(crate) struct AlternativeSpec {
    pub name: Placed<String>,
    pub image: Option<Placed<String>>,
    pub ramdisk: Option<Placed<String>>,
    pub init: Option<Placed<String>>,
    pub modules: Vec<Placed<String>>,
    pub bootargs: Option<Placed<String>>,
}

impl PartitionSpec {
    /// Whether it can wait for the events of its own gate.
    pub fn can_wait(&self) -> bool {
        self.own_gate().is_some()
    }

    /// Whether its machine has an interrupt for the events of its gate.
    pub fn has_gate_interrupt(&self) -> bool {
        self.kind == Kind::Vm && self.can_wait()
    }

    /// The capability by which it takes the events of its own gate.
    pub fn own_gate(&self) -> Option<&CapabilitySpec> {
        self.capabilities.iter().find(|capability| {
            let own = matches!(capability.targets.first(), Some(Target::EventGate(name)) if name.value == self.name.value);
            own && capability
                .rights
                .as_ref()
                .is_none_or(|rights| rights.iter().any(|right| right.value.contains(Rights::READ)))
        })
    }

    /// The partition as it is with an alternative's payloads.
    pub fn with(&self, alternative: &AlternativeSpec) -> Self {
        let mut spec = self.clone();
        let pairs = [
            (&mut spec.image, &alternative.image),
            (&mut spec.ramdisk, &alternative.ramdisk),
            (&mut spec.init, &alternative.init),
            (&mut spec.bootargs, &alternative.bootargs),
        ];
        for (own, other) in pairs {
            if other.is_some() {
                own.clone_from(other);
            }
        }
        if !alternative.modules.is_empty() {
            spec.modules.clone_from(&alternative.modules);
        }
        spec.alternatives.clear();
        spec
    }
}

#[derive(Clone, Debug)]
pub(crate) struct PartitionSpec {
    pub name: Placed<String>,
    pub kind: Kind,
    /// Keys that are there, for the rules about keys that should not be.
    pub keys: Vec<Placed<String>>,
    pub image: Option<Placed<String>>,
    pub ramdisk: Option<Placed<String>>,
    pub init: Option<Placed<String>>,
    pub modules: Vec<Placed<String>>,
    pub bootargs: Option<Placed<String>>,
    pub alternatives: Vec<AlternativeSpec>,
    pub memory: Option<Placed<u64>>,
    pub at: Option<Placed<u64>>,
    pub vcpus: Vec<VcpuSpec>,
    pub vcpus_place: Option<Place>,
    pub console: bool,
    pub frozen: Option<Place>,
    pub autostart: bool,
    pub watchdog: Option<Placed<u64>>,
    pub devices: Vec<Placed<String>>,
    /// The network it is on.
    pub network: Option<Placed<String>>,
    /// Its address there.
    pub mac: Option<Placed<String>>,
    pub critical: Vec<Placed<String>>,
    /// How long after its arrival an interrupt of its devices reaches it, if that is to be constant.
    pub interrupt_latency: Option<Placed<u64>>,
    pub trusted_dma: bool,
    pub overlay: Option<Placed<String>>,
    pub restart_limit: Option<u32>,
    pub health: Vec<(HealthClass, Placed<HealthAction>)>,
    pub machine: MachineSpec,
    pub regions: Vec<RegionSpec>,
    pub capabilities: Vec<CapabilitySpec>,
    pub watch: Vec<Placed<String>>,
    pub demand: Option<DemandSpec>,
    pub workload: Vec<WorkSpec>,
    /// It is told when its windows start.
    pub watch_windows: Option<Place>,
}

const RIGHTS: [(&str, Rights); 4] = [
    ("read", Rights::READ),
    ("write", Rights::WRITE),
    ("control", Rights::CONTROL),
    ("grant", Rights::GRANT),
];

/// The names of the rights in `rights`.
#[must_use]
pub fn right_names(rights: Rights) -> Vec<&'static str> {
    RIGHTS
        .iter()
        .filter(|(_, right)| rights.contains(*right))
        .map(|(name, _)| *name)
        .collect()
}
