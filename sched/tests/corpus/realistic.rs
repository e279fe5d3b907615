// SPDX-License-Identifier: Apache-2.0
//! The systems of the corpus: what an integrator writes down, in nanoseconds.
//!
//! Periods divide 200 ms, so that every run sees all phases that a start makes possible. Budgets, windows and
//! turns are the need and 2 % to 60 % more.

use bulkhead_sched::analysis::{Orders, Output, Overheads, Task, TaskScheduler};
use bulkhead_sched::{Domain, Schedule, Server, ServerKind, SlotSet, VcpuParameters, Window};

use crate::systems::{Kind, Numbers, System, SystemVcpu};

/// A microsecond and a millisecond.
const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// The whole of a share.
const WHOLE: u64 = 1000;

/// The overheads of `boards/qemu-virt-aarch64.toml` with four vCPUs.
const BOARD: Overheads = Overheads {
    switch: US,
    interrupt: 500,
    decision: 1200,
    longest: 18_400,
    orders: Orders::NONE,
    output: Output::NONE,
};

/// A part of the corpus.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub kind: Kind,
    /// The board's overheads are charged.
    pub on_board: bool,
}

/// Returns system `number` of a part. A manifest may hold this system. A vCPU declares work, and the
/// budgets fit together.
pub fn system(part: Part, number: u64) -> System {
    let mut tries = (0..1000).map(|attempt| attempted(part, number, attempt));
    let fits = |system: &System| {
        let density = |vcpu: &SystemVcpu| {
            let within = |server: Server| match vcpu.parameters.deadline {
                0 => server.period,
                deadline => deadline,
            };
            let server = vcpu.parameters.server;
            server.map_or(0, |server| (server.budget << 32).div_ceil(within(server)))
        };
        system.vcpus.iter().any(|vcpu| !vcpu.tasks.is_empty())
            && system.vcpus.iter().map(density).sum::<u64>() <= 1 << 32
    };
    tries.find(fits).expect("one of a thousand fits")
}

fn attempted(part: Part, number: u64, attempt: u64) -> System {
    let seed = attempt << 32 | number << 8 | (part.kind as u64) << 1 | u64::from(part.on_board);
    let mut numbers = Numbers::new(seed ^ 0x00c0_ffee);
    let overheads = if part.on_board {
        BOARD
    } else {
        Overheads::default()
    };
    let mut system = System {
        number,
        kind: part.kind,
        quantum: 2 * MS,
        overheads,
        vcpus: Vec::new(),
        windows: Vec::new(),
        schedules: Vec::new(),
        domains: Vec::new(),
    };
    let count = if part.kind == Kind::Pinned {
        1
    } else {
        numbers.within(2, 4)
    };
    // Time partitions have to leave room for waiting.
    let load = match part.kind {
        Kind::Arinc653 | Kind::Domains => numbers.within(200, 600),
        _ => numbers.within(300, 900),
    };
    let shares = shares(load, count, &mut numbers);
    for share in shares {
        let vcpu = vcpu(part.kind, share, &mut numbers);
        system.vcpus.push(vcpu);
    }
    prioritise(&mut system, &mut numbers);
    match part.kind {
        Kind::Servers | Kind::Edf => choose_servers(&mut system, &mut numbers),
        Kind::Arinc653 => choose_windows(&mut system, &mut numbers),
        Kind::Domains => choose_domains(&mut system, &mut numbers),
        _ => {}
    }
    system
}

/// Divides `load` into `count` shares.
fn shares(load: u64, count: u64, numbers: &mut Numbers) -> Vec<u64> {
    let weights: Vec<u64> = (0..count).map(|_| numbers.within(10, 100)).collect();
    let sum: u64 = weights.iter().sum();
    weights
        .into_iter()
        .map(|weight| (load * weight / sum).max(10))
        .collect()
}

/// Returns a vCPU whose tasks take about `share` of the pCPU, in parts of [`WHOLE`].
fn vcpu(kind: Kind, share: u64, numbers: &mut Numbers) -> SystemVcpu {
    let periods: &[u64] = match kind {
        Kind::Arinc653 | Kind::Domains => &[20, 25, 40, 50, 100],
        _ => &[2, 4, 5, 8, 10, 20],
    };
    let count = numbers.pick(&[1, 1, 2, 3]);
    let mut tasks: Vec<Task> = shares(share, count, numbers)
        .into_iter()
        .map(|share| {
            let period = numbers.pick(periods) * MS;
            let wcet = (period * share / WHOLE / US * US).max(5 * US);
            let deadline = match numbers.below(3) {
                0 => (period * numbers.within(50, 99) / 100).max(wcet),
                _ => period,
            };
            Task {
                period,
                wcet,
                deadline,
                priority: 0,
            }
        })
        .collect();
    tasks.sort_by_key(|task| std::cmp::Reverse(task.deadline));
    for (priority, task) in (0..).zip(&mut tasks) {
        task.priority = priority;
    }
    // Some declare nothing and take what is left.
    if kind != Kind::Pinned && numbers.below(10) == 0 {
        tasks.clear();
    }
    SystemVcpu {
        parameters: VcpuParameters::default(),
        scheduler: numbers.pick(&[
            TaskScheduler::FixedPriority,
            TaskScheduler::FixedPriority,
            TaskScheduler::EarliestDeadline,
        ]),
        tasks,
        critical: 0,
    }
}

/// Gives a vCPU with a shorter deadline a higher priority. A few systems have equals.
fn prioritise(system: &mut System, numbers: &mut Numbers) {
    let has_equals = numbers.below(8) == 0 && system.kind != Kind::Servers;
    let deadline = |vcpu: &SystemVcpu| vcpu.tasks.iter().map(|task| task.deadline).min();
    let mut order: Vec<usize> = (0..system.vcpus.len()).collect();
    order.sort_by_key(|slot| std::cmp::Reverse(deadline(&system.vcpus[*slot]).unwrap_or(u64::MAX)));
    for (rank, slot) in order.into_iter().enumerate() {
        let vcpu = &mut system.vcpus[slot];
        vcpu.parameters.priority = if has_equals && !vcpu.tasks.is_empty() {
            1 + rank as u8 / 2
        } else {
            rank as u8
        };
    }
}

/// Returns `need` and 2 % to 60 % more, in microseconds that are whole.
fn with_spare(need: u64, numbers: &mut Numbers) -> u64 {
    let percent = numbers.pick(&[2, 2, 5, 10, 20, 30, 60]);
    (need * (100 + percent)).div_ceil(100).div_ceil(US) * US
}

/// Returns the tasks' work that can be released within `interval`.
fn whole_need(vcpu: &SystemVcpu, interval: u64, overheads: &Overheads) -> u64 {
    let work = |task: &Task| (task.wcet + overheads.per_job()) * interval.div_ceil(task.period);
    vcpu.tasks.iter().map(work).sum()
}

/// Returns the tasks' work within `interval` at their rates. Less is never enough.
fn need(vcpu: &SystemVcpu, interval: u64, overheads: &Overheads) -> u64 {
    let work = |task: &Task| {
        let job = task.wcet + overheads.per_job();
        (job * interval)
            .div_ceil(task.period)
            .max(job * (interval / task.period))
    };
    vcpu.tasks.iter().map(work).sum()
}

/// Gives every declared vCPU a server. Its period is the shortest of its tasks, or a part of that. The budget
/// has what docs/analysis.md says that budgets lose.
fn choose_servers(system: &mut System, numbers: &mut Numbers) {
    let overheads = system.overheads;
    for vcpu in &mut system.vcpus {
        let kind = match system.kind {
            Kind::Edf => ServerKind::ConstantBandwidth,
            _ => numbers.pick(&[ServerKind::Deferrable, ServerKind::Sporadic]),
        };
        let Some(shortest) = vcpu.tasks.iter().map(|task| task.period).min() else {
            // The most that a neighbour should leave to one that declares nothing.
            let (budget, period) = (MS, 20 * MS);
            let server = Server { budget, period, kind };
            vcpu.parameters.server = (system.kind != Kind::Edf).then_some(server);
            continue;
        };
        let parts = if shortest > 2 * MS {
            numbers.pick(&[1, 1, 1, 2])
        } else {
            1
        };
        let period = shortest / parts;
        // Mostly all that can come in a period fits the budget.
        let least = if numbers.below(4) > 0 {
            whole_need(vcpu, period, &overheads)
        } else {
            need(vcpu, period, &overheads) * 6 / 5
        };
        let budget = with_spare(least + overheads.at_ends(), numbers).min(period);
        vcpu.parameters.server = Some(Server { budget, period, kind });
        let is_single = vcpu.tasks.len() == 1 || numbers.below(4) == 0;
        let tightest = vcpu.tasks.iter().map(|task| task.deadline).min();
        let tightest = tightest.filter(|_| is_single);
        if let (Kind::Edf, Some(tightest)) = (system.kind, tightest)
            && tightest < period
            && budget <= tightest
        {
            vcpu.parameters.deadline = tightest;
        }
    }
}

/// Gives each partition one or two windows in a frame.
fn choose_windows(system: &mut System, numbers: &mut Numbers) {
    let frame = numbers.pick(&[5, 10]) * MS;
    let parts = numbers.within(1, 2);
    let ends = system.overheads.at_ends();
    let mut offset = 0;
    for _ in 0..parts {
        for (slot, vcpu) in system.vcpus.iter().enumerate() {
            let least = need(vcpu, frame, &system.overheads).max(100 * US) / parts + ends;
            let duration = with_spare(least, numbers) * numbers.pick(&[1, 1, 2]);
            if offset + duration > frame {
                continue;
            }
            system.windows.push(Window {
                slots: SlotSet(1 << slot),
                offset,
                duration,
                period_start: false,
            });
            offset += duration;
        }
    }
    system.schedules.push(Schedule {
        frame,
        first_window: 0,
        window_count: system.windows.len() as u8,
    });
}

/// Gives each vCPU a domain of its own, or one that two share. The first is the one that preempts.
fn choose_domains(system: &mut System, numbers: &mut Numbers) {
    let count = system.vcpus.len() as u64;
    let domains = if count > 2 && numbers.below(3) == 0 {
        count - 1
    } else {
        count
    };
    let cycle = numbers.pick(&[2, 4, 5]) * MS;
    let most_important = (0..system.vcpus.len()).max_by_key(|slot| system.vcpus[*slot].parameters.priority);
    for slot in 0..system.vcpus.len() {
        let place = match most_important {
            Some(first) if first == slot => 0,
            Some(first) if slot < first => slot as u64 + 1,
            _ => slot as u64,
        };
        system.vcpus[slot].parameters.domain = (place % domains) as u8;
    }
    for domain in 0..domains as u8 {
        let members = system
            .vcpus
            .iter()
            .filter(|vcpu| vcpu.parameters.domain == domain);
        let least: u64 = members.map(|vcpu| need(vcpu, cycle, &system.overheads)).sum();
        let least = least.max(50 * US) + system.overheads.at_ends();
        let budget = with_spare(least, numbers) * numbers.pick(&[1, 1, 2]);
        system.domains.push(Domain { budget });
    }
}
