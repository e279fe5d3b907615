// SPDX-License-Identifier: Apache-2.0
//! `bulkhead run`: a system in the emulator of its board, on the user's terminal or in a script.

use super::{RunArgs, Signals};
use crate::build::output::Output;
use crate::build::prepare::{self, Options, Prepared, prepare};
use crate::emulator::attach;
use crate::emulator::launch::{self, DeviceSecret, Launch};
use crate::emulator::session::{Ending, Outcome};
use crate::emulator::stall::Stall;
use crate::explain::Explainer;
use crate::log::log_area::LogArea;
use crate::log::log_files::LogFiles;
use crate::log::objects;
use crate::log::summary::Summary;
use crate::problem::{Code, Problem};
use crate::serial::consoles::{ConsoleLine, Control, Observer};
use crate::serial::framing::{UNTAGGED, VirtualTime};
use crate::serial::pattern::Pattern;
use crate::trace::Trace;
use crate::ui::progress::Progress;
use crate::ui::screen::{Look, Screen};
use crate::ui::terminal;
use crate::ui::typing::{self, Activity, Note, Typist};
use bulkhead_abi::framing::HYPERVISOR_CONSOLE;
use bulkhead_manifest::parts::Part;
use bulkhead_manifest::{System, Unchecked, read_manifest};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Stdout, stdout};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

/// The port on which a debugger connects: QEMU's own customary port.
const GDB_PORT: u16 = 1234;
/// Seconds of the board's time that no run comes to: 46 days.
const NO_LIMIT: f64 = 4_000_000.0;
/// Seconds in which the hypervisor says that its time is up, and switches the board off.
const LAST_WORDS: f64 = 0.01;
/// The delay of a pCPU's clock from which on the emulator is to blame: turns take 50 us each, and the
/// hypervisor looks at interrupts much more often.
const STARVED_NS: u64 = 2_000_000;
/// Records of each pCPU's ring, if there is so much RAM. They cover some tenths of a second of the busiest
/// system, and the rings are emptied all the time.
const TRACE_RECORDS: u32 = 1 << 18;

pub(super) fn run(args: RunArgs) -> Result<Code, Problem> {
    let interactive = terminal::is_interactive();
    let mut launch = launch_of(&args, interactive)?;
    names_exist(&args)?;
    let trace = Output::claim_if(args.trace.as_deref(), &prepare::inputs(&args.system))?;
    let progress = Progress::new();
    let options = Options {
        // There always is a limit, so that the hypervisor knows it is emulated.
        stop_after: Some(args.timeout.unwrap_or(NO_LIMIT)),
        trace_records: args.trace.as_ref().map(|_| TRACE_RECORDS),
        parts: args.parts.choice(),
        sign: args.sign.clone(),
        ..Options::default()
    };
    let prepared = prepare(&args.system, &options, &progress)?;
    let (emulator, file) = prepared.start(args.medium(), &progress)?;
    drop(progress);
    let kept = fit(&mut launch, &prepared, &args)?;
    let first = first_console(&prepared, args.console.as_deref())?;
    let signals = Signals::listen()?;
    let announce =
        |partition: &Option<String>| super::gdb::announce(&prepared, partition.as_deref(), GDB_PORT);
    let _commands = args.gdb.as_ref().map(announce).transpose()?;
    let names = prepared.consoles();
    let create = |folder| LogFiles::create(folder, &with_hypervisor(&names));
    let log = args.log.as_deref().map(create).transpose()?;

    let look = Look {
        colour: terminal::has_colour(),
        live: interactive.then(|| terminal::columns().unwrap_or(80)),
    };
    let screen = RefCell::new(Screen::new(stdout(), look, &names));
    let activity = Cell::new(Activity::default());
    let notify = |note: Note<'_>| {
        let mut screen = screen.borrow_mut();
        // A note that cannot be shown does not stop the system.
        let _ = match note {
            Note::Focus(console) => screen.focus(console),
            Note::Remark(text) => screen.remark(text),
        };
    };
    if interactive {
        notify(Note::Remark("Ctrl-A ? lists the keys, Ctrl-A x quits"));
    }
    let mut viewer = Viewer {
        screen: &screen,
        activity: &activity,
        focus: names.get(first).cloned().unwrap_or_default(),
        until: not_seen_yet(args.until, prepared.system()),
        unfinished: BTreeMap::new(),
        was_up: false,
        log,
        summary: Summary::default(),
        explainer: Explainer::new(&prepared, &args.system.display().to_string()).that_can_look(),
        is_counted: launch.deterministic,
        started: Instant::now(),
    };
    let outcome = {
        let mut typist = Typist::new(names, first, interactive, &activity, &notify);
        launch::run(
            &launch,
            prepared.board_of(&emulator),
            &file,
            &mut viewer,
            &mut typist,
            Some(signals.stream.as_fd()),
        )
    };
    // A screen whose reader has gone away is no error of the system.
    let _ = screen.borrow_mut().close();
    let outcome = outcome?;
    if let (Some(folder), Some(area)) = (&args.log, &outcome.log_area) {
        save_log_area(folder, area)?;
    }
    save_kept(kept, outcome.kept.as_deref())?;
    let code = viewer.conclude(&outcome, prepared.system())?;
    if let Some(file) = trace {
        save_trace(file, outcome.trace.as_ref())?;
    }
    let by_signal = signals
        .code()
        .filter(|_| matches!(outcome.ending, Ending::Interrupted));
    Ok(by_signal.unwrap_or(code))
}

/// Returns the way in which the emulator is run. The system determines where the log area is.
fn launch_of(args: &RunArgs, interactive: bool) -> Result<Launch, Problem> {
    Ok(Launch {
        deterministic: args.deterministic || !(interactive || args.realtime || args.gdb.is_some()),
        // Silence of a console is measured in real time, so the board must not run ahead of it.
        paced: !args.deterministic && !interactive && typing::is_piped(),
        virtual_seconds: args.timeout.map(|seconds| seconds + LAST_WORDS),
        real_seconds: args.real_timeout,
        gdb: args.gdb.as_ref().map(|_| GDB_PORT),
        log_base: None,
        trace: args.trace.is_some(),
        kept: Vec::new(),
        class: None,
        device_secret: args.device_secret.as_deref().map(device_secret).transpose()?,
    })
}

/// Fits the way of the run to the system. Returns the files that are kept of the run.
fn fit(launch: &mut Launch, prepared: &Prepared, args: &RunArgs) -> Result<Vec<KeptFile>, Problem> {
    launch.look_at(prepared.system());
    has_device_secret(prepared, launch)?;
    let kept = kept_files(prepared, args)?;
    launch.kept = kept.iter().map(|(_, place)| *place).collect();
    Ok(kept)
}

/// Reads a device secret.
fn device_secret(path: &Path) -> Result<DeviceSecret, Problem> {
    let bytes = std::fs::read(path).map_err(Problem::io(path.display()))?;
    DeviceSecret::try_from(bytes.as_slice()).map_err(|_| {
        Problem::new(format!(
            "{} has {} bytes, and a device secret has 32",
            path.display(),
            bytes.len()
        ))
        .remedy("`head -c 32 /dev/urandom > device.secret` makes one")
    })
}

/// Refuses to start a system that would end in lockdown, because no device secret is handed over.
fn has_device_secret(prepared: &Prepared, launch: &Launch) -> Result<(), Problem> {
    let parts = prepared.system().parts(false);
    let Some(used) = parts.iter().find(|used| used.part == Part::Secrets) else {
        return Ok(());
    };
    if launch.device_secret.is_some() {
        return Ok(());
    }
    Err(
        Problem::usage(format!("{}, and there is no device secret", used.why))
            .remedy("add `--device-secret FILE`; `head -c 32 /dev/urandom > FILE` makes one"),
    )
}

/// Returns the patterns. No pattern was seen yet. They know all partitions, also those without a console.
fn not_seen_yet(until: Vec<Pattern>, system: &System) -> Vec<(Pattern, bool)> {
    let partitions = system.partitions();
    let names = partitions.iter().map(|partition| partition.name());
    let known = |pattern: Pattern| (pattern.with_consoles(names.clone()), false);
    until.into_iter().map(known).collect()
}

/// Writes the log area beside the logs of the consoles.
fn save_log_area(folder: &Path, area: &[u8]) -> Result<(), Problem> {
    let path = folder.join("log-area.bin");
    std::fs::write(&path, area).map_err(Problem::io(path.display()))
}

/// A file in which a bank of flash is kept, with the place of the bank on the board: address and bytes.
type KeptFile = (Output, (u64, usize));

/// Returns the files in which banks of flash are kept. Nothing is written yet.
fn kept_files(prepared: &Prepared, args: &RunArgs) -> Result<Vec<KeptFile>, Problem> {
    let folder = args.system.parent().unwrap_or(Path::new(""));
    let banks = prepared.system().kept_banks();
    let claim = |(file, address, size): (String, u64, u64)| {
        let output = Output::claim(&folder.join(file), &[&args.system])?;
        Ok((output, (address, size as usize)))
    };
    banks.into_iter().map(claim).collect()
}

/// Writes what is kept of this run.
fn save_kept(files: Vec<KeptFile>, kept: Option<&[Vec<u8>]>) -> Result<(), Problem> {
    for (number, (file, _)) in files.into_iter().enumerate() {
        match kept.and_then(|kept| kept.get(number)) {
            Some(bytes) => file.write(bytes)?,
            None => {
                return Err(Problem::new(format!(
                    "{} is not written: the emulator's memory could not be read",
                    file.path().display()
                )));
            }
        }
    }
    Ok(())
}

/// Writes the trace, and says how much there is of it.
fn save_trace(file: Output, trace: Option<&Trace>) -> Result<(), Problem> {
    let Some(trace) = trace.filter(|trace| !trace.records.is_empty()) else {
        return Err(Problem::new(
            "there is no trace: nothing could be read from the emulator's memory",
        ));
    };
    let path = file.path().to_owned();
    file.write(trace.encode())?;
    let lost = match trace.lost() {
        0 => "none lost".to_owned(),
        lost => format!("{lost} LOST"),
    };
    terminal::tell(format_args!(
        "bulkhead: {} trace records, {lost}, in {}",
        trace.records.len(),
        path.display()
    ));
    Ok(())
}

fn with_hypervisor(names: &[String]) -> Vec<String> {
    let mut all = names.to_vec();
    all.push(HYPERVISOR_CONSOLE.to_owned());
    all
}

/// Refuses names of consoles and partitions that the manifest does not have, and disks without a file, before
/// anything is built for it. A manifest that cannot be read is refused later, with the reason.
fn names_exist(args: &RunArgs) -> Result<(), Problem> {
    let Ok(text) = read_manifest(&args.system) else {
        return Ok(());
    };
    let manifest = Unchecked::read(&args.system, &text);
    for (device, file) in manifest.disks() {
        attach::is_there(device, &file)?;
    }
    if let (Some(wanted), Some(names)) = (&args.console, manifest.consoles())
        && !names.contains(&wanted.as_str())
    {
        return Err(no_console(wanted, &names));
    }
    if let (Some(Some(wanted)), Some(names)) = (&args.gdb, manifest.partitions())
        && !names.contains(&wanted.as_str())
    {
        return Err(Problem::usage(format!("there is no partition `{wanted}`"))
            .remedy(format!("partitions of this system: {}", names.join(", "))));
    }
    Ok(())
}

fn no_console(wanted: &str, names: &[&str]) -> Problem {
    Problem::usage(format!("no partition `{wanted}` has a console"))
        .remedy(format!("consoles of this system: {}", names.join(", ")))
}

fn first_console(prepared: &Prepared, wanted: Option<&str>) -> Result<usize, Problem> {
    let names = prepared.consoles();
    let Some(wanted) = wanted else {
        return Ok(prepared.first_vm_console());
    };
    names
        .iter()
        .position(|name| name == wanted)
        .ok_or_else(|| no_console(wanted, &names.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// Sees everything for the user.
struct Viewer<'a> {
    screen: &'a RefCell<Screen<Stdout>>,
    activity: &'a Cell<Activity>,
    focus: String,
    until: Vec<(Pattern, bool)>,
    /// The unfinished lines, by console. The list of consoles is bounded.
    unfinished: BTreeMap<String, String>,
    /// True if a partition has said something, so that there are objects.
    was_up: bool,
    log: Option<LogFiles>,
    summary: Summary,
    explainer: Explainer<'a>,
    /// True if the emulator counts instructions instead of time.
    is_counted: bool,
    started: Instant,
}

impl Viewer<'_> {
    fn matched(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        if self.until.is_empty() {
            return;
        }
        for (pattern, seen) in &mut self.until {
            *seen |= pattern.matches(line);
        }
        control.stop |= self.until.iter().all(|(_, seen)| *seen);
    }

    /// Searches an unfinished line, and keeps the line until it is complete.
    fn matched_beginning(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        if self.until.is_empty() {
            return;
        }
        for (pattern, seen) in &mut self.until {
            *seen |= pattern.matches_beginning(line);
        }
        self.unfinished
            .insert(line.console.to_owned(), line.text.to_owned());
        control.stop |= self.until.iter().all(|(_, seen)| *seen);
    }

    fn note_activity(&self, line: ConsoleLine<'_>, prompt: bool) {
        if line.console == self.focus {
            let now = Instant::now();
            let board = line.time.micros as f64 / 1e6;
            self.activity.set(Activity {
                changed: Some(now),
                prompt,
                pace: (now - self.started).as_secs_f64() / board.max(f64::MIN_POSITIVE),
            });
        }
    }

    /// Ends the session if the screen cannot be written any more (its pipe is closed).
    fn shown(result: io::Result<()>, control: &mut Control) {
        control.stop |= result.is_err();
    }

    /// Returns the patterns that were not seen, and what is to be known about them.
    fn missing(&self) -> Vec<String> {
        let missing = self.until.iter().filter(|(_, seen)| !seen);
        missing.map(|(pattern, _)| self.not_seen(pattern)).collect()
    }

    fn not_seen(&self, pattern: &Pattern) -> String {
        let is_at_end = |(console, text): &(&String, &String)| {
            let (time, cursor) = (VirtualTime::default(), 0);
            pattern.matches(ConsoleLine {
                console,
                time,
                text,
                cursor,
            })
        };
        match self.unfinished.iter().find(is_at_end) {
            Some((console, _)) => format!(
                "{}\n    {console} has it at the end of an unfinished line, and `$` needs a complete one: leave \
                 out the `$`",
                pattern.as_str()
            ),
            None => pattern.as_str().to_owned(),
        }
    }

    /// Tells the user why the run ended and what happened. Returns the exit code.
    fn conclude(self, outcome: &Outcome, system: &System) -> Result<Code, Problem> {
        let missing = self.missing();
        let wanted = !self.until.is_empty();
        let area = outcome.log_area.as_deref();
        let others = area
            .and_then(LogArea::at_start)
            .and_then(|area| objects::difference(system, &area, self.was_up));
        let (why, code) = match &outcome.ending {
            _ if self.summary.lockdown.is_some() => {
                let reason = self.summary.lockdown.as_deref().unwrap_or_default();
                (
                    format!("the hypervisor locked itself down: {reason}"),
                    Code::Fault,
                )
            }
            _ if others.is_some() => (others.unwrap_or_default(), Code::Fault),
            _ if wanted && missing.is_empty() => ("every --until was seen".to_owned(), Code::Done),
            Ending::Stopped => ("nobody reads the output any more".to_owned(), Code::Fault),
            Ending::VirtualLimit | Ending::Exited(_) if self.time_is_up(outcome) => {
                ("time ran out on the board's clock".to_owned(), Code::Timeout)
            }
            Ending::VirtualLimit | Ending::RealLimit => ("time ran out".to_owned(), Code::Timeout),
            Ending::Interrupted if wanted => ("ended by the user".to_owned(), Code::Fault),
            Ending::Interrupted => ("ended by the user".to_owned(), Code::Done),
            Ending::Exited(status) if !status.success() => {
                (format!("the emulator failed ({status})"), Code::Fault)
            }
            Ending::Exited(_) if wanted => ("the board was powered off".to_owned(), Code::Fault),
            Ending::Exited(_) => ("the board was powered off".to_owned(), Code::Done),
        };
        let clock = outcome.stall.as_ref().map_or("", Stall::clock);
        let mut text = format!(
            "bulkhead: {why}{clock}; {}",
            self.summary
                .text_with(area, outcome.virtual_time, outcome.real_time)
        );
        if code != Code::Done {
            for pattern in missing {
                text.push_str(&format!("\n  not seen: {pattern}"));
            }
        }
        if let Some(starved) = self.starved(area, system) {
            text.push_str(&format!("\n  {starved}"));
        }
        if !outcome.messages.is_empty() {
            text.push_str(&format!(
                "\n  the emulator says: {}",
                outcome.messages.replace('\n', "\n    ")
            ));
        }
        terminal::tell(text);
        self.log.map_or(Ok(()), LogFiles::finish)?;
        Ok(code)
    }

    /// Warns of pCPUs that the emulator gave no turn, although their clocks had interrupted them.
    fn starved(&self, area: Option<&[u8]>, system: &System) -> Option<String> {
        if !self.is_counted {
            return None;
        }
        let delays = area.and_then(LogArea::at_start)?.delays();
        let starved = (0..)
            .zip(delays)
            .filter(|(_, delay)| *delay >= STARVED_NS)
            .map(|(pcpu, delay)| format!("pCPU {pcpu} by up to {} ms", delay / 1_000_000));
        let starved: Vec<String> = starved.collect();
        (!starved.is_empty()).then(|| starvation(&starved.join(", "), system.cpu_count()))
    }

    fn time_is_up(&self, outcome: &Outcome) -> bool {
        self.summary.time_limit || matches!(outcome.ending, Ending::VirtualLimit)
    }
}

/// Returns the warning about pCPUs whose clocks interrupted late.
fn starvation(which: &str, cpus: usize) -> String {
    let cause = if cpus > 1 {
        "while another CPU does not wait, an instruction-counted run gives it no turn (docs/bugs.md); \
         --realtime runs the CPUs side by side"
    } else {
        "the board has no other CPU that could take its turns, so a guest's faults without an instruction \
         between them may have stopped its clock (docs/bugs.md); --realtime lets the clock go on"
    };
    format!("warning: the emulator held up {which}: {cause}")
}

impl Observer for Viewer<'_> {
    fn bytes(&mut self, console: &str, bytes: &[u8]) {
        if let Some(log) = &mut self.log {
            log.bytes(console, bytes);
        }
    }

    fn line(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        self.cut(line, control);
        self.unfinished.remove(line.console);
        self.matched(line, control);
    }

    fn cut(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        self.note_activity(line, false);
        self.was_up |= ![HYPERVISOR_CONSOLE, UNTAGGED].contains(&line.console);
        self.summary.line(line);
        control.stop |= self.summary.lockdown.is_some();
        let result = self.screen.borrow_mut().line(line);
        Self::shown(result, control);
        if line.console == HYPERVISOR_CONSOLE
            && let Some(explanation) = self.explainer.line_and_looks(line.text, &mut control.looks)
        {
            let result = self.screen.borrow_mut().remark(&explanation);
            Self::shown(result, control);
        }
    }

    fn looked(&mut self, bytes: Option<&[u8]>, control: &mut Control) {
        if let Some(explanation) = self.explainer.looked(bytes) {
            let result = self.screen.borrow_mut().remark(&explanation);
            Self::shown(result, control);
        }
    }

    fn partial(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        self.note_activity(line, !line.text.is_empty());
        let result = self.screen.borrow_mut().partial(line);
        Self::shown(result, control);
        self.matched_beginning(line, control);
    }

    fn quiet(&mut self, control: &mut Control) {
        let result = self.screen.borrow_mut().quiet();
        Self::shown(result, control);
    }

    fn stalled(&mut self, stall: &Stall, control: &mut Control) {
        let text = stall.text(|partition, pc| self.explainer.place(partition, pc));
        let result = self.screen.borrow_mut().remark(&text);
        Self::shown(result, control);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_of_one_cpu_has_no_other_one() {
        assert!(starvation("pCPU 1 by up to 9 ms", 2).contains("another CPU"));
        let alone = starvation("pCPU 0 by up to 9 ms", 1);
        assert!(
            !alone.contains("another CPU") && alone.contains("--realtime"),
            "{alone}"
        );
    }
}
