// SPDX-License-Identifier: Apache-2.0
//! All policies under one name: the bounds of the tasks of a slot, with any policy of its pCPU.

use super::steps::Counted;
use super::{
    Bound, ChangeSupply, Demand, DomainSupply, EdfSupply, Level, Miss, Overheads, PrioritySupply, Shared,
    Sharing, Supply, WindowSupply, inner,
};
use crate::{Arinc653Parameters, DomainsParameters, EdfParameters, FixedPriorityParameters, SlotSet, Ticks};

/// Tasks a vCPU can declare.
pub const MAX_TASKS: usize = 32;

/// A policy with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyModel<'a> {
    /// `pinned`.
    Pinned,
    /// `fixed-priority`.
    FixedPriority(FixedPriorityParameters),
    /// `edf`.
    Edf(EdfParameters),
    /// `arinc653`, in the schedule of this number.
    Arinc653(Arinc653Parameters<'a>, u8),
    /// `arinc653`, while the schedule of the first number gives way to the schedule of the second.
    ScheduleChange(Arinc653Parameters<'a>, u8, u8),
    /// `domains`.
    Domains(DomainsParameters<'a>),
}

impl PolicyModel<'_> {
    /// Tells whether the bounds depend on what the vCPUs did before.
    pub(super) const fn looks_back(&self) -> bool {
        matches!(self, Self::FixedPriority(_) | Self::Edf(_) | Self::Domains(_))
    }
}

/// All the time of a pCPU.
#[derive(Clone, Copy, Debug)]
struct Whole {
    /// The time that is lost once.
    lost: Ticks,
    overheads: Overheads,
}

impl Supply for Whole {
    fn time_for(&self, work: Ticks) -> Ticks {
        work.saturating_add(self.lost)
    }

    fn stolen(&self, interval: Ticks) -> Ticks {
        self.overheads.written(interval)
    }
}

/// Writes the bounds of the tasks of `slot` to `results`, in their order. Nothing is written if the slot
/// declares no tasks.
///
/// The bounds are true if all vCPUs of the pCPU that declare tasks meet theirs within the deadlines.
pub fn slot_bounds(policy: &PolicyModel, shared: Shared, slot: usize, results: &mut [Bound]) {
    let Some(demand) = shared.vcpus.get(slot).and_then(|vcpu| vcpu.demand) else {
        return;
    };
    if demand.tasks.len() > MAX_TASKS {
        results.fill(Err(Miss::BadTask));
        return;
    }
    let overheads = &shared.overheads;
    let whole = |lost| Whole {
        lost,
        overheads: *overheads,
    };
    let level = |group, quantum, sharing, has_servers| Level {
        group,
        quantum,
        sharing,
        has_servers,
    };
    match policy {
        PolicyModel::Pinned => {
            inner::bounds(&demand, &whole(overheads.under_way()), overheads, results);
        }
        PolicyModel::FixedPriority(parameters) => {
            let supply = |sharing| {
                let level = level(SlotSet(u32::MAX), parameters.quantum, sharing, true);
                PrioritySupply::new(shared, slot, level, whole(0))
            };
            best(&demand, shared, SHARINGS.map(supply), results);
        }
        PolicyModel::Edf(_) => best(&demand, shared, [EdfSupply::new(shared, slot)], results),
        PolicyModel::Arinc653(parameters, schedule) => {
            // For each window of the partition, a walk along all windows.
            let each = parameters.windows.len().saturating_pow(2);
            let given = windows(&shared, slot, parameters, *schedule);
            let supply = |sharing| {
                let given = given?;
                let level = level(given.slots(), parameters.quantum, sharing, false);
                PrioritySupply::new(shared, slot, level, counted(shared, given, each))
            };
            best(&demand, shared, SHARINGS.map(supply), results);
        }
        PolicyModel::ScheduleChange(parameters, from, to) => {
            let each = parameters.windows.len().saturating_pow(2).saturating_mul(4);
            let from = windows(&shared, slot, parameters, *from);
            let given = from.zip(windows(&shared, slot, parameters, *to));
            let given = given.map(|(from, to)| ChangeSupply::new(from, to));
            let supply = |sharing| {
                let given = given?;
                let level = level(given.slots(), parameters.quantum, sharing, false);
                PrioritySupply::new(shared, slot, level, counted(shared, given, each))
            };
            best(&demand, shared, SHARINGS.map(supply), results);
        }
        PolicyModel::Domains(parameters) => {
            let each = parameters.domains.len();
            let given = DomainSupply::new(shared, slot, parameters.domains);
            let supply = |sharing| {
                let given = given?;
                let level = level(given.slots(), parameters.quantum, sharing, false);
                PrioritySupply::new(shared, slot, level, counted(shared, given, each))
            };
            best(&demand, shared, SHARINGS.map(supply), results);
        }
    }
}

/// Returns `supply` with `each` steps drawn for an answer, one at least.
fn counted<S: Supply>(shared: Shared<'_>, supply: S, each: usize) -> Counted<'_, S> {
    let each = (each as u64).max(1);
    Counted { supply, shared, each }
}

/// Returns the longest time for which others keep `slot` waiting, from when it becomes ready to when it has
/// nothing left to do, if its budget lasts. [`Ticks::MAX`] if that may be for ever, or if there is no need to
/// know.
pub(super) fn slot_delay(policy: &PolicyModel, shared: Shared, slot: usize) -> Ticks {
    let PolicyModel::FixedPriority(parameters) = policy else {
        return Ticks::MAX;
    };
    let delays = SHARINGS.map(|sharing| {
        let level = Level {
            group: SlotSet(u32::MAX),
            quantum: parameters.quantum,
            sharing,
            has_servers: true,
        };
        let whole = Whole {
            lost: 0,
            overheads: shared.overheads,
        };
        let supply = PrioritySupply::new(shared, slot, level, whole);
        supply.map_or(Ticks::MAX, |supply| supply.longest_delay())
    });
    delays.into_iter().min().unwrap_or(Ticks::MAX)
}

/// Returns the supply that a schedule gives the partition of `slot`.
fn windows<'a>(
    shared: &Shared,
    slot: usize,
    parameters: &Arinc653Parameters<'a>,
    schedule: u8,
) -> Option<WindowSupply<'a>> {
    let schedule = parameters.schedules.get(usize::from(schedule))?;
    WindowSupply::new(shared, slot, parameters.windows, *schedule)
}

const SHARINGS: [Sharing; 2] = [Sharing::Demand, Sharing::Turns];

/// Returns the better of the bounds that each of `supplies` gives.
fn best<S: Supply, const N: usize>(
    demand: &Demand,
    shared: Shared,
    supplies: [Option<S>; N],
    results: &mut [Bound],
) {
    results.fill(Err(Miss::Late(Ticks::MAX)));
    for supply in supplies.into_iter().flatten() {
        let mut others = [Err(Miss::Late(Ticks::MAX)); MAX_TASKS];
        let Some(others) = others.get_mut(..demand.tasks.len()) else {
            return;
        };
        let supply = counted(shared, supply, demand.tasks.len());
        inner::bounds(demand, &supply, &shared.overheads, others);
        for (result, other) in results.iter_mut().zip(others) {
            *result = inner::better(*result, *other);
        }
    }
}
