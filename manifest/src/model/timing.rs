// SPDX-License-Identifier: Apache-2.0
//! What partitions have to do, as the author of a manifest wrote it.

use bulkhead_sched::analysis::TaskScheduler;

use super::Placed;
use super::read::{duration, flag, integer, text, texts, word};
use super::scheduling::small;
use crate::diagnostic::Place;
use crate::value::{Table, Value};

/// What a partition has to do.
#[derive(Clone, Debug)]
pub(crate) struct DemandSpec {
    pub scheduler: TaskScheduler,
    pub tasks: Vec<TaskSpec>,
    /// The schedules of the pCPU in which the demand holds; empty: all.
    pub schedules: Vec<Placed<String>>,
}

#[derive(Clone, Debug)]
pub(crate) struct TaskSpec {
    pub place: Place,
    pub name: Option<Placed<String>>,
    pub vcpu: Option<Placed<u32>>,
    pub period: Option<Placed<u64>>,
    pub wcet: Option<Placed<u64>>,
    pub deadline: Option<Placed<u64>>,
    pub priority: u8,
}

/// When there is something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkKind {
    AlwaysReady,
    Periodic,
    Sporadic,
    Bursty,
    Interrupt,
}

/// What a vCPU does in the simulator.
#[derive(Clone, Debug)]
pub(crate) struct WorkSpec {
    pub place: Place,
    pub kind: WorkKind,
    pub vcpu: Option<Placed<u32>>,
    pub period: Option<Placed<u64>>,
    pub execution: Option<Placed<u64>>,
    pub shortest: Option<Placed<u64>>,
    pub deadline: Option<Placed<u64>>,
    pub spread: Option<Placed<u64>>,
    pub count: u32,
    pub first: u64,
    pub priority: u8,
    pub critical: bool,
}

pub(super) fn read_demand(table: &Table) -> Option<DemandSpec> {
    let schedulers = [
        ("fixed-priority", TaskScheduler::FixedPriority),
        ("edf", TaskScheduler::EarliestDeadline),
    ];
    let demand = table.get("demand").and_then(Value::table)?;
    let tasks = demand.get("tasks").map(Value::list).unwrap_or_default();
    Some(DemandSpec {
        scheduler: word(demand, "scheduler", &schedulers)
            .map_or(TaskScheduler::FixedPriority, |scheduler| scheduler.value),
        tasks: tasks.iter().filter_map(read_task).collect(),
        schedules: texts(demand, "schedules"),
    })
}

fn priority(table: &Table) -> u8 {
    integer(table, "priority")
        .and_then(|priority| u8::try_from(priority.value).ok())
        .unwrap_or(0)
}

fn read_task(value: &Value) -> Option<TaskSpec> {
    let table = value.table()?;
    Some(TaskSpec {
        place: value.place,
        name: text(table, "name"),
        vcpu: small(table, "vcpu"),
        period: duration(table, "period"),
        wcet: duration(table, "wcet"),
        deadline: duration(table, "deadline"),
        priority: priority(table),
    })
}

pub(super) fn read_workload(table: &Table) -> Vec<WorkSpec> {
    let list = table.get("workload").map(Value::list).unwrap_or_default();
    list.iter().filter_map(read_work).collect()
}

fn read_work(value: &Value) -> Option<WorkSpec> {
    let kinds = [
        ("always-ready", WorkKind::AlwaysReady),
        ("periodic", WorkKind::Periodic),
        ("sporadic", WorkKind::Sporadic),
        ("bursty", WorkKind::Bursty),
        ("interrupt", WorkKind::Interrupt),
    ];
    let table = value.table()?;
    Some(WorkSpec {
        place: value.place,
        kind: word(table, "kind", &kinds)?.value,
        vcpu: small(table, "vcpu"),
        period: duration(table, "period"),
        execution: duration(table, "execution"),
        shortest: duration(table, "shortest"),
        deadline: duration(table, "deadline"),
        spread: duration(table, "spread"),
        count: small(table, "count").map_or(4, |count| count.value),
        first: duration(table, "first").map_or(0, |first| first.value),
        priority: priority(table),
        critical: flag(table, "critical", false),
    })
}
