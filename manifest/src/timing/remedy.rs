// SPDX-License-Identifier: Apache-2.0
//! The smallest change with which a vCPU would pass. It is found by trying.
//!
//! Each kind of change is one number. The vCPU's tasks, and all tasks that are in time already, have to be in
//! time with the new value. The least such value is found in two steps: some places in the range are tried,
//! and then the values between the first place that is enough and the place before it. A change counts only
//! if exactly the proposed value was tried. Kinds of changes that take nothing from others come first.
//!
//! A trial is an analysis of the pCPU, and may take long. So the search has a limit of [`Steps`], which count
//! what the analysis looks at.

use bulkhead_sched::analysis::{Steps, Task};
use bulkhead_sched::{Server, ServerKind, Window};

use super::{NamedTask, PcpuTiming};
use crate::model::Policy;
use crate::rules::BUDGET;
use crate::units::format_duration;

/// Times are tried in multiples of this step.
const STEP: u64 = 10_000;

/// Number of places in a range that are tried before the least value is looked for between two of them.
const GRID: u64 = 64;

/// No shorter budget is proposed: the manifest takes none.
const LEAST_BUDGET: u64 = *BUDGET.start();

/// A kind of change: its name, and the search for the least that is enough.
type Candidate = (&'static str, fn(&Goal) -> Option<String>);

/// Tells what would make the vCPU in `slot` pass, and all others that do already. If that takes too many
/// steps, tells what was not looked for. `late` are all slots that do not pass.
pub(super) fn find(pcpu: &PcpuTiming, slot: usize, late: &[usize], steps: &Steps) -> Option<String> {
    let less_work: Candidate = ("less work", less_work);
    let declarations: Candidate = ("the demand of others", declarations);
    let more_budget: Candidate = ("a longer budget", more_budget);
    let higher_priority: Candidate = ("a higher priority", higher_priority);
    let candidates: &[Candidate] = match pcpu.policy {
        Policy::Pinned | Policy::Own => &[less_work],
        Policy::FixedPriority => &[declarations, more_budget, higher_priority, less_work],
        Policy::Edf => &[
            ("a budget", a_budget),
            declarations,
            more_budget,
            ("a shorter budget", less_budget),
            less_work,
        ],
        Policy::Arinc653 => &[
            ("another offset of a window", other_offset),
            ("a longer window", longer_window),
            higher_priority,
            less_work,
        ],
        Policy::Domains => &[
            ("a larger time domain", larger_domain),
            higher_priority,
            less_work,
        ],
    };
    let goal = Goal {
        pcpu,
        slot,
        late: late.iter().copied().filter(|late| *late != slot).collect(),
        steps,
    };
    for (number, (_, candidate)) in candidates.iter().enumerate() {
        let found = candidate(&goal);
        let is_given_up = steps.left() == 0;
        if let Some(found) = found {
            let note = " (the search was given up: less may do)";
            return Some(found + if is_given_up { note } else { "" });
        }
        if is_given_up {
            let names: Vec<&str> = candidates[number..].iter().map(|(name, _)| *name).collect();
            return Some(format!(
                "the search for a change that is enough took too long and was given up; it is left to try: {}",
                names.join(", ")
            ));
        }
    }
    None
}

/// The goal of a change.
struct Goal<'a> {
    pcpu: &'a PcpuTiming,
    slot: usize,
    /// Slots of other vCPUs that are late, and may stay so.
    late: Vec<usize>,
    /// The limit of the search.
    steps: &'a Steps,
}

impl Goal<'_> {
    /// Tells whether the pCPU with this change meets the goal.
    fn is_met(&self, change: impl Fn(&mut PcpuTiming)) -> bool {
        // A search that has steps left at the end has not met any refusal for the lack of steps.
        if !self.steps.draw(self.size()) {
            return false;
        }
        let mut changed = self.pcpu.clone();
        change(&mut changed);
        changed.are_in_time(Some(self.slot), &self.late, Some(self.steps))
    }

    /// Returns the steps that a copy of the pCPU counts as.
    fn size(&self) -> u64 {
        let vcpus = &self.pcpu.vcpus;
        let tasks: usize = vcpus.iter().map(|vcpu| vcpu.tasks.iter().flatten().count()).sum();
        (vcpus.len() + tasks + self.pcpu.windows.len()) as u64
    }

    /// Returns the value nearest to `near` that is enough, in steps. `far` is enough, and `near` is not.
    fn nearest(&self, far: u64, near: u64, change: impl Fn(&mut PcpuTiming, u64)) -> u64 {
        let is_met = |value| self.is_met(|pcpu| change(pcpu, value));
        let (mut enough, mut not) = (far, near);
        while enough.abs_diff(not) > STEP {
            let middle = enough.min(not) + enough.abs_diff(not) / 2;
            if is_met(middle) {
                enough = middle;
            } else {
                not = middle;
            }
        }
        let rounded = if enough > not {
            enough.div_ceil(STEP) * STEP
        } else {
            enough / STEP * STEP
        };
        let mut best = if is_met(rounded) { rounded } else { enough };
        // More is not always better: a value that rounds up to one more job or turn can be worse.
        for _ in 0..GRID {
            let nearer = if best > near {
                best.saturating_sub(STEP)
            } else {
                best.saturating_add(STEP)
            };
            if best.abs_diff(near) <= STEP || !is_met(nearer) {
                break;
            }
            best = nearer;
        }
        best
    }

    /// Returns the least value from `low` to `high` that is enough; `None` if no value is.
    fn least(&self, low: u64, high: u64, change: impl Fn(&mut PcpuTiming, u64)) -> Option<u64> {
        let at = |part: u64| {
            low + u64::try_from(u128::from(high - low) * u128::from(part) / u128::from(GRID)).unwrap_or(0)
        };
        let first = (1..=GRID).find(|part| self.is_met(|pcpu| change(pcpu, at(*part))))?;
        Some(self.nearest(at(first), at(first - 1), change))
    }

    /// Returns the greatest value from `low` to below `now` that is enough; `None` if no value is.
    fn greatest_below(&self, now: u64, low: u64, change: impl Fn(&mut PcpuTiming, u64)) -> Option<u64> {
        let room = now.checked_sub(low).filter(|room| *room > 0)?;
        let at = |part: u64| {
            low + u64::try_from(u128::from(room) * u128::from(GRID - part) / u128::from(GRID)).unwrap_or(0)
        };
        let first = (1..=GRID).find(|part| self.is_met(|pcpu| change(pcpu, at(*part))))?;
        Some(self.nearest(at(first), at(first - 1), change))
    }

    fn name(&self) -> &str {
        &self.pcpu.vcpus[self.slot].name
    }

    /// Returns the end of a sentence that begins with the change.
    fn result(&self) -> String {
        if self.late.is_empty() {
            format!("all tasks of pCPU {} would be in time", self.pcpu.number)
        } else {
            format!("the tasks of `{}` would be in time", self.name())
        }
    }
}

fn more_budget(goal: &Goal) -> Option<String> {
    let vcpu = &goal.pcpu.vcpus[goal.slot];
    let server = vcpu.parameters.server?;
    let set = |pcpu: &mut PcpuTiming, budget| {
        pcpu.vcpus[goal.slot].parameters.server = Some(Server { budget, ..server });
    };
    let most = match vcpu.parameters.deadline {
        0 => server.period,
        deadline => deadline,
    };
    let budget = goal.least(server.budget, most.max(server.budget), set)?;
    Some(format!(
        "with budget = \"{}\" (now {}) for `{}` {}",
        format_duration(budget),
        format_duration(server.budget),
        goal.name(),
        goal.result(),
    ))
}

/// Proposes a budget in the shortest of the vCPU's periods. Under `edf` a vCPU without a budget is promised
/// nothing.
fn a_budget(goal: &Goal) -> Option<String> {
    let vcpu = &goal.pcpu.vcpus[goal.slot];
    if vcpu.parameters.server.is_some() {
        return None;
    }
    let period = vcpu.tasks.iter().flatten().map(|named| named.task.period).min()?;
    let set = |pcpu: &mut PcpuTiming, budget| {
        let kind = ServerKind::ConstantBandwidth;
        pcpu.vcpus[goal.slot].parameters.server = Some(Server { budget, period, kind });
    };
    let below = LEAST_BUDGET.saturating_sub(1);
    let budget = goal.least(below, period.max(below), set)?;
    Some(format!(
        "with budget = \"{}\", period = \"{}\" (now none) for `{}` {}",
        format_duration(budget),
        format_duration(period),
        goal.name(),
        goal.result(),
    ))
}

/// Proposes a smaller budget, of the vCPU or of another one. Budgets that leave nothing for the hypervisor
/// help no vCPU.
fn less_budget(goal: &Goal) -> Option<String> {
    let others = (0..goal.pcpu.vcpus.len()).filter(|slot| *slot != goal.slot);
    std::iter::once(goal.slot).chain(others).find_map(|slot| {
        let vcpu = &goal.pcpu.vcpus[slot];
        let server = vcpu.parameters.server?;
        let budget = goal.greatest_below(server.budget, LEAST_BUDGET, |pcpu, budget| {
            pcpu.vcpus[slot].parameters.server = Some(Server { budget, ..server });
        })?;
        Some(format!(
            "with budget = \"{}\" (now {}) for `{}`, which leaves the hypervisor room, {}",
            format_duration(budget),
            format_duration(server.budget),
            vcpu.name,
            goal.result(),
        ))
    })
}

/// Proposes that the other vCPUs declare their demands, if that would help: one job per budget for each.
fn declarations(goal: &Goal) -> Option<String> {
    let pcpu = goal.pcpu;
    let place = pcpu.vcpus[goal.slot].tasks.as_ref()?.first()?.place;
    let mut changed = pcpu.clone();
    let mut names = Vec::new();
    for vcpu in changed.vcpus.iter_mut().filter(|vcpu| vcpu.tasks.is_none()) {
        let Some(server) = vcpu.parameters.server else {
            continue;
        };
        let task = Task {
            period: server.period,
            wcet: server.budget,
            deadline: server.period,
            priority: 0,
        };
        names.push(format!("`{}`", vcpu.name));
        vcpu.tasks = Some(vec![NamedTask {
            name: String::new(),
            task,
            waits: 0,
            place,
        }]);
    }
    // It does not matter whether the other vCPUs would be in time themselves.
    let is_other = |slot: usize| pcpu.vcpus[slot].tasks.is_none() || goal.late.contains(&slot);
    let verdicts = changed.verdicts_within(Some(goal.steps));
    let passes = verdicts
        .iter()
        .all(|verdict| verdict.bound.is_ok() || is_other(verdict.slot));
    (passes && !names.is_empty()).then(|| {
        format!(
            "declare the demand of {}: as it is, the analysis has to take {} to come and go as fast as can be, at your expense",
            names.join(", "),
            if names.len() == 1 { "it" } else { "them" },
        )
    })
}

fn higher_priority(goal: &Goal) -> Option<String> {
    let now = goal.pcpu.vcpus[goal.slot].parameters.priority;
    let priority = (now + 1..32)
        .find(|priority| goal.is_met(|changed| changed.vcpus[goal.slot].parameters.priority = *priority))?;
    Some(format!(
        "with priority = {priority} (now {now}) for `{}` {}",
        goal.name(),
        goal.result(),
    ))
}

fn larger_domain(goal: &Goal) -> Option<String> {
    let domain = usize::from(goal.pcpu.vcpus[goal.slot].parameters.domain);
    let now = goal.pcpu.domains.get(domain)?.budget;
    let set = |pcpu: &mut PcpuTiming, budget| pcpu.domains[domain].budget = budget;
    let budget = goal.least(now, now.saturating_mul(16), set)?;
    Some(format!(
        "with budget = \"{}\" (now {}) for the time domain of `{}` {}",
        format_duration(budget),
        format_duration(now),
        goal.name(),
        goal.result(),
    ))
}

/// Returns the windows of `slot`, each with the beginning and the end of the free time around the window.
fn windows_of(pcpu: &PcpuTiming, slot: usize) -> Vec<(usize, u64, u64)> {
    let mut found = Vec::new();
    for schedule in &pcpu.schedules {
        let first = usize::from(schedule.first_window);
        let end = first + usize::from(schedule.window_count);
        for number in first..end {
            if pcpu.windows[number].slots.0 >> slot & 1 == 0 {
                continue;
            }
            let before = (first < number).then(|| &pcpu.windows[number - 1]);
            let after = (number + 1 < end).then(|| pcpu.windows[number + 1].offset);
            let free_from = before.map_or(0, |window| window.offset + window.duration);
            found.push((number, free_from, after.unwrap_or(schedule.frame)));
        }
    }
    found
}

fn longer_window(goal: &Goal) -> Option<String> {
    let mut best: Option<(u64, Window, Window)> = None;
    for (number, free_from, free_to) in windows_of(goal.pcpu, goal.slot) {
        let now = goal.pcpu.windows[number];
        // First the time after the window, then also the time in front of the window.
        let set = |pcpu: &mut PcpuTiming, duration: u64| {
            let offset = now.offset.min(free_to.saturating_sub(duration)).max(free_from);
            pcpu.windows[number].offset = offset;
            pcpu.windows[number].duration = duration.min(free_to - offset);
        };
        let Some(duration) = goal.least(now.duration, free_to - free_from, set) else {
            continue;
        };
        let mut changed = goal.pcpu.clone();
        set(&mut changed, duration);
        let more = duration - now.duration;
        if best.is_none_or(|(least, ..)| more < least) {
            best = Some((more, now, changed.windows[number]));
        }
    }
    let (_, now, new) = best?;
    Some(format!(
        "with its window at {} changed to offset = \"{}\", duration = \"{}\" (now {}) {}",
        format_duration(now.offset),
        format_duration(new.offset),
        format_duration(new.duration),
        format_duration(now.duration),
        goal.result(),
    ))
}

fn other_offset(goal: &Goal) -> Option<String> {
    let mut best: Option<(u64, u64, u64)> = None;
    for (number, free_from, free_to) in windows_of(goal.pcpu, goal.slot) {
        let now = goal.pcpu.windows[number];
        let set = |pcpu: &mut PcpuTiming, offset| pcpu.windows[number].offset = offset;
        let room = free_to.saturating_sub(free_from).saturating_sub(now.duration);
        for step in 0..=GRID {
            let offset = free_from + (room * step / GRID) / STEP * STEP;
            let is_nearer = best.is_none_or(|(least, ..)| offset.abs_diff(now.offset) < least);
            if is_nearer && goal.is_met(|pcpu| set(pcpu, offset)) {
                let nearest = goal.nearest(offset, now.offset, set);
                best = Some((nearest.abs_diff(now.offset), now.offset, nearest));
            }
        }
    }
    let (_, now, new) = best?;
    Some(format!(
        "with its window at {} moved to offset = \"{}\" {}",
        format_duration(now),
        format_duration(new),
        goal.result(),
    ))
}

/// Proposes a percentage to which the tasks' execution times would have to be reduced.
fn less_work(goal: &Goal) -> Option<String> {
    let part = (1..100).rev().find(|part| {
        goal.is_met(|changed| {
            for named in changed.vcpus[goal.slot].tasks.iter_mut().flatten() {
                named.task.wcet = (named.task.wcet * part / 100).max(1);
            }
        })
    })?;
    Some(format!(
        "if the tasks of `{}` took {part} % of what they declare, {}",
        goal.name(),
        goal.result(),
    ))
}
