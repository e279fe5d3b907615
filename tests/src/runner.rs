// SPDX-License-Identifier: Apache-2.0
//! Prepares and runs the cases, two at a time: an instruction-counted emulator uses one CPU.

use crate::ahead::Ahead;
use crate::bare;
use crate::case::{Case, End};
use crate::converted::Converted;
use crate::entries::Entries;
use crate::exits::Exceptions;
use crate::peer::Peer;
use crate::privilege::Blocks;
use crate::quote;
use crate::stretch::{Instrument, Trouble, table};
use crate::verdict::Judge;
use crate::weight;
use bulkhead::bounds::bounds;
use bulkhead::build::prepare::{Prepared, prepare_text};
use bulkhead::emulator::launch::{self, Launch};
use bulkhead::emulator::session::{NoInput, Outcome};
use bulkhead::explain::Explainer;
use bulkhead::log::log_area::LogArea;
use bulkhead::log::objects::difference;
use bulkhead::sign::Found;
use bulkhead::trace::replay::{self, Tolerance};
use bulkhead::ui::progress::Progress;
use bulkhead_abi::parts::Part;
use bulkhead_abi::trace::Event;
use std::sync::Mutex;
use std::time::Instant;

const AT_ONCE: usize = 2;
/// Environment variable with which every case shows its longest stretches.
const SHOW: &str = "BULKHEAD_STRETCHES";
/// Kinds of stretches whose profiles are shown then.
const PROFILES: usize = 5;

/// Runs all cases; whether each passed, in their order.
pub(crate) fn run_all(cases: &[Case]) -> Vec<bool> {
    let ahead = Ahead::new(cases);
    let results = Mutex::new(vec![false; cases.len()]);
    let progress = Progress::new();
    std::thread::scope(|scope| {
        scope.spawn(|| ahead.build(&progress));
        for _ in 0..AT_ONCE.min(cases.len()) {
            scope.spawn(|| {
                while let Some((index, case)) =
                    ahead.take().and_then(|index| Some((index, cases.get(index)?)))
                {
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

/// Returns how the emulator is started for a case.
fn launch_of(case: &Case) -> Launch {
    Launch {
        deterministic: !case.realtime,
        paced: false,
        virtual_seconds: Some(case.time_limit + if case.exits_agree { 1.0 } else { 0.0 }),
        real_seconds: Some(case.real_limit),
        gdb: None,
        log_base: None,
        trace: case.agrees_within_us.is_some() || case.exits_traced,
        kept: Vec::new(),
        class: None,
        device_secret: case.device_secret.map(|byte| [byte; 32]),
    }
}

/// Says how the tool's judgement of a signed file differs from the one that the case expects of the board.
fn other_verdict(case: &Case, flash: &[u8]) -> Option<String> {
    let judged = Found::in_file(flash).and_then(|found| found.judge(flash, None));
    match (judged, case.end == End::Lockdown) {
        (Ok(_), true) => Some("the tool judges an image to be good that the board refuses".to_owned()),
        (Err(problem), false) => Some(format!("the tool refuses what the board runs: {problem}")),
        _ => None,
    }
}

/// Tells whether the board also needs a device secret to run the image.
fn has_secrets(prepared: &Prepared) -> bool {
    let used = prepared.system().parts(false);
    used.iter().any(|used| used.part == Part::Secrets)
}

/// Damages the file that the emulator starts from, or signs it for the firmware, if the case says so.
fn alter(
    case: &Case,
    prepared: &Prepared,
    arguments: &mut Vec<String>,
    flash: &mut Vec<u8>,
    progress: &Progress,
) -> Result<(), String> {
    if let Some(damage) = &case.damage {
        damage.apply(flash, prepared.image(), prepared.class_binary())?;
    }
    case.secure_boot
        .map_or(Ok(()), |how| how.prepare(arguments, flash, progress))
}

/// Runs a case; what was wrong.
fn run(case: &Case, progress: &Progress) -> Vec<String> {
    let mut launch = launch_of(case);
    let options = case.options();
    let converted = match Converted::new(case, progress) {
        Ok(converted) => converted,
        Err(problem) => return vec![problem.to_string()],
    };
    let prepared = match prepare_text(&case.path, &converted.text, &options, progress) {
        Ok(prepared) => prepared,
        Err(problem) => return vec![problem.to_string()],
    };
    let (mut emulator, file) = match prepared.start(case.medium, progress) {
        Ok(start) => start,
        Err(problem) => return vec![problem.to_string()],
    };
    if let Some(shift) = case.shift {
        slow_down(&mut emulator.arguments, shift);
    }
    launch.look_at(prepared.system());
    let mut flash = file.into_owned();
    if let Err(why) = alter(case, &prepared, &mut emulator.arguments, &mut flash, progress) {
        return vec![why];
    }
    if prepared.system().signature().is_some()
        && (case.device_secret.is_some() || !has_secrets(&prepared))
        && let Some(why) = other_verdict(case, &flash)
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
    let instrument = match instrument(case, &prepared, &emulator.program) {
        Ok(instrument) => instrument,
        Err(why) => return vec![why],
    };
    let wanted = instrument.iter().flat_map(Instrument::arguments);
    emulator.arguments.extend(wanted.cloned());
    let records = match Records::new(case, &prepared) {
        Ok(records) => records,
        Err(why) => return vec![why],
    };
    emulator.arguments.extend(records.arguments());
    let explains = !case.explained.is_empty();
    let explainer = explains.then(|| Explainer::new(&prepared, "system.toml").that_can_look());
    let mut judge = Judge::new(case, explainer);
    match launch::run(
        &launch,
        prepared.board_of(&emulator),
        &flash,
        &mut judge,
        &mut NoInput,
        None,
    ) {
        Ok(outcome) => {
            let was_up = judge.has_heard(&prepared.consoles());
            let heard = judge.heard();
            let mut findings = judge.findings(&outcome, &bounds(prepared.system()));
            findings.extend(weight::findings(case, &prepared));
            findings.extend(disagreement(case, &prepared, &outcome));
            findings.extend(too_busy(case, &outcome));
            findings.extend(case.exits_traced.then(|| untraced(&outcome)).flatten());
            findings.extend(other_objects(case, &prepared, &outcome, was_up));
            findings.extend(records.findings(case, &outcome));
            findings.extend(bare::differences(case, &prepared, &launch, &heard));
            findings.extend(quote::finding(case, &flash, &heard));
            findings.extend(peer.and_then(Peer::finding));
            findings.extend(instrument.and_then(|instrument| too_long(case, &instrument)));
            findings
        }
        Err(problem) => vec![problem.to_string()],
    }
}

/// The records that the emulator writes for a case.
struct Records {
    exceptions: Option<Exceptions>,
    entries: Option<Entries>,
    blocks: Option<Blocks>,
}

impl Records {
    fn new(case: &Case, prepared: &Prepared) -> Result<Self, String> {
        Ok(Self {
            exceptions: exceptions(case, prepared)?,
            entries: (!case.entries_at_most.is_empty()).then(|| Entries::new(prepared)),
            blocks: blocks(case, prepared)?,
        })
    }

    /// Returns the arguments of the emulator that write the records.
    fn arguments(&self) -> Vec<String> {
        let exceptions = self.exceptions.iter().flat_map(Exceptions::arguments);
        let entries = self.entries.iter().flat_map(Entries::arguments);
        let blocks = self.blocks.iter().flat_map(Blocks::arguments);
        exceptions.chain(entries).chain(blocks).collect()
    }

    fn findings(self, case: &Case, outcome: &Outcome) -> Vec<String> {
        let mut findings = Vec::new();
        if let Some(record) = &self.exceptions {
            findings.extend(record.difference(outcome));
            let others = case.registers_agree.then(|| record.other_registers());
            findings.extend(others.flatten());
        }
        if let Some(entries) = &self.entries {
            findings.extend(entries.findings(&case.entries_at_most));
        }
        findings.extend(self.blocks.and_then(|blocks| blocks.finding()));
        findings
    }
}

/// Returns the record of exceptions, if the case compares exits.
fn exceptions(case: &Case, prepared: &Prepared) -> Result<Option<Exceptions>, String> {
    case.exits_agree.then(|| Exceptions::new(prepared)).transpose()
}

/// Returns the record of executed code, if the case wants to know of privileges.
fn blocks(case: &Case, prepared: &Prepared) -> Result<Option<Blocks>, String> {
    let wanted = !case.unprivileged.is_empty();
    wanted
        .then(|| Blocks::new(prepared, &case.unprivileged))
        .transpose()
}

/// Tells what counts the stretches, if the case, or the user who set [`SHOW`], wants that and the emulator
/// can.
fn instrument(case: &Case, prepared: &Prepared, program: &str) -> Result<Option<Instrument>, String> {
    if !case.longest && std::env::var_os(SHOW).is_none() {
        return Ok(None);
    }
    match Instrument::new(prepared, program) {
        Ok(instrument) => Ok(Some(instrument)),
        Err(trouble @ Trouble::NotHere(_)) => {
            println!("system {}: stretches are {trouble}", case.name);
            Ok(None)
        }
        Err(Trouble::Wrong(why)) => Err(why),
    }
}

/// Returns the stretch that is longer than the board charges, if the case wants to know of one.
fn too_long(case: &Case, instrument: &Instrument) -> Option<String> {
    if std::env::var_os(SHOW).is_some() {
        match instrument.found() {
            Ok(found) => println!(
                "system {}: stretches\n{}",
                case.name,
                table(instrument, &found, PROFILES)
            ),
            Err(why) => println!("system {}: {why}", case.name),
        }
    }
    if !case.longest {
        return None;
    }
    instrument.finding().unwrap_or_else(Some)
}

/// Makes an instruction take two to the power of `shift` nanoseconds.
fn slow_down(arguments: &mut [String], shift: u8) {
    for argument in arguments {
        *argument = argument.replace("shift=0,", &format!("shift={shift},"));
    }
}

/// Returns the objects that the board has otherwise than the manifest says. A damaged image may say anything,
/// and the checks make objects of their own.
fn other_objects(case: &Case, prepared: &Prepared, outcome: &Outcome, was_up: bool) -> Option<String> {
    if case.damage.is_some() || case.conformance {
        return None;
    }
    let area = LogArea::at_start(outcome.log_area.as_deref()?)?;
    difference(prepared.system(), &area, was_up)
}

/// Returns the partitions that have used more of the run than the case allows.
fn too_busy(case: &Case, outcome: &Outcome) -> Vec<String> {
    if case.used_at_most.is_empty() {
        return Vec::new();
    }
    let Some(counts) = outcome
        .log_area
        .as_deref()
        .and_then(LogArea::at_start)
        .map(|area| area.counts())
    else {
        return vec!["there are no counters of the run".to_owned()];
    };
    let used = |name: &str| {
        let partition = counts.partitions.iter().find(|partition| partition.name == name);
        partition.map(|partition| partition.ran * 100 / counts.time.max(1))
    };
    let found = case
        .used_at_most
        .iter()
        .map(|(name, most)| (name, most, used(name)));
    found
        .filter(|(_, most, used)| used.is_none_or(|used| used > **most))
        .map(|(name, most, used)| format!("{name} used {used:?} percent of the run, {most} are allowed"))
        .collect()
}

/// Returns a vCPU with an exit that is counted and has no record, or the other way round.
fn untraced(outcome: &Outcome) -> Option<String> {
    let Some(trace) = outcome.trace.as_ref().filter(|trace| trace.lost() == 0) else {
        return Some("there is no trace, or records are lost".to_owned());
    };
    let mut recorded = vec![(0_u64, 0_u64); trace.exits.len()];
    for record in &trace.records {
        let (vcpu, is_short) = match record.event {
            Event::Exit { vcpu: Some(vcpu), .. } => (vcpu, false),
            Event::Short { vcpu, .. } => (vcpu, true),
            _ => continue,
        };
        if let Some((long, short)) = recorded.get_mut(usize::from(vcpu)) {
            *(if is_short { short } else { long }) += 1;
        }
    }
    if recorded.iter().all(|(_, short)| *short == 0) {
        return Some("no short exit is recorded".to_owned());
    }
    let counted = trace.exits.iter().map(|exits| exits.iter().sum::<u64>());
    let mut wrong = counted.zip(recorded).zip(0_u8..);
    let ((counted, (long, short)), vcpu) =
        wrong.find(|((counted, (long, short)), _)| *counted != long + short)?;
    let name = trace.vcpu_name(vcpu);
    Some(format!(
        "{name}: {counted} exits are counted, {long} are recorded by the kernel and {short} by the backend"
    ))
}

/// Returns how the run differs from what the policies say, if the case wants to know.
fn disagreement(case: &Case, prepared: &Prepared, outcome: &Outcome) -> Option<String> {
    let tolerance = Tolerance {
        overhead: case.agrees_within_us?.saturating_mul(1000),
        turns: true,
    };
    let Some(trace) = &outcome.trace else {
        return Some("there is no trace".to_owned());
    };
    let policies = match prepared.policies(&Progress::new()) {
        Ok(policies) => policies,
        Err(problem) => return Some(problem.message().to_owned()),
    };
    match replay::agree(trace, prepared.system(), &policies, tolerance) {
        Ok(pcpus) if pcpus.iter().all(|pcpu| pcpu.switches == 0) => Some("nothing was switched".to_owned()),
        Ok(pcpus) if pcpus.iter().any(|pcpu| pcpu.latest > charged(prepared)) => {
            Some("a switch came later than the board's overheads, which the analysis charges".to_owned())
        }
        Ok(pcpus) if pcpus.iter().any(|pcpu| pcpu.workloads != 0 && pcpu.jobs == 0) => {
            Some("no job of a workload was compared".to_owned())
        }
        Ok(pcpus) if pcpus.iter().any(|pcpu| pcpu.compared_until.is_some()) => {
            Some("a pCPU was not compared to the end, because of loans of places".to_owned())
        }
        Ok(_) => None,
        Err(difference) => Some(format!("executed is not simulated: {difference}")),
    }
}

/// Returns the time that the analysis charges for an interrupt, a decision and a switch.
fn charged(prepared: &Prepared) -> u64 {
    let costs = prepared.system().board().costs;
    costs.map_or(0, |costs| costs.with_vcpus(0).event())
}
