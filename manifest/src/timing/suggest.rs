// SPDX-License-Identifier: Apache-2.0
//! Budgets, windows and priorities that are enough for the demands: a place to start from, not the best
//! values.
//!
//! For each pCPU the parameters that its policy reads are made anew from the demands alone. The parameters of
//! vCPUs without a demand are kept. Every proposal has passed the analysis.

use std::ops::Range;

use bulkhead_sched::{Domain, Schedule, Server, ServerKind, SlotSet, Window};

use super::PcpuTiming;
use crate::model::Policy;
use crate::units::format_duration;

/// Proposed times are multiples of this, or of a hundredth of the time that they are part of.
const STEP: u64 = 10_000;

/// Returns lines for the manifest that make the pCPU pass. `None` if no proposal does, or if there is nothing
/// to propose.
#[must_use]
pub fn suggest(pcpu: &PcpuTiming) -> Option<Vec<String>> {
    if pcpu.vcpus.iter().all(|vcpu| vcpu.tasks.is_none()) {
        return None;
    }
    match pcpu.policy {
        Policy::Pinned | Policy::Own => None,
        Policy::FixedPriority => priorities(pcpu),
        Policy::Edf => budgets(pcpu),
        Policy::Arinc653 => frame(pcpu),
        Policy::Domains => cycle(pcpu),
    }
}

/// Returns the shortest period or deadline of the slot's tasks.
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
    let verdicts = pcpu.verdicts_within(None);
    let mut own = verdicts.iter().filter(|verdict| verdict.slot == slot);
    own.all(|verdict| verdict.bound.is_ok())
}

/// Returns the least multiple of a hundredth of `most` with which `passes` is true.
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

/// Proposes priorities by deadline: the shorter a vCPU's shortest deadline, the more important the vCPU is.
/// vCPUs that declare nothing come last.
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

/// The largest accepted ratio of a longer period's need of the pCPU to the least need: a longer period costs
/// fewer switches.
const WORTH: f64 = 1.1;

/// Proposes a server for each vCPU with a demand: the longest period that needs about the least of the pCPU.
fn budgets(pcpu: &PcpuTiming) -> Option<Vec<String>> {
    let mut changed = pcpu.clone();
    for slot in declared(pcpu).collect::<Vec<_>>() {
        let shortest = shortest_period(pcpu, slot)?;
        let found = [1, 2, 3, 4, 6, 8].into_iter().filter_map(|parts| {
            let period = (shortest / parts / STEP * STEP).max(STEP);
            // Only the vCPU's own demand counts here.
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
            // The ends of budgets cost the other vCPUs time, for which room is left.
            let most = period.saturating_sub(pcpu.overheads.at_ends() * 2);
            let budget = least(most, |budget| budget > 0 && slot_passes(&set(budget), slot))?;
            Some((budget as f64 / period as f64, budget, period))
        });
        let all: Vec<(f64, u64, u64)> = found.collect();
        let least = all.iter().map(|(share, ..)| *share).reduce(f64::min)?;
        let (_, budget, period) = all.into_iter().find(|(share, ..)| *share <= least * WORTH)?;
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

/// Proposes the longest frame that will do in which each partition with a demand has one window. The others
/// share the rest.
fn frame(pcpu: &PcpuTiming) -> Option<Vec<String>> {
    // All demands hold in the only schedule that is left.
    let mut one = pcpu.clone();
    one.vcpus.iter_mut().for_each(|vcpu| vcpu.schedules = None);
    let lines = frame_of_one(&one)?;
    let names = &pcpu.schedule_names;
    let note = (names.len() > 1).then(|| format!("one schedule in the place of {}:", names.join(", ")));
    Some(note.into_iter().chain(lines).collect())
}

fn frame_of_one(pcpu: &PcpuTiming) -> Option<Vec<String>> {
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
            let slots = slots_of(pcpu, *partition);
            let window = |duration| Window {
                slots,
                offset: 0,
                duration,
                period_start: true,
            };
            let alone = |duration| {
                let mut alone = pcpu.clone();
                set_frame(&mut alone, frame, vec![window(duration)]);
                let mut own = (0..pcpu.vcpus.len()).filter(|slot| slots.0 >> slot & 1 != 0);
                own.all(|slot| slot_passes(&alone, slot))
            };
            let duration = least(frame, |duration| duration > 0 && alone(duration))?;
            changed.windows.push(Window {
                offset,
                ..window(duration)
            });
            offset += duration;
        }
        let windows = std::mem::take(&mut changed.windows);
        let rest = rest_of_frame(pcpu, &partitions, offset..frame);
        let with_rest = windows.iter().chain(&rest).copied().collect();
        [with_rest, windows].into_iter().find_map(|windows| {
            set_frame(&mut changed, frame, windows);
            (offset <= frame && changed.is_schedulable()).then(|| lines_of_frame(&changed, frame))
        })
    })
}

/// Returns windows for the partitions that declare nothing: equal parts of the rest of the frame.
fn rest_of_frame(pcpu: &PcpuTiming, declaring: &[usize], rest: Range<u64>) -> Vec<Window> {
    let mut others: Vec<usize> = pcpu.vcpus.iter().map(|vcpu| vcpu.partition).collect();
    others.dedup();
    others.retain(|partition| !declaring.contains(partition));
    let offset = rest.start;
    let length = rest.end.saturating_sub(offset);
    let duration = (length / (others.len() as u64).max(1)) / STEP * STEP;
    if duration == 0 {
        return Vec::new();
    }
    let window = |(number, partition): (u64, &usize)| Window {
        slots: slots_of(pcpu, *partition),
        offset: offset + number * duration,
        duration,
        period_start: true,
    };
    (0..).zip(&others).map(window).collect()
}

/// Returns the slots of a partition's vCPUs.
fn slots_of(pcpu: &PcpuTiming, partition: usize) -> SlotSet {
    let own = (0_u32..)
        .zip(&pcpu.vcpus)
        .filter(|(_, vcpu)| vcpu.partition == partition);
    SlotSet(own.fold(0, |set, (slot, _)| set | 1 << slot))
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

/// Number of rounds of growing budgets before a cycle is given up.
const ROUNDS: usize = 40;

/// First shares of partitions that declare nothing: a cycle divided by each of these numbers in turn.
const PARTS_OF_OTHERS: [u64; 2] = [10, 50];

/// Proposes budgets of domains. The cycle is the longest that will do, so that there are few turns. Each
/// domain gets its share of the cycle, which grows where the share is not enough.
fn cycle(pcpu: &PcpuTiming) -> Option<Vec<String>> {
    let longest = declared(pcpu)
        .filter_map(|slot| pcpu.vcpus[slot].tasks.as_ref())
        .flatten()
        .map(|named| named.task.period)
        .max()?;
    let found = figures_below(longest).find_map(|cycle| {
        let mut trials = PARTS_OF_OTHERS.iter();
        trials.find_map(|part| budgets_in(pcpu, cycle, cycle / part).map(|changed| (changed, cycle)))
    });
    let (mut changed, cycle) = found?;
    share_the_rest(&mut changed, cycle);
    Some(lines_of_domains(&changed))
}

/// Returns the pCPU with budgets of its domains that are enough, in a cycle of about `cycle`. Domains that
/// declare nothing get `others`.
fn budgets_in(pcpu: &PcpuTiming, cycle: u64, others: u64) -> Option<PcpuTiming> {
    let mut changed = pcpu.clone();
    // The ends of a turn are to take a small part of the turn.
    let least = pcpu.overheads.at_ends().saturating_mul(10);
    for (number, domain) in changed.domains.iter_mut().enumerate() {
        let mut share = 0.0;
        let mut declares = false;
        for member in members(pcpu, number) {
            share += pcpu.utilisation(member).unwrap_or(0.0);
            declares |= member.tasks.is_some();
        }
        let budget = if declares {
            (cycle as f64 * share) as u64
        } else {
            others
        };
        domain.budget = rounded_up(budget.max(least));
    }
    for _ in 0..ROUNDS {
        let verdicts = changed.verdicts_within(None);
        let Some(late) = verdicts.iter().find(|verdict| verdict.bound.is_err()) else {
            return Some(changed);
        };
        let domain = usize::from(changed.vcpus[late.slot].parameters.domain);
        let Domain { budget } = changed.domains.get_mut(domain)?;
        *budget = rounded_up(*budget + (*budget / 10).max(1));
        let sum: u64 = changed.domains.iter().map(|domain| domain.budget).sum();
        if sum > 2 * cycle {
            return None;
        }
    }
    None
}

/// Gives each domain that declares nothing as much as the other domains can bear, up to a cycle.
fn share_the_rest(pcpu: &mut PcpuTiming, cycle: u64) {
    for number in 0..pcpu.domains.len() {
        if members(pcpu, number).any(|vcpu| vcpu.tasks.is_some()) {
            continue;
        }
        let now = pcpu.domains[number].budget;
        let mut more = figures_below(cycle).take_while(|budget| *budget > now);
        let found = more.find(|budget| {
            let mut changed = pcpu.clone();
            changed.domains[number].budget = *budget;
            changed.is_schedulable()
        });
        pcpu.domains[number].budget = found.unwrap_or(now);
    }
}

/// Returns the vCPUs of a time domain.
fn members(pcpu: &PcpuTiming, domain: usize) -> impl Iterator<Item = &super::VcpuTiming> {
    let is_in = move |vcpu: &&super::VcpuTiming| usize::from(vcpu.parameters.domain) == domain;
    pcpu.vcpus.iter().filter(is_in)
}

/// Rounds up to a multiple of [`STEP`] that has at most two digits other than 0.
fn rounded_up(time: u64) -> u64 {
    let steps = time.div_ceil(STEP).max(1);
    let mut unit = 1;
    while steps / unit >= 100 {
        unit *= 10;
    }
    steps.div_ceil(unit) * unit * STEP
}

/// Returns round figures from `most` downwards. The last figure is [`STEP`].
fn figures_below(most: u64) -> impl Iterator<Item = u64> {
    const DIGITS: [u64; 10] = [80, 60, 50, 40, 30, 25, 20, 15, 12, 10];
    let decades = (0..12).rev().map(|decade| STEP * 10_u64.pow(decade) / 10);
    let figures = decades.flat_map(|unit| DIGITS.map(|digits| digits * unit));
    figures.filter(move |figure| *figure <= most && figure.is_multiple_of(STEP))
}

fn lines_of_domains(pcpu: &PcpuTiming) -> Vec<String> {
    let name = |number: usize| {
        let first = members(pcpu, number).next();
        first.map_or_else(String::new, |vcpu| format!(" (of {})", vcpu.name))
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
