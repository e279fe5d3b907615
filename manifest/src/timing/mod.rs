// SPDX-License-Identifier: Apache-2.0
//! The timing of a system: the analysis judges the manifest's demands against the policies of its pCPUs.
//!
//! [`pcpus`] turns a system into the terms of the analysis and the simulator of `bulkhead-sched`: slots,
//! tasks and sources, in nanoseconds. [`judge`] runs the analysis. A task that cannot be shown to be in time
//! becomes a [`Diagnostic`] at the task's line, with the smallest change that would help.

mod doubt;
mod means;
mod remedy;
mod suggest;
mod unproved;
mod waits;

pub use doubt::{Delay, Doubt, delays};
pub use suggest::suggest;
pub use unproved::{Unproved, unproved};

use bulkhead_abi::hypercall::ORDER_SPACE_NS;
use bulkhead_abi::{ObjectKind, Rights};
use bulkhead_sched::analysis::{
    Bound, Demand, Miss, Orders, Overheads, PolicyModel, Responses, Shared, Steps, Task, TaskScheduler, Vcpu,
    slot_bounds,
};
use bulkhead_sched::simulate::{Pattern, Source};
use bulkhead_sched::{
    AnyPolicy, Arinc653Parameters, Domain, DomainsParameters, EdfParameters, FixedPriorityParameters,
    PolicyError, Schedule, Server, ServerKind, Slot, SlotSet, VcpuParameters, Window,
};

use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{
    self, OwnPolicy, PartitionSpec, Placed, Policy, TaskSpec, VcpuNumber, WorkKind, WorkSpec,
};
use crate::system::{self, ReachRow, System};
use crate::units::{Duration, format_duration};

/// A task with its name.
#[derive(Clone, Debug)]
pub struct NamedTask {
    /// The name in the manifest.
    pub name: String,
    /// The task. Its `wcet` has the waits in it.
    pub task: Task,
    /// The longest time for which a job waits for others, as far as the analysis has terms for its waits.
    pub waits: u64,
    pub(crate) place: Place,
}

/// A vCPU of a pCPU. Its place among the vCPUs of the pCPU is its slot.
#[derive(Clone, Debug)]
pub struct VcpuTiming {
    /// The number of its partition.
    pub partition: usize,
    /// The number of the vCPU in the partition.
    pub index: usize,
    /// The number of the vCPU among all vCPUs, as the system image counts.
    pub number: u8,
    /// `partition/index`, or the partition's name if the partition has only one vCPU.
    pub name: String,
    /// The parameters for the policy of the pCPU.
    pub parameters: VcpuParameters,
    /// The scheduler of the partition's own tasks.
    pub scheduler: TaskScheduler,
    /// The tasks of its demand; `None`: it declares nothing.
    pub tasks: Option<Vec<NamedTask>>,
    /// True if a workload says what the vCPU does. If false, only its demand says so, or nothing.
    pub has_workload: bool,
    /// Lines of those devices whose interrupts bring the vCPU into time domain 0.
    pub critical: u8,
    /// The schedules in which the demand holds; `None`: all.
    pub schedules: Option<Vec<String>>,
    /// The activities in the simulator, each with a name.
    pub sources: Vec<(String, Source)>,
}

/// A pCPU with its policy.
#[derive(Clone, Debug)]
pub struct PcpuTiming {
    /// The number of the pCPU.
    pub number: u32,
    /// The policy of the pCPU.
    pub policy: Policy,
    /// The crate of the policy, if the policy is one of the user's own.
    pub own: Option<OwnPolicy>,
    /// The turn of a vCPU among its equals.
    pub quantum: u64,
    /// The costs of the hypervisor.
    pub overheads: Overheads,
    /// The vCPUs, slot 0 first.
    pub vcpus: Vec<VcpuTiming>,
    /// The windows of all schedules.
    pub windows: Vec<Window>,
    /// The schedules.
    pub schedules: Vec<Schedule>,
    /// The names of the schedules.
    pub schedule_names: Vec<String>,
    /// The time domains.
    pub domains: Vec<Domain>,
    /// The reasons not to rely on what some vCPUs declare.
    pub doubts: Vec<Doubt>,
}

/// The verdict of the analysis on a task.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The slot of its vCPU.
    pub slot: usize,
    /// The task.
    pub task: NamedTask,
    /// The worst bound of all schedules in which the task has to be done, and of the changes between them.
    pub bound: Bound,
    /// One of these schedules in which the partition has no window at all.
    pub unserved: Option<String>,
    /// The slots that may delay the task by more than the bound, because others can break what they declare.
    pub doubted: Vec<usize>,
}

impl Verdict {
    /// Returns the time from the latest completion of the task to its deadline.
    #[must_use]
    pub fn slack(&self) -> Option<u64> {
        self.bound
            .ok()
            .map(|bound| self.task.task.deadline.saturating_sub(bound))
    }
}

impl System {
    /// Returns the longest stretch without a look at interrupts that the analysis charges on any pCPU, in
    /// nanoseconds. `None`: the board does not give one.
    #[must_use]
    pub fn longest_stretch(&self) -> Option<u64> {
        self.board.costs?;
        let pcpus = pcpus(self);
        pcpus.iter().map(|pcpu| pcpu.overheads.under_way()).max()
    }
}

/// Returns the pCPUs of a system, by number.
#[must_use]
pub fn pcpus(system: &System) -> Vec<PcpuTiming> {
    let rows = system.who_can_reach_whom();
    system.pcpus.iter().map(|pcpu| one(system, pcpu, &rows)).collect()
}

fn one(system: &System, pcpu: &system::Pcpu, rows: &[ReachRow]) -> PcpuTiming {
    let mut vcpus = Vec::new();
    let mut number = 0_u8;
    for whole in &system.partitions() {
        for (index, vcpu) in whole.vcpus().iter().enumerate() {
            if vcpu.pcpu == pcpu.number {
                let parameters = parameters(vcpu, pcpu.policy);
                let numbers = Numbers {
                    index,
                    number,
                    slot: Slot(vcpus.len() as u8),
                };
                let mut timing = vcpu_timing(whole, numbers, parameters, |task| {
                    waits::of_task(system, whole, task)
                });
                if pcpu.policy == Policy::Domains {
                    timing.critical = critical_lines(system, whole.spec);
                }
                vcpus.push(timing);
            }
            number = number.saturating_add(1);
        }
    }
    let slots = |partition: usize| {
        let bits = vcpus
            .iter()
            .enumerate()
            .filter(|(_, vcpu)| vcpu.partition == partition);
        SlotSet(bits.fold(0, |set, (slot, _)| set | 1 << slot))
    };
    let mut windows = Vec::new();
    let mut schedules = Vec::new();
    for schedule in &pcpu.schedules {
        schedules.push(Schedule {
            frame: schedule.frame_ns,
            first_window: windows.len() as u8,
            window_count: schedule.windows.len() as u8,
        });
        windows.extend(schedule.windows.iter().map(|window| Window {
            slots: slots(window.partition),
            offset: window.offset_ns,
            duration: window.duration_ns,
            period_start: window.period_start,
        }));
    }
    let domain = |domain: &system::Domain| Domain {
        budget: domain.budget_ns,
    };
    PcpuTiming {
        doubts: doubts(system, &vcpus, rows),
        number: pcpu.number,
        policy: pcpu.policy,
        own: pcpu.own.clone(),
        quantum: pcpu.quantum_ns.max(1),
        overheads: overheads(system, pcpu.number),
        schedule_names: pcpu
            .schedules
            .iter()
            .map(|schedule| schedule.name.clone())
            .collect(),
        domains: pcpu.domains.iter().map(domain).collect(),
        vcpus,
        windows,
        schedules,
    }
}

/// Returns the reasons not to rely on what these vCPUs of a pCPU declare.
fn doubts(system: &System, vcpus: &[VcpuTiming], rows: &[ReachRow]) -> Vec<Doubt> {
    let declaring = vcpus.iter().enumerate().filter(|(_, vcpu)| vcpu.tasks.is_some());
    let of_vcpu = |(slot, vcpu): (usize, &VcpuTiming)| {
        let partition = system.partition(vcpu.partition);
        let causes = partition.map(|partition| doubt::causes(system, &partition, rows));
        let causes = causes.unwrap_or_default().into_iter();
        causes.map(move |cause| Doubt { slot, cause })
    };
    declaring.flat_map(of_vcpu).collect()
}

/// Returns the costs of the hypervisor on a pCPU. They grow with its vCPUs.
fn overheads(system: &System, pcpu: u32) -> Overheads {
    let partitions = system.partitions();
    let vcpus = partitions.iter().flat_map(system::Partition::vcpus);
    let own = vcpus.filter(|vcpu| vcpu.pcpu == pcpu).count();
    let board = system.board.overheads(own).unwrap_or_default();
    let costs = early_starts(system).map_or(board, |bound| with_early_starts(board, bound));
    Overheads {
        orders: orders(system, pcpu),
        ..costs
    }
}

/// Returns the longest time for which a handler may run early, if any may.
fn early_starts(system: &System) -> Option<u64> {
    let bounds = system.manifest.partitions.iter();
    let bounds = bounds.filter_map(|partition| partition.early_handlers.as_ref());
    bounds.map(|bound| bound.value.get()).max()
}

/// Returns the costs with early starts of handlers. An early start is one interrupt more, its way in and out.
/// It may fall into the work that is under way when a more important vCPU is to run, and there is no second
/// one before its own vCPU has run.
fn with_early_starts(costs: Overheads, bound: u64) -> Overheads {
    let longest = costs.under_way().saturating_add(bound);
    Overheads {
        interrupt: costs.interrupt.saturating_mul(2),
        longest: longest.saturating_add(costs.interrupt),
        ..costs
    }
}

/// Returns the partitions with a vCPU on the pCPU that a partition on another pCPU can stop. A partition can
/// stop itself. A holder of control that can pass it on counts wherever its vCPUs are.
fn orders(system: &System, pcpu: u32) -> Orders {
    let is_here = |vcpu: &system::Vcpu| vcpu.pcpu == pcpu;
    let partitions = system.partitions();
    let can_stop = |holder: &system::Partition<'_>, number: usize| {
        let all = holder.capabilities();
        let is_elsewhere = !holder.vcpus().iter().all(is_here);
        // By a right over another partition, or by a message.
        let passes_on = all.iter().any(|capability| {
            let is_own = capability.kind == ObjectKind::Partition && capability.object == holder.number;
            capability.rights.contains(Rights::GRANT) && !is_own
        });
        let controls = all.iter().any(|capability| {
            capability.kind == ObjectKind::Partition
                && capability.object == number
                && capability.rights.contains(Rights::CONTROL)
        });
        controls && (is_elsewhere || passes_on)
    };
    let here = || {
        partitions
            .iter()
            .filter(|partition| partition.vcpus().iter().any(is_here))
    };
    if here().count() < 2 {
        // The only partition is stopped by each order, and no other partition runs here.
        return Orders::NONE;
    }
    let ordered =
        here().filter(|partition| partitions.iter().any(|holder| can_stop(holder, partition.number)));
    Orders {
        partitions: ordered.count() as u64,
        space: ORDER_SPACE_NS,
    }
}

/// Returns the lines of the partition's critical devices. Any vCPU of the partition may handle them.
fn critical_lines(system: &System, spec: &PartitionSpec) -> u8 {
    let owned = crate::model::devices::owned(spec, &system.board);
    let critical = owned.filter(|(name, _)| spec.critical.iter().any(|other| other.value == name.value));
    let lines: usize = critical.map(|(_, device)| device.interrupts.len()).sum();
    u8::try_from(lines).unwrap_or(u8::MAX)
}

fn parameters(vcpu: &system::Vcpu, policy: Policy) -> VcpuParameters {
    let server = vcpu.reservation.map(|reservation| Server {
        budget: reservation.budget_ns,
        period: reservation.period_ns,
        kind: match (policy, reservation.server) {
            (Policy::Edf | Policy::Own, _) => ServerKind::ConstantBandwidth,
            (_, model::ServerKind::Deferrable) => ServerKind::Deferrable,
            (_, model::ServerKind::Sporadic) => ServerKind::Sporadic,
        },
    });
    VcpuParameters {
        priority: u8::try_from(vcpu.priority).unwrap_or(u8::MAX),
        server,
        deadline: vcpu.deadline_ns,
        domain: vcpu
            .domain
            .and_then(|domain| u8::try_from(domain).ok())
            .unwrap_or(0),
    }
}

/// The numbers of a vCPU.
#[derive(Clone, Copy)]
struct Numbers {
    /// In its partition.
    index: usize,
    /// Among all vCPUs.
    number: u8,
    /// On its pCPU.
    slot: Slot,
}

/// Returns what the manifest says of a vCPU. `waits` tells how long a job of a task waits for others.
fn vcpu_timing(
    whole: &system::Partition<'_>,
    numbers: Numbers,
    parameters: VcpuParameters,
    waits: impl Fn(&TaskSpec) -> u64,
) -> VcpuTiming {
    let Numbers { index, number, slot } = numbers;
    let (partition, spec) = (whole.number, whole.spec);
    let is_own = |vcpu: VcpuNumber| vcpu.get() as usize == index;
    let tasks = spec.demand.as_ref().map(|demand| {
        let own = demand.tasks.iter().filter(|task| is_own(task.vcpu.value));
        own.map(|task| named_task(task, waits(task))).collect::<Vec<_>>()
    });
    let mut sources: Vec<_> = if !spec.workload.is_empty() {
        let own = spec.workload.iter().filter(|work| is_own(work.vcpu.value));
        own.map(|work| work_source(work, slot)).collect()
    } else if let Some(tasks) = &tasks {
        let periodic =
            |task: &NamedTask| (task.name.clone(), Source::new(slot, task.task, Pattern::Periodic));
        tasks.iter().map(periodic).collect()
    } else {
        vec![("always-ready".to_owned(), Source::always_ready(slot))]
    };
    sources.retain(|(_, source)| source.task.period > 0);
    VcpuTiming {
        partition,
        index,
        number,
        name: if spec.vcpus.len() == 1 {
            spec.name.value.clone()
        } else {
            format!("{}/{index}", spec.name.value)
        },
        parameters,
        scheduler: spec
            .demand
            .as_ref()
            .map_or_else(TaskScheduler::default, |demand| demand.scheduler),
        tasks,
        has_workload: !spec.workload.is_empty(),
        critical: 0,
        schedules: spec.demand.as_ref().and_then(|demand| {
            let names = demand.schedules.iter().map(|name| name.value.clone());
            Some(names.collect::<Vec<_>>()).filter(|names| !names.is_empty())
        }),
        sources,
    }
}

fn named_task(spec: &TaskSpec, waits: u64) -> NamedTask {
    let time = |time: &Option<Placed<Duration>>| time.as_ref().map(|time| time.value.get());
    let period = time(&spec.period).unwrap_or(0);
    NamedTask {
        name: spec
            .name
            .as_ref()
            .map(|name| name.value.clone())
            .unwrap_or_default(),
        task: Task {
            period,
            wcet: time(&spec.wcet).unwrap_or(0).saturating_add(waits),
            deadline: time(&spec.deadline).unwrap_or(period),
            priority: spec.priority.get() as u8,
        },
        waits,
        place: spec.place,
    }
}

fn work_source(work: &WorkSpec, slot: Slot) -> (String, Source) {
    let time =
        |time: &Option<Placed<Duration>>, default| time.as_ref().map_or(default, |time| time.value.get());
    let period = time(&work.period, 1);
    let task = Task {
        period,
        wcet: time(&work.execution, 1),
        deadline: time(&work.deadline, period),
        priority: work.priority.get() as u8,
    };
    let spread = time(&work.spread, period);
    let (name, pattern) = match work.kind {
        WorkKind::AlwaysReady => ("always-ready", Pattern::AlwaysReady),
        WorkKind::Periodic => ("periodic", Pattern::Periodic),
        WorkKind::Sporadic => ("sporadic", Pattern::Sporadic(spread)),
        WorkKind::Bursty => ("bursty", Pattern::Burst(work.count.get())),
        WorkKind::Interrupt => ("interrupt", Pattern::Sporadic(spread)),
    };
    let source = Source {
        first: work.first.get(),
        shortest: time(&work.shortest, task.wcet),
        is_interrupt: work.kind == WorkKind::Interrupt,
        is_critical: work.critical && work.kind == WorkKind::Interrupt,
        ..Source::new(slot, task, pattern)
    };
    (name.to_owned(), source)
}

impl PcpuTiming {
    fn arinc653(&self, initial: u8) -> Arinc653Parameters<'_> {
        Arinc653Parameters {
            windows: &self.windows,
            schedules: &self.schedules,
            initial,
            start: 0,
            quantum: self.quantum,
        }
    }

    fn models(&self) -> Vec<PolicyModel<'_>> {
        let quantum = self.quantum;
        match self.policy {
            Policy::Pinned => vec![PolicyModel::Pinned],
            Policy::FixedPriority => vec![PolicyModel::FixedPriority(FixedPriorityParameters { quantum })],
            Policy::Edf => vec![PolicyModel::Edf(EdfParameters { quantum })],
            Policy::Arinc653 => {
                let numbers = 0..self.schedules.len() as u8;
                let pairs = numbers
                    .clone()
                    .flat_map(|from| numbers.clone().map(move |to| (from, to)));
                // A schedule by itself, and the change to each other schedule.
                let model = |(from, to)| match from == to {
                    true => PolicyModel::Arinc653(self.arinc653(0), from),
                    false => PolicyModel::ScheduleChange(self.arinc653(0), from, to),
                };
                pairs.map(model).collect()
            }
            // No model is known of a policy of the user's own.
            Policy::Own => Vec::new(),
            Policy::Domains => vec![PolicyModel::Domains(DomainsParameters {
                domains: &self.domains,
                quantum,
            })],
        }
    }

    /// Returns the name of the policy for people: the word of the manifest, or the name of the user's crate.
    #[must_use]
    pub fn policy_name(&self) -> &str {
        self.own
            .as_ref()
            .map_or(self.policy.name(), |own| own.name.as_str())
    }

    /// Returns the policy: the very code that the hypervisor runs, with its frames starting at 0.
    ///
    /// # Errors
    /// The mistake that the policy finds in its parameters, or [`PolicyError::NotSupported`] for a policy of
    /// the user's own, which is in no program but those that are built with it.
    pub fn policy(&self, schedule: u8) -> Result<AnyPolicy, PolicyError> {
        let parameters: Vec<_> = self.vcpus.iter().map(|vcpu| vcpu.parameters).collect();
        let quantum = self.quantum;
        match self.policy {
            Policy::Pinned => AnyPolicy::pinned(&parameters),
            Policy::FixedPriority => {
                AnyPolicy::fixed_priority(&parameters, FixedPriorityParameters { quantum })
            }
            Policy::Edf => AnyPolicy::edf(&parameters, EdfParameters { quantum }),
            Policy::Arinc653 => AnyPolicy::arinc653(&parameters, self.arinc653(schedule)),
            Policy::Own => Err(PolicyError::NotSupported),
            Policy::Domains => AnyPolicy::domains(
                &parameters,
                DomainsParameters {
                    domains: &self.domains,
                    quantum,
                },
            ),
        }
    }

    /// Tells whether the slot has a window in a schedule.
    fn has_window(&self, slot: usize, schedule: &Schedule) -> bool {
        let windows = self.windows.iter().skip(usize::from(schedule.first_window));
        let mut windows = windows.take(usize::from(schedule.window_count));
        windows.any(|window| window.slots.0 >> slot & 1 != 0)
    }

    /// Tells whether the demand of the slot has to be met in the schedule of this number.
    #[must_use]
    pub fn has_to_serve(&self, slot: usize, schedule: u8) -> bool {
        let name = self.schedule_names.get(usize::from(schedule));
        let wanted = self.vcpus.get(slot).and_then(|vcpu| vcpu.schedules.as_ref());
        wanted.is_none_or(|wanted| name.is_some_and(|name| wanted.contains(name)))
    }

    /// Tells whether the slot has to pass a model: any model except schedules in which its demand does not
    /// hold.
    fn has_to_pass(&self, slot: usize, model: &PolicyModel) -> bool {
        match model {
            PolicyModel::Arinc653(_, schedule) => self.has_to_serve(slot, *schedule),
            PolicyModel::ScheduleChange(_, from, to) => {
                self.has_to_serve(slot, *from) && self.has_to_serve(slot, *to)
            }
            _ => true,
        }
    }

    /// Returns the first schedule in which the slot's demand holds and its partition has no window.
    fn unserved(&self, slot: usize) -> Option<String> {
        let schedules = (0_u8..).zip(&self.schedules).zip(&self.schedule_names);
        let mut unserved = schedules.filter(|((number, schedule), _)| {
            self.has_to_serve(slot, *number) && !self.has_window(slot, schedule)
        });
        unserved.next().map(|(_, name)| name.clone())
    }

    /// Returns the bounds of all declared tasks, vCPU by vCPU. If others can break a declaration and a policy
    /// bounds the vCPU all the same, the bounds of its neighbours do not rely on the declaration.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        doubt::Looks::new(self).again(self.verdicts_within(None))
    }

    /// Returns the bounds of all declared tasks, vCPU by vCPU, as far as the steps reach.
    fn verdicts_within(&self, steps: Option<&Steps>) -> Vec<Verdict> {
        if self.policy == Policy::Own {
            return Vec::new();
        }
        let tasks = self.tasks();
        let vcpus = self.analysed(&tasks);
        let analysis = Analysis::new(self, &vcpus, steps);
        let slots = 0..self.vcpus.len();
        slots.flat_map(|slot| analysis.verdicts_of(slot)).collect()
    }

    fn tasks(&self) -> Vec<Option<Vec<Task>>> {
        let tasks = |vcpu: &VcpuTiming| Some(vcpu.tasks.as_ref()?.iter().map(|named| named.task).collect());
        self.vcpus.iter().map(tasks).collect()
    }

    /// Returns the vCPUs as the analysis sees them.
    fn analysed<'t>(&self, tasks: &'t [Option<Vec<Task>>]) -> Vec<Vcpu<'t>> {
        let vcpus = self.vcpus.iter().zip(tasks);
        vcpus
            .map(|(vcpu, tasks)| Vcpu {
                parameters: vcpu.parameters,
                demand: tasks.as_ref().map(|tasks| Demand {
                    scheduler: vcpu.scheduler,
                    tasks,
                }),
                critical: vcpu.critical,
            })
            .collect()
    }

    /// Tells whether all declared tasks are in time.
    #[must_use]
    pub fn is_schedulable(&self) -> bool {
        self.are_in_time(None, &[], None)
    }

    /// Tells whether all declared tasks are in time. The slots in `late` do not count. The tasks of `first`
    /// are looked at first. False if `steps` are all used.
    fn are_in_time(&self, first: Option<usize>, late: &[usize], steps: Option<&Steps>) -> bool {
        let tasks = self.tasks();
        let vcpus = self.analysed(&tasks);
        let analysis = Analysis::new(self, &vcpus, steps);
        let others = (0..self.vcpus.len()).filter(|slot| Some(*slot) != first);
        let mut slots = first
            .into_iter()
            .chain(others)
            .filter(|slot| !late.contains(slot));
        slots.all(|slot| {
            let verdicts = analysis.verdicts_of(slot);
            verdicts.iter().all(|verdict| verdict.bound.is_ok())
        })
    }

    /// Returns the share of the pCPU that `vcpu` needs by its demand, without overheads.
    #[must_use]
    pub fn utilisation(&self, vcpu: &VcpuTiming) -> Option<f64> {
        let tasks = vcpu.tasks.as_ref()?;
        let share = |named: &NamedTask| named.task.wcet as f64 / named.task.period.max(1) as f64;
        // The sum of nothing is -0.0.
        Some(tasks.iter().map(share).fold(0.0, |sum, share| sum + share))
    }
}

/// A pCPU as the analysis sees it.
struct Analysis<'a> {
    pcpu: &'a PcpuTiming,
    shared: Shared<'a>,
    models: Vec<(PolicyModel<'a>, Responses)>,
}

impl<'a> Analysis<'a> {
    fn new(pcpu: &'a PcpuTiming, vcpus: &'a [Vcpu<'a>], steps: Option<&'a Steps>) -> Self {
        let shared = Shared {
            steps,
            ..Shared::new(vcpus, pcpu.overheads)
        };
        let models = pcpu.models().into_iter();
        Self {
            pcpu,
            shared,
            models: models
                .map(|model| (model, Responses::of(&model, shared)))
                .collect(),
        }
    }

    /// Returns the bounds of the tasks that a slot declares.
    fn verdicts_of(&self, slot: usize) -> Vec<Verdict> {
        let named = self.pcpu.vcpus[slot].tasks.as_deref().unwrap_or_default();
        let mut worst: Vec<Option<Bound>> = vec![None; named.len()];
        let models = self.models.iter();
        for (model, responses) in models.filter(|(model, _)| self.pcpu.has_to_pass(slot, model)) {
            let shared = Shared {
                responses: Some(responses),
                ..self.shared
            };
            let mut bounds = vec![Err(Miss::NotConverged); named.len()];
            slot_bounds(model, shared, slot, &mut bounds);
            for (worst, bound) in worst.iter_mut().zip(bounds) {
                *worst = Some(worst.map_or(bound, |worst| worse(worst, bound)));
            }
        }
        let unserved = self.pcpu.unserved(slot);
        let verdict = |(task, bound): (&NamedTask, Option<Bound>)| Verdict {
            slot,
            task: task.clone(),
            unserved: unserved.clone(),
            bound: bound.unwrap_or(Err(Miss::Late(u64::MAX))),
            doubted: Vec::new(),
        };
        named.iter().zip(worst).map(verdict).collect()
    }
}

fn worse(one: Bound, other: Bound) -> Bound {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(one.max(other)),
        (Err(Miss::Late(one)), Err(Miss::Late(other))) => Err(Miss::Late(one.max(other))),
        (Err(miss), _) | (_, Err(miss)) => Err(miss),
    }
}

/// The steps of the analysis that all searches for remedies of a system may take together.
pub const REMEDY_STEPS: u64 = 500_000_000;

/// Reports the tasks that cannot be shown to be in time.
#[must_use]
pub fn judge(system: &System) -> Report {
    judge_within(system, &Steps::new(REMEDY_STEPS))
}

/// Reports the tasks that cannot be shown to be in time. The searches for remedies share `steps`. Each vCPU
/// that is late gets an equal part of the steps that those before it have left.
#[must_use]
pub fn judge_within(system: &System, steps: &Steps) -> Report {
    let mut report = Report::about(system.report.sources.clone());
    let judged: Vec<_> = pcpus(system)
        .into_iter()
        .map(|pcpu| {
            let verdicts = pcpu.verdicts_within(None);
            (pcpu, verdicts)
        })
        .collect();
    let mut searches: u64 = judged
        .iter()
        .map(|(_, verdicts)| late(verdicts).len() as u64)
        .sum();
    for (pcpu, verdicts) in &judged {
        let late = late(verdicts);
        let mut mended = None;
        for verdict in verdicts {
            let Err(miss) = verdict.bound else { continue };
            // The remedy for one of a vCPU's tasks is the remedy for all its tasks, so it is given once.
            let remedy = if mended.replace(verdict.slot) == Some(verdict.slot) {
                Some("see above".to_owned())
            } else {
                let part = Steps::new(steps.left() / searches.max(1));
                searches -= 1;
                let remedy = remedy::find(pcpu, verdict.slot, &late, &part);
                steps.draw(part.drawn());
                remedy
            };
            report.push(refusal(pcpu, verdict, miss, remedy));
        }
    }
    report
}

/// Returns the slots that are not shown to be in time, each once.
fn late(verdicts: &[Verdict]) -> Vec<usize> {
    let refused = verdicts.iter().filter(|verdict| verdict.bound.is_err());
    let mut slots: Vec<usize> = refused.map(|verdict| verdict.slot).collect();
    slots.dedup();
    slots
}

fn refusal(pcpu: &PcpuTiming, verdict: &Verdict, miss: Miss, remedy: Option<String>) -> Diagnostic {
    let vcpu = &pcpu.vcpus[verdict.slot].name;
    let NamedTask {
        name, task, place, ..
    } = &verdict.task;
    let deadline = format_duration(task.deadline);
    if let Some(schedule) = &verdict.unserved {
        let message = format!(
            "task `{name}` of `{vcpu}` on pCPU {} is never done in schedule `{schedule}`",
            pcpu.number
        );
        return Diagnostic::at(Code::NotSchedulable, *place, message)
            .label("its partition has no window there")
            .help("give it one, or name the schedules in which it has to be done: demand.schedules = [...]");
    }
    let (message, label) = match miss {
        Miss::Late(u64::MAX) => (
            format!(
                "task `{name}` of `{vcpu}` on pCPU {} may never be done",
                pcpu.number
            ),
            "others, or its own budget, may leave it no time".to_owned(),
        ),
        Miss::Late(time) => (
            format!(
                "task `{name}` of `{vcpu}` on pCPU {} may miss its deadline of {deadline}",
                pcpu.number
            ),
            format!("may take {} or more", format_duration(time / 1000 * 1000)),
        ),
        Miss::NotConverged | Miss::BadTask => (
            format!(
                "the analysis of task `{name}` of `{vcpu}` on pCPU {} was given up",
                pcpu.number
            ),
            "nothing is known about it".to_owned(),
        ),
    };
    let help = remedy.unwrap_or_else(|| "declare less, or move a partition to another pCPU".to_owned());
    Diagnostic::at(Code::NotSchedulable, *place, message)
        .label(label)
        .help(help)
}
