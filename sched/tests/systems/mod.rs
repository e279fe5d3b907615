// SPDX-License-Identifier: Apache-2.0
//! Random systems of one pCPU, analysed and simulated.
//!
//! Times are small numbers, so that boundaries coincide often: mistakes are at such moments. Periods come
//! from a short list, so that runs of all phases are short.

use std::collections::BTreeMap;
use std::fmt;

use bulkhead_sched::analysis::{
    Bound, Demand, Miss, Orders, Output, Overheads, PolicyModel, Responses, Shared, Task, TaskScheduler,
    Vcpu, slot_bounds,
};
use bulkhead_sched::simulate::{Pattern, Simulator, Source, SourceState, Statistics};
use bulkhead_sched::{
    AnyPolicy, Arinc653Parameters, Domain, DomainsParameters, EdfParameters, FixedPriorityParameters, Policy,
    Schedule, Server, ServerKind, Slot, SlotSet, Ticks, VcpuParameters, Window,
};

/// The kind of the random systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Pinned,
    FixedPriority,
    RoundRobin,
    /// Fixed priorities with deferrable and sporadic servers.
    Servers,
    Edf,
    Arinc653,
    /// Two schedules, and one change from the first to the second.
    Schedules,
    Domains,
    /// Domains with vCPUs that critical interrupts bring into domain 0.
    Critical,
}

impl Kind {
    /// Returns the name that the table of docs/analysis.md has.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pinned => "`pinned`",
            Self::FixedPriority => "`fixed-priority`",
            Self::RoundRobin => "`fixed-priority`, equals",
            Self::Servers => "`fixed-priority`, servers",
            Self::Edf => "`edf`",
            Self::Arinc653 => "`arinc653`",
            Self::Schedules => "`arinc653`, change of schedule",
            Self::Domains => "`domains`",
            Self::Critical => "`domains`, critical interrupts",
        }
    }
}

/// The choice of the releases of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// All tasks release at once, then as often as possible, with the longest executions.
    Together,
    /// The same as `Together`, from random first releases.
    Phased,
    /// Releases are sporadic, with executions of random length. Half of them are by interrupts.
    Sporadic,
}

impl Run {
    pub const ALL: [Self; 3] = [Self::Together, Self::Phased, Self::Sporadic];
}

/// A vCPU with its behaviour.
#[derive(Clone, Debug)]
pub struct SystemVcpu {
    pub parameters: VcpuParameters,
    pub scheduler: TaskScheduler,
    /// The declared tasks. A vCPU without tasks declares nothing and is always ready.
    pub tasks: Vec<Task>,
    /// Number of critical interrupts of the vCPU.
    pub critical: u8,
}

/// A pCPU.
#[derive(Clone, Debug)]
pub struct System {
    pub number: u64,
    pub kind: Kind,
    pub quantum: Ticks,
    pub overheads: Overheads,
    pub vcpus: Vec<SystemVcpu>,
    pub windows: Vec<Window>,
    pub schedules: Vec<Schedule>,
    pub domains: Vec<Domain>,
}

/// Numbers that are the same each time (splitmix64).
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ number >> 31) % end
    }

    pub fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

const PERIODS: [Ticks; 8] = [40, 60, 80, 100, 120, 150, 200, 300];

impl SystemVcpu {
    /// Chooses a server with about the tasks' share and some more, if the policy has such a thing.
    fn choose_server(&mut self, kind: Kind, numbers: &mut Numbers) {
        let server = match kind {
            Kind::Servers if numbers.below(3) > 0 => {
                numbers.pick(&[ServerKind::Deferrable, ServerKind::Sporadic])
            }
            Kind::Edf if !self.tasks.is_empty() || numbers.below(2) == 0 => ServerKind::ConstantBandwidth,
            _ => return,
        };
        let period = match self.tasks[..] {
            // This is the usual way: one task in a server of its own.
            [task] if numbers.below(2) == 0 => task.period,
            _ => numbers.pick(&[10, 20, 25, 40, 60]),
        };
        let load = self.load().max(5);
        let budget = (period * load * numbers.within(110, 400) / 10_000 + 2).clamp(1, period);
        self.parameters.server = Some(Server {
            budget,
            period,
            kind: server,
        });
        if kind == Kind::Edf && numbers.below(4) == 0 {
            self.parameters.deadline = numbers.within(budget, period);
        }
    }

    /// Returns the percentage of the pCPU's time that the vCPU declares.
    fn load(&self) -> u64 {
        self.tasks
            .iter()
            .map(|task| task.wcet * 100 / task.period + 1)
            .sum()
    }
}

impl System {
    pub fn random(kind: Kind, number: u64) -> Self {
        let mut numbers = Numbers::new(number);
        let overheads = match numbers.below(3) {
            0 => Overheads::default(),
            1 => Overheads {
                switch: 1,
                ..Overheads::default()
            },
            _ => Overheads {
                switch: numbers.below(3),
                interrupt: numbers.below(2),
                decision: numbers.below(2),
                longest: numbers.below(3) * numbers.below(5),
                orders: Orders::NONE,
                output: Output::NONE,
            },
        };
        let count = if kind == Kind::Pinned {
            1
        } else {
            numbers.within(2, 4)
        };
        // The loads go from hardly loaded to overloaded.
        let load = match kind {
            Kind::Pinned | Kind::FixedPriority | Kind::RoundRobin => numbers.within(20, 110),
            Kind::Schedules => numbers.within(5, 40),
            _ => numbers.within(5, 80),
        };
        let vcpus = (0..count)
            .map(|slot| vcpu(kind, slot, load / count, &mut numbers))
            .collect();
        let mut system = Self {
            number,
            kind,
            quantum: numbers.within(5, 30),
            overheads,
            vcpus,
            windows: Vec::new(),
            schedules: Vec::new(),
            domains: Vec::new(),
        };
        if matches!(kind, Kind::Domains | Kind::Critical) {
            system.choose_domains(&mut numbers);
        }
        if kind == Kind::Critical {
            for vcpu in system.vcpus.iter_mut().filter(|vcpu| vcpu.parameters.domain > 0) {
                vcpu.critical = numbers.below(3) as u8;
            }
        }
        if kind == Kind::Arinc653 {
            system.choose_windows(&mut numbers);
        }
        if kind == Kind::Schedules {
            system.choose_windows(&mut numbers);
            system.choose_windows(&mut numbers);
        }
        system
    }

    /// Chooses a frame in which each vCPU has windows of about its utilisation and some more. With luck two
    /// vCPUs share one partition.
    fn choose_windows(&mut self, numbers: &mut Numbers) {
        let frame = numbers.pick(&[30, 40, 60, 100, 120]);
        let parts = numbers.within(1, 3);
        let first_window = self.windows.len();
        let partition_of = |slot: usize, shared: bool| if shared && slot == 1 { 0 } else { slot };
        // vCPUs that share a partition share it in every schedule.
        let is_shared = self.number.is_multiple_of(3);
        let mut at = 0;
        for _ in 0..parts {
            for slot in 0..self.vcpus.len() {
                let partition = partition_of(slot, is_shared);
                if partition != slot {
                    continue;
                }
                let members = (0..self.vcpus.len()).filter(|other| partition_of(*other, is_shared) == slot);
                let load: u64 = members.clone().map(|member| self.vcpus[member].load()).sum();
                let duration =
                    frame * load * numbers.within(100, 400) / (100 * 100 * parts) + numbers.below(3);
                let gap = numbers.below(4);
                if duration == 0 || at + gap + duration > frame {
                    continue;
                }
                self.windows.push(Window {
                    slots: SlotSet(members.fold(0, |set, member| set | 1 << member)),
                    offset: at + gap,
                    duration,
                    period_start: false,
                });
                at += gap + duration;
            }
        }
        self.schedules.push(Schedule {
            frame,
            first_window: first_window as u8,
            window_count: (self.windows.len() - first_window) as u8,
        });
    }

    /// Chooses two or three domains in a cycle of some length. Their budgets are about the time declared in
    /// them.
    fn choose_domains(&mut self, numbers: &mut Numbers) {
        let count = numbers.within(2, 3);
        for vcpu in &mut self.vcpus {
            vcpu.parameters.domain = numbers.below(count) as u8;
        }
        let cycle = numbers.pick(&[20, 30, 40, 60]);
        for domain in 0..count as u8 {
            let members = self.vcpus.iter().filter(|vcpu| vcpu.parameters.domain == domain);
            let load: u64 = members.map(SystemVcpu::load).sum();
            let budget = cycle * load * numbers.within(100, 200) / 10_000 + numbers.within(1, 4);
            self.domains.push(Domain { budget });
        }
    }

    /// Returns the bounds of each vCPU's tasks.
    pub fn analyse(&self) -> Vec<Vec<Bound>> {
        let vcpus: Vec<Vcpu> = self
            .vcpus
            .iter()
            .map(|vcpu| Vcpu {
                parameters: vcpu.parameters,
                demand: (!vcpu.tasks.is_empty()).then_some(Demand {
                    scheduler: vcpu.scheduler,
                    tasks: &vcpu.tasks,
                }),
                critical: vcpu.critical,
            })
            .collect();
        let shared = Shared::new(&vcpus, self.overheads);
        let models: Vec<_> = self
            .models()
            .into_iter()
            .map(|model| (model, Responses::of(&model, shared)))
            .collect();
        let one = |(slot, vcpu): (usize, &SystemVcpu)| {
            let mut worst = vec![Ok(0); vcpu.tasks.len()];
            for (model, responses) in &models {
                let mut bounds = vec![Err(Miss::NotConverged); vcpu.tasks.len()];
                let shared = Shared {
                    responses: Some(responses),
                    ..shared
                };
                slot_bounds(model, shared, slot, &mut bounds);
                for (worst, bound) in worst.iter_mut().zip(bounds) {
                    *worst = worst.and_then(|worst| Ok(bound?.max(worst)));
                }
            }
            worst
        };
        self.vcpus.iter().enumerate().map(one).collect()
    }

    /// Returns the models in which the bounds have to hold.
    fn models(&self) -> Vec<PolicyModel<'_>> {
        match self.model() {
            PolicyModel::Arinc653(parameters, _) if self.kind == Kind::Schedules => vec![
                PolicyModel::Arinc653(parameters, 0),
                PolicyModel::Arinc653(parameters, 1),
                PolicyModel::ScheduleChange(parameters, 0, 1),
            ],
            model => vec![model],
        }
    }

    fn model(&self) -> PolicyModel<'_> {
        let quantum = self.quantum;
        match self.kind {
            Kind::Pinned => PolicyModel::Pinned,
            Kind::FixedPriority | Kind::RoundRobin | Kind::Servers => {
                PolicyModel::FixedPriority(FixedPriorityParameters { quantum })
            }
            Kind::Edf => PolicyModel::Edf(EdfParameters { quantum }),
            Kind::Arinc653 | Kind::Schedules => PolicyModel::Arinc653(
                Arinc653Parameters {
                    windows: &self.windows,
                    schedules: &self.schedules,
                    initial: 0,
                    start: 0,
                    quantum,
                },
                0,
            ),
            Kind::Domains | Kind::Critical => PolicyModel::Domains(DomainsParameters {
                domains: &self.domains,
                quantum,
            }),
        }
    }

    pub fn policy(&self) -> AnyPolicy {
        let parameters: Vec<VcpuParameters> = self.vcpus.iter().map(|vcpu| vcpu.parameters).collect();
        match self.model() {
            PolicyModel::Pinned => AnyPolicy::pinned(&parameters),
            PolicyModel::FixedPriority(policy) => AnyPolicy::fixed_priority(&parameters, policy),
            PolicyModel::Edf(policy) => AnyPolicy::edf(&parameters, policy),
            PolicyModel::Arinc653(policy, _) | PolicyModel::ScheduleChange(policy, ..) => {
                AnyPolicy::arinc653(&parameters, policy)
            }
            PolicyModel::Domains(policy) => AnyPolicy::domains(&parameters, policy),
        }
        .unwrap()
    }

    fn sources(&self, run: Run, numbers: &mut Numbers) -> Vec<Source> {
        let mut declared = Vec::new();
        let mut others = Vec::new();
        for (slot, vcpu) in (0..).map(Slot).zip(&self.vcpus) {
            for task in &vcpu.tasks {
                let is_sporadic = run == Run::Sporadic;
                let is_critical = vcpu.critical > 0 && numbers.below(3) > 0;
                let (task, call) = self.with_call(*task, numbers);
                declared.push(Source {
                    slot,
                    task,
                    pattern: if is_sporadic {
                        Pattern::Sporadic(numbers.pick(&[1, 10, task.period]))
                    } else {
                        Pattern::Periodic
                    },
                    first: if run == Run::Together {
                        0
                    } else {
                        numbers.below(task.period)
                    },
                    shortest: if is_sporadic { 1 } else { task.wcet },
                    is_interrupt: is_critical || is_sporadic && numbers.below(2) == 0,
                    is_critical,
                    call,
                });
            }
            if vcpu.tasks.is_empty() {
                let source = self.undeclared(slot, run, numbers);
                others.push(source);
                others.extend((0..vcpu.critical).map(|_| Source {
                    pattern: Pattern::Answered,
                    first: numbers.below(50),
                    is_interrupt: true,
                    is_critical: true,
                    ..source
                }));
            }
        }
        declared.append(&mut others);
        declared
    }

    /// Returns the behaviour of a vCPU that declares nothing.
    fn undeclared(&self, slot: Slot, run: Run, numbers: &mut Numbers) -> Source {
        let pattern = match run {
            Run::Together => Pattern::AlwaysReady,
            Run::Phased => Pattern::Periodic,
            Run::Sporadic => Pattern::Sporadic(numbers.pick(&[3, 30])),
        };
        // One vCPU of two comes and goes as fast as it can.
        let (period, wcet) = match numbers.below(2) {
            0 => (numbers.within(1, 3), 1),
            _ => (numbers.within(2, 50), numbers.within(1, 30)),
        };
        Source {
            slot,
            task: Task {
                period,
                wcet,
                deadline: Ticks::MAX / 2,
                priority: 0,
            },
            pattern,
            first: numbers.below(50),
            shortest: 1,
            is_interrupt: false,
            is_critical: false,
            call: if numbers.below(2) == 0 {
                self.overheads.longest
            } else {
                0
            },
        }
    }

    /// Returns the task with part of its time in a call of the hypervisor that takes as long as can be.
    fn with_call(&self, task: Task, numbers: &mut Numbers) -> (Task, Ticks) {
        let call = self.overheads.longest;
        if task.wcet > call && numbers.below(3) == 0 {
            let wcet = task.wcet - call;
            return (Task { wcet, ..task }, call);
        }
        (task, 0)
    }

    /// Returns the statistics of the jobs of each declared task.
    pub fn simulate(&self, run: Run) -> Vec<Statistics> {
        let mut numbers = Numbers::new(self.number ^ (run as u64 + 1) << 40);
        let sources = self.sources(run, &mut numbers);
        let mut states = vec![SourceState::default(); sources.len()];
        let mut simulator = Simulator::new(
            self.policy(),
            &sources,
            &mut states,
            self.overheads,
            numbers.below(1 << 32),
        );
        for (slot, vcpu) in (0..).map(Slot).zip(&self.vcpus) {
            simulator.set_scheduler(slot, vcpu.scheduler);
        }
        if self.kind == Kind::Schedules {
            assert!(simulator.run(numbers.below(700), 1_000_000, &mut ()), "{self:#?}");
            assert_eq!(simulator.policy().change_schedule(1, 0), Ok(()));
        }
        assert!(simulator.run(6000, 1_000_000, &mut ()), "{self:#?}");
        let declared = self.vcpus.iter().map(|vcpu| vcpu.tasks.len()).sum();
        states
            .iter()
            .take(declared)
            .map(|state| state.statistics)
            .collect()
    }
}

fn vcpu(kind: Kind, slot: u64, load: u64, numbers: &mut Numbers) -> SystemVcpu {
    let priority = match kind {
        Kind::Pinned | Kind::FixedPriority | Kind::Edf => slot as u8,
        _ => numbers.below(3) as u8,
    };
    let scheduler = numbers.pick(&[TaskScheduler::FixedPriority, TaskScheduler::EarliestDeadline]);
    let is_declared =
        kind == Kind::Pinned || numbers.below(8) != 0 || kind == Kind::FixedPriority && slot > 0;
    let count = if is_declared { numbers.within(1, 3) } else { 0 };
    let tasks = (0..count).map(|_| task(load / count, numbers)).collect();
    let mut vcpu = SystemVcpu {
        parameters: VcpuParameters {
            priority,
            ..VcpuParameters::default()
        },
        scheduler,
        tasks,
        critical: 0,
    };
    vcpu.choose_server(kind, numbers);
    vcpu
}

/// Returns a task with about this much of the pCPU's time, in percent.
fn task(load: u64, numbers: &mut Numbers) -> Task {
    let period = numbers.pick(&PERIODS);
    let wcet = (period * numbers.within(load / 2, load * 3 / 2 + 1) / 100).clamp(1, period);
    let deadline = if numbers.below(2) == 0 {
        period
    } else {
        numbers.within(wcet, period)
    };
    Task {
        period,
        wcet,
        deadline,
        priority: numbers.below(4) as u8,
    }
}

/// Returns how many systems to try: the number in `BULKHEAD_SYSTEMS`, or as many as a proof wants in the long
/// tests.
pub fn count() -> u64 {
    let default = if std::env::var_os("BULKHEAD_LONG_TESTS").is_some() {
        100_000
    } else {
        1000
    };
    number_in("BULKHEAD_SYSTEMS").unwrap_or(default)
}

/// Returns the only system to try.
pub fn only() -> Option<u64> {
    number_in("BULKHEAD_SYSTEM")
}

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The distribution of the bound over the longest response observed, in tenths, rounded down.
#[derive(Default)]
pub struct Tightness(BTreeMap<u64, u64>);

impl Tightness {
    pub fn add(&mut self, bound: Ticks, observed: Ticks) {
        *self.0.entry(bound * 10 / observed.max(1)).or_default() += 1;
    }

    /// Returns the ratio that this many percent of the tasks do not exceed.
    fn percentile(&self, percent: u64) -> f64 {
        let all: u64 = self.0.values().sum();
        let mut seen = 0;
        for (ratio, tasks) in &self.0 {
            seen += tasks;
            if seen * 100 >= all * percent {
                return *ratio as f64 / 10.0;
            }
        }
        0.0
    }
}

impl fmt::Display for Tightness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks: u64 = self.0.values().sum();
        write!(f, "{}", grouped(tasks))?;
        for percent in [50, 75, 90] {
            write!(f, " | {:.1}", self.percentile(percent))?;
        }
        Ok(())
    }
}

/// Returns a number with its digits in groups of three.
pub fn grouped(number: u64) -> String {
    if number < 1000 {
        return number.to_string();
    }
    format!("{} {:03}", grouped(number / 1000), number % 1000)
}
