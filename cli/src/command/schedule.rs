// SPDX-License-Identifier: Apache-2.0
//! The tables of `bulkhead check` about the times of vCPUs: budgets, frames, time domains.

use crate::build::tables::table;
use bulkhead_manifest::{Policy, System, format_duration};
use comfy_table::Table;

/// Formats `part` of `whole` in percent with one decimal: exact, rounded down.
fn percent(part: u64, whole: u64) -> String {
    let thousandths = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

/// Returns a table with a row per vCPU with a budget.
pub(super) fn reservations(system: &System) -> Table {
    let mut rows = table(&["vCPU", "pCPU", "server", "budget", "period", "deadline", "share"]);
    for partition in system.partitions() {
        for (index, vcpu) in partition.vcpus().iter().enumerate() {
            let Some(own) = vcpu.reservation else { continue };
            let (server, deadline) = if vcpu.deadline_ns == 0 {
                (own.server.name(), "-".to_owned())
            } else {
                ("constant-bandwidth", format_duration(vcpu.deadline_ns))
            };
            rows.add_row([
                format!("{}/{index}", partition.name()),
                vcpu.pcpu.to_string(),
                server.to_owned(),
                format_duration(own.budget_ns),
                format_duration(own.period_ns),
                deadline,
                percent(own.budget_ns, own.period_ns),
            ]);
        }
    }
    rows
}

/// Returns a table with a row per window, and one per stretch of a frame that belongs to no partition.
pub(super) fn frames(system: &System) -> Table {
    let mut rows = table(&["pCPU", "schedule", "from", "to", "partition", "share", "period"]);
    for pcpu in system.pcpus() {
        for (number, schedule) in pcpu.schedules.iter().enumerate() {
            let mut row = |from: u64, to: u64, who: &str, period_start: bool| {
                rows.add_row([
                    pcpu.number.to_string(),
                    format!("{number} {}", schedule.name),
                    format_duration(from),
                    format_duration(to),
                    who.to_owned(),
                    percent(to - from, schedule.frame_ns),
                    if period_start { "starts" } else { "-" }.to_owned(),
                ]);
            };
            let mut end = 0;
            for window in &schedule.windows {
                if window.offset_ns > end {
                    row(end, window.offset_ns, "(nobody)", false);
                }
                end = window.offset_ns + window.duration_ns;
                let name = system
                    .partitions()
                    .get(window.partition)
                    .map_or("?", |partition| partition.name());
                row(window.offset_ns, end, name, window.period_start);
            }
            if end < schedule.frame_ns {
                row(end, schedule.frame_ns, "(nobody)", false);
            }
        }
    }
    rows
}

/// Returns a table with a row per time domain.
pub(super) fn domains(system: &System) -> Table {
    let mut rows = table(&["pCPU", "domain", "budget", "share of a cycle", "vCPUs"]);
    for pcpu in system
        .pcpus()
        .iter()
        .filter(|pcpu| pcpu.policy == Policy::Domains)
    {
        let cycle: u64 = pcpu.domains.iter().map(|domain| domain.budget_ns).sum();
        for (domain, number) in pcpu.domains.iter().zip(0_u32..) {
            let vcpus = system.partitions().into_iter().flat_map(|partition| {
                let own = partition.vcpus().into_iter().enumerate();
                own.filter(|(_, vcpu)| vcpu.pcpu == pcpu.number && vcpu.domain == Some(number))
                    .map(move |(index, vcpu)| format!("{}/{index} ({})", partition.name(), vcpu.priority))
            });
            rows.add_row([
                pcpu.number.to_string(),
                format!("{number} {}", domain.name),
                format_duration(domain.budget_ns),
                percent(domain.budget_ns, cycle),
                vcpus.collect::<Vec<_>>().join(", "),
            ]);
        }
    }
    rows
}
