// SPDX-License-Identifier: Apache-2.0
//! Demands and workloads that make no sense by themselves. [`crate::timing`] asks whether the policies can
//! satisfy a demand.

use bulkhead_sched::analysis::{MAX_TASKS, TaskScheduler};

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{
    DemandSpec, Manifest, PartitionSpec, Placed, Target, TaskSpec, VcpuNumber, WorkKind, WorkSpec,
};
use crate::units::{Duration, format_duration};

/// Longer times are taken for mistakes: they would drive the analysis to its limits.
const LONGEST: Duration = Duration::new(1_000_000_000_000);

pub(super) fn check(manifest: &Manifest, report: &mut Report) {
    for partition in &manifest.partitions {
        if let Some(demand) = &partition.demand {
            for task in &demand.tasks {
                vcpu_exists(task.vcpu.given(), partition, Code::BadTask, report);
                task_is_possible(task, report);
            }
            names_differ(&demand.tasks, report);
            some_task(partition, demand, report);
            priorities_are_read(demand, report);
            schedules_exist(partition, demand, manifest, report);
            few_tasks(partition, &demand.tasks, report);
            work_is_declared(partition, demand, report);
            waits_exist(partition, demand, report);
        }
        for work in &partition.workload {
            vcpu_exists(work.vcpu.given(), partition, Code::BadWorkload, report);
            work_is_possible(work, report);
            critical_work_is_possible(work, partition, report);
        }
    }
}

/// Reports a board without the costs of the hypervisor, if there is a demand: the analysis charges nothing
/// there.
pub(super) fn costs_are_known(manifest: &Manifest, board: &Board, report: &mut Report) {
    let mut demands = manifest
        .partitions
        .iter()
        .filter_map(|partition| partition.demand.as_ref());
    let first = demands.find_map(|demand| demand.tasks.first());
    if let (Some(task), None) = (first, board.costs) {
        let message = format!("board `{}` does not say what the hypervisor costs", board.name);
        report.push(
            Diagnostic::at(Code::NoOverheads, task.place, message)
                .label("judged as if the hypervisor took no time")
                .help("measure it (`bulkhead bench`), and add [overheads] to the board file"),
        );
    }
}

/// Checks that the schedules of a demand belong to pCPUs on which the partition has a vCPU.
fn schedules_exist(partition: &PartitionSpec, demand: &DemandSpec, manifest: &Manifest, report: &mut Report) {
    let on = |pcpu: &str| {
        let mut own = partition.vcpus.iter().filter_map(|vcpu| vcpu.pcpu.as_ref());
        own.any(|own| own.value.to_string() == pcpu)
    };
    let pcpus = manifest.pcpus.iter().filter(|pcpu| on(&pcpu.name.value));
    let known: Vec<&str> = pcpus
        .flat_map(|pcpu| pcpu.schedules.iter().map(|schedule| schedule.name.value.as_str()))
        .collect();
    for name in &demand.schedules {
        if known.contains(&name.value.as_str()) {
            continue;
        }
        let message = format!(
            "no pCPU of `{}` has a schedule `{}`",
            partition.name.value, name.value
        );
        let help = match known.as_slice() {
            [] => "remove `schedules`: it is for partitions on pCPUs with policy \"arinc653\"".to_owned(),
            known => format!("the schedules there: {}", known.join(", ")),
        };
        report.push(Diagnostic::at(Code::BadTask, name.place, message).help(help));
    }
}

/// Checks that the waits of tasks are at capabilities of the partition where a vCPU can wait, each named
/// once.
fn waits_exist(partition: &PartitionSpec, demand: &DemandSpec, report: &mut Report) {
    for task in &demand.tasks {
        let named = task.waits.iter().filter_map(|wait| wait.at.as_ref());
        for (number, at) in named.clone().enumerate() {
            let mut all = partition.capabilities.iter();
            let capability = all.find(|capability| capability.name.value == at.value);
            let can_wait = capability.is_some_and(|capability| {
                matches!(
                    capability.target(),
                    Some(Target::Port(_) | Target::Lock(_) | Target::EventGate(_))
                )
            });
            if !can_wait {
                let message = format!(
                    "`{}` has no capability `{}` to wait at",
                    partition.name.value, at.value
                );
                report.push(
                    Diagnostic::at(Code::BadTask, at.place, message)
                        .help("name one of its capabilities for a port, a lock or an event gate"),
                );
            }
            if let Some(first) = named.clone().take(number).find(|other| other.value == at.value) {
                let message = format!("`{}` stands twice in `waits`", at.value);
                report.push(
                    Diagnostic::at(Code::BadTask, at.place, message)
                        .also(first.place, "the first one")
                        .help("give the sum once, as `times`"),
                );
            }
        }
    }
}

/// Checks that a critical workload is one of a partition with critical devices. The analysis knows critical
/// interrupts from the partition's key `critical` only.
fn critical_work_is_possible(work: &WorkSpec, partition: &PartitionSpec, report: &mut Report) {
    if work.critical && work.kind == WorkKind::Interrupt && partition.critical.is_empty() {
        let message = format!("partition `{}` has no critical interrupt", partition.name.value);
        report.push(
            Diagnostic::at(Code::BadWorkload, work.place, message)
                .help("remove `critical` here, or name the device: critical = [...] of the partition"),
        );
    }
}

fn vcpu_exists(vcpu: Option<Placed<VcpuNumber>>, partition: &PartitionSpec, code: Code, report: &mut Report) {
    let Some(vcpu) = vcpu else { return };
    if vcpu.value.get() as usize >= partition.vcpus.len() {
        let message = format!("partition `{}` has no vCPU {}", partition.name.value, vcpu.value);
        let help = format!("its vCPUs are 0 to {}", partition.vcpus.len().saturating_sub(1));
        report.push(Diagnostic::at(code, vcpu.place, message).help(help));
    }
}

/// A time that another time must not exceed.
#[derive(Clone, Copy)]
struct Limit<'a> {
    /// The key that gives the limit.
    key: &'a str,
    time: Duration,
    place: Option<Place>,
}

impl<'a> Limit<'a> {
    /// The limit of every time.
    const LONGEST: Limit<'static> = Limit {
        key: "the longest possible",
        time: LONGEST,
        place: None,
    };

    /// Makes a limit of the time that a key gives.
    const fn of(key: &'a str, given: &Placed<Duration>) -> Self {
        Self {
            key,
            time: given.value,
            place: Some(given.place),
        }
    }
}

/// Reports a time that is longer than its limit, or zero, or absurdly long.
fn at_most(code: Code, name: &str, one: &Placed<Duration>, limit: Limit<'_>, report: &mut Report) {
    let given = format_duration(one.value.get());
    let diagnostic = if one.value.get() == 0 {
        Diagnostic::at(code, one.place, format!("`{name}` is {given}")).help("give a time above 0")
    } else if one.value > limit.time {
        let (time, key) = (format_duration(limit.time.get()), limit.key);
        let (most, help) = if limit.time == LONGEST {
            (
                format!("{time}, the longest possible"),
                format!("shorten `{name}`"),
            )
        } else {
            (
                format!("`{key}` of {time}"),
                format!("shorten `{name}`, or lengthen `{key}`"),
            )
        };
        let message = format!("`{name}` of {given} is longer than {most}");
        let diagnostic = Diagnostic::at(code, one.place, message).help(help);
        match limit.place {
            Some(place) => diagnostic.also(place, "the limit"),
            None => diagnostic,
        }
    } else {
        return;
    };
    report.push(diagnostic);
}

fn task_is_possible(task: &TaskSpec, report: &mut Report) {
    let (Some(period), Some(wcet)) = (&task.period, &task.wcet) else {
        return;
    };
    at_most(Code::BadTask, "period", period, Limit::LONGEST, report);
    let limit = match &task.deadline {
        Some(deadline) => {
            let longest = Limit::of("period", period);
            at_most(Code::BadTask, "deadline", deadline, longest, report);
            Limit::of("deadline", deadline)
        }
        None => Limit::of("period", period),
    };
    at_most(Code::BadTask, "wcet", wcet, limit, report);
}

/// Reports a demand without a task: it demands nothing, and the analysis would call that in time.
fn some_task(partition: &PartitionSpec, demand: &DemandSpec, report: &mut Report) {
    let key = partition.keys.iter().find(|key| key.value == "demand");
    if let (true, Some(key)) = (
        demand.tasks.is_empty() && !report.blames(partition.name.place),
        key,
    ) {
        let message = format!("the demand of `{}` has no task", partition.name.value);
        report.push(
            Diagnostic::at(Code::BadTask, key.place, message)
                .label("nothing is asked for, so nothing would be proved")
                .help("list a task, or remove `demand`"),
        );
    }
}

/// Reports a task's priority that the scheduler of the tasks does not read.
fn priorities_are_read(demand: &DemandSpec, report: &mut Report) {
    if demand.scheduler != TaskScheduler::EarliestDeadline {
        return;
    }
    for place in demand.tasks.iter().filter_map(|task| task.priority.place) {
        report.push(
            Diagnostic::at(
                Code::UnusedPriority,
                place,
                "scheduler `edf` does not read the `priority` of a task",
            )
            .help("remove it: the earliest deadline decides"),
        );
    }
}

/// Reports the first time of a workload that is always ready.
fn times_are_read(work: &WorkSpec, report: &mut Report) {
    let times = [
        ("period", &work.period),
        ("execution", &work.execution),
        ("shortest", &work.shortest),
        ("deadline", &work.deadline),
        ("spread", &work.spread),
    ];
    for (name, time) in times {
        let Some(time) = time else { continue };
        report.push(
            Diagnostic::at(
                Code::UnusedTime,
                time.place,
                format!("a workload that is always ready has no `{name}`"),
            )
            .label("not read")
            .help(format!(
                "remove it, or choose another kind, such as \"periodic\", that reads `{name}`"
            )),
        );
    }
}

/// Reports names of tasks that cannot be shown, and those that two tasks have.
fn names_differ(tasks: &[TaskSpec], report: &mut Report) {
    for (number, task) in tasks.iter().enumerate() {
        let Some(name) = &task.name else { continue };
        if name.value.is_empty() || name.value.contains(char::is_control) {
            report.push(
                Diagnostic::at(Code::BadTask, name.place, "the name of a task cannot be shown")
                    .label("it is empty, or has a control character")
                    .help("give the task a name for tables and charts"),
            );
        }
        let earlier = tasks.iter().take(number).filter_map(|task| task.name.as_ref());
        if let Some(first) = earlier.into_iter().find(|other| other.value == name.value) {
            let message = format!("two tasks are called `{}`", name.value);
            report.push(
                Diagnostic::at(Code::BadTask, name.place, message)
                    .also(first.place, "the first one")
                    .help("rename one of the two"),
            );
        }
    }
}

fn few_tasks(partition: &PartitionSpec, tasks: &[TaskSpec], report: &mut Report) {
    for vcpu in 0..partition.vcpus.len() as u32 {
        let mut own = tasks.iter().filter(|task| task.vcpu.get() == vcpu);
        if let Some(extra) = own.nth(MAX_TASKS) {
            let message = format!("vCPU {vcpu} has more than {MAX_TASKS} tasks");
            report.push(
                Diagnostic::at(Code::BadTask, extra.place, message)
                    .label("one too many")
                    .help("merge tasks, or move some to another vCPU"),
            );
        }
    }
}

/// Warns of a workload that is more than the demand: the demand is judged, and the workload is simulated.
fn work_is_declared(partition: &PartitionSpec, demand: &DemandSpec, report: &mut Report) {
    for vcpu in 0..partition.vcpus.len() as u32 {
        let tasks = || demand.tasks.iter().filter(|task| task.vcpu.get() == vcpu);
        let own = partition.workload.iter().filter(|work| work.vcpu.get() == vcpu);
        let longest = tasks()
            .filter_map(|task| task.wcet.as_ref())
            .map(|wcet| wcet.value);
        let longest = longest.max().unwrap_or(Duration::new(0));
        let mut left: u128 = tasks()
            .map(|task| rate(task.wcet.as_ref(), task.period.as_ref(), 1))
            .sum();
        for work in own {
            let asked = rate(work.execution.as_ref(), work.period.as_ref(), jobs_at_once(work));
            let execution = work.execution.as_ref().map(|execution| execution.value);
            let label = if work.kind == WorkKind::AlwaysReady {
                // Such work is not mistaken for the declared work: it tries the budget.
                continue;
            } else if execution.is_some_and(|execution| execution > longest) {
                let longest = format_duration(longest.get());
                format!("its execution is longer than each `wcet` of the demand: at most {longest}")
            } else if asked > left {
                "it comes more often than the tasks of the demand".to_owned()
            } else {
                left = left.saturating_sub(asked);
                continue;
            };
            let message = format!(
                "the workload of `{}` is more than its demand",
                partition.name.value
            );
            report.push(
                Diagnostic::at(Code::WorkBeyondDemand, work.place, message)
                    .label(label)
                    .help("only the demand is judged: declare as much, or let the workload do less"),
            );
        }
    }
}

fn jobs_at_once(work: &WorkSpec) -> u32 {
    if work.kind == WorkKind::Bursty {
        work.count.get()
    } else {
        1
    }
}

/// Returns the share of the time that `jobs` of this length need in each period, in parts of 2^32.
fn rate(execution: Option<&Placed<Duration>>, period: Option<&Placed<Duration>>, jobs: u32) -> u128 {
    let time = |time: Option<&Placed<Duration>>| time.map_or(0, |time| u128::from(time.value.get()));
    let work = time(execution).saturating_mul(u128::from(jobs));
    (work << 32).div_ceil(time(period).max(1))
}

fn work_is_possible(work: &WorkSpec, report: &mut Report) {
    if work.kind == WorkKind::AlwaysReady {
        times_are_read(work, report);
        return;
    }
    let (Some(period), Some(execution)) = (&work.period, &work.execution) else {
        let message = "a workload that is not always ready needs `period` and `execution`";
        report.push(
            Diagnostic::at(Code::BadWorkload, work.place, message)
                .help("add them, or make it kind = \"always-ready\""),
        );
        return;
    };
    let code = Code::BadWorkload;
    at_most(code, "period", period, Limit::LONGEST, report);
    at_most(code, "execution", execution, Limit::LONGEST, report);
    if let Some(shortest) = &work.shortest {
        let least = Limit::of("execution", execution);
        at_most(code, "shortest", shortest, least, report);
    }
}
