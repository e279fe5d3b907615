// SPDX-License-Identifier: Apache-2.0
//! Who runs when, as the author of a manifest wrote it.

use super::Placed;
use super::read::{duration, entries, flag, integer, text, word};
use crate::diagnostic::Place;
use crate::value::{Entry, Table, Value};

/// Scheduling policy of a pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Preemptive, round robin among equals, budgets as servers.
    FixedPriority,
    /// One vCPU owns the pCPU.
    Pinned,
    /// Earliest deadline first among constant-bandwidth servers.
    Edf,
    /// Frames of windows.
    Arinc653,
    /// Time domains in round robin.
    Domains,
}

impl Policy {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 5] = [
        Self::Pinned,
        Self::FixedPriority,
        Self::Edf,
        Self::Arinc653,
        Self::Domains,
    ];

    /// The word for it in a manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FixedPriority => "fixed-priority",
            Self::Pinned => "pinned",
            Self::Edf => "edf",
            Self::Arinc653 => "arinc653",
            Self::Domains => "domains",
        }
    }
}

/// How a used budget comes back under `fixed-priority`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// What was used comes back one period after its use began.
    Sporadic,
    /// All of it comes back at the start of every period.
    Deferrable,
}

impl ServerKind {
    /// The word for it in a manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sporadic => "sporadic",
            Self::Deferrable => "deferrable",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct PcpuSpec {
    pub name: Placed<String>,
    pub policy: Policy,
    pub quantum: Option<Placed<u64>>,
    /// Where `schedule` and `domain` are given, if they are.
    pub schedule_place: Option<Place>,
    pub domain_place: Option<Place>,
    pub schedules: Vec<ScheduleSpec>,
    pub domains: Vec<DomainSpec>,
}

#[derive(Clone, Debug)]
pub(crate) struct ScheduleSpec {
    pub name: Placed<String>,
    pub frame: Option<Placed<u64>>,
    pub windows: Vec<WindowSpec>,
}

#[derive(Clone, Debug)]
pub(crate) struct WindowSpec {
    pub place: Place,
    pub partition: Option<Placed<String>>,
    pub offset: Option<Placed<u64>>,
    pub duration: Option<Placed<u64>>,
    pub period_start: bool,
}

impl WindowSpec {
    /// Its start and its end, if both are known.
    pub fn span(&self) -> Option<(u64, u64)> {
        let offset = self.offset.as_ref()?.value;
        Some((offset, offset.saturating_add(self.duration.as_ref()?.value)))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct DomainSpec {
    pub name: Placed<String>,
    pub budget: Option<Placed<u64>>,
}

#[derive(Clone, Debug)]
pub(crate) struct VcpuSpec {
    pub place: Place,
    pub pcpu: Option<Placed<u32>>,
    pub priority: u32,
    /// Where the priority is given, if it is.
    pub priority_place: Option<Place>,
    pub budget: Option<Placed<u64>>,
    pub period: Option<Placed<u64>>,
    pub server: Option<Placed<ServerKind>>,
    pub deadline: Option<Placed<u64>>,
    pub domain: Option<Placed<String>>,
}

pub(super) fn read_pcpu(entry: &Entry) -> Option<PcpuSpec> {
    let table = entry.value.table()?;
    let policies = Policy::ALL.map(|policy| (policy.name(), policy));
    let place = |key| table.entry(key).map(|entry| entry.key_place);
    Some(PcpuSpec {
        name: key_of(entry),
        policy: word(table, "policy", &policies).map_or(Policy::FixedPriority, |policy| policy.value),
        quantum: duration(table, "quantum"),
        schedule_place: place("schedule"),
        domain_place: place("domain"),
        schedules: entries(table, "schedule").filter_map(read_schedule).collect(),
        domains: entries(table, "domain").filter_map(read_domain).collect(),
    })
}

fn key_of(entry: &Entry) -> Placed<String> {
    Placed {
        value: entry.key.clone(),
        place: entry.key_place,
    }
}

fn read_schedule(entry: &Entry) -> Option<ScheduleSpec> {
    let table = entry.value.table()?;
    let windows = table.get("windows").map(Value::list).unwrap_or_default();
    Some(ScheduleSpec {
        name: key_of(entry),
        frame: duration(table, "frame"),
        windows: windows.iter().filter_map(read_window).collect(),
    })
}

fn read_window(value: &Value) -> Option<WindowSpec> {
    let table = value.table()?;
    Some(WindowSpec {
        place: value.place,
        partition: text(table, "partition"),
        offset: duration(table, "offset"),
        duration: duration(table, "duration"),
        period_start: flag(table, "period-start", false),
    })
}

fn read_domain(entry: &Entry) -> Option<DomainSpec> {
    let table = entry.value.table()?;
    Some(DomainSpec {
        name: key_of(entry),
        budget: duration(table, "budget"),
    })
}

pub(super) fn read_vcpu(value: &Value) -> Option<VcpuSpec> {
    let table = value.table()?;
    let servers = [ServerKind::Sporadic, ServerKind::Deferrable].map(|kind| (kind.name(), kind));
    let priority = integer(table, "priority");
    Some(VcpuSpec {
        place: value.place,
        pcpu: small(table, "pcpu"),
        priority_place: priority.as_ref().map(|priority| priority.place),
        priority: priority.and_then(|p| u32::try_from(p.value).ok()).unwrap_or(8),
        budget: duration(table, "budget"),
        period: duration(table, "period"),
        server: word(table, "server", &servers),
        deadline: duration(table, "deadline"),
        domain: text(table, "domain"),
    })
}

/// An integer of 32 bits.
pub(super) fn small(table: &Table, key: &str) -> Option<Placed<u32>> {
    let found = integer(table, key)?;
    Some(Placed {
        value: u32::try_from(found.value).ok()?,
        place: found.place,
    })
}
