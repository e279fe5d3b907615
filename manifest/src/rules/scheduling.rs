// SPDX-License-Identifier: Apache-2.0
//! Budgets, schedules and time domains: the keys that the policy of a pCPU reads, and the promises that it
//! can make.
//!
//! A key that the policy does not read is an error if its author must believe in a guarantee that the policy
//! does not give (a budget, a deadline, a domain). Such a key is a warning if it merely has no effect (a
//! priority). The analysis, not this file, asks whether the promises are enough for the demands of the
//! partitions.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use bulkhead_abi::size::TABLES;
use bulkhead_image::PcpuLimits;

use super::cpus::possible_duration;
use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{
    DomainSpec, Manifest, PartitionSpec, PcpuSpec, Placed, Policy, ScheduleSpec, VcpuSpec, WindowSpec,
    policy_of, spec_of,
};
use crate::nearest::nearest;
use crate::units::format_duration;

/// Possible budgets. A switch and an interrupt would use up a shorter one.
pub(crate) const BUDGET: RangeInclusive<u64> = 10_000..=10_000_000_000;
const PERIOD: RangeInclusive<u64> = 100_000..=10_000_000_000;
const FRAME: RangeInclusive<u64> = 100_000..=100_000_000_000;
const WINDOW: RangeInclusive<u64> = 10_000..=100_000_000_000;
/// One pCPU's worth of utilisation, in the parts that are summed up. Each part is rounded down, so that
/// exactly one pCPU's worth passes.
const WHOLE: u128 = 1 << 64;

pub(super) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    let limits = PcpuLimits::of(board.map_or(TABLES, |board| board.class.facts().tables));
    for pcpu in &manifest.pcpus {
        tables_fit_the_policy(pcpu, report);
        few_enough(pcpu, &limits, report);
        for schedule in &pcpu.schedules {
            self::schedule(pcpu, schedule, manifest, report);
        }
        for domain in &pcpu.domains {
            self::domain(pcpu, domain, manifest, report);
        }
    }
    let vcpus = manifest.partitions.iter().flat_map(|partition| &partition.vcpus);
    let used = vcpus.filter_map(|vcpu| Some(vcpu.pcpu.as_ref()?.value));
    for pcpu in used.collect::<BTreeSet<_>>() {
        budgets_fit_together(pcpu, manifest, report);
    }
    for partition in &manifest.partitions {
        for vcpu in &partition.vcpus {
            let policy = vcpu.pcpu.as_ref().map(|pcpu| policy_of(manifest, pcpu.value));
            let Some(policy) = policy else { continue };
            keys_fit_the_policy(vcpu, policy, report);
            server_is_possible(vcpu, policy, report);
            domain_exists(vcpu, policy, manifest, report);
        }
        critical_devices_are_own(partition, manifest, report);
        has_windows(partition, manifest, report);
        window_events_can_come(partition, manifest, report);
    }
}

fn tables_fit_the_policy(pcpu: &PcpuSpec, report: &mut Report) {
    let (name, number) = (pcpu.policy.name(), &pcpu.name.value);
    let tables = [
        (
            "schedule",
            pcpu.schedules.key,
            pcpu.schedules.is_empty(),
            Policy::Arinc653,
        ),
        (
            "domain",
            pcpu.domains.key,
            pcpu.domains.is_empty(),
            Policy::Domains,
        ),
    ];
    for (key, place, empty, policy) in tables {
        if let (Some(place), true) = (place, **pcpu.policy != policy) {
            let message = format!("pCPU {number} has policy `{name}`, which has no `{key}`");
            report.push(
                Diagnostic::at(Code::ForeignParameter, place, message)
                    .help(format!("remove it, or use policy \"{}\"", policy.name())),
            );
        }
        if **pcpu.policy == policy && empty {
            let message = format!("pCPU {number} has policy `{name}`, but no {key}");
            let remedy = if policy == Policy::Arinc653 {
                format!("add `[pcpu.{number}.schedule.NAME]` with `frame` and `windows`")
            } else {
                format!(
                    "add `[pcpu.{number}.domain.NAME]` with `budget`; the first one is driven by priority"
                )
            };
            report.push(Diagnostic::at(Code::EmptySchedule, pcpu.name.place, message).help(remedy));
        }
    }
}

fn few_enough(pcpu: &PcpuSpec, limits: &PcpuLimits, report: &mut Report) {
    let mut limit = |what: &str, place: Option<Place>, count: usize, limit: usize| {
        if let (Some(place), true) = (place, count > limit) {
            let message = format!("pCPU {} has {count} {what}, more than {limit}", pcpu.name.value);
            report.push(
                Diagnostic::at(Code::TooManyWindows, place, message)
                    .label("one too many")
                    .help("merge or remove some"),
            );
        }
    };
    let windows: Vec<_> = pcpu
        .schedules
        .iter()
        .flat_map(|schedule| &schedule.windows)
        .collect();
    limit(
        "windows in all schedules",
        windows.get(limits.windows).map(|window| window.place),
        windows.len(),
        limits.windows,
    );
    limit(
        "schedules",
        pcpu.schedules.get(limits.schedules).map(|extra| extra.name.place),
        pcpu.schedules.len(),
        limits.schedules,
    );
    limit(
        "domains",
        pcpu.domains.get(limits.domains).map(|extra| extra.name.place),
        pcpu.domains.len(),
        limits.domains,
    );
}

fn schedule(pcpu: &PcpuSpec, schedule: &ScheduleSpec, manifest: &Manifest, report: &mut Report) {
    let name = &schedule.name.value;
    if let Some(frame) = &schedule.frame {
        possible_duration("frame", frame, &FRAME, report);
    }
    if schedule.windows.is_empty() {
        let message = format!("schedule `{name}` has no window");
        report.push(
            Diagnostic::at(Code::EmptySchedule, schedule.name.place, message)
                .help("add one: windows = [{ partition = \"NAME\", offset = \"0ms\", duration = \"5ms\" }]"),
        );
    }
    for (index, window) in schedule.windows.iter().enumerate() {
        if let Some(duration) = &window.duration {
            possible_duration("duration", duration, &WINDOW, report);
        }
        window_is_somebodys(pcpu, window, manifest, report);
        window_is_inside(schedule, window, report);
        windows_are_apart(&schedule.windows[..index], window, name, report);
    }
}

fn bound_to(partition: &PartitionSpec, pcpu: &PcpuSpec) -> bool {
    let vcpus = partition.vcpus.iter().filter_map(|vcpu| vcpu.pcpu.as_ref());
    vcpus
        .into_iter()
        .any(|own| own.value.to_string() == pcpu.name.value)
}

fn window_is_somebodys(pcpu: &PcpuSpec, window: &WindowSpec, manifest: &Manifest, report: &mut Report) {
    let Some(name) = &window.partition else { return };
    let found = manifest
        .partitions
        .iter()
        .find(|partition| partition.name.value == name.value);
    let (message, help) = match found {
        Some(partition) if bound_to(partition, pcpu) => return,
        Some(_) => (
            format!(
                "a window is for `{}`, which has no vCPU on pCPU {}",
                name.value, pcpu.name.value
            ),
            "give it to a partition of this pCPU, or bind a vCPU of the partition to it".to_owned(),
        ),
        None => {
            let names = manifest
                .partitions
                .iter()
                .map(|partition| partition.name.value.as_str());
            let help = match nearest(&name.value, names) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "name a partition that has a vCPU on this pCPU".to_owned(),
            };
            (
                format!("a window is for a partition `{}` that does not exist", name.value),
                help,
            )
        }
    };
    report.push(Diagnostic::at(Code::WindowPartition, name.place, message).help(help));
}

fn window_is_inside(schedule: &ScheduleSpec, window: &WindowSpec, report: &mut Report) {
    let (Some((_, end)), Some(frame)) = (window.span(), &schedule.frame) else {
        return;
    };
    if end > frame.value.get() {
        let (end, length) = (format_duration(end), format_duration(frame.value.get()));
        let message = format!(
            "a window of schedule `{}` ends at {end}, its frame at {length}",
            schedule.name.value
        );
        report.push(
            Diagnostic::at(Code::WindowOutside, window.place, message)
                .also(frame.place, "the frame")
                .help("shorten the window, move it, or lengthen the frame"),
        );
    }
}

fn windows_are_apart(earlier: &[WindowSpec], window: &WindowSpec, schedule: &str, report: &mut Report) {
    let Some((start, end)) = window.span() else { return };
    let overlaps = |other: &&WindowSpec| {
        other
            .span()
            .is_some_and(|(other_start, other_end)| start < other_end && other_start < end)
    };
    let Some(other) = earlier.iter().find(overlaps) else {
        return;
    };
    let Some((other_start, other_end)) = other.span() else {
        return;
    };
    let owner = |window: &WindowSpec| {
        window
            .partition
            .as_ref()
            .map_or_else(|| "?".to_owned(), |name| name.value.clone())
    };
    let message = format!(
        "windows of `{}` and `{}` overlap in schedule `{schedule}`",
        owner(other),
        owner(window)
    );
    let range = |start, end| format!("{} to {}", format_duration(start), format_duration(end));
    report.push(
        Diagnostic::at(Code::WindowOverlap, window.place, message)
            .label(range(start, end))
            .also(other.place, range(other_start, other_end))
            .help("shorten one or move it"),
    );
}

fn domain(pcpu: &PcpuSpec, domain: &DomainSpec, manifest: &Manifest, report: &mut Report) {
    if let Some(budget) = &domain.budget {
        possible_duration("budget", budget, &BUDGET, report);
    }
    let mut vcpus = manifest.partitions.iter().flat_map(|partition| &partition.vcpus);
    let member = |vcpu: &VcpuSpec| {
        let here = vcpu
            .pcpu
            .as_ref()
            .is_some_and(|own| own.value.to_string() == pcpu.name.value);
        here && vcpu
            .domain
            .as_ref()
            .is_some_and(|own| own.value == domain.name.value)
    };
    if **pcpu.policy == Policy::Domains && !vcpus.any(member) {
        let message = format!(
            "no vCPU of pCPU {} is in domain `{}`",
            pcpu.name.value, domain.name.value
        );
        report.push(
            Diagnostic::at(Code::NoWindow, domain.name.place, message)
                .help("remove the domain, or put a vCPU into it with `domain`"),
        );
    }
}

/// Checks that every key is one that the policy reads.
fn keys_fit_the_policy(vcpu: &VcpuSpec, policy: Policy, report: &mut Report) {
    fn place<T>(value: &Option<Placed<T>>) -> Option<Place> {
        value.as_ref().map(|value| value.place)
    }
    let servers: &[Policy] = &[Policy::FixedPriority, Policy::Edf, Policy::Own];
    let keys = [
        ("budget", place(&vcpu.budget), servers),
        ("period", place(&vcpu.period), servers),
        ("server", vcpu.server.place, &[Policy::FixedPriority]),
        ("deadline", place(&vcpu.deadline), &[Policy::Edf, Policy::Own]),
        ("domain", place(&vcpu.domain), &[Policy::Domains]),
    ];
    for (key, place, readers) in keys {
        if let (Some(place), false) = (place, readers.contains(&policy)) {
            let message = format!("policy `{}` does not read `{key}` of a vCPU", policy.name());
            let ours = readers.iter().filter(|policy| **policy != Policy::Own);
            let names: Vec<_> = ours.map(|policy| format!("\"{}\"", policy.name())).collect();
            let remedy = match (policy, key) {
                (Policy::Arinc653, "budget" | "period") => "give the partition windows instead".to_owned(),
                (Policy::Domains, "budget" | "period") => "give its domain a budget instead".to_owned(),
                (Policy::Edf, "server") => {
                    "remove it: the servers of `edf` are constant-bandwidth servers".to_owned()
                }
                (Policy::Own, "server") => "remove it: your policy gives a budget its meaning".to_owned(),
                _ => format!("remove it, or use policy {}", names.join(" or ")),
            };
            report.push(Diagnostic::at(Code::ForeignParameter, place, message).help(remedy));
        }
    }
    if let (Some(place), Policy::Edf | Policy::Pinned) = (vcpu.priority.place, policy) {
        let message = format!("policy `{}` does not read `priority`", policy.name());
        report.push(Diagnostic::at(Code::UnusedPriority, place, message).help("remove it"));
    }
}

fn server_is_possible(vcpu: &VcpuSpec, policy: Policy, report: &mut Report) {
    if !matches!(policy, Policy::FixedPriority | Policy::Edf | Policy::Own) {
        return;
    }
    let mut bad = |place: Place, message: String, help: &str| {
        report.push(Diagnostic::at(Code::BadServer, place, message).help(help.to_owned()));
    };
    let (budget, period) = match (&vcpu.budget, &vcpu.period) {
        (Some(budget), Some(period)) => (budget, period),
        (Some(budget), None) => {
            return bad(
                budget.place,
                "a budget without `period`".to_owned(),
                "add after which time it is there again: period = \"10ms\"",
            );
        }
        (None, Some(period)) => {
            return bad(
                period.place,
                "a period without `budget`".to_owned(),
                "add how long it may run in each: budget = \"1ms\"",
            );
        }
        (None, None) => {
            let alone = vcpu.server.place.map(|place| ("server", place));
            let deadline = vcpu
                .deadline
                .as_ref()
                .map(|deadline| ("deadline", deadline.place));
            let foreign = if policy == Policy::FixedPriority {
                alone
            } else {
                deadline
            };
            if let Some((key, place)) = foreign {
                bad(
                    place,
                    format!("`{key}` without a budget"),
                    "add `budget` and `period`, or remove it",
                );
            }
            return;
        }
    };
    if budget.value > period.value {
        let message = format!(
            "a budget of {} in a period of {}",
            format_duration(budget.value.get()),
            format_duration(period.value.get())
        );
        bad(
            budget.place,
            message,
            "the budget cannot be longer than the period",
        );
    }
    if let (Some(deadline), Policy::Edf | Policy::Own) = (&vcpu.deadline, policy) {
        let (budget, period) = (budget.value, period.value);
        let message = format!(
            "a deadline of {} for a budget of {} in a period of {}",
            format_duration(deadline.value.get()),
            format_duration(budget.get()),
            format_duration(period.get())
        );
        if deadline.value > period || deadline.value < budget {
            bad(
                deadline.place,
                message,
                "choose one from the budget to the period",
            );
        }
    }
    possible_duration("budget", budget, &BUDGET, report);
    possible_duration("period", period, &PERIOD, report);
}

fn domain_exists(vcpu: &VcpuSpec, policy: Policy, manifest: &Manifest, report: &mut Report) {
    let spec = vcpu.pcpu.as_ref().and_then(|pcpu| spec_of(manifest, pcpu.value));
    let (Some(spec), Policy::Domains) = (spec, policy) else {
        return;
    };
    let names = spec.domains.iter().map(|domain| domain.name.value.as_str());
    let all = names
        .clone()
        .map(|name| format!("\"{name}\""))
        .collect::<Vec<_>>()
        .join(", ");
    let (place, message, help) = match &vcpu.domain {
        None => (
            vcpu.place,
            format!("a vCPU of pCPU {} is in no time domain", spec.name.value),
            format!("add `domain`, one of {all}"),
        ),
        Some(own) if names.clone().any(|name| name == own.value) => return,
        Some(own) => (
            own.place,
            format!("pCPU {} has no domain `{}`", spec.name.value, own.value),
            match nearest(&own.value, names) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("its domains are {all}"),
            },
        ),
    };
    if !spec.domains.is_empty() {
        report.push(Diagnostic::at(Code::UnknownDomain, place, message).help(help));
    }
}

/// Returns the density of a vCPU's server in parts of [`WHOLE`], and the place of the budget.
fn density(vcpu: &VcpuSpec, policy: Policy) -> Option<(u128, Place)> {
    let (budget, period) = (vcpu.budget.as_ref()?, vcpu.period.as_ref()?.value);
    let deadline = vcpu.deadline.as_ref().filter(|_| policy == Policy::Edf);
    let within = deadline.map_or(period, |deadline| deadline.value.min(period));
    // A budget that is impossible by itself has been reported as such.
    if budget.value > within {
        return None;
    }
    let density = (u128::from(budget.value.get()) * WHOLE).checked_div(u128::from(within.get()))?;
    Some((density, budget.place))
}

fn budgets_fit_together(pcpu: u32, manifest: &Manifest, report: &mut Report) {
    let policy = policy_of(manifest, pcpu);
    let (measure, what) = match policy {
        Policy::FixedPriority => ("utilisation", "budget / period"),
        Policy::Edf => ("density", "budget / deadline"),
        _ => return,
    };
    let vcpus = manifest.partitions.iter().flat_map(|partition| &partition.vcpus);
    let here = vcpus.filter(|vcpu| vcpu.pcpu.as_ref().is_some_and(|own| own.value == pcpu));
    let all: Vec<_> = here.filter_map(|vcpu| density(vcpu, policy)).collect();
    let sum: u128 = all.iter().map(|(density, _)| density).sum();
    let Some((_, last)) = all.last().filter(|_| sum > WHOLE) else {
        return;
    };
    let hundredths = sum.saturating_mul(10_000).div_ceil(WHOLE);
    let message = format!(
        "the budgets of pCPU {pcpu} have a {measure} of {}.{:02} %",
        hundredths / 100,
        hundredths % 100
    );
    let mut diagnostic = Diagnostic::at(Code::Overcommitted, *last, message)
        .label(format!("the sum of {what} is more than the pCPU has"))
        .help("less budget, longer periods or deadlines, or bind some vCPUs to another pCPU");
    for (_, place) in all.iter().rev().skip(1).take(3) {
        diagnostic = diagnostic.also(*place, "and this");
    }
    report.push(diagnostic);
}

/// Checks that every vCPU gets time in some schedule of its pCPU.
fn has_windows(partition: &PartitionSpec, manifest: &Manifest, report: &mut Report) {
    for pcpu in manifest.pcpus.iter().filter(|pcpu| bound_to(partition, pcpu)) {
        let mut windows = pcpu
            .schedules
            .iter()
            .flat_map(|schedule| &schedule.windows)
            .peekable();
        let own = |window: &WindowSpec| {
            window
                .partition
                .as_ref()
                .is_some_and(|name| name.value == partition.name.value)
        };
        if windows.peek().is_some() && !windows.any(own) {
            let message = format!(
                "partition `{}` has no window on pCPU {}",
                partition.name.value, pcpu.name.value
            );
            report.push(
                Diagnostic::at(Code::NoWindow, partition.name.place, message)
                    .label("its vCPU there never runs")
                    .also(pcpu.name.place, "the pCPU")
                    .help("give it a window in a schedule of the pCPU"),
            );
        }
    }
}

fn critical_devices_are_own(partition: &PartitionSpec, manifest: &Manifest, report: &mut Report) {
    let Some(first) = partition.critical.first() else {
        return;
    };
    let pcpus = partition.vcpus.iter().filter_map(|vcpu| vcpu.pcpu.as_ref());
    if !pcpus
        .into_iter()
        .any(|pcpu| policy_of(manifest, pcpu.value) == Policy::Domains)
    {
        let message = format!(
            "partition `{}` is on no pCPU with time domains",
            partition.name.value
        );
        report.push(
            Diagnostic::at(Code::ForeignParameter, first.place, message)
                .help("remove `critical`, or use policy \"domains\""),
        );
    }
    for name in &partition.critical {
        let own = |device: &Placed<String>| device.value == name.value;
        if !partition.devices.iter().any(own) {
            let message = format!(
                "`{}` is called critical, but is no device of `{}`",
                name.value, partition.name.value
            );
            report.push(
                Diagnostic::at(Code::UnknownDevice, name.place, message)
                    .help("add it to the partition's `devices`"),
            );
        }
    }
}

fn window_events_can_come(partition: &PartitionSpec, manifest: &Manifest, report: &mut Report) {
    let Some(place) = partition.watch_windows() else {
        return;
    };
    let windowed = |pcpu: &&PcpuSpec| **pcpu.policy == Policy::Arinc653 && bound_to(partition, pcpu);
    if !manifest.pcpus.iter().any(|pcpu| windowed(&pcpu)) {
        let message = format!("partition `{}` is on no pCPU with windows", partition.name.value);
        report.push(
            Diagnostic::at(Code::ForeignParameter, place, message)
                .help("remove `windows`, or use policy \"arinc653\""),
        );
    }
}
