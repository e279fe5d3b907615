// SPDX-License-Identifier: Apache-2.0
//! From the tree of a TOML document to the typed manifest.

use bulkhead_abi::HealthClass;
use bulkhead_image::layout::HealthAction;

use super::{
    Access, AlternativeSpec, AttachmentKind, AttachmentSpec, CapabilitySpec, Kind, MachineSpec, Manifest,
    NetworkSpec, PartitionSpec, Placed, RIGHTS, RegionSpec, Target,
    scheduling::{read_pcpu, read_vcpu, small},
    timing::{read_demand, read_workload},
};
use crate::diagnostic::Place;
use crate::units;
use crate::value::{Entry, Table, Value};

pub(super) fn text(table: &Table, key: &str) -> Option<Placed<String>> {
    let value = table.get(key)?;
    Some(Placed {
        value: value.text()?.to_owned(),
        place: value.place,
    })
}

pub(super) fn word<T: Copy>(table: &Table, key: &str, words: &[(&str, T)]) -> Option<Placed<T>> {
    let found = text(table, key)?;
    let (_, value) = words.iter().find(|(word, _)| *word == found.value)?;
    Some(Placed {
        value: *value,
        place: found.place,
    })
}

pub(super) fn integer(table: &Table, key: &str) -> Option<Placed<u64>> {
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

pub(super) fn duration(table: &Table, key: &str) -> Option<Placed<u64>> {
    let value = table.get(key)?;
    Some(Placed {
        value: units::parse_duration(value.text()?)?,
        place: value.place,
    })
}

pub(super) fn flag(table: &Table, key: &str, default: bool) -> bool {
    table.get(key).and_then(Value::boolean).unwrap_or(default)
}

pub(super) fn texts(table: &Table, key: &str) -> Vec<Placed<String>> {
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

pub(super) fn entries<'a>(table: &'a Table, key: &str) -> impl Iterator<Item = &'a Entry> {
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
        networks: entries(table, "network").filter_map(read_network).collect(),
        attachments: read_attachments(table),
        trace: read_trace(table),
        place,
    }
}

fn read_trace(table: &Table) -> Option<Placed<u32>> {
    let entry = table.entry("trace")?;
    let asked = integer(entry.value.table()?, "records");
    Some(Placed {
        value: asked
            .as_ref()
            .and_then(|asked| u32::try_from(asked.value).ok())
            .unwrap_or(1 << 18),
        place: asked.map_or(entry.key_place, |asked| asked.place),
    })
}

/// Disks first, each in the order of the file.
fn read_attachments(table: &Table) -> Vec<AttachmentSpec> {
    let Some(emulator) = table.get("emulator").and_then(Value::table) else {
        return Vec::new();
    };
    let kinds = [
        ("disks", AttachmentKind::Disk),
        ("networks", AttachmentKind::Network),
    ];
    let of_kind = |(key, kind): (&str, AttachmentKind)| {
        let values = emulator.get(key).map(Value::list).unwrap_or_default();
        let one = |value: &Value| {
            let table = value.table()?;
            Some(AttachmentSpec {
                place: table.entries.first().map_or(value.place, |entry| entry.key_place),
                kind,
                device: text(table, "device"),
                file: text(table, "file"),
                size: size(table, "size"),
                read_only: flag(table, "read-only", false),
            })
        };
        values.iter().filter_map(one).collect::<Vec<_>>()
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

fn read_network(entry: &Entry) -> Option<NetworkSpec> {
    let table = entry.value.table()?;
    Some(NetworkSpec {
        name: Placed {
            value: entry.key.clone(),
            place: entry.key_place,
        },
        uplink: text(table, "uplink"),
        budget: duration(table, "budget"),
        period: duration(table, "period"),
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
        modules: texts(table, "modules"),
        bootargs: text(table, "bootargs"),
        alternatives: entries(table, "alternative")
            .filter_map(read_alternative)
            .collect(),
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
        network: text(table, "network"),
        mac: text(table, "mac"),
        critical: texts(table, "critical"),
        interrupt_latency: duration(table, "interrupt-latency"),
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
        watch_windows: read_watch_windows(table),
        demand: read_demand(table),
        workload: read_workload(table),
    })
}

fn read_watch_windows(table: &Table) -> Option<Place> {
    let watch = table.get("watch").and_then(Value::table)?;
    let wanted = watch.get("windows")?;
    (wanted.boolean() == Some(true)).then_some(wanted.place)
}

fn read_alternative(entry: &Entry) -> Option<AlternativeSpec> {
    let table = entry.value.table()?;
    Some(AlternativeSpec {
        name: Placed {
            value: entry.key.clone(),
            place: entry.key_place,
        },
        image: text(table, "image"),
        ramdisk: text(table, "ramdisk"),
        init: text(table, "init"),
        modules: texts(table, "modules"),
        bootargs: text(table, "bootargs"),
    })
}

fn read_health(table: &Table) -> Vec<(HealthClass, Placed<HealthAction>)> {
    let Some(health) = table.get("health").and_then(Value::table) else {
        return Vec::new();
    };
    let actions: Vec<_> = HealthAction::ALL
        .iter()
        .map(|action| (action.name(), *action))
        .collect();
    HealthClass::ALL
        .iter()
        .filter_map(|class| Some((*class, word(health, class.name(), &actions)?)))
        .collect()
}

fn read_machine(table: &Table) -> MachineSpec {
    let empty = Table::default();
    let inner = |table: &Table, key: &str| table.get(key).and_then(Value::table).cloned();
    let machine = inner(table, "machine").unwrap_or_default();
    let (gic, uart, gate) = (
        inner(&machine, "gic"),
        inner(&machine, "uart"),
        inner(&machine, "event-gate"),
    );
    let place = |key| machine.entry(key).map(|entry: &Entry| entry.key_place);
    let (gic, uart) = (gic.as_ref().unwrap_or(&empty), uart.as_ref().unwrap_or(&empty));
    let gate = gate.as_ref().unwrap_or(&empty);
    let or =
        |table: &Table, key: &str, default: u64| integer(table, key).map_or(default, |found| found.value);
    MachineSpec {
        ram_base: or(&machine, "ram-base", 0x4000_0000),
        ram_base_place: place("ram-base"),
        gic_version: integer(gic, "version"),
        distributor: or(gic, "distributor", 0x0800_0000),
        redistributor: or(gic, "redistributor", 0x080a_0000),
        redistributor_place: gic.entry("redistributor").map(|entry| entry.key_place),
        cpu_interface: or(gic, "cpu-interface", 0x0801_0000),
        cpu_interface_place: gic.entry("cpu-interface").map(|entry| entry.key_place),
        lines: u32::try_from(or(gic, "lines", 288)).unwrap_or(288),
        gic_place: place("gic"),
        uart_base: or(uart, "base", 0x0900_0000),
        uart_line: u32::try_from(or(uart, "line", 33)).unwrap_or(33),
        uart_base_place: uart.entry("base").map(|entry| entry.key_place),
        uart_line_place: uart.entry("line").map(|entry| entry.key_place),
        uart_place: place("uart"),
        gate_line: u32::try_from(or(gate, "line", 47)).unwrap_or(47),
        gate_place: place("event-gate"),
        load_at: integer(&machine, "load-at"),
        entry: integer(&machine, "entry"),
        semihosting: machine.get("semihosting").and_then(Value::boolean) != Some(false),
        semihosting_place: place("semihosting"),
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
    targets.extend(small(table, "schedule").map(Target::Schedule));
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
