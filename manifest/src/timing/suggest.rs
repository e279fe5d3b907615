// SPDX-License-Identifier: Apache-2.0
//! Budgets, windows and priorities that are enough for what is declared: where to start from, not the best there is.
//!
//! For each pCPU the parameters its policy reads are made anew from the demands alone; what vCPUs without a demand have
//! is kept. Whatever is proposed has passed the analysis.

use bulkhead_sched::{Domain, Schedule, Server, ServerKind, Window};

use super::PcpuTiming;
use crate::model::Policy;
use crate::units::format_duration;

/// Proposed times are multiples of this, or of a hundredth of what they are part of.
const STEP: u64 = 10_000;

/// Lines for the manifest that make the pCPU pass; `None` if no proposal does, or there is nothing to propose.
#[must_use]
pub fn suggest(pcpu: &PcpuTiming) -> Option<Vec<String>> {
    if pcpu.vcpus.iter().all(|vcpu| vcpu.tasks.is_none()) {
        return None;
    }
    match pcpu.policy {
        Policy::Pinned => None,
        Policy::FixedPriority => priorities(pcpu),
        Policy::Edf => budgets(pcpu),
        Policy::Arinc653 => frame(pcpu),
        Policy::Domains => cycle(pcpu),
    }
}

/// The shortest period of the slot's tasks.
fn shortest_period(pcpu: &PcpuTiming, slot: usize) -> Option<u64> {
    let tasks = pcpu.vcpus[slot].tasks.as_ref()?;
    tasks
        .iter()
        .map(|named| named.task.period.min(named.task.deadline))
        .min()
}

fn declared(pcpu: &PcpuTiming) -> impl Iterator<Item = usize> + use<'_> {
    (0..pcpu.vcpus.len()).filter(|slot| shortest_period(pcpu, *slot).is_some())
}

fn slot_passes(pcpu: &PcpuTiming, slot: usize) -> bool {
    let verdicts = pcpu.verdicts();
    let mut own = verdicts.iter().filter(|verdict| verdict.slot == slot);
    own.all(|verdict| verdict.bound.is_ok())
}

/// The least multiple of a hundredth of `most` with which `change` makes `passes` true.
fn least(most: u64, passes: impl Fn(u64) -> bool) -> Option<u64> {
    let step = (most / 100).div_ceil(STEP).max(1) * STEP;
    let (mut low, mut high) = (0, most.div_ceil(step));
    if !passes(most) {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if passes(middle * step) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some((high * step).min(most))
}

/// Deadline-monotonic: the shorter a vCPU's shortest deadline, the more important it is; those that declare nothing
/// come last.
fn priorities(pcpu: &PcpuTiming) -> Option<Vec<String>> {
    let mut order: Vec<usize> = declared(pcpu).collect();
    order.sort_by_key(|slot| {
        let tasks = pcpu.vcpus[*slot].tasks.as_deref().unwrap_or_default();
        tasks.iter().map(|named| named.task.deadline).min()
    });
    let mut changed = pcpu.clone();
    for vcpu in &mut changed.vcpus {
        vcpu.parameters.priority = 0;
    }
    for (rank, slot) in order.iter().enumerate() {
        let parameters = &mut changed.vcpus[*slot].parameters;
        parameters.priority = u8::try_from(order.len() - rank).unwrap_or(31).min(31);
        parameters.server = None;
    }
    changed.is_schedulable().then(|| {
        let line = |vcpu: &super::VcpuTiming| {
            format!(
                "{}: {{ pcpu = {}, priority = {} }}",
                vcpu.name, pcpu.number, vcpu.parameters.priority
            )
        };
        changed.vcpus.iter().map(line).collect()
    })
}

/// A server for each vCPU with a demand, of the period that needs the least of the pCPU.
fn budgets(pcpu: &PcpuTiming) -> Option<Vec<String>> {
    let mut changed = pcpu.clone();
    for slot in declared(pcpu).collect::<Vec<_>>() {
        let shortest = shortest_period(pcpu, slot)?;
        let best = [1, 2, 3, 4, 6, 8].into_iter().filter_map(|parts| {
            let period = (shortest / parts / STEP * STEP).max(STEP);
            // Alone, so that only its own demand counts.
            let mut alone = pcpu.clone();
            for (other, vcpu) in alone.vcpus.iter_mut().enumerate() {
                if other != slot {
                    vcpu.parameters.server = None;
                }
            }
            let set = |budget| {
                let mut with = alone.clone();
                with.vcpus[slot].parameters.deadline = 0;
                with.vcpus[slot].parameters.server = Some(server(budget, period));
                with
            };
            // Room for what the ends of budgets cost the others.
            let most = period.saturating_sub(pcpu.overheads.event() * 4);
            let budget = least(most, |budget| budget > 0 && slot_passes(&set(budget), slot))?;
            Some((budget as f64 / period as f64, budget, period))
        });
        let (_, budget, period) = best.min_by(|one, other| one.0.total_cmp(&other.0))?;
        changed.vcpus[slot].parameters.server = Some(server(budget, period));
        changed.vcpus[slot].parameters.deadline = 0;
    }
    changed.is_schedulable().then(|| {
        let line = |vcpu: &super::VcpuTiming| {
            let server = vcpu.parameters.server?;
            Some(format!(
                "{}: {{ pcpu = {}, budget = \"{}\", period = \"{}\" }}",
                vcpu.name,
                pcpu.number,
                format_duration(server.budget),
                format_duration(server.period)
            ))
        };
        changed.vcpus.iter().filter_map(line).collect()
    })
}

const fn server(budget: u64, period: u64) -> Server {
    Server {
        budget,
        period,
        kind: ServerKind::ConstantBandwidth,
    }
}

/// A short frame in which each partition with a demand has one window: the longest with which all pass.
fn frame(pcpu: &PcpuTiming) -> Option<Vec<String>> {
    let shortest = declared(pcpu)
        .filter_map(|slot| shortest_period(pcpu, slot))
        .min()?;
    let mut partitions: Vec<usize> = declared(pcpu).map(|slot| pcpu.vcpus[slot].partition).collect();
    partitions.dedup();
    [1, 2, 3, 4, 6, 8].into_iter().find_map(|parts| {
        let frame = (shortest / parts / STEP * STEP).max(STEP);
        let mut changed = pcpu.clone();
        changed.windows.clear();
        let mut offset = 0;
        for partition in &partitions {
            let slots: Vec<usize> = (0..pcpu.vcpus.len())
                .filter(|slot| pcpu.vcpus[*slot].partition == *partition)
                .collect();
            let window = |duration| Window {
                slots: bulkhead_sched::SlotSet(slots.iter().fold(0, |set, slot| set | 1 << slot)),
                offset: 0,
                duration,
                period_start: true,
            };
            let alone = |duration| {
                let mut alone = pcpu.clone();
                set_frame(&mut alone, frame, vec![window(duration)]);
                slots.iter().all(|slot| slot_passes(&alone, *slot))
            };
            let duration = least(frame, |duration| duration > 0 && alone(duration))?;
            changed.windows.push(Window {
                offset,
                ..window(duration)
            });
            offset += duration;
        }
        let windows = std::mem::take(&mut changed.windows);
        set_frame(&mut changed, frame, windows);
        (offset <= frame && changed.is_schedulable()).then(|| lines_of_frame(&changed, frame))
    })
}

fn set_frame(pcpu: &mut PcpuTiming, frame: u64, windows: Vec<Window>) {
    pcpu.schedules = vec![Schedule {
        frame,
        first_window: 0,
        window_count: windows.len() as u8,
    }];
    pcpu.windows = windows;
}

fn lines_of_frame(pcpu: &PcpuTiming, frame: u64) -> Vec<String> {
    let mut lines = vec![format!("frame = \"{}\"", format_duration(frame))];
    for window in &pcpu.windows {
        let slot = window.slots.0.trailing_zeros() as usize;
        let name = pcpu
            .vcpus
            .get(slot)
            .map_or("", |vcpu| vcpu.name.split('/').next().unwrap_or(""));
        lines.push(format!(
            "window: {{ partition = \"{name}\", offset = \"{}\", duration = \"{}\", period-start = true }}",
            format_duration(window.offset),
            format_duration(window.duration)
        ));
    }
    lines
}

/// Rounds of growing budgets before a cycle is given up.
const ROUNDS: usize = 60;

/// Budgets of domains: from each one's share of a cycle, growing where they are not enough.
fn cycle(pcpu: &PcpuTiming) -> Option<Vec<String>> {
    let shortest = declared(pcpu)
        .filter_map(|slot| shortest_period(pcpu, slot))
        .min()?;
    [2, 3, 4, 6, 8, 12, 16].into_iter().find_map(|parts| {
        let mut changed = pcpu.clone();
        let cycle = shortest / parts;
        for (number, domain) in changed.domains.iter_mut().enumerate() {
            let members = pcpu
                .vcpus
                .iter()
                .filter(|vcpu| usize::from(vcpu.parameters.domain) == number);
            let share: f64 = members.filter_map(|vcpu| pcpu.utilisation(vcpu)).sum();
            let budget = (cycle as f64 * share) as u64;
            domain.budget = budget.div_ceil(STEP).max(1) * STEP;
        }
        for _ in 0..ROUNDS {
            let verdicts = changed.verdicts();
            let late = verdicts.iter().find(|verdict| verdict.bound.is_err());
            let Some(late) = late else {
                share_the_rest(&mut changed, shortest);
                return Some(lines_of_domains(&changed));
            };
            let domain = usize::from(changed.vcpus[late.slot].parameters.domain);
            let Domain { budget } = changed.domains.get_mut(domain)?;
            *budget = (*budget + *budget / 8).div_ceil(STEP) * STEP + STEP;
        }
        None
    })
}

/// Gives each domain that declares nothing as much as the others can bear.
fn share_the_rest(pcpu: &mut PcpuTiming, longest: u64) {
    for number in 0..pcpu.domains.len() {
        let mut members = pcpu
            .vcpus
            .iter()
            .filter(|vcpu| usize::from(vcpu.parameters.domain) == number);
        if members.any(|vcpu| vcpu.tasks.is_some()) {
            continue;
        }
        let found = (1..10)
            .map(|half| (longest >> half) / STEP * STEP)
            .find(|budget| {
                let mut changed = pcpu.clone();
                changed.domains[number].budget = *budget;
                *budget > 0 && changed.is_schedulable()
            });
        if let Some(budget) = found {
            pcpu.domains[number].budget = budget;
        }
    }
}

fn lines_of_domains(pcpu: &PcpuTiming) -> Vec<String> {
    let name = |number: usize| {
        let mut members = pcpu
            .vcpus
            .iter()
            .filter(|vcpu| usize::from(vcpu.parameters.domain) == number);
        members
            .next()
            .map_or_else(String::new, |vcpu| format!(" (of {})", vcpu.name))
    };
    let domains = pcpu.domains.iter().enumerate();
    domains
        .map(|(number, domain)| {
            format!(
                "domain {number}{}: budget = \"{}\"",
                name(number),
                format_duration(domain.budget)
            )
        })
        .collect()
}
