// SPDX-License-Identifier: Apache-2.0
//! The smallest change with which a pCPU would pass, found by trying.
//!
//! Each kind of change is one number; the least value with which all tasks of the pCPU are in time is found by
//! bisection (more of it never hurts the vCPU itself) and then tried on the whole pCPU.

use bulkhead_sched::analysis::Task;
use bulkhead_sched::{Server, Window};

use super::{NamedTask, PcpuTiming};
use crate::model::Policy;
use crate::units::format_duration;

/// Times are tried in multiples of this.
const STEP: u64 = 10_000;

/// What would make the vCPU in `slot` pass, and all others still.
pub(super) fn find(pcpu: &PcpuTiming, slot: usize) -> Option<String> {
    let candidates: &[fn(&PcpuTiming, usize) -> Option<String>] = match pcpu.policy {
        Policy::Pinned => &[less_work],
        Policy::FixedPriority => &[declarations, more_budget, higher_priority, less_work],
        Policy::Edf => &[declarations, more_budget, less_work],
        Policy::Arinc653 => &[longer_window, other_offset, higher_priority, less_work],
        Policy::Domains => &[larger_domain, higher_priority, less_work],
    };
    candidates.iter().find_map(|candidate| candidate(pcpu, slot))
}

/// The least value from `low` to `high` with which `change` makes the pCPU pass; `None` if even `high` does not.
fn least(pcpu: &PcpuTiming, low: u64, high: u64, change: impl Fn(&mut PcpuTiming, u64)) -> Option<u64> {
    let passes = |value| {
        let mut changed = pcpu.clone();
        change(&mut changed, value);
        changed.is_schedulable()
    };
    // More for one is less for others: not even the largest value need pass where a smaller one does.
    let mut high = (0..6)
        .map(|half| low + (high.saturating_sub(low) >> half))
        .find(|value| passes(*value))?;
    let mut low = low;
    while high - low > STEP {
        let middle = low + (high - low) / 2;
        if passes(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    let rounded = high.div_ceil(STEP) * STEP;
    Some(if passes(rounded) { rounded } else { high })
}

fn more_budget(pcpu: &PcpuTiming, slot: usize) -> Option<String> {
    let server = pcpu.vcpus[slot].parameters.server?;
    let set = |pcpu: &mut PcpuTiming, budget| {
        pcpu.vcpus[slot].parameters.server = Some(Server { budget, ..server });
    };
    let most = match pcpu.vcpus[slot].parameters.deadline {
        0 => server.period,
        deadline => deadline,
    };
    let budget = least(pcpu, server.budget, most, set)?;
    Some(format!(
        "with budget = \"{}\" (now {}) for `{}` all tasks of pCPU {} would be in time",
        format_duration(budget),
        format_duration(server.budget),
        pcpu.vcpus[slot].name,
        pcpu.number,
    ))
}

/// Whether it would help if the others declared what they do: each a job per budget.
fn declarations(pcpu: &PcpuTiming, slot: usize) -> Option<String> {
    let place = pcpu.vcpus[slot].tasks.as_ref()?.first()?.place;
    let mut changed = pcpu.clone();
    let mut names = Vec::new();
    for vcpu in changed.vcpus.iter_mut().filter(|vcpu| vcpu.tasks.is_none()) {
        let Some(server) = vcpu.parameters.server else {
            continue;
        };
        let task = Task {
            period: server.period,
            wcet: server.budget,
            deadline: server.period,
            priority: 0,
        };
        names.push(format!("`{}`", vcpu.name));
        vcpu.tasks = Some(vec![NamedTask {
            name: String::new(),
            task,
            place,
        }]);
    }
    // Whether these would be in time themselves is not asked.
    let is_other = |slot: usize| pcpu.vcpus[slot].tasks.is_none();
    let verdicts = changed.verdicts();
    let passes = verdicts
        .iter()
        .all(|verdict| verdict.bound.is_ok() || is_other(verdict.slot));
    (passes && !names.is_empty()).then(|| {
        format!(
            "declare the demand of {}: as it is, the analysis has to take {} to come and go as fast as can be, at your expense",
            names.join(", "),
            if names.len() == 1 { "it" } else { "them" },
        )
    })
}

fn higher_priority(pcpu: &PcpuTiming, slot: usize) -> Option<String> {
    let now = pcpu.vcpus[slot].parameters.priority;
    let priority = (now + 1..32).find(|priority| {
        let mut changed = pcpu.clone();
        changed.vcpus[slot].parameters.priority = *priority;
        changed.is_schedulable()
    })?;
    Some(format!(
        "with priority = {priority} (now {now}) for `{}` all tasks of pCPU {} would be in time",
        pcpu.vcpus[slot].name, pcpu.number,
    ))
}

fn larger_domain(pcpu: &PcpuTiming, slot: usize) -> Option<String> {
    let domain = usize::from(pcpu.vcpus[slot].parameters.domain);
    let now = pcpu.domains.get(domain)?.budget;
    let set = |pcpu: &mut PcpuTiming, budget| pcpu.domains[domain].budget = budget;
    let budget = least(pcpu, now, now.saturating_mul(16), set)?;
    Some(format!(
        "with budget = \"{}\" (now {}) for the time domain of `{}` all tasks of pCPU {} would be in time",
        format_duration(budget),
        format_duration(now),
        pcpu.vcpus[slot].name,
        pcpu.number,
    ))
}

/// The windows of `slot`, with where the free time around each begins and ends.
fn windows_of(pcpu: &PcpuTiming, slot: usize) -> Vec<(usize, u64, u64)> {
    let mut found = Vec::new();
    for schedule in &pcpu.schedules {
        let first = usize::from(schedule.first_window);
        let end = first + usize::from(schedule.window_count);
        for number in first..end {
            if pcpu.windows[number].slots.0 >> slot & 1 == 0 {
                continue;
            }
            let before = (first < number).then(|| &pcpu.windows[number - 1]);
            let after = (number + 1 < end).then(|| pcpu.windows[number + 1].offset);
            let free_from = before.map_or(0, |window| window.offset + window.duration);
            found.push((number, free_from, after.unwrap_or(schedule.frame)));
        }
    }
    found
}

fn longer_window(pcpu: &PcpuTiming, slot: usize) -> Option<String> {
    let mut best: Option<(u64, Window, Window)> = None;
    for (number, free_from, free_to) in windows_of(pcpu, slot) {
        let now = pcpu.windows[number];
        // Behind it first, then in front of it too.
        let set = |pcpu: &mut PcpuTiming, duration: u64| {
            let offset = now.offset.min(free_to.saturating_sub(duration)).max(free_from);
            pcpu.windows[number].offset = offset;
            pcpu.windows[number].duration = duration.min(free_to - offset);
        };
        let Some(duration) = least(pcpu, now.duration, free_to - free_from, set) else {
            continue;
        };
        let mut changed = pcpu.clone();
        set(&mut changed, duration);
        let more = duration - now.duration;
        if best.is_none_or(|(least, ..)| more < least) {
            best = Some((more, now, changed.windows[number]));
        }
    }
    let (_, now, new) = best?;
    Some(format!(
        "with its window at {} changed to offset = \"{}\", duration = \"{}\" (now {}) all tasks of pCPU {} would be in time",
        format_duration(now.offset),
        format_duration(new.offset),
        format_duration(new.duration),
        format_duration(now.duration),
        pcpu.number,
    ))
}

/// Offsets tried for each window.
const OFFSETS: u64 = 32;

fn other_offset(pcpu: &PcpuTiming, slot: usize) -> Option<String> {
    let mut best: Option<(u64, u64, u64)> = None;
    for (number, free_from, free_to) in windows_of(pcpu, slot) {
        let now = pcpu.windows[number];
        let room = free_to.saturating_sub(free_from).saturating_sub(now.duration);
        for step in 0..=OFFSETS {
            let offset = free_from + (room * step / OFFSETS) / STEP * STEP;
            let moved = offset.abs_diff(now.offset);
            if best.is_some_and(|(least, ..)| moved >= least) {
                continue;
            }
            let mut changed = pcpu.clone();
            changed.windows[number].offset = offset;
            if changed.is_schedulable() {
                best = Some((moved, now.offset, offset));
            }
        }
    }
    let (_, now, new) = best?;
    Some(format!(
        "with its window at {} moved to offset = \"{}\" all tasks of pCPU {} would be in time",
        format_duration(now),
        format_duration(new),
        pcpu.number,
    ))
}

/// Parts of a hundred that the tasks' execution times would have to be reduced to.
fn less_work(pcpu: &PcpuTiming, slot: usize) -> Option<String> {
    let part = (1..100).rev().find(|part| {
        let mut changed = pcpu.clone();
        for named in changed.vcpus[slot].tasks.iter_mut().flatten() {
            named.task.wcet = (named.task.wcet * part / 100).max(1);
        }
        changed.is_schedulable()
    })?;
    Some(format!(
        "if the tasks of `{}` took {part} % of what they declare, all tasks of pCPU {} would be in time",
        pcpu.vcpus[slot].name, pcpu.number,
    ))
}
