// SPDX-License-Identifier: Apache-2.0
//! From a module to the text of a manifest.

use super::model::{Module, Partition, Port, PortKind};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Bytes of a page: memory is a multiple of it.
const PAGE: u64 = 4096;
/// Memory of a partition that the file gives none.
const MEMORY: u64 = 512 << 10;
/// Bytes of a sampling message besides itself, in a kernel port.
const STAMP: u32 = 8;
/// Messages that the kernel's port of a sampling channel holds.
const SAMPLING_DEPTH: u32 = 4;

/// The facts of a manifest that the file does not have.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The board.
    pub board: String,
    /// The file of the import, for the head of the manifest.
    pub origin: String,
    /// The programs of partitions, by name. Another partition has `NAME.elf`.
    pub images: BTreeMap<String, String>,
}

/// Returns the manifest of a module.
#[must_use]
pub fn write(module: &Module, wishes: &Wishes) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = body(&mut text, module, wishes);
    text
}

fn body(out: &mut String, module: &Module, wishes: &Wishes) -> std::fmt::Result {
    writeln!(
        out,
        "# Module \"{}\", imported from {}.",
        module.name, wishes.origin
    )?;
    writeln!(
        out,
        "board = \"{}\"\n\n[pcpu.0]\npolicy = \"arinc653\"",
        wishes.board
    )?;
    for schedule in &module.schedules {
        writeln!(out, "\n[pcpu.0.schedule.{}]", schedule.name)?;
        writeln!(out, "frame = \"{}\"\nwindows = [", time(schedule.frame))?;
        for window in &schedule.windows {
            let start = if window.is_period_start {
                ", period-start = true"
            } else {
                ""
            };
            let (partition, offset, duration) =
                (&window.partition, time(window.start), time(window.duration));
            writeln!(
                out,
                "    {{ partition = \"{partition}\", offset = \"{offset}\", duration = \"{duration}\"{start} }},"
            )?;
        }
        writeln!(out, "]")?;
    }
    for channel in &module.channels {
        let port = &module.partitions[channel.source.0].ports[channel.source.1];
        let far = &module.partitions[channel.destination.0].ports[channel.destination.1];
        let (stamp, depth) = match port.kind {
            PortKind::Sampling(_) => (STAMP, SAMPLING_DEPTH),
            PortKind::Queuing(depth) => (0, depth),
        };
        let size = port.size.max(far.size).saturating_add(stamp);
        writeln!(
            out,
            "\n[port.{}]\nmessage-size = {size}\ndepth = {depth}",
            channel.name
        )?;
    }
    for (place, partition) in module.partitions.iter().enumerate() {
        self::partition(out, place, partition, module, wishes)?;
    }
    Ok(())
}

fn partition(
    out: &mut String,
    place: usize,
    partition: &Partition,
    module: &Module,
    wishes: &Wishes,
) -> std::fmt::Result {
    let name = &partition.name;
    let image = wishes
        .images
        .get(name)
        .cloned()
        .unwrap_or_else(|| format!("{name}.elf"));
    let memory = match partition.memory {
        0 => MEMORY,
        given => given.checked_next_multiple_of(PAGE).unwrap_or(given),
    };
    writeln!(out, "\n[partition.{name}]\nkind = \"task\"\nimage = \"{image}\"")?;
    writeln!(out, "memory = \"{}K\"\nvcpus = [{{ pcpu = 0 }}]", memory / 1024)?;
    writeln!(out, "watch = {{ windows = true }}")?;
    if !partition.health.is_empty() {
        writeln!(out, "\n[partition.{name}.health]")?;
        for (class, action) in &partition.health {
            writeln!(out, "{class} = \"{action}\"")?;
        }
    }
    writeln!(out, "\n[partition.{name}.capabilities]")?;
    writeln!(
        out,
        "gate = {{ event-gate = \"{name}\" }}\nclock = {{ timer = true }}"
    )?;
    writeln!(out, "console = {{ console = true }}")?;
    if module.schedules.len() > 1 {
        writeln!(out, "schedules = {{ schedule = 0 }}")?;
    }
    let connected = |port: usize| {
        let is_end = |end: (usize, usize)| end == (place, port);
        let mut channels = module.channels.iter();
        channels.find(|channel| is_end(channel.source) || is_end(channel.destination))
    };
    for (number, port) in partition.ports.iter().enumerate() {
        if let Some(channel) = connected(number) {
            let right = if port.is_source { "write" } else { "read" };
            let (name, channel) = (&port.name, &channel.name);
            writeln!(out, "{name} = {{ port = \"{channel}\", rights = [\"{right}\"] }}")?;
        }
    }
    // The partition's own times are taken from the initial schedule, or of the first one that has it.
    let initial = module.schedules.first().map(|schedule| &schedule.name);
    let is_initial = |times: &&(String, (u64, u64))| Some(&times.0) == initial;
    let usual = partition.times.iter().find(is_initial);
    let Some((_, usual)) = usual.or(partition.times.first()) else {
        return Ok(());
    };
    writeln!(
        out,
        "\n[partition.{name}.arinc653]\nidentifier = {}",
        partition.identifier
    )?;
    writeln!(
        out,
        "period = \"{}\"\nduration = \"{}\"",
        time(usual.0),
        time(usual.1)
    )?;
    for (schedule, (period, duration)) in partition.times.iter().filter(|(_, times)| times != usual) {
        writeln!(
            out,
            "schedule.{schedule} = {{ period = \"{}\", duration = \"{}\" }}",
            time(*period),
            time(*duration)
        )?;
    }
    for (number, port) in partition.ports.iter().enumerate() {
        if connected(number).is_some() {
            self::port(out, name, port)?;
        }
    }
    Ok(())
}

fn port(out: &mut String, partition: &str, port: &Port) -> std::fmt::Result {
    let direction = if port.is_source { "source" } else { "destination" };
    let (kind, last) = match port.kind {
        PortKind::Sampling(refresh) => ("sampling-port", format!("refresh-period = \"{}\"", time(refresh))),
        PortKind::Queuing(depth) => ("queuing-port", format!("max-nb-message = {depth}")),
    };
    writeln!(out, "\n[partition.{partition}.arinc653.{kind}.{}]", port.name)?;
    writeln!(
        out,
        "direction = \"{direction}\"\nmax-message-size = {}\n{last}",
        port.size
    )
}

/// Returns a time in the largest unit of a manifest that is exact.
fn time(nanoseconds: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    // A zero is written in the usual unit of windows.
    if nanoseconds == 0 {
        return "0ms".to_owned();
    }
    let unit = units.iter().find(|(size, _)| nanoseconds.is_multiple_of(*size));
    unit.map_or_else(
        || format!("{nanoseconds}ns"),
        |(size, name)| format!("{}{name}", nanoseconds / size),
    )
}
