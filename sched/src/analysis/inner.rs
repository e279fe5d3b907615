// SPDX-License-Identifier: Apache-2.0
//! The tasks of one vCPU against its supply: the second level of the hierarchy.
//!
//! **Fixed priorities.** The response of a task is the least `t` in which the supply does two kinds of work:
//! one job of the task, and everything more important that can be released in `t`. That bound is exact if the
//! supply is exact. The worst case is the common release, because a job that arrives later within the same
//! busy interval completes no later after its arrival.
//!
//! **Earliest deadline first.** In every interval the work of the jobs with release and deadline in it must
//! be supplied in time. Only ends at a deadline need a look, and only up to the length of the longest busy
//! interval. Suppose that all deadlines could then be earlier by some slack. The order of the jobs is the
//! same, so all jobs are complete that much earlier: the bound of a task is its deadline less the slack. (The
//! deadlines that count are the earlier ones, so the look goes beyond the busy interval by the slack.)
//!
//! The response of each task by itself is often shorter. Spuri, "Analysis of Deadline Scheduled Real-Time
//! Systems", 1996: a job is released at some *offset* in an interval in which the vCPU always has something
//! at least as urgent to do. The worst offsets are those at which its deadline coincides with another.

use super::{Bound, Demand, HORIZON, Miss, Overheads, Supply, Task, TaskScheduler, fixed_point, requested};
use crate::Ticks;

/// Deadlines looked at before the test is given up.
const DEADLINES: u32 = 200_000;

/// Offsets of a task that are looked at before only the slack counts.
const OFFSETS: Ticks = 400;

/// Fills `results` with the bound of each task of `demand`, in its order. Not only the jobs
/// that count cost the hypervisor's time: so does each other release, in the time of the vCPU that runs.
pub fn bounds(demand: &Demand, supply: &impl Supply, overheads: &Overheads, results: &mut [Bound]) {
    let is_bad =
        |task: &Task| task.period == 0 || task.deadline == 0 || task.deadline > task.period || task.wcet == 0;
    if demand.tasks.iter().any(is_bad) {
        results.fill(Err(Miss::BadTask));
        return;
    }
    match demand.scheduler {
        TaskScheduler::FixedPriority => {
            for (number, result) in results.iter_mut().enumerate() {
                *result = response(demand, number, supply, overheads);
            }
        }
        TaskScheduler::EarliestDeadline => {
            let busy = longest_busy(demand, supply, overheads);
            let slack = busy.and_then(|busy| least_slack(demand, supply, overheads, busy));
            for (task, result) in demand.tasks.iter().zip(results) {
                let by_slack = slack.map(|slack| task.deadline.saturating_sub(slack));
                let by_offset = busy.and_then(|busy| by_offset(demand, task, supply, overheads, busy));
                *result = better(by_offset, by_slack);
            }
        }
    }
}

fn response(demand: &Demand, number: usize, supply: &impl Supply, overheads: &Overheads) -> Bound {
    let Some(task) = demand.tasks.get(number) else {
        return Err(Miss::BadTask);
    };
    let above = || {
        demand
            .tasks
            .iter()
            .enumerate()
            .filter(|(other, another)| *other != number && another.priority >= task.priority)
            .map(|(_, another)| another)
    };
    let per_job = overheads.per_job();
    let own = task.wcet.saturating_add(per_job);
    let step = |time| {
        let work = own
            .saturating_add(requested(above(), time, per_job))
            .saturating_add(taken(demand, supply, overheads, time));
        supply.time_for(work)
    };
    match fixed_point(supply.time_for(own), task.deadline, step) {
        Some(time) if time > task.deadline => Err(Miss::Late(time)),
        Some(time) => Ok(time),
        None => Err(Miss::NotConverged),
    }
}

/// Returns the length of the longest interval in which there is always something to do.
fn longest_busy(demand: &Demand, supply: &impl Supply, overheads: &Overheads) -> Result<Ticks, Miss> {
    let step = |time| {
        let work = demand
            .requested(time, overheads.per_job())
            .saturating_add(supply.stolen(time));
        supply.time_for(work)
    };
    match fixed_point(1, HORIZON, step) {
        None => Err(Miss::NotConverged),
        Some(busy) if busy > HORIZON => Err(Miss::Late(Ticks::MAX)),
        Some(busy) => Ok(busy),
    }
}

/// Returns the longest response of `own` among all offsets that count.
fn by_offset(demand: &Demand, own: &Task, supply: &impl Supply, overheads: &Overheads, busy: Ticks) -> Bound {
    let count = demand.tasks.iter().fold(0, |sum: Ticks, task| {
        let times = busy.checked_div(task.period).unwrap_or(Ticks::MAX);
        sum.saturating_add(times).saturating_add(1)
    });
    if count > OFFSETS {
        return Err(Miss::NotConverged);
    }
    let mut longest = 0;
    for task in demand.tasks {
        let mut end = task.deadline;
        // As many as were counted.
        while end < own.deadline.saturating_add(busy) {
            if let Some(offset) = end.checked_sub(own.deadline) {
                longest = longest.max(at_offset(demand, own, offset, supply, overheads)?);
            }
            end = end.saturating_add(task.period.max(1));
        }
    }
    Ok(longest)
}

/// Returns the longest response of `own` if it is released at this offset.
fn at_offset(
    demand: &Demand,
    own: &Task,
    offset: Ticks,
    supply: &impl Supply,
    overheads: &Overheads,
) -> Bound {
    let end = offset.saturating_add(own.deadline);
    let per_job = overheads.per_job();
    let step = |time: Ticks| {
        let work = demand.tasks.iter().fold(0, |sum: Ticks, task| {
            let released = time.div_ceil(task.period.max(1));
            let urgent = jobs_due(task, end).min(released);
            sum.saturating_add(urgent.saturating_mul(task.wcet.saturating_add(per_job)))
        });
        supply.time_for(work.saturating_add(taken(demand, supply, overheads, time)))
    };
    let from = offset.saturating_add(1);
    match fixed_point(from, end, step) {
        None => Err(Miss::NotConverged),
        Some(time) if time > end => Err(Miss::Late(time.saturating_sub(offset))),
        Some(time) => Ok(time.saturating_sub(offset)),
    }
}

/// Returns how much earlier all deadlines could be.
fn least_slack(
    demand: &Demand,
    supply: &impl Supply,
    overheads: &Overheads,
    busy: Ticks,
) -> Result<Ticks, Miss> {
    let mut slack = demand
        .tasks
        .iter()
        .map(|task| task.deadline)
        .min()
        .unwrap_or(Ticks::MAX);
    let mut at = 0;
    for _ in 0..DEADLINES {
        let Some(deadline) = demand.tasks.iter().map(|task| next_deadline(task, at)).min() else {
            return Ok(slack);
        };
        at = deadline;
        if at.saturating_sub(slack) > busy {
            return Ok(slack);
        }
        let work = due(demand, at, overheads.per_job()).saturating_add(taken(demand, supply, overheads, at));
        let time = supply.time_for(work);
        let Some(spare) = at.checked_sub(time) else {
            return Err(Miss::Late(time));
        };
        slack = slack.min(spare);
    }
    Err(Miss::NotConverged)
}

/// Returns the time that the hypervisor takes in an interval of this length, other than for the jobs that
/// count.
fn taken(demand: &Demand, supply: &impl Supply, overheads: &Overheads, interval: Ticks) -> Ticks {
    demand.tasks.iter().fold(supply.stolen(interval), |sum, task| {
        let releases = interval.div_ceil(task.period.max(1));
        sum.saturating_add(releases.saturating_mul(overheads.arrival()))
    })
}

/// Returns the first deadline after `after` if a job is released at 0 and then as often as possible.
fn next_deadline(task: &Task, after: Ticks) -> Ticks {
    let Some(beyond) = after.checked_sub(task.deadline) else {
        return task.deadline;
    };
    let jobs = beyond.checked_div(task.period).unwrap_or(0).saturating_add(1);
    jobs.saturating_mul(task.period).saturating_add(task.deadline)
}

/// Returns the number of the task's jobs with release and deadline in an interval of this length.
fn jobs_due(task: &Task, interval: Ticks) -> Ticks {
    interval.checked_sub(task.deadline).map_or(0, |rest| {
        rest.checked_div(task.period).unwrap_or(0).saturating_add(1)
    })
}

/// Returns the work of the jobs with release and deadline in an interval of this length.
fn due(demand: &Demand, interval: Ticks, per_job: Ticks) -> Ticks {
    demand.tasks.iter().fold(0, |sum: Ticks, task| {
        let each = task.wcet.saturating_add(per_job);
        sum.saturating_add(jobs_due(task, interval).saturating_mul(each))
    })
}

/// Returns the better of two bounds: a bound rather than none, the lower one rather than the higher.
pub(super) fn better(one: Bound, other: Bound) -> Bound {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(one.min(other)),
        (Ok(bound), Err(_)) | (Err(_), Ok(bound)) => Ok(bound),
        (Err(Miss::Late(one)), Err(Miss::Late(other))) => Err(Miss::Late(one.min(other))),
        (Err(Miss::Late(_)), Err(miss)) | (Err(miss), Err(_)) => Err(miss),
    }
}
