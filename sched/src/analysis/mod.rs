// SPDX-License-Identifier: Apache-2.0
//! Schedulability analysis: whether every declared task meets its deadline, whether or not the others keep to
//! theirs.
//!
//! **Model.** A vCPU declares tasks (least distance of two releases, worst-case execution time, deadline) and
//! the scheduler its partition uses for them. A policy gives a vCPU a *supply*: the longest time, counted
//! from the moment the vCPU becomes ready, in which it gets a given amount of work done
//! ([`Supply::time_for`]). The tasks of the vCPU are tested against that supply ([`bounds`]). Everything that
//! makes a policy special (interference, servers, windows, domains) is in its supply. A policy of one's own
//! brings a supply of its own.
//!
//! **Hypervisor.** An event is an interrupt, a decision and a switch ([`Overheads::event`]). A job costs two
//! events, one to come and one to go. The end of a turn, a budget or a window costs one. A longer stretch in
//! which the hypervisor looks at nothing ([`Overheads::longest`]) may be under way whenever a vCPU is to
//! run.
//!
//! **Bounds are safe**: a result of `Ok(response)` is never below what can happen as long as every task keeps
//! to its declaration. The converse is not true: a refusal may be pessimism. The analysis assumes that vCPUs
//! without a declaration are always ready, and block and wake as fast as the hypervisor lets them.
//!
//! There is no allocation and no recursion. Arithmetic saturates, and [`Ticks::MAX`] stands for "never".
//! Iterations are bounded, and say so when they end for that reason ([`Miss::NotConverged`]).

mod domains;
mod edf;
mod history;
mod inner;
mod pcpu;
mod priority;
mod served;
mod steps;
mod windows;

pub use domains::DomainSupply;
pub use edf::{EdfSupply, density};
pub use history::Responses;
pub use inner::bounds;
pub use pcpu::{MAX_TASKS, PolicyModel, slot_bounds};
pub use priority::{Level, PrioritySupply, Sharing};
pub use steps::Steps;
pub use windows::{ChangeSupply, WindowSupply};

use crate::{Server, ServerKind, SlotSet, Ticks, VcpuParameters};

/// A task of a partition. Deadlines are at most the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Least time between two releases.
    pub period: Ticks,
    /// Longest execution time of one job.
    pub wcet: Ticks,
    /// From the release to when a job must be complete.
    pub deadline: Ticks,
    /// Larger is more important; for partitions that schedule by priority. Equals count as more important.
    pub priority: u8,
}

impl Task {
    /// Returns a task whose jobs must be complete when the next one may come.
    #[must_use]
    pub const fn new(period: Ticks, wcet: Ticks) -> Self {
        Self {
            period,
            wcet,
            deadline: period,
            priority: 0,
        }
    }
}

/// The scheduler by which a partition chooses among its own tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskScheduler {
    /// Preemptive fixed priorities.
    #[default]
    FixedPriority,
    /// Earliest deadline first, preemptive.
    EarliestDeadline,
}

/// The work that a vCPU has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand<'a> {
    /// The partition's scheduler.
    pub scheduler: TaskScheduler,
    /// The tasks bound to the vCPU.
    pub tasks: &'a [Task],
}

/// A vCPU as the analysis sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vcpu<'a> {
    /// The parameters of its policy.
    pub parameters: VcpuParameters,
    /// The work that it declares; `None`: anything.
    pub demand: Option<Demand<'a>>,
    /// Its critical interrupts, which bring it into time domain 0 for as long as it has something to do.
    pub critical: u8,
}

/// The costs of the hypervisor, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Overheads {
    /// To put one vCPU in the place of another.
    pub switch: Ticks,
    /// To take an interrupt and hand it to a vCPU.
    pub interrupt: Ticks,
    /// To decide who runs.
    pub decision: Ticks,
    /// The longest stretch in which the hypervisor looks at nothing; an event if that is
    /// longer.
    pub longest: Ticks,
    /// The stops and starts of vCPUs that other pCPUs order.
    pub orders: Orders,
    /// The steps that write the log and the output of others.
    pub output: Output,
}

/// Steps of output: each writes a piece of the log or of a console, in the time of the vCPU that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Output {
    /// The longest step.
    pub step: Ticks,
    /// The least time between two steps; 0: there are none.
    pub space: Ticks,
}

impl Output {
    /// Nothing is written.
    pub const NONE: Self = Self { step: 0, space: 0 };
}

/// Orders of other pCPUs: each stops or starts the vCPUs of a partition, in the time of the vCPU that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Orders {
    /// The partitions on the pCPU that others can order to stop or to start.
    pub partitions: Ticks,
    /// The least time between two stops that are carried out.
    pub space: Ticks,
}

impl Orders {
    /// No pCPU orders anything.
    pub const NONE: Self = Self {
        partitions: 0,
        space: 0,
    };
}

impl Overheads {
    /// Returns the time that orders of other pCPUs take in an interval of this length. Stops keep their
    /// distance. Each partition can be signalled and started once more than that. An order takes less than
    /// two events (`docs/longest.md`), and its signal takes an arrival.
    #[must_use]
    pub const fn ordered(&self, interval: Ticks) -> Ticks {
        if self.orders.partitions == 0 {
            return 0;
        }
        let stops = match interval.checked_div(self.orders.space) {
            Some(times) => times.saturating_add(1),
            None => Ticks::MAX,
        };
        let each = self.arrival().saturating_add(self.event().saturating_mul(2));
        stops.saturating_add(self.orders.partitions).saturating_mul(each)
    }

    /// Returns the time that steps of output take in an interval of this length, with the interrupt that each
    /// begins with. A step that was under way before counts as [`Self::under_way`].
    #[must_use]
    pub const fn written(&self, interval: Ticks) -> Ticks {
        if self.output.space == 0 {
            return 0;
        }
        interval
            .div_ceil(self.output.space)
            .saturating_mul(self.each_output())
    }

    /// Returns the cost of a step of output.
    const fn each_output(&self) -> Ticks {
        self.output.step.saturating_add(self.arrival())
    }

    /// Returns the share of the time that steps of output take, in parts of [`ONE`].
    fn output_share(&self) -> Ticks {
        match self.output.space {
            0 => 0,
            space => ratio(self.each_output(), space),
        }
    }

    /// Returns the cost of an event, when another vCPU is to run: an interrupt, a decision and a switch.
    #[must_use]
    pub const fn event(&self) -> Ticks {
        self.arrival().saturating_add(self.switch)
    }

    /// Returns the longest time for which the hypervisor does something without looking up. Such work may be
    /// under way when a job is released. A turn, a budget or a window may end late by this time.
    #[must_use]
    pub const fn under_way(&self) -> Ticks {
        if self.longest > self.event() {
            self.longest
        } else {
            self.event()
        }
    }

    /// Returns the loss of a budget or a window: the switch to its owner, and the overrun of the one before.
    #[must_use]
    pub const fn at_ends(&self) -> Ticks {
        self.event().saturating_add(self.under_way())
    }

    /// Returns the time under way beyond an event.
    const fn excess(&self) -> Ticks {
        self.under_way().saturating_sub(self.event())
    }

    /// Returns the cost of a job: one event to come, one to go.
    #[must_use]
    pub const fn per_job(&self) -> Ticks {
        self.event().saturating_mul(2)
    }

    /// Returns how often a vCPU can come and go on one budget, which pays for the decision and the switch.
    const fn storm(&self, server: Server) -> Ticks {
        let paid = self.decision.saturating_add(self.switch);
        match server.budget.checked_div(paid) {
            Some(times) => times.saturating_add(1),
            None => 1,
        }
    }

    /// Returns the cost of an arrival to the vCPU that runs, if the arrival does not lead to a switch.
    #[must_use]
    pub const fn arrival(&self) -> Ticks {
        self.interrupt.saturating_add(self.decision)
    }
}

/// Why there is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The bound is beyond the deadline: at least this much, `Ticks::MAX` if the work never gets done.
    Late(Ticks),
    /// The iteration was given up; nothing is known.
    NotConverged,
    /// The declaration itself is no good: a period or deadline of 0, a deadline beyond the period.
    BadTask,
}

/// The longest time from release to completion, or why there is none.
pub type Bound = Result<Ticks, Miss>;

/// The promise of a policy to one vCPU.
pub trait Supply {
    /// Returns the longest time in which the vCPU, ready all the while, may take to run for `work` ticks. The
    /// time never decreases with more work, and is never below `work`. `Ticks::MAX`: for ever.
    fn time_for(&self, work: Ticks) -> Ticks;

    /// Returns the time that the hypervisor may take of the vCPU's own running time within any interval of
    /// this length. The share of its own jobs is not counted.
    fn stolen(&self, interval: Ticks) -> Ticks;
}

/// The vCPUs of a pCPU and the costs all of them bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared<'a> {
    /// Slot 0 first.
    pub vcpus: &'a [Vcpu<'a>],
    /// The costs of the hypervisor.
    pub overheads: Overheads,
    /// The longest responses of all tasks; `None`: their deadlines.
    pub responses: Option<&'a Responses>,
    /// The limit to the work of the analysis; `None`: only the limit of its iterations.
    pub steps: Option<&'a Steps>,
}

impl<'a> Shared<'a> {
    /// Returns the vCPUs of a pCPU, of whose responses nothing is known.
    #[must_use]
    pub const fn new(vcpus: &'a [Vcpu<'a>], overheads: Overheads) -> Self {
        Self {
            vcpus,
            overheads,
            responses: None,
            steps: None,
        }
    }

    /// Returns the vCPUs in `slots` with their numbers.
    pub fn numbered(&self, slots: SlotSet) -> impl Iterator<Item = (usize, &'a Vcpu<'a>)> {
        let in_set = move |slot: usize| {
            let slot = u32::try_from(slot).unwrap_or(u32::MAX);
            slots.0.checked_shr(slot).unwrap_or(0) & 1 != 0
        };
        self.vcpus
            .iter()
            .enumerate()
            .filter(move |(slot, _)| in_set(*slot))
    }

    /// Returns the vCPUs in `slots`.
    pub fn in_slots(&self, slots: SlotSet) -> impl Iterator<Item = &'a Vcpu<'a>> {
        self.numbered(slots).map(|(_, vcpu)| vcpu)
    }

    /// Returns the slots whose vCPUs `wanted` wants, other than `except`.
    pub fn slots(&self, except: usize, wanted: impl Fn(&VcpuParameters) -> bool) -> SlotSet {
        let is_wanted = |(slot, vcpu): (usize, &Vcpu)| slot != except && wanted(&vcpu.parameters);
        let bits = self.vcpus.iter().enumerate().map(is_wanted);
        SlotSet(
            (0_u32..32)
                .zip(bits)
                .fold(0, |set, (slot, is_in)| set | u32::from(is_in).rotate_left(slot)),
        )
    }

    /// Returns the time that the comings and goings of all other vCPUs take from the one in `slot` while it
    /// runs, in an interval of this length. An arrival leads to a switch if it is of one of those that
    /// `preempt`. One of those may declare nothing and have a budget. Then it can come and go for as long as
    /// the budget pays for it.
    pub fn stolen(&self, slot: usize, preempt: impl Fn(&VcpuParameters) -> bool, interval: Ticks) -> Ticks {
        let others = self.vcpus.iter().enumerate().filter(|(other, _)| *other != slot);
        others.fold(self.overheads.ordered(interval), |sum: Ticks, (_, vcpu)| {
            let preempts = preempt(&vcpu.parameters);
            let each = if preempts {
                self.overheads.event()
            } else {
                self.overheads.arrival()
            };
            let times = match (vcpu.demand, vcpu.parameters.server) {
                (Some(demand), _) => releases(&demand, interval),
                (None, Some(server)) if preempts => {
                    budgets(server, interval).saturating_mul(self.overheads.storm(server))
                }
                (None, _) => 0,
            };
            sum.saturating_add(times.saturating_mul(each))
        })
    }
}

impl Demand<'_> {
    /// Execution time asked for by releases in an interval of this length, with `per_job` on top of each.
    #[must_use]
    pub fn requested(&self, interval: Ticks, per_job: Ticks) -> Ticks {
        requested(self.tasks.iter(), interval, per_job)
    }

    /// Work per tick, in parts of 2^32, rounded up.
    #[must_use]
    pub fn utilisation(&self, per_job: Ticks) -> Ticks {
        self.tasks.iter().fold(0, |sum: Ticks, task| {
            sum.saturating_add(ratio(task.wcet.saturating_add(per_job), task.period))
        })
    }
}

/// Returns how often the tasks are released in an interval of this length.
fn releases(demand: &Demand, interval: Ticks) -> Ticks {
    demand.tasks.iter().fold(0, |sum: Ticks, task| {
        sum.saturating_add(interval.div_ceil(task.period.max(1)))
    })
}

/// Budgets of a server that can be used in an interval of this length; of a deferrable one, two can meet.
fn budgets(server: Server, interval: Ticks) -> Ticks {
    let carried = match server.kind {
        ServerKind::Deferrable => server.period.saturating_sub(server.budget),
        ServerKind::Sporadic | ServerKind::ConstantBandwidth => 0,
    };
    interval.saturating_add(carried).div_ceil(server.period.max(1))
}

/// Returns the execution time asked for by the releases of `tasks` in an interval of this length, with
/// `per_job` on top of each.
fn requested<'t>(tasks: impl Iterator<Item = &'t Task>, interval: Ticks, per_job: Ticks) -> Ticks {
    tasks.fold(0, |sum: Ticks, task| {
        let jobs = interval.div_ceil(task.period.max(1));
        sum.saturating_add(jobs.saturating_mul(task.wcet.saturating_add(per_job)))
    })
}

/// One, as [`ratio`] and [`Demand::utilisation`] count.
pub const ONE: Ticks = 1 << 32;

/// `part / whole` in parts of [`ONE`], rounded up; `Ticks::MAX` if it does not fit.
#[must_use]
pub fn ratio(part: Ticks, whole: Ticks) -> Ticks {
    let scaled = u128::from(part).saturating_mul(u128::from(ONE));
    u64::try_from(scaled.div_ceil(u128::from(whole.max(1)))).unwrap_or(Ticks::MAX)
}

/// Longer intervals are taken for endless: beyond any hour in nanoseconds, far from overflow.
const HORIZON: Ticks = 1 << 48;
/// Rounds of a fixed-point iteration before it is given up.
const ROUNDS: u32 = 20_000;

/// Returns the least `t >= from` with `step(t) <= t`, for a `step` that never decreases, or the first `t`
/// seen that exceeds `limit`. Returns `None` if that takes too many rounds.
fn fixed_point(from: Ticks, limit: Ticks, step: impl Fn(Ticks) -> Ticks) -> Option<Ticks> {
    let mut time = from;
    for _ in 0..ROUNDS {
        if time > limit {
            return Some(time);
        }
        let next = step(time);
        if next <= time {
            return Some(time);
        }
        time = next;
    }
    None
}
