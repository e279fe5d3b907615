// SPDX-License-Identifier: Apache-2.0
//! Whether partitions can do in time what they declare: the manifest's demands against the policies of its
//! pCPUs.
//!
//! [`pcpus`] turns a system into what the analysis and the simulator of `bulkhead-sched` understand: slots,
//! tasks and sources, in nanoseconds. [`judge`] runs the analysis; what it cannot show to be in time is a
//! [`Diagnostic`] at the task's line with the smallest change that would help.

mod remedy;
mod suggest;

pub use suggest::suggest;

use bulkhead_sched::analysis::{
    Bound, Demand, Miss, Overheads, PolicyModel, Responses, Shared, Task, TaskScheduler, Vcpu, slot_bounds,
};
use bulkhead_sched::simulate::{Pattern, Source};
use bulkhead_sched::{
    AnyPolicy, Arinc653Parameters, Domain, DomainsParameters, EdfParameters, FixedPriorityParameters,
    PolicyError, Schedule, Server, ServerKind, Slot, SlotSet, VcpuParameters, Window,
};

use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{self, PartitionSpec, Placed, Policy, TaskSpec, VcpuNumber, WorkKind, WorkSpec};
use crate::system::{self, System};
use crate::units::{Duration, format_duration};

/// A task with its name.
#[derive(Clone, Debug)]
pub struct NamedTask {
    /// Its name in the manifest.
    pub name: String,
    /// What it does.
    pub task: Task,
    pub(crate) place: Place,
}

/// A vCPU of a pCPU; its place among them is its slot.
#[derive(Clone, Debug)]
pub struct VcpuTiming {
    /// Number of its partition.
    pub partition: usize,
    /// Its number in the partition.
    pub index: usize,
    /// Its number among all vCPUs, as the system image counts.
    pub number: u8,
    /// `partition/index`, or the partition's name if it has but one vCPU.
    pub name: String,
    /// What its policy knows of it.
    pub parameters: VcpuParameters,
    /// How its partition chooses among its tasks.
    pub scheduler: TaskScheduler,
    /// What it declares; `None`: nothing.
    pub tasks: Option<Vec<NamedTask>>,
    /// What it does is said by a workload, and not only by its demand or by nothing.
    pub has_workload: bool,
    /// Lines of devices whose interrupts bring it into time domain 0.
    pub critical: u8,
    /// The schedules in which its demand holds; `None`: all.
    pub schedules: Option<Vec<String>>,
    /// What it does in the simulator, each with a name.
    pub sources: Vec<(String, Source)>,
}

/// A pCPU with its policy.
#[derive(Clone, Debug)]
pub struct PcpuTiming {
    /// Its number.
    pub number: u32,
    /// Its policy.
    pub policy: Policy,
    /// Turn among equals.
    pub quantum: u64,
    /// What the hypervisor costs.
    pub overheads: Overheads,
    /// Slot 0 first.
    pub vcpus: Vec<VcpuTiming>,
    /// The windows of all schedules.
    pub windows: Vec<Window>,
    /// The schedules.
    pub schedules: Vec<Schedule>,
    /// Their names.
    pub schedule_names: Vec<String>,
    /// The time domains.
    pub domains: Vec<Domain>,
}

/// What the analysis says of a task.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The slot of its vCPU.
    pub slot: usize,
    /// The task.
    pub task: NamedTask,
    /// The worst of all schedules in which it has to be done, and of the changes between them.
    pub bound: Bound,
    /// One of these schedules in which its partition has no window at all.
    pub unserved: Option<String>,
}

impl Verdict {
    /// Returns how much earlier the task is done than it must be.
    #[must_use]
    pub fn slack(&self) -> Option<u64> {
        self.bound
            .ok()
            .map(|bound| self.task.task.deadline.saturating_sub(bound))
    }
}

impl System {
    /// Returns the longest stretch without a look at interrupts that the analysis charges on any pCPU, in
    /// nanoseconds; `None`: the board does not say.
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
    system.pcpus.iter().map(|pcpu| one(system, pcpu)).collect()
}

fn one(system: &System, pcpu: &system::Pcpu) -> PcpuTiming {
    let mut vcpus = Vec::new();
    let mut number = 0_u8;
    for (partition, whole) in system.partitions().iter().enumerate() {
        let spec = whole.spec;
        for (index, vcpu) in whole.vcpus().iter().enumerate() {
            if vcpu.pcpu == pcpu.number {
                let slot = Slot(vcpus.len() as u8);
                let parameters = parameters(vcpu, pcpu.policy);
                let mut timing = vcpu_timing(spec, partition, index, number, (slot, parameters));
                if pcpu.policy == Policy::Domains {
                    timing.critical = critical_lines(system, spec);
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
        number: pcpu.number,
        policy: pcpu.policy,
        quantum: pcpu.quantum_ns.max(1),
        overheads: system.board.overheads(vcpus.len()).unwrap_or_default(),
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

/// Returns the lines of the partition's critical devices: any of its vCPUs may handle them.
fn critical_lines(system: &System, spec: &PartitionSpec) -> u8 {
    let owned = crate::rules::owned(spec, &system.board);
    let critical = owned.filter(|(name, _)| spec.critical.iter().any(|other| other.value == name.value));
    let lines: usize = critical.map(|(_, device)| device.interrupts.len()).sum();
    u8::try_from(lines).unwrap_or(u8::MAX)
}

fn parameters(vcpu: &system::Vcpu, policy: Policy) -> VcpuParameters {
    let server = vcpu.reservation.map(|reservation| Server {
        budget: reservation.budget_ns,
        period: reservation.period_ns,
        kind: match (policy, reservation.server) {
            (Policy::Edf, _) => ServerKind::ConstantBandwidth,
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

fn vcpu_timing(
    spec: &PartitionSpec,
    partition: usize,
    index: usize,
    number: u8,
    (slot, parameters): (Slot, VcpuParameters),
) -> VcpuTiming {
    let is_own = |vcpu: VcpuNumber| vcpu.get() as usize == index;
    let tasks = spec.demand.as_ref().map(|demand| {
        let own = demand.tasks.iter().filter(|task| is_own(task.vcpu.value));
        own.map(named_task).collect::<Vec<_>>()
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

fn named_task(spec: &TaskSpec) -> NamedTask {
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
            wcet: time(&spec.wcet).unwrap_or(0),
            deadline: time(&spec.deadline).unwrap_or(period),
            priority: spec.priority.get() as u8,
        },
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
                // A schedule by itself, and the change to each of the others.
                let model = |(from, to)| match from == to {
                    true => PolicyModel::Arinc653(self.arinc653(0), from),
                    false => PolicyModel::ScheduleChange(self.arinc653(0), from, to),
                };
                pairs.map(model).collect()
            }
            Policy::Domains => vec![PolicyModel::Domains(DomainsParameters {
                domains: &self.domains,
                quantum,
            })],
        }
    }

    /// Returns the policy's very code, as the hypervisor runs it, with its frames starting at 0.
    ///
    /// # Errors
    /// What the policy finds wrong with its parameters.
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

    /// Tells whether a model is of interest to the slot: all, but schedules in which its demand does not
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

    /// Returns the bounds of all declared tasks, vCPU by vCPU.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        let tasks = self.tasks();
        let vcpus = self.analysed(&tasks);
        let analysis = Analysis::new(self, &vcpus);
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
        self.are_in_time(None, &[])
    }

    /// Tells whether all declared tasks are in time. The slots in `late` do not count. The tasks of `first`
    /// are looked at first.
    fn are_in_time(&self, first: Option<usize>, late: &[usize]) -> bool {
        let tasks = self.tasks();
        let vcpus = self.analysed(&tasks);
        let analysis = Analysis::new(self, &vcpus);
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

    /// Returns the share of the pCPU that `vcpu` declares to need, without overheads.
    #[must_use]
    pub fn utilisation(&self, vcpu: &VcpuTiming) -> Option<f64> {
        let tasks = vcpu.tasks.as_ref()?;
        let share = |named: &NamedTask| named.task.wcet as f64 / named.task.period.max(1) as f64;
        Some(tasks.iter().map(share).sum())
    }
}

/// A pCPU as the analysis sees it.
struct Analysis<'a> {
    pcpu: &'a PcpuTiming,
    shared: Shared<'a>,
    models: Vec<(PolicyModel<'a>, Responses)>,
}

impl<'a> Analysis<'a> {
    fn new(pcpu: &'a PcpuTiming, vcpus: &'a [Vcpu<'a>]) -> Self {
        let shared = Shared::new(vcpus, pcpu.overheads);
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

/// Tells what cannot be shown to be in time.
#[must_use]
pub fn judge(system: &System) -> Report {
    let mut report = Report {
        diagnostics: Vec::new(),
        sources: system.report.sources.clone(),
    };
    for pcpu in pcpus(system) {
        let mut mended = None;
        for verdict in pcpu.verdicts() {
            let Err(miss) = verdict.bound else { continue };
            // What one of a vCPU's tasks needs is said once.
            let remedy = if mended.replace(verdict.slot) == Some(verdict.slot) {
                Some("see above".to_owned())
            } else {
                remedy::find(&pcpu, verdict.slot)
            };
            report.push(refusal(&pcpu, &verdict, miss, remedy));
        }
    }
    report
}

fn refusal(pcpu: &PcpuTiming, verdict: &Verdict, miss: Miss, remedy: Option<String>) -> Diagnostic {
    let vcpu = &pcpu.vcpus[verdict.slot].name;
    let NamedTask { name, task, place } = &verdict.task;
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
