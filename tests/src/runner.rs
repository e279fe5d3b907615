// SPDX-License-Identifier: Apache-2.0
//! Prepares and runs the cases, two at a time: an instruction-counted emulator uses one CPU.

use crate::case::Case;
use crate::peer::Peer;
use crate::verdict::Judge;
use bulkhead::launch::{self, Launch};
use bulkhead::log_area::LogArea;
use bulkhead::objects::difference;
use bulkhead::prepare::{Options, Prepared, prepare_text};
use bulkhead::progress::Progress;
use bulkhead::session::{NoInput, Outcome};
use bulkhead::trace::replay::{self, Tolerance};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const AT_ONCE: usize = 2;
/// Records of each pCPU's ring in a traced run.
const TRACE_RECORDS: u32 = 1 << 18;

/// Runs all cases; whether each passed, in their order.
pub(crate) fn run_all(cases: &[Case]) -> Vec<bool> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![false; cases.len()]);
    let progress = Progress::new();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(cases.len()) {
            scope.spawn(|| {
                while let Some((index, case)) = take(&next, cases) {
                    let started = Instant::now();
                    let findings = run(case, &progress);
                    let seconds = started.elapsed().as_secs_f32();
                    let verdict = if findings.is_empty() { "ok" } else { "FAILED" };
                    // One call, so that lines of two threads do not mix.
                    let mut text = format!("system {:<38} {verdict} ({seconds:.1} s)", case.name);
                    for finding in &findings {
                        text.push_str(&format!(
                            "\nsystem {}: {}",
                            case.name,
                            finding.replace('\n', "\n    ")
                        ));
                    }
                    println!("{text}");
                    if let Ok(mut results) = results.lock() {
                        results[index] = findings.is_empty();
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_default()
}

fn take<'a>(next: &AtomicUsize, cases: &'a [Case]) -> Option<(usize, &'a Case)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, cases.get(index)?))
}

/// Runs a case; what was wrong.
fn run(case: &Case, progress: &Progress) -> Vec<String> {
    let mut launch = Launch {
        deterministic: true,
        virtual_seconds: Some(case.time_limit),
        real_seconds: Some(case.real_limit),
        gdb: None,
        log_base: None,
        trace: case.agrees_within_us.is_some(),
    };
    // The test, not the system, decides when time is up; a little more, so that it is the test that sees it.
    let options = Options {
        stop_after: Some(case.time_limit + 1.0),
        trace_records: case.agrees_within_us.map(|_| TRACE_RECORDS),
        conformance: case.conformance,
        quiet: false,
    };
    let prepared = match prepare_text(&case.path, &case.manifest, &options, progress) {
        Ok(prepared) => prepared,
        Err(problem) => return vec![problem.to_string()],
    };
    let mut emulator = match prepared.emulator() {
        Ok(emulator) => emulator,
        Err(problem) => return vec![problem.to_string()],
    };
    launch.log_base = Some(prepared.system().log_base());
    let mut flash = prepared.flash().to_vec();
    if let Some(damage) = &case.damage
        && let Err(why) = damage.apply(&mut flash, prepared.image().len(), prepared.class_binary())
    {
        return vec![why];
    }
    let peer = match case.peer.as_ref().map(Peer::listen).transpose() {
        Ok(peer) => peer,
        Err(error) => return vec![format!("the peer of the serial line: {error}")],
    };
    emulator
        .arguments
        .extend(peer.iter().flat_map(|peer| peer.arguments.clone()));
    let mut judge = Judge::new(case);
    match launch::run(
        &launch,
        (&emulator, prepared.system().cpu_count()),
        &flash,
        &mut judge,
        &mut NoInput,
        None,
    ) {
        Ok(outcome) => {
            let mut findings = judge.findings(&outcome);
            findings.extend(disagreement(case, &prepared, &outcome));
            findings.extend(other_objects(case, &prepared, &outcome));
            findings.extend(peer.and_then(Peer::finding));
            findings
        }
        Err(problem) => vec![problem.to_string()],
    }
}

/// What objects the board has otherwise than the manifest says. A damaged image may say anything, and checks make their own.
fn other_objects(case: &Case, prepared: &Prepared, outcome: &Outcome) -> Option<String> {
    if case.damage.is_some() || case.conformance {
        return None;
    }
    let area = LogArea::at_start(outcome.log_area.as_deref()?)?;
    difference(prepared.system(), &area)
}

/// How the run differs from what the policies say, if the case wants to know.
fn disagreement(case: &Case, prepared: &Prepared, outcome: &Outcome) -> Option<String> {
    let tolerance = Tolerance {
        overhead: case.agrees_within_us?.saturating_mul(1000),
        turns: true,
    };
    let Some(trace) = &outcome.trace else {
        return Some("there is no trace".to_owned());
    };
    match replay::agree(trace, prepared.system(), tolerance) {
        Ok(pcpus) if pcpus.iter().all(|pcpu| pcpu.switches == 0) => Some("nothing was switched".to_owned()),
        Ok(pcpus) if pcpus.iter().any(|pcpu| pcpu.latest > charged(prepared)) => {
            Some("a switch came later than the board's overheads, which the analysis charges".to_owned())
        }
        Ok(pcpus) if pcpus.iter().any(|pcpu| pcpu.workloads != 0 && pcpu.jobs == 0) => {
            Some("no job of a workload was compared".to_owned())
        }
        Ok(_) => None,
        Err(difference) => Some(format!("executed is not simulated: {difference}")),
    }
}

/// What the analysis charges for an interrupt, a decision and a switch.
fn charged(prepared: &Prepared) -> u64 {
    let overheads = prepared.system().board().overheads.unwrap_or_default();
    overheads.event()
}
