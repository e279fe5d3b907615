// SPDX-License-Identifier: Apache-2.0
//! `bulkhead simulate`: the policies' very code on a virtual clock, with the workloads of the manifest.
//!
//! pCPUs decide independently, so each is simulated alone. Their actions become the records of a trace. The
//! drawing of such a trace is the same as for a board's trace.

use super::SimulateArgs;
use super::timing::time;
use crate::build::output::Output;
use crate::build::policies::Policies;
use crate::build::prepare;
use crate::build::tables::table;
use crate::gantt::jobs::Task;
use crate::gantt::{self, Chart, Lane};
use crate::json;
use crate::log::never_ran::NeverRan;
use crate::problem::{Code, Problem};
use crate::trace::{Trace, TraceVcpu};
use crate::ui::progress::Progress;
use bulkhead_abi::trace::{BlockReason, Event as TraceEvent, Record, SwitchReason};
use bulkhead_manifest::timing::{self, PcpuTiming};
use bulkhead_manifest::{Policy, System};
use bulkhead_sched::simulate::{Event, Observer, Pattern, Simulator, Source, SourceState, Statistics};
use bulkhead_sched::{Slot, StopReason};
use comfy_table::Table;
use serde_json::{Value, json};
use std::path::Path;

/// Records kept for the chart and the trace, per pCPU. Later events are in the tables only, and their number
/// is the last record.
const RECORDS_MAX: usize = 50_000;
/// Jobs and stretches of work kept for the chart, per pCPU.
const JOBS_KEPT_MAX: usize = 100_000;
/// Jobs of a simulation, per pCPU: more would take hours.
const JOBS_MAX: u64 = 20_000_000;
/// Steps of a simulation, per pCPU, after which the simulation is given up: its policy never lets time pass.
const STEPS_MAX: u64 = 500_000_000;

/// Nanoseconds per second: the simulator counts nanoseconds.
const HERTZ: u64 = 1_000_000_000;

/// The result of one pCPU.
struct Outcome {
    pcpu: PcpuTiming,
    /// Per source, in the order of the vCPUs.
    statistics: Vec<Statistics>,
    /// Per slot.
    ran: Vec<u64>,
    /// Per slot: when it had work first.
    ready: Vec<Option<u64>>,
    records: Vec<Record>,
    /// Records that were not kept.
    lost: u64,
    /// The tasks with their jobs, for the chart.
    tasks: Vec<Task>,
}

impl Outcome {
    /// Returns the vCPUs that had work before `end` and never ran.
    fn never_ran(&self, end: u64) -> impl Iterator<Item = NeverRan> {
        let vcpus = self.pcpu.vcpus.iter().zip(&self.ran).zip(&self.ready);
        let waiting = vcpus.filter(move |((_, ran), ready)| **ran == 0 && ready.is_some_and(|at| at < end));
        waiting.map(move |((vcpu, _), ready)| {
            let shares = self.pcpu.vcpus.iter().zip(&self.ran);
            let mut had: Vec<_> = shares.map(|(vcpu, ran)| (vcpu.name.clone(), *ran)).collect();
            had.push(("nobody".to_owned(), end.saturating_sub(self.ran.iter().sum())));
            NeverRan::new(vcpu.name.clone(), *ready, self.pcpu.number, had, end)
        })
    }

    fn kept(&self, end: u64) -> Vec<Record> {
        kept(&self.records, self.lost, self.pcpu.number as u8, end)
    }
}

/// Records the events of the simulation.
struct Recorder<'a> {
    pcpu: &'a PcpuTiming,
    sources: &'a [Source],
    records: Vec<Record>,
    lost: u64,
    /// Per source: its jobs.
    tasks: Vec<Task>,
    /// The number of jobs, and of stretches of work, that are kept.
    kept: usize,
}

impl Recorder<'_> {
    /// Keeps an event of a job for the chart.
    fn job(&mut self, now: u64, number: usize, event: &Event) {
        let is_full = self.is_full();
        let (Some(source), Some(task)) = (self.sources.get(number), self.tasks.get_mut(number)) else {
            return;
        };
        match event {
            // A job that is always ready has no release and no deadline.
            Event::Released(_) if !matches!(source.pattern, Pattern::AlwaysReady) && !is_full => {
                task.release(now, Some(now.saturating_add(source.task.deadline)));
            }
            Event::Worked(_, passed) if !is_full => task.work(*passed, now),
            Event::Completed(..) => return task.complete(now),
            Event::Released(_) | Event::Worked(..) if is_full => {
                self.lost += 1;
                return;
            }
            _ => return,
        }
        self.kept += 1;
    }

    /// Tells whether no more is kept, neither records nor jobs, so that both end at the same time.
    const fn is_full(&self) -> bool {
        self.records.len() >= RECORDS_MAX || self.kept >= JOBS_KEPT_MAX
    }

    fn vcpu(&self, slot: Slot) -> u8 {
        self.pcpu
            .vcpus
            .get(usize::from(slot.0))
            .map_or(0, |vcpu| vcpu.number)
    }
}

impl Observer for Recorder<'_> {
    fn event(&mut self, now: u64, event: Event) {
        let event = match event {
            Event::Woken(slot) => TraceEvent::Wake {
                vcpu: self.vcpu(slot),
                late: 0,
            },
            Event::Blocked(slot) => TraceEvent::Block {
                vcpu: self.vcpu(slot),
                why: BlockReason::Idle,
            },
            Event::Switched { from, to, why } => TraceEvent::Switch {
                from: from.map(|slot| self.vcpu(slot)),
                to: to.map(|slot| self.vcpu(slot)),
                why: match (from, why) {
                    (None, _) => SwitchReason::Idle,
                    (_, StopReason::Blocked) => SwitchReason::Blocked,
                    (_, StopReason::Preempted | StopReason::Yielded) => SwitchReason::Preempted,
                },
            },
            Event::Critical(slot) => TraceEvent::Critical {
                vcpu: self.vcpu(slot),
            },
            Event::Exhausted(slot) => TraceEvent::Exhausted {
                vcpu: self.vcpu(slot),
            },
            Event::Replenished(slot) => TraceEvent::Replenished {
                vcpu: self.vcpu(slot),
            },
            Event::WindowStarted(slot) => TraceEvent::WindowStart {
                vcpu: self.vcpu(slot),
            },
            Event::PeriodStarted(slot) => TraceEvent::PeriodStart {
                vcpu: self.vcpu(slot),
            },
            Event::ScheduleChanged(schedule) => TraceEvent::Schedule { schedule },
            Event::Missed(source) | Event::Dropped(source) => match self.sources.get(source) {
                Some(source) => TraceEvent::DeadlineMissed {
                    vcpu: self.vcpu(source.slot),
                },
                None => return,
            },
            Event::Released(number) | Event::Completed(number, _) | Event::Worked(number, _) => {
                return self.job(now, number, &event);
            }
        };
        if self.is_full() {
            self.lost += 1;
            return;
        }
        let pcpu = self.pcpu.number as u8;
        self.records.push(Record {
            time: now,
            pcpu,
            event,
        });
    }
}

pub(super) fn run(args: &SimulateArgs) -> Result<Code, Problem> {
    let inputs = prepare::inputs(&args.system);
    let (html, recorded) = Output::claim_both(args.html.as_deref(), args.trace.as_deref(), &inputs)?;
    let progress = Progress::new();
    let system = prepare::check(&args.system, &progress)?;
    let folder = args.system.parent().unwrap_or(Path::new(""));
    let policies = Policies::of(&system, folder, &progress)?;
    drop(progress);
    let end = (args.duration * HERTZ as f64) as u64;
    let outcomes = timing::pcpus(&system)
        .into_iter()
        .map(|pcpu| simulate(pcpu, &policies, args, end))
        .collect::<Result<Vec<_>, _>>()?;
    let missed: u64 = outcomes
        .iter()
        .flat_map(|outcome| &outcome.statistics)
        .map(|statistics| statistics.missed)
        .sum();
    let is_drawn = html.is_some() || recorded.is_some();
    if let Some(output) = html {
        output.write(gantt::page(&chart(&system, &outcomes, args)))?;
    }
    if let Some(output) = recorded {
        output.write(trace(&system, &outcomes).encode())?;
    }
    if args.json {
        super::print(&json::document("simulate", body(&outcomes, args, end, missed)))?;
    } else {
        let mut text = text(&outcomes, end, missed);
        if is_drawn && let Some(fragment) = fragment(&outcomes, end) {
            text.push_str(&format!("The {fragment}.\n"));
        }
        super::print(&text)?;
    }
    Ok(if missed == 0 { Code::Done } else { Code::Fault })
}

/// Returns the tables.
fn text(outcomes: &[Outcome], end: u64, missed: u64) -> String {
    let mut text = String::new();
    let sections = [
        ("Utilisation", utilisation(outcomes, end)),
        ("Responses", responses(outcomes)),
    ];
    for (title, table) in sections {
        text.push_str(&format!("{title}\n"));
        for line in table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push('\n');
    }
    for vcpu in outcomes.iter().flat_map(|outcome| outcome.never_ran(end)) {
        text.push_str(&format!("{vcpu}\n"));
    }
    text.push_str(&format!(
        "{} simulated, {missed} deadline{} missed.\n",
        time(end),
        if missed == 1 { "" } else { "s" }
    ));
    text
}

/// Returns the keys of the document for programs.
fn body(outcomes: &[Outcome], args: &SimulateArgs, end: u64, missed: u64) -> Value {
    let shares = outcomes.iter().flat_map(|outcome| {
        let vcpus = outcome.pcpu.vcpus.iter().zip(&outcome.ran);
        vcpus.map(|(vcpu, ran)| json!({ "pcpu": outcome.pcpu.number, "vcpu": vcpu.name, "ran_ns": ran }))
    });
    let work = outcomes.iter().flat_map(works).map(|work| {
        json!({
            "vcpu": work.vcpu,
            "work": work.name,
            "jobs": work.seen.completed,
            "missed": work.seen.missed,
            "fastest_ns": work.seen.shortest,
            "mean_ns": work.mean(),
            "slowest_ns": work.seen.longest,
            "deadline_ns": work.deadline,
            "bound_ns": work.bound,
        })
    });
    let never_ran = outcomes.iter().flat_map(|outcome| outcome.never_ran(end));
    let never_ran = never_ran.map(|found| found.json());
    json!({
        "manifest": args.system.display().to_string(),
        "duration_ns": end,
        "seed": args.seed,
        "missed": missed,
        "shares": shares.collect::<Vec<_>>(),
        "work": work.collect::<Vec<_>>(),
        "never_ran": never_ran.collect::<Vec<_>>(),
    })
}

fn simulate(
    pcpu: PcpuTiming,
    policies: &Policies,
    args: &SimulateArgs,
    end: u64,
) -> Result<Outcome, Problem> {
    let schedule = match &args.schedule {
        Some(name) if pcpu.policy == Policy::Arinc653 => {
            let found = pcpu.schedule_names.iter().position(|known| known == name);
            found.ok_or_else(|| {
                Problem::usage(format!("pCPU {} has no schedule `{name}`", pcpu.number))
                    .remedy(format!("its schedules: {}", pcpu.schedule_names.join(", ")))
            })?
        }
        _ => 0,
    };
    let policy = policies.policy(&pcpu, schedule as u8)?;
    let sources = sources_of(&pcpu, schedule as u8);
    let jobs = jobs(&sources, end);
    if jobs > JOBS_MAX {
        let (number, duration) = (pcpu.number, time(end));
        return Err(Problem::new(format!(
            "{duration} of pCPU {number} are about {jobs} jobs, more than the {JOBS_MAX} that can be simulated"
        ))
        .remedy("simulate a shorter time with --duration, or give longer periods"));
    }
    let mut states = vec![SourceState::default(); sources.len()];
    let mut recorder = Recorder {
        pcpu: &pcpu,
        sources: &sources,
        records: Vec::new(),
        lost: 0,
        tasks: pcpu
            .vcpus
            .iter()
            .flat_map(|vcpu| {
                let names = vcpu.sources.iter().map(|(name, _)| name);
                names.map(|name| Task::new(name.clone(), vcpu.number))
            })
            .collect(),
        kept: 0,
    };
    let seed = args.seed.wrapping_add(u64::from(pcpu.number));
    let mut simulator = Simulator::new(policy, &sources, &mut states, pcpu.overheads, seed);
    for (slot, vcpu) in (0..).map(Slot).zip(&pcpu.vcpus) {
        simulator.set_scheduler(slot, vcpu.scheduler);
    }
    let is_done = simulator.run(end, STEPS_MAX, &mut recorder);
    policies.check()?;
    if !is_done {
        return Err(
            Problem::new(format!("pCPU {}: the simulation takes too long", pcpu.number))
                .remedy("simulate a shorter time with --duration"),
        );
    }
    let ran = (0..pcpu.vcpus.len() as u8)
        .map(|slot| simulator.ran(Slot(slot)))
        .collect();
    let ready = (0..pcpu.vcpus.len() as u8)
        .map(|slot| first_work(&sources, Slot(slot)))
        .collect();
    let (records, lost, tasks) = (recorder.records, recorder.lost, recorder.tasks);
    let statistics = states.iter().map(|state| state.statistics).collect();
    Ok(Outcome {
        statistics,
        ran,
        ready,
        records,
        lost,
        tasks,
        pcpu,
    })
}

/// Returns the time at which a slot has work first.
fn first_work(sources: &[Source], slot: Slot) -> Option<u64> {
    let own = sources.iter().filter(|source| source.slot == slot);
    let first = own.map(|source| source.first).min();
    first.filter(|first| *first != u64::MAX)
}

/// Returns the work of the vCPUs of a pCPU for a schedule. Work that the schedule does not serve never comes.
fn sources_of(pcpu: &PcpuTiming, schedule: u8) -> Vec<Source> {
    let vcpus = pcpu.vcpus.iter().enumerate();
    let all = vcpus.flat_map(|(slot, vcpu)| {
        let is_wanted = pcpu.has_to_serve(slot, schedule);
        vcpu.sources.iter().map(move |(_, source)| Source {
            first: if is_wanted { source.first } else { u64::MAX },
            ..*source
        })
    });
    all.collect()
}

/// Returns the most jobs that these sources release up to `end`.
fn jobs(sources: &[Source], end: u64) -> u64 {
    let of_source = |source: &Source| {
        let at_once = match source.pattern {
            Pattern::AlwaysReady => return 0,
            Pattern::Burst(count) => u64::from(count),
            Pattern::Periodic | Pattern::Sporadic(_) | Pattern::Answered => 1,
        };
        let releases = end.saturating_sub(source.first) / source.task.period.max(1);
        releases.saturating_mul(at_once)
    };
    sources.iter().map(of_source).fold(0, u64::saturating_add)
}

fn utilisation(outcomes: &[Outcome], end: u64) -> Table {
    let mut rows = table(&["pCPU", "policy", "vCPU", "ran", "share"]);
    for outcome in outcomes {
        let mut add = |name: &str, ran: u64| {
            rows.add_row([
                outcome.pcpu.number.to_string(),
                outcome.pcpu.policy_name().to_owned(),
                name.to_owned(),
                time(ran),
                format!("{:.2} %", ran as f64 * 100.0 / end.max(1) as f64),
            ]);
        };
        for (vcpu, ran) in outcome.pcpu.vcpus.iter().zip(&outcome.ran) {
            add(&vcpu.name, *ran);
        }
        let all: u64 = outcome.ran.iter().sum();
        add("nobody", end.saturating_sub(all));
    }
    rows
}

/// The responses of one source of work.
struct Work<'a> {
    vcpu: &'a str,
    name: &'a str,
    seen: &'a Statistics,
    deadline: u64,
    bound: Option<u64>,
}

impl Work<'_> {
    fn mean(&self) -> u64 {
        self.seen.total.checked_div(self.seen.completed).unwrap_or(0)
    }
}

/// Returns the work on a pCPU. Work that is always ready has no responses.
fn works(outcome: &Outcome) -> Vec<Work<'_>> {
    let verdicts = outcome.pcpu.verdicts();
    let mut statistics = outcome.statistics.iter();
    let mut works = Vec::new();
    for (slot, vcpu) in outcome.pcpu.vcpus.iter().enumerate() {
        for (name, source) in &vcpu.sources {
            let Some(seen) = statistics.next() else { continue };
            if name == "always-ready" {
                continue;
            }
            let declared = verdicts
                .iter()
                .find(|verdict| verdict.slot == slot && verdict.task.name == *name);
            works.push(Work {
                vcpu: &vcpu.name,
                name,
                seen,
                deadline: source.task.deadline,
                bound: declared.and_then(|verdict| verdict.bound.ok()),
            });
        }
    }
    works
}

fn responses(outcomes: &[Outcome]) -> Table {
    let mut rows = table(&[
        "vCPU", "work", "jobs", "missed", "fastest", "mean", "slowest", "deadline", "bound",
    ]);
    for work in outcomes.iter().flat_map(works) {
        rows.add_row([
            work.vcpu.to_owned(),
            work.name.to_owned(),
            work.seen.completed.to_string(),
            work.seen.missed.to_string(),
            time(work.seen.shortest),
            time(work.mean()),
            time(work.seen.longest),
            time(work.deadline),
            work.bound.map_or_else(|| "-".to_owned(), time),
        ]);
    }
    rows
}

/// Returns the first part of the simulation as a trace.
fn trace(system: &System, outcomes: &[Outcome]) -> Trace {
    let mut vcpus: Vec<(u8, TraceVcpu)> = outcomes
        .iter()
        .flat_map(|outcome| {
            outcome.pcpu.vcpus.iter().map(|vcpu| {
                let traced = TraceVcpu {
                    partition: vcpu.partition as u8,
                    index: vcpu.index as u8,
                    pcpu: outcome.pcpu.number as u8,
                };
                (vcpu.number, traced)
            })
        })
        .collect();
    vcpus.sort_by_key(|(number, _)| *number);
    let end = complete(outcomes);
    let mut records: Vec<Record> = outcomes.iter().flat_map(|outcome| outcome.kept(end)).collect();
    records.sort_by_key(|record| record.time);
    Trace {
        board: system.board().name.clone(),
        hertz: HERTZ,
        origin: 0,
        pcpus: outcomes.len() as u8,
        partitions: system
            .partitions()
            .iter()
            .map(|partition| partition.name().to_owned())
            .collect(),
        vcpus: vcpus.into_iter().map(|(_, vcpu)| vcpu).collect(),
        exits: Vec::new(),
        records,
    }
}

/// Returns the time up to which the records of all pCPUs are complete.
fn complete(outcomes: &[Outcome]) -> u64 {
    let cut = outcomes.iter().filter(|outcome| outcome.lost != 0);
    let last = cut.filter_map(|outcome| outcome.records.last());
    last.map(|record| record.time).min().unwrap_or(u64::MAX)
}

/// Returns the records of a pCPU up to `end`. If there are later ones or `lost` ones, their number follows.
fn kept(records: &[Record], lost: u64, pcpu: u8, end: u64) -> Vec<Record> {
    let mut kept = records.to_vec();
    kept.retain(|record| record.time <= end);
    let lost = lost + (records.len() - kept.len()) as u64;
    if lost != 0 {
        kept.push(Record {
            time: end,
            pcpu,
            event: TraceEvent::Lost {
                count: u32::try_from(lost).unwrap_or(u32::MAX),
            },
        });
    }
    kept
}

/// Says which part of the simulation the chart and the trace hold, if they do not hold all.
fn fragment(outcomes: &[Outcome], end: u64) -> Option<String> {
    let part = complete(outcomes);
    (part < end).then(|| {
        format!(
            "chart and trace end at {} of {}: a pCPU has more than {RECORDS_MAX} records",
            time(part),
            time(end)
        )
    })
}

/// Returns the first part of the simulation as a chart.
fn chart(system: &System, outcomes: &[Outcome], args: &SimulateArgs) -> Chart {
    let mut lanes: Vec<Lane> = outcomes
        .iter()
        .flat_map(|outcome| {
            outcome.pcpu.vcpus.iter().map(|vcpu| Lane {
                vcpu: vcpu.number,
                name: vcpu.name.clone(),
                pcpu: outcome.pcpu.number as u8,
                partition: vcpu.partition,
            })
        })
        .collect();
    lanes.sort_by_key(|lane| (lane.pcpu, lane.vcpu));
    let end = (args.duration * HERTZ as f64) as u64;
    Chart {
        title: format!("{}, simulated", args.system.display()),
        subtitle: match fragment(outcomes, end) {
            Some(fragment) => format!("board {}, seed {}; {fragment}", system.board().name, args.seed),
            None => format!("board {}, seed {}", system.board().name, args.seed),
        },
        hertz: HERTZ,
        start: 0,
        end: end.min(complete(outcomes)),
        lanes,
        policies: outcomes
            .iter()
            .map(|outcome| (outcome.pcpu.number as u8, outcome.pcpu.policy_name().to_owned()))
            .collect(),
        tasks: outcomes
            .iter()
            .flat_map(|outcome| outcome.tasks.clone())
            .filter(|task| !task.jobs.is_empty())
            .collect(),
        records: outcomes
            .iter()
            .flat_map(|outcome| outcome.kept(complete(outcomes)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_sched::analysis::Task;

    #[test]
    fn records_that_are_left_out_are_counted_where_they_are_missing() {
        let record = |time| Record {
            time,
            pcpu: 1,
            event: TraceEvent::Wake { vcpu: 0, late: 0 },
        };
        let records = [record(1), record(5), record(9)];
        assert_eq!(kept(&records, 0, 1, u64::MAX), records);
        let lost = Record {
            event: TraceEvent::Lost { count: 5 },
            ..record(5)
        };
        assert_eq!(kept(&records, 4, 1, 5), [record(1), record(5), lost]);
    }

    #[test]
    fn jobs_are_counted_before_they_are_simulated() {
        let source = |pattern, period| Source::new(Slot(0), Task::new(period, 1), pattern);
        let late = Source {
            first: u64::MAX,
            ..source(Pattern::Periodic, 1)
        };
        let sources = [
            source(Pattern::AlwaysReady, 1),
            source(Pattern::Periodic, 10),
            source(Pattern::Sporadic(5), 20),
            source(Pattern::Burst(4), 100),
            late,
        ];
        assert_eq!(jobs(&sources, 1000), 100 + 50 + 4 * 10);
        assert_eq!(
            jobs(&[source(Pattern::Burst(u32::MAX), 1); 2], u64::MAX),
            u64::MAX
        );
    }
}
