// SPDX-License-Identifier: Apache-2.0
//! The search for the longest responses of a system in the simulator.
//!
//! A run begins with chosen first releases. From then on releases come as often as they may, or a little less
//! often, so that phases drift past each other. The search begins with the common release and with chosen
//! and random ones. Then it changes one release of the run that was the worst for a task, and keeps what is
//! worse.

use bulkhead_sched::Slot;
use bulkhead_sched::analysis::Task;
use bulkhead_sched::simulate::{Pattern, Simulator, Source, SourceState};

use crate::systems::{Numbers, System};

/// The length of a run in nanoseconds.
const LENGTH: u64 = 600_000_000;

/// Runs before the search, and changes of the worst run of each task.
const RUNS: u64 = 16;
const CHANGES: u64 = 8;

/// One source's releases: the first, and the distance beyond the period.
#[derive(Clone, Copy, Debug)]
struct Releases {
    first: u64,
    extra: u64,
}

/// The longest responses that were seen, and whether a deadline was missed.
pub struct Worst {
    pub longest: Vec<u64>,
    pub has_missed: bool,
}

/// Looks for the longest response of each declared task. A search of a system that was refused ends with the
/// first miss.
pub fn search(system: &System, ends_with_miss: bool) -> Worst {
    let mut numbers = Numbers::new(system.number ^ 0x5eed);
    let tasks: Vec<(usize, Task)> = declared(system);
    let mut worst = Worst {
        longest: vec![0; tasks.len()],
        has_missed: false,
    };
    let mut best: Vec<Vec<Releases>> = vec![Vec::new(); tasks.len()];
    for run in 0..RUNS {
        let releases: Vec<Releases> = tasks
            .iter()
            .map(|(slot, task)| chosen(system, run, *slot, task, &mut numbers))
            .collect();
        try_one(system, &tasks, &releases, &mut worst, &mut best, &mut numbers);
        if ends_with_miss && worst.has_missed {
            return worst;
        }
    }
    for slot in 0..system.vcpus.len() {
        let releases = starved(system, &tasks, slot);
        try_one(system, &tasks, &releases, &mut worst, &mut best, &mut numbers);
        if ends_with_miss && worst.has_missed {
            return worst;
        }
    }
    for target in 0..tasks.len() {
        for _ in 0..CHANGES {
            let mut releases = best[target].clone();
            let other = numbers.below(tasks.len() as u64) as usize;
            let (slot, task) = tasks[other];
            releases[other] = chosen(system, 2 + numbers.below(6), slot, &task, &mut numbers);
            try_one(system, &tasks, &releases, &mut worst, &mut best, &mut numbers);
            if ends_with_miss && worst.has_missed {
                return worst;
            }
        }
    }
    worst
}

fn declared(system: &System) -> Vec<(usize, Task)> {
    let all = system.vcpus.iter().enumerate();
    all.flat_map(|(slot, vcpu)| vcpu.tasks.iter().map(move |task| (slot, *task)))
        .collect()
}

/// Returns the releases of a task. The first is with all others, after the end of a supply, or anywhere.
fn chosen(system: &System, run: u64, slot: usize, task: &Task, numbers: &mut Numbers) -> Releases {
    let extra = match run % 4 {
        3 => numbers.below(task.period / 16),
        1 if run > 1 => numbers.below(task.period / 64),
        _ => 0,
    };
    let first = match run {
        0 => 0,
        1 => u64::from(slot > 0),
        _ => match numbers.below(4) {
            0 => 0,
            1 => just_behind(system, slot, numbers),
            2 => numbers.below(40) * task.period / 40,
            _ => numbers.below(task.period),
        },
    };
    Releases { first, extra }
}

/// Returns the releases that leave a slot without budget. The tasks with the longest deadlines use it up.
/// Then come its other tasks. With the next budget come all who are in the way.
fn starved(system: &System, tasks: &[(usize, Task)], slot: usize) -> Vec<Releases> {
    let own = &system.vcpus[slot];
    let (budget, period) = match own.parameters.server {
        Some(server) => (server.budget, server.period),
        None => (1_000_000, 5_000_000),
    };
    let mut order: Vec<&Task> = own.tasks.iter().collect();
    order.sort_by_key(|task| std::cmp::Reverse(task.deadline));
    let mut greedy = 0;
    let mut sum = 0;
    for task in order {
        if sum < budget {
            sum += task.wcet;
            greedy = task.deadline;
        }
    }
    let releases = |(other, task): &(usize, Task)| {
        let first = match *other == slot {
            true if own.tasks.len() == 1 || task.deadline >= greedy && sum >= budget => 0,
            true => budget,
            false => period,
        };
        Releases { first, extra: 0 }
    };
    tasks.iter().map(releases).collect()
}

/// Returns a moment at which the vCPU may have just lost its supply.
fn just_behind(system: &System, slot: usize, numbers: &mut Numbers) -> u64 {
    let own: Vec<_> = system
        .windows
        .iter()
        .filter(|window| window.slots.0 >> slot & 1 != 0)
        .collect();
    if !own.is_empty() {
        let window = own[numbers.below(own.len() as u64) as usize];
        return window.offset + window.duration;
    }
    match system.vcpus[slot].parameters.server {
        Some(server) => server.budget * numbers.within(0, 1) + server.period * numbers.within(0, 4),
        None => numbers.below(20) * 1_000_000 + numbers.below(2),
    }
}

fn try_one(
    system: &System,
    tasks: &[(usize, Task)],
    releases: &[Releases],
    worst: &mut Worst,
    best: &mut [Vec<Releases>],
    numbers: &mut Numbers,
) {
    let mut sources: Vec<Source> = tasks
        .iter()
        .zip(releases)
        .map(|((slot, task), releases)| {
            let call = system.overheads.longest;
            let call = if call > 0 && call < task.wcet && numbers.below(2) == 0 {
                call
            } else {
                0
            };
            Source {
                first: releases.first,
                shortest: task.wcet - call,
                call,
                ..Source::new(
                    Slot(*slot as u8),
                    Task {
                        period: task.period + releases.extra,
                        wcet: task.wcet - call,
                        ..*task
                    },
                    Pattern::Periodic,
                )
            }
        })
        .collect();
    for (slot, vcpu) in system.vcpus.iter().enumerate() {
        if vcpu.tasks.is_empty() {
            sources.push(Source::always_ready(Slot(slot as u8)));
        }
    }
    let mut states = vec![SourceState::default(); sources.len()];
    let mut simulator = Simulator::new(system.policy(), &sources, &mut states, system.overheads, 1);
    for (slot, vcpu) in (0..).map(Slot).zip(&system.vcpus) {
        simulator.set_scheduler(slot, vcpu.scheduler);
    }
    assert!(simulator.run(LENGTH, 10_000_000, &mut ()), "{system:#?}");
    for (number, state) in states.iter().take(tasks.len()).enumerate() {
        worst.has_missed |= state.statistics.missed > 0;
        if state.statistics.longest >= worst.longest[number] {
            worst.longest[number] = state.statistics.longest;
            best[number] = releases.to_vec();
        }
    }
}
