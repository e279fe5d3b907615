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

use super::{Bound, Demand, HORIZON, Miss, Overheads, Supply, Task, TaskScheduler, fixed_point, requested};
use crate::Ticks;

/// Deadlines looked at before the test is given up.
const DEADLINES: u32 = 200_000;

/// Fills `results` with the bound of each task of `demand`, in its order. Not only the jobs
/// that count cost the hypervisor's time: so does each other release, in the time of whoever runs.
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
            let slack = least_slack(demand, supply, overheads);
            for (task, result) in demand.tasks.iter().zip(results) {
                *result = slack.map(|slack| task.deadline.saturating_sub(slack));
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

/// Returns how much earlier all deadlines could be.
fn least_slack(demand: &Demand, supply: &impl Supply, overheads: &Overheads) -> Result<Ticks, Miss> {
    let Some(busy) = fixed_point(1, HORIZON, |time| {
        let work = demand
            .requested(time, overheads.per_job())
            .saturating_add(supply.stolen(time));
        supply.time_for(work)
    }) else {
        return Err(Miss::NotConverged);
    };
    if busy > HORIZON {
        return Err(Miss::Late(Ticks::MAX));
    }
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

/// Returns the work of the jobs with release and deadline in an interval of this length.
fn due(demand: &Demand, interval: Ticks, per_job: Ticks) -> Ticks {
    demand.tasks.iter().fold(0, |sum: Ticks, task| {
        let jobs = interval.checked_sub(task.deadline).map_or(0, |rest| {
            rest.checked_div(task.period).unwrap_or(0).saturating_add(1)
        });
        sum.saturating_add(jobs.saturating_mul(task.wcet.saturating_add(per_job)))
    })
}
