// SPDX-License-Identifier: Apache-2.0
//! The analysis's tables for `bulkhead check`.

use crate::build::tables::table;
use bulkhead_manifest::board::Basis;
use bulkhead_manifest::timing::{self, Delay, PcpuTiming, Unproved, VcpuTiming, Verdict};
use bulkhead_manifest::{Policy, System, format_duration};
use bulkhead_sched::analysis::Miss;
use comfy_table::Table;

/// Makes a table of the hypervisor's times that the analysis charges, per pCPU. The table is empty if no
/// partition declares anything.
pub(super) fn hypervisor_time(pcpus: &[PcpuTiming]) -> Table {
    let mut rows = table(&[
        "pCPU",
        "vCPUs",
        "interrupt",
        "decision",
        "switch",
        "longest without a look at interrupts",
        "output, each millisecond",
    ]);
    for pcpu in pcpus.iter().filter(|pcpu| declares(pcpu)) {
        let overheads = &pcpu.overheads;
        rows.add_row([
            pcpu.number.to_string(),
            pcpu.vcpus.len().to_string(),
            format_duration(overheads.interrupt),
            format_duration(overheads.decision),
            format_duration(overheads.switch),
            format_duration(overheads.under_way()),
            format_duration(overheads.output.step),
        ]);
    }
    rows
}

/// The verdict on what is declared under a policy of the user's own.
const NOT_ANALYSED: &str = "not analysed";

/// Makes a table of each vCPU's declared time, its given time, and the room that is left.
pub(super) fn processor_time(system: &System, pcpus: &[PcpuTiming]) -> Table {
    let qualified = Qualified::of(system);
    let mut rows = table(&[
        "pCPU",
        "policy",
        "vCPU",
        "given",
        "declared load",
        "least slack",
        "verdict",
    ]);
    for pcpu in pcpus.iter().filter(|pcpu| !pcpu.vcpus.is_empty()) {
        let verdicts = pcpu.verdicts();
        for (slot, vcpu) in pcpu.vcpus.iter().enumerate() {
            let own: Vec<_> = verdicts.iter().filter(|verdict| verdict.slot == slot).collect();
            let load = pcpu.utilisation(vcpu).map_or_else(|| "-".to_owned(), percent);
            rows.add_row([
                pcpu.number.to_string(),
                pcpu.policy_name().to_owned(),
                vcpu.name.clone(),
                given(pcpu, slot, vcpu),
                load,
                least_slack(&own),
                verdict(pcpu, vcpu, &own, &qualified),
            ]);
        }
        let all: f64 = pcpu.vcpus.iter().filter_map(|vcpu| pcpu.utilisation(vcpu)).sum();
        rows.add_row([
            pcpu.number.to_string(),
            pcpu.policy_name().to_owned(),
            "all".to_owned(),
            reserved(pcpu),
            if declares(pcpu) {
                percent(all)
            } else {
                "-".to_owned()
            },
            least_slack(&verdicts.iter().collect::<Vec<_>>()),
            match (declares(pcpu), pcpu.is_schedulable()) {
                (false, _) => "nothing declared",
                (true, _) if pcpu.policy == Policy::Own => NOT_ANALYSED,
                (true, true) => "schedulable",
                (true, false) => "not schedulable",
            }
            .to_owned(),
        ]);
    }
    rows
}

/// Makes a table of each task's bound against its deadline. The table is empty if no partition declares
/// anything.
pub(super) fn deadlines(pcpus: &[PcpuTiming]) -> Table {
    let mut rows = table(&[
        "vCPU",
        "task",
        "period",
        "wcet",
        "deadline",
        "done within",
        "slack",
    ]);
    for pcpu in pcpus {
        for verdict in pcpu.verdicts() {
            let task = &verdict.task;
            let bound = match verdict.bound {
                Ok(bound) => time(bound),
                Err(Miss::Late(u64::MAX)) => "never, perhaps".to_owned(),
                Err(Miss::Late(late)) => format!("{} or more", time(late)),
                Err(Miss::NotConverged | Miss::BadTask) => "not known".to_owned(),
            };
            rows.add_row([
                pcpu.vcpus[verdict.slot].name.clone(),
                task.name.clone(),
                format_duration(task.task.period),
                format_duration(task.task.wcet),
                format_duration(task.task.deadline),
                bound,
                verdict.slack().map_or_else(|| "-".to_owned(), time),
            ]);
        }
    }
    rows
}

/// Tells whether any vCPU of the pCPU declares anything.
pub(super) fn declares(pcpu: &PcpuTiming) -> bool {
    pcpu.vcpus.iter().any(|vcpu| vcpu.tasks.is_some())
}

/// Describes in a few words the time that the policy gives the vCPU.
fn given(pcpu: &PcpuTiming, slot: usize, vcpu: &VcpuTiming) -> String {
    let server = vcpu.parameters.server.map(|server| {
        format!(
            "{} per {}",
            format_duration(server.budget),
            format_duration(server.period)
        )
    });
    match pcpu.policy {
        Policy::Pinned => "the pCPU".to_owned(),
        Policy::Own => "what its own policy says".to_owned(),
        Policy::FixedPriority => {
            let priority = format!("priority {}", vcpu.parameters.priority);
            server.map_or(priority.clone(), |server| format!("{priority}, {server}"))
        }
        Policy::Edf => server.unwrap_or_else(|| "what is left".to_owned()),
        Policy::Arinc653 => {
            let per_schedule = pcpu.schedules.iter().map(|schedule| {
                let windows = pcpu.windows.iter().skip(usize::from(schedule.first_window));
                let own = windows
                    .take(usize::from(schedule.window_count))
                    .filter(|window| window.slots.0 >> slot & 1 != 0);
                let sum: u64 = own.map(|window| window.duration).sum();
                format!("{} per {}", format_duration(sum), format_duration(schedule.frame))
            });
            per_schedule.collect::<Vec<_>>().join("; ")
        }
        Policy::Domains => {
            let domain = usize::from(vcpu.parameters.domain);
            let budget = pcpu.domains.get(domain).map_or(0, |domain| domain.budget);
            let cycle: u64 = pcpu.domains.iter().map(|domain| domain.budget).sum();
            format!(
                "domain {domain}: {} per {}",
                format_duration(budget),
                format_duration(cycle)
            )
        }
    }
}

/// Returns the share of the pCPU that budgets and windows take, the largest of all schedules.
fn reserved(pcpu: &PcpuTiming) -> String {
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let reserved = match pcpu.policy {
        Policy::Pinned | Policy::Domains => 1.0,
        // The policy may give a budget any meaning.
        Policy::Own => 0.0,
        Policy::FixedPriority | Policy::Edf => {
            let servers = pcpu.vcpus.iter().filter_map(|vcpu| vcpu.parameters.server);
            servers.map(|server| share(server.budget, server.period)).sum()
        }
        Policy::Arinc653 => {
            let shares = pcpu.schedules.iter().map(|schedule| {
                let windows = pcpu.windows.iter().skip(usize::from(schedule.first_window));
                let own = windows.take(usize::from(schedule.window_count));
                share(own.map(|window| window.duration).sum(), schedule.frame)
            });
            shares.fold(0.0, f64::max)
        }
    };
    if reserved == 0.0 {
        "-".to_owned()
    } else {
        format!("reserved: {}", percent(reserved))
    }
}

fn least_slack(verdicts: &[&Verdict]) -> String {
    let all: Option<Vec<u64>> = verdicts.iter().map(|verdict| verdict.slack()).collect();
    let least = all.and_then(|slacks| slacks.into_iter().min());
    least.map_or_else(|| "-".to_owned(), time)
}

/// The facts that verdicts rest on.
struct Qualified {
    basis: Option<Basis>,
    /// True if a figure of a measured board was not seen by the measurement.
    is_estimated: bool,
    unproved: Vec<Unproved>,
}

impl Qualified {
    fn of(system: &System) -> Self {
        Self {
            basis: system.board().costs.map(|costs| costs.basis),
            is_estimated: system
                .board()
                .measurement
                .as_ref()
                .is_some_and(|measurement| !measurement.estimated.is_empty()),
            unproved: timing::unproved(system),
        }
    }

    /// Returns "in time" for a vCPU with these verdicts, with what the words rest on.
    fn in_time(&self, vcpu: &VcpuTiming, verdicts: &[&Verdict]) -> String {
        let mut unproved = self.unproved.iter();
        let waits = unproved.any(|unproved| unproved.partition == vcpu.partition);
        let delays = verdicts.iter().any(|verdict| !verdict.doubted.is_empty());
        let basis = match self.basis.map_or("no figures", Basis::name) {
            name if self.is_estimated => format!("{name} in part"),
            name => name.to_owned(),
        };
        let without = match (waits, delays) {
            (true, true) => ", without its waits and some delays",
            (true, false) => ", without its waits",
            (false, true) => ", without some delays",
            (false, false) => "",
        };
        format!("in time ({basis}{without})")
    }
}

/// Returns a line for each fact that verdicts rest on and that nothing proves. Empty if no partition declares
/// anything.
pub(super) fn caveats(system: &System, pcpus: &[PcpuTiming]) -> Vec<String> {
    if !pcpus.iter().any(declares) {
        return Vec::new();
    }
    let Qualified { unproved, .. } = Qualified::of(system);
    let board = system.board();
    let basis = board.caveat();
    let basis = basis.map(|caveat| format!("by [overheads] of {}: {caveat}", board.name));
    let waits = unproved.iter().map(|unproved| {
        format!(
            "not proved: how long `{}` waits for {}",
            unproved.name, unproved.wait
        )
    });
    let proved = pcpus.iter().flat_map(|pcpu| &pcpu.vcpus).flat_map(waits_in_wcet);
    let delays = timing::delays(system, pcpus);
    let delays = delays.iter().map(delay);
    let own = pcpus
        .iter()
        .filter(|pcpu| pcpu.policy == Policy::Own && declares(pcpu));
    let own = own.map(|pcpu| {
        format!(
            "not proved: the deadlines of pCPU {}, because its own policy `{}` is not analysed",
            pcpu.number,
            pcpu.policy_name()
        )
    });
    basis
        .into_iter()
        .chain(proved)
        .chain(waits)
        .chain(delays)
        .chain(own)
        .collect()
}

/// Returns the line for a delay that is not proved.
fn delay(Delay { delayed, cause }: &Delay) -> String {
    let names: Vec<String> = delayed.iter().map(|(_, name)| format!("`{name}`")).collect();
    let (names, verb) = match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => (format!("{} and {last}", rest.join(", ")), "are"),
        _ => (names.concat(), "is"),
    };
    format!("not proved: how long {names} {verb} delayed {cause}")
}

/// Returns a line for each task of a vCPU with waits that are proved.
fn waits_in_wcet(vcpu: &VcpuTiming) -> impl Iterator<Item = String> {
    let tasks = vcpu.tasks.iter().flatten().filter(|task| task.waits != 0);
    tasks.map(|task| {
        let (name, task, waits) = (&vcpu.name, &task.name, format_duration(task.waits));
        format!(
            "proved with its waits: task `{task}` of `{name}` waits for others for {waits} in a job at most"
        )
    })
}

fn verdict(pcpu: &PcpuTiming, vcpu: &VcpuTiming, verdicts: &[&Verdict], qualified: &Qualified) -> String {
    if vcpu.tasks.is_none() {
        "declares nothing".to_owned()
    } else if pcpu.policy == Policy::Own {
        NOT_ANALYSED.to_owned()
    } else if verdicts.iter().all(|verdict| verdict.bound.is_ok()) {
        let in_time = qualified.in_time(vcpu, verdicts);
        match &vcpu.schedules {
            Some(schedules) => format!("{in_time} in {}", schedules.join(", ")),
            None => in_time,
        }
    } else {
        "may be late".to_owned()
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats a measured or computed time: in milliseconds or microseconds, with three digits after the point.
pub(super) fn time(nanoseconds: u64) -> String {
    if nanoseconds >= 1_000_000 {
        format!("{}.{:03} ms", nanoseconds / 1_000_000, nanoseconds / 1000 % 1000)
    } else {
        format!("{}.{:03} us", nanoseconds / 1000, nanoseconds % 1000)
    }
}
