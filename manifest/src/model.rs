// SPDX-License-Identifier: Apache-2.0
//! A manifest as its author wrote it, typed, defaults filled in, every value with its place.
//!
//! Reading never fails: the shape check has already said what is wrong with a value that has the wrong
//! type, and such a value is treated as absent here, so that one mistake gives one finding.

use bulkhead_abi::{HealthClass, Rights};

use crate::diagnostic::Place;
use crate::units;
use crate::value::{Entry, Table, Value};

/// A value and where it is written.
#[derive(Clone, Debug)]
pub(crate) struct Placed<T> {
    pub value: T,
    pub place: Place,
}

/// Scheduling policy of a pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Preemptive, round robin among equals.
    FixedPriority,
    /// One vCPU owns the pCPU.
    Pinned,
}

impl Policy {
    /// The word for it in a manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FixedPriority => "fixed-priority",
            Self::Pinned => "pinned",
        }
    }
}

/// Health action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Log and go on.
    Log,
    /// Reflect into the partition.
    Inject,
    /// Stop the partition.
    Stop,
    /// Restart it.
    Restart,
}

impl Action {
    /// The word for it in a manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Inject => "inject",
            Self::Stop => "stop",
            Self::Restart => "restart",
        }
    }
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
    pub place: Place,
}

#[derive(Clone, Debug)]
pub(crate) struct PcpuSpec {
    pub name: Placed<String>,
    pub policy: Policy,
    pub quantum: Option<Placed<u64>>,
}

#[derive(Clone, Debug)]
pub(crate) struct VcpuSpec {
    pub place: Place,
    pub pcpu: Option<Placed<u32>>,
    pub priority: u32,
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
    pub distributor: u64,
    pub redistributor: u64,
    pub lines: u32,
    pub gic_place: Option<Place>,
    pub uart_base: u64,
    pub uart_line: u32,
    pub uart_place: Option<Place>,
    pub load_at: Option<Placed<u64>>,
    pub entry: Option<Placed<u64>>,
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
    pub bootargs: Option<Placed<String>>,
    pub memory: Option<Placed<u64>>,
    pub at: Option<Placed<u64>>,
    pub vcpus: Vec<VcpuSpec>,
    pub vcpus_place: Option<Place>,
    pub console: bool,
    pub frozen: Option<Place>,
    pub autostart: bool,
    pub watchdog: Option<Placed<u64>>,
    pub devices: Vec<Placed<String>>,
    pub trusted_dma: bool,
    pub overlay: Option<Placed<String>>,
    pub restart_limit: Option<u32>,
    pub health: Vec<(HealthClass, Placed<Action>)>,
    pub machine: MachineSpec,
    pub regions: Vec<RegionSpec>,
    pub capabilities: Vec<CapabilitySpec>,
    pub watch: Vec<Placed<String>>,
}

pub(crate) const HEALTH_CLASSES: [(&str, HealthClass); 5] = [
    ("memory", HealthClass::Memory),
    ("system", HealthClass::System),
    ("hypercall", HealthClass::Hypercall),
    ("watchdog", HealthClass::Watchdog),
    ("task", HealthClass::Task),
];

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

fn text(table: &Table, key: &str) -> Option<Placed<String>> {
    let value = table.get(key)?;
    Some(Placed {
        value: value.text()?.to_owned(),
        place: value.place,
    })
}

fn word<T: Copy>(table: &Table, key: &str, words: &[(&str, T)]) -> Option<Placed<T>> {
    let found = text(table, key)?;
    let (_, value) = words.iter().find(|(word, _)| *word == found.value)?;
    Some(Placed {
        value: *value,
        place: found.place,
    })
}

fn integer(table: &Table, key: &str) -> Option<Placed<u64>> {
    let value = table.get(key)?;
    Some(Placed {
        value: u64::try_from(value.integer()?).ok()?,
        place: value.place,
    })
}

fn size(table: &Table, key: &str) -> Option<Placed<u64>> {
    let value = table.get(key)?;
    let bytes = match value.text() {
        Some(text) => units::parse_size(text)?,
        None => u64::try_from(value.integer()?).ok()?,
    };
    Some(Placed {
        value: bytes,
        place: value.place,
    })
}

fn duration(table: &Table, key: &str) -> Option<Placed<u64>> {
    let value = table.get(key)?;
    Some(Placed {
        value: units::parse_duration(value.text()?)?,
        place: value.place,
    })
}

fn flag(table: &Table, key: &str, default: bool) -> bool {
    table.get(key).and_then(Value::boolean).unwrap_or(default)
}

fn texts(table: &Table, key: &str) -> Vec<Placed<String>> {
    let values = table.get(key).map(Value::list).unwrap_or_default();
    values
        .iter()
        .filter_map(|v| {
            Some(Placed {
                value: v.text()?.to_owned(),
                place: v.place,
            })
        })
        .collect()
}

fn entries<'a>(table: &'a Table, key: &str) -> impl Iterator<Item = &'a Entry> {
    table
        .get(key)
        .and_then(Value::table)
        .map(|table| table.entries.iter())
        .unwrap_or_default()
}

/// Reads the manifest in `table`, which starts at `place`.
pub(crate) fn read(table: &Table, place: Place) -> Manifest {
    Manifest {
        board: text(table, "board"),
        pcpus: entries(table, "pcpu").filter_map(read_pcpu).collect(),
        partitions: entries(table, "partition").filter_map(read_partition).collect(),
        place,
    }
}

fn read_pcpu(entry: &Entry) -> Option<PcpuSpec> {
    let table = entry.value.table()?;
    let policies = [
        ("fixed-priority", Policy::FixedPriority),
        ("pinned", Policy::Pinned),
    ];
    Some(PcpuSpec {
        name: Placed {
            value: entry.key.clone(),
            place: entry.key_place,
        },
        policy: word(table, "policy", &policies).map_or(Policy::FixedPriority, |policy| policy.value),
        quantum: duration(table, "quantum"),
    })
}

fn read_partition(entry: &Entry) -> Option<PartitionSpec> {
    let table = entry.value.table()?;
    let kinds = [("vm", Kind::Vm), ("task", Kind::Task)];
    let times = [("real", false), ("frozen", true)];
    Some(PartitionSpec {
        name: Placed {
            value: entry.key.clone(),
            place: entry.key_place,
        },
        kind: word(table, "kind", &kinds).map_or(Kind::Vm, |kind| kind.value),
        keys: table
            .entries
            .iter()
            .map(|e| Placed {
                value: e.key.clone(),
                place: e.key_place,
            })
            .collect(),
        image: text(table, "image"),
        ramdisk: text(table, "ramdisk"),
        init: text(table, "init"),
        bootargs: text(table, "bootargs"),
        memory: size(table, "memory"),
        at: integer(table, "place"),
        vcpus: table
            .get("vcpus")
            .map(Value::list)
            .unwrap_or_default()
            .iter()
            .filter_map(read_vcpu)
            .collect(),
        vcpus_place: table.entry("vcpus").map(|entry| entry.key_place),
        console: flag(table, "console", true),
        frozen: word(table, "time", &times)
            .filter(|time| time.value)
            .map(|time| time.place),
        autostart: flag(table, "autostart", true),
        watchdog: duration(table, "watchdog"),
        devices: texts(table, "devices"),
        trusted_dma: flag(table, "trusted-dma", false),
        overlay: text(table, "device-tree-overlay"),
        restart_limit: integer(table, "restart-limit").and_then(|limit| u32::try_from(limit.value).ok()),
        health: read_health(table),
        machine: read_machine(table),
        regions: table
            .get("region")
            .map(Value::list)
            .unwrap_or_default()
            .iter()
            .filter_map(read_region)
            .collect(),
        capabilities: entries(table, "capabilities")
            .filter_map(read_capability)
            .collect(),
        watch: table
            .get("watch")
            .and_then(Value::table)
            .map(|t| texts(t, "partitions"))
            .unwrap_or_default(),
    })
}

fn read_vcpu(value: &Value) -> Option<VcpuSpec> {
    let table = value.table()?;
    let pcpu = integer(table, "pcpu");
    Some(VcpuSpec {
        place: value.place,
        pcpu: pcpu.and_then(|p| {
            Some(Placed {
                value: u32::try_from(p.value).ok()?,
                place: p.place,
            })
        }),
        priority: integer(table, "priority")
            .and_then(|p| u32::try_from(p.value).ok())
            .unwrap_or(8),
    })
}

fn read_health(table: &Table) -> Vec<(HealthClass, Placed<Action>)> {
    let Some(health) = table.get("health").and_then(Value::table) else {
        return Vec::new();
    };
    let actions =
        [Action::Log, Action::Inject, Action::Stop, Action::Restart].map(|action| (action.name(), action));
    HEALTH_CLASSES
        .iter()
        .filter_map(|(name, class)| Some((*class, word(health, name, &actions)?)))
        .collect()
}

fn read_machine(table: &Table) -> MachineSpec {
    let empty = Table::default();
    let inner = |table: &Table, key: &str| table.get(key).and_then(Value::table).cloned();
    let machine = inner(table, "machine").unwrap_or_default();
    let (gic, uart) = (inner(&machine, "gic"), inner(&machine, "uart"));
    let place = |key| machine.entry(key).map(|entry: &Entry| entry.key_place);
    let (gic, uart) = (gic.as_ref().unwrap_or(&empty), uart.as_ref().unwrap_or(&empty));
    let or =
        |table: &Table, key: &str, default: u64| integer(table, key).map_or(default, |found| found.value);
    MachineSpec {
        ram_base: or(&machine, "ram-base", 0x4000_0000),
        ram_base_place: place("ram-base"),
        distributor: or(gic, "distributor", 0x0800_0000),
        redistributor: or(gic, "redistributor", 0x080a_0000),
        lines: u32::try_from(or(gic, "lines", 288)).unwrap_or(288),
        gic_place: place("gic"),
        uart_base: or(uart, "base", 0x0900_0000),
        uart_line: u32::try_from(or(uart, "line", 33)).unwrap_or(33),
        uart_place: place("uart"),
        load_at: integer(&machine, "load-at"),
        entry: integer(&machine, "entry"),
    }
}

fn read_region(value: &Value) -> Option<RegionSpec> {
    let table = value.table()?;
    let execute = Access {
        execute: true,
        ..Access::READ
    };
    let kinds = [
        ("rwx", Access::ALL),
        ("rw", Access::DATA),
        ("rx", execute),
        ("r", Access::READ),
    ];
    Some(RegionSpec {
        place: table.entries.first().map_or(value.place, |entry| entry.key_place),
        guest: integer(table, "guest"),
        size: size(table, "size"),
        payload: text(table, "payload"),
        access: word(table, "access", &kinds).map_or(Access::ALL, |access| access.value),
        at: integer(table, "place"),
    })
}

fn read_capability(entry: &Entry) -> Option<CapabilitySpec> {
    let table = entry.value.table()?;
    let mut targets = Vec::new();
    targets.extend(text(table, "partition").map(Target::Partition));
    targets.extend(text(table, "event-gate").map(Target::EventGate));
    targets.extend(flag(table, "timer", false).then_some(Target::Timer));
    targets.extend(flag(table, "console", false).then_some(Target::Console));
    let rights = table.get("rights").map(|rights| {
        let known = |name: &str| {
            RIGHTS
                .iter()
                .find(|(right, _)| *right == name)
                .map(|(_, right)| *right)
        };
        let listed = rights.list().iter();
        listed
            .filter_map(|v| {
                Some(Placed {
                    value: known(v.text()?)?,
                    place: v.place,
                })
            })
            .collect()
    });
    Some(CapabilitySpec {
        name: Placed {
            value: entry.key.clone(),
            place: entry.key_place,
        },
        targets,
        rights,
    })
}
