// SPDX-License-Identifier: Apache-2.0
//! The runs of a measurement.
//!
//! Each part of the guest runs in the smallest system that it needs. From reset on, the hypervisor computes
//! digests of the image, whose length has nothing to do with the hypervisor. A second image with a large
//! payload that is not loaded gives the cost of a byte, and the share of all bytes is taken off.

use super::rows::{
    AT, FIRST, HISTOGRAM, RESET, RESET_BESIDE, SHORT_RECORD, SWITCH, SWITCH_TRACED, TIMER, TIMER_SHARED,
    TRACE_RECORD, WORST,
};
use super::systems::{self, manifest};
use bulkhead::build::artifacts::Workspace;
use bulkhead::build::prepare::{Options, Prepared, prepare_text};
use bulkhead::build::variant::Choice;
use bulkhead::emulator::bare::Bare;
use bulkhead::emulator::launch::{self, Launch, TemporaryFile};
use bulkhead::emulator::session::{NoInput, Outcome};
use bulkhead::problem::Problem;
use bulkhead::serial::consoles::{ConsoleLine, Control, Observer};
use bulkhead::ui::progress::Progress;
use bulkhead_manifest::board::{Board, Emulator};
use bulkhead_manifest::parts::VARIANTS;
use std::collections::BTreeMap;
use std::path::Path;

/// Longest run on the board's clock, in seconds.
const VIRTUAL_LIMIT: f64 = 10.0;
/// Longest run on the wall.
const REAL_LIMIT: f64 = 300.0;
/// Bytes of the payload that is only there for its digest.
const BALLAST: usize = 4 << 20;

/// A part of the guest, and the vCPUs it needs.
const PARTS: &[(&str, &str)] = &[
    SINGLE_PART,
    ("pair", "{ pcpu = 0 }, { pcpu = 1 }"),
    SWITCH_PART,
    ("decisions", "{ pcpu = 0 }"),
];
/// The part with one vCPU.
const SINGLE_PART: (&str, &str) = ("single", "{ pcpu = 0 }");
/// The part with two vCPUs on one pCPU.
const SWITCH_PART: (&str, &str) = (SWITCH, "{ pcpu = 0 }, { pcpu = 0 }");
/// The pCPUs on which the timer of a VM that waits is measured: the end of the row's key, the VMs, what the
/// other VMs do, and the class binary. A system gets the smallest one. The one with all parts has the most to
/// look at.
const SHARED_TIMERS: &[(&str, usize, &str, Choice)] = &[
    ("2", 2, "rest", Choice::Smallest),
    ("31", 31, "rest", Choice::Smallest),
    ("2-full", 2, "rest", ALL_PARTS),
    ("31-full", 31, "rest-until", ALL_PARTS),
];
/// The class binary with all parts.
const ALL_PARTS: Choice = {
    let [.., full] = VARIANTS;
    Choice::Named(full)
};
/// The key of the null hypercall.
const NULL_CALL: &str = "null-call";
/// The table of a manifest that lets the backend record the exits that it answers by itself.
const SHORT_EXITS: &str = "[trace]\nrecords = 1024\nshort-exits = true\n";
/// Records of the ring of a traced run, and the records that a switch leaves: exit, block, switch.
const TRACE_RECORDS: u32 = 1024;
const RECORDS_OF_SWITCH: u64 = 3;

/// Figures by name.
pub type Figures = BTreeMap<String, u64>;

/// The measured figures.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// On the bare board.
    pub bare: Figures,
    /// In a VM.
    pub hypervised: Figures,
    /// The very first turn of each measurement, on the bare board and in a VM. A system that is measured is
    /// fresh, and nothing in it was used before.
    pub cold: [Figures; 2],
    /// Arrivals by their latency, for each row that has the worst of many arrivals: by the key of the row.
    pub histograms: BTreeMap<String, BTreeMap<u64, u64>>,
    /// Instructions that digests take between reset and guest. They are part of those in `hypervised`.
    pub digests: u64,
    /// The class binary, with symbols.
    pub class_binary: std::path::PathBuf,
}

impl Results {
    /// Returns the hypervisor's part of a figure.
    #[must_use]
    pub fn net(&self, key: &str) -> Option<u64> {
        let digests = if key == RESET { self.digests } else { 0 };
        let bare = self.bare.get(key).copied().unwrap_or(0);
        Some(
            self.hypervised
                .get(key)?
                .saturating_sub(bare)
                .saturating_sub(digests),
        )
    }
}

impl Results {
    /// Returns the hypervisor's part of the very first turn of a figure.
    #[must_use]
    pub fn cold(&self, key: &str) -> Option<u64> {
        let [bare, hypervised] = &self.cold;
        let bare = bare.get(key).copied().unwrap_or(0);
        Some(hypervised.get(key)?.saturating_sub(bare))
    }

    /// Puts the histograms and the very first turns apart.
    fn split(&mut self) {
        self.bare.retain(|key, _| !key.starts_with(HISTOGRAM));
        for (key, count) in &self.hypervised {
            if let Some((row, latency)) = bar(key) {
                self.histograms.entry(row).or_default().insert(latency, *count);
            }
        }
        self.hypervised.retain(|key, _| !key.starts_with(HISTOGRAM));
        let [bare, hypervised] = &mut self.cold;
        for (all, cold) in [(&mut self.bare, bare), (&mut self.hypervised, hypervised)] {
            let first: Vec<String> = all.keys().filter(|key| key.contains(FIRST)).cloned().collect();
            for key in first {
                if let Some(ticks) = all.remove(&key) {
                    cold.insert(key.replace(FIRST, ""), ticks);
                }
            }
        }
    }
}

/// Returns the row and the latency of a bar of a histogram, by the name of the bar:
/// `histogram-ROW-at-LATENCY`, and the end of the row's key, if it has one.
fn bar(key: &str) -> Option<(String, u64)> {
    let (row, rest) = key.strip_prefix(HISTOGRAM)?.split_once(AT)?;
    let (latency, end) = rest.split_once('-').unwrap_or((rest, ""));
    let dash = if end.is_empty() { "" } else { "-" };
    Some((format!("{row}{WORST}{dash}{end}"), latency.parse().ok()?))
}

/// Measures with the parts of the guest `bench`, each on the bare board and in the smallest system that it
/// needs.
pub(crate) fn measure_parts(
    board: &Board,
    emulator: &Emulator,
    progress: &Progress,
) -> Result<Results, Problem> {
    let mut results = Results::default();
    let mut systems = Vec::new();
    for (part, vcpus) in PARTS {
        systems.push(prepare(&manifest(&board.name, part, vcpus, None), progress)?);
    }
    progress.step("measuring on the bare board", || {
        results.bare = run_bare(emulator, "guest-bench", &[2, 1])?;
        Ok(())
    })?;
    progress.step("measuring in a VM", || {
        for system in &systems {
            results.hypervised.append(&mut run(emulator, system)?);
        }
        Ok(())
    })?;
    switches(board, emulator, progress, &mut results.hypervised)?;
    messages(board, emulator, progress, &mut results.hypervised)?;
    shared_timers(board, emulator, progress, &mut results)?;
    spread(board, emulator, progress, &mut results)?;
    let single = systems
        .first()
        .ok_or_else(|| Problem::new("nothing to measure"))?;
    results.digests = progress.step("measuring digests", || digests(board, emulator, single, progress))?;
    beside(board, emulator, progress, single, &mut results)?;
    single.class_binary().clone_into(&mut results.class_binary);
    results.split();
    Ok(results)
}

/// Returns the emulator of a board on which the tool can measure.
pub(crate) fn emulator_of(board: &Board) -> Result<&Emulator, Problem> {
    let emulator = board
        .emulator
        .as_ref()
        .filter(|emulator| !emulator.bare.is_empty());
    emulator.ok_or_else(|| {
        Problem::new(format!(
            "board `{}` has no emulator that can be measured on",
            board.name
        ))
        .remedy("its board file needs `bare` and `instruction-clock` in [emulator]")
    })
}

pub(crate) fn prepare(text: &str, progress: &Progress) -> Result<Prepared, Problem> {
    prepare_with(text, Options::default(), progress)
}

fn prepare_with(text: &str, options: Options, progress: &Progress) -> Result<Prepared, Problem> {
    let options = Options {
        quiet: true,
        // The sources stay as they are while one program measures.
        built_once: true,
        ..options
    };
    prepare_text(Path::new("bench/system.toml"), text, &options, progress)
}

/// Measures the switch under every policy among 2, 8 and 32 vCPUs, and with the trace on.
fn switches(
    board: &Board,
    emulator: &Emulator,
    progress: &Progress,
    figures: &mut Figures,
) -> Result<(), Problem> {
    let first = format!("{SWITCH}{FIRST}");
    let switch = |system: &Prepared| {
        let figures = run(emulator, system)?;
        let found = figures.get(SWITCH).copied().zip(figures.get(&first).copied());
        found.ok_or_else(|| Problem::new("the guest did not report a switch"))
    };
    let mut measured = Vec::new();
    for (name, text) in systems::shared(&board.name) {
        measured.push((name, prepare(&text, progress)?));
    }
    let traced = Options {
        trace_records: Some(TRACE_RECORDS),
        ..Options::default()
    };
    let (part, vcpus) = SWITCH_PART;
    let traced = prepare_with(&manifest(&board.name, part, vcpus, None), traced, progress)?;
    let (part, vcpus) = SINGLE_PART;
    let short = manifest(&board.name, part, vcpus, None) + SHORT_EXITS;
    let short = prepare(&short, progress)?;
    progress.step("measuring switches", || {
        for (name, system) in &measured {
            let (usual, first) = switch(system)?;
            figures.insert(format!("{SWITCH}-{name}"), usual);
            figures.insert(format!("{SWITCH}-{name}{FIRST}"), first);
        }
        let (traced, first) = switch(&traced)?;
        figures.insert(format!("{SWITCH_TRACED}{FIRST}"), first);
        let plain = figures.get(SWITCH).copied().unwrap_or(0);
        figures.insert(SWITCH_TRACED.to_owned(), traced);
        figures.insert(
            TRACE_RECORD.to_owned(),
            traced.saturating_sub(plain) / RECORDS_OF_SWITCH,
        );
        let recorded = run(emulator, &short)?;
        let calls = recorded.get(NULL_CALL).zip(figures.get(NULL_CALL));
        let (with, without) =
            calls.ok_or_else(|| Problem::new("the guest did not report a null hypercall"))?;
        figures.insert(SHORT_RECORD.to_owned(), with.saturating_sub(*without));
        Ok(())
    })
}

/// Measures the timer of a VM that waits on a pCPU with other VMs. The bare board has the figure of the same
/// wait.
fn shared_timers(
    board: &Board,
    emulator: &Emulator,
    progress: &Progress,
    results: &mut Results,
) -> Result<(), Problem> {
    let mut measured = Vec::new();
    for (name, size, rest, parts) in SHARED_TIMERS {
        let options = Options {
            parts: *parts,
            ..Options::default()
        };
        let text = systems::timer(&board.name, *size, rest);
        measured.push((*name, prepare_with(&text, options, progress)?));
    }
    progress.step("measuring timers", || {
        let bare = results.bare.clone();
        for (name, system) in &measured {
            let hypervised = run(emulator, system)?;
            for end in ["", FIRST] {
                let (from, to) = (format!("{TIMER}{end}"), format!("{TIMER_SHARED}-{name}{end}"));
                for (found, figures) in [(&hypervised, &mut results.hypervised), (&bare, &mut results.bare)] {
                    figures.extend(found.get(&from).map(|ticks| (to.clone(), *ticks)));
                }
            }
        }
        Ok(())
    })
}

/// Measures the spread of the timer of a VM that runs, and registers of a device that a task serves.
fn spread(
    board: &Board,
    emulator: &Emulator,
    progress: &Progress,
    results: &mut Results,
) -> Result<(), Problem> {
    let system = prepare(&systems::more(&board.name), progress)?;
    let served = prepare(&systems::served(&board.name), progress)?;
    progress.step("measuring many arrivals and a device", || {
        results
            .bare
            .append(&mut run_bare(emulator, "guest-bench-more", &[1])?);
        results.hypervised.append(&mut run(emulator, &system)?);
        results.hypervised.append(&mut run(emulator, &served)?);
        Ok(())
    })
}

/// Measures the start of a VM beside one whose memory takes long to clear. The digests of both payloads are
/// taken off: they grow with the length of the image.
fn beside(
    board: &Board,
    emulator: &Emulator,
    progress: &Progress,
    single: &Prepared,
    results: &mut Results,
) -> Result<(), Problem> {
    let system = prepare(&systems::beside(&board.name), progress)?;
    let digests = results.digests as f64 * system.image().len() as f64 / single.image().len() as f64;
    progress.step("measuring a start", || {
        let found = run(emulator, &system)?;
        if let Some(ticks) = found.get(RESET) {
            let ticks = ticks.saturating_sub(digests as u64);
            results.hypervised.insert(RESET_BESIDE.to_owned(), ticks);
        }
        Ok(())
    })
}

/// Measures messages, switches and preemptions between partitions of each kind, and doorbells.
fn messages(
    board: &Board,
    emulator: &Emulator,
    progress: &Progress,
    figures: &mut Figures,
) -> Result<(), Problem> {
    let mut measured = Vec::new();
    let of_each_kind = [
        systems::ports,
        systems::waiting,
        systems::turns,
        systems::late,
        systems::late_often,
    ]
    .map(|systems| systems(&board.name));
    for (name, text) in of_each_kind.into_iter().flatten() {
        measured.push((name, prepare(&text, progress)?));
    }
    measured.push((
        "channel".to_owned(),
        prepare(&systems::held(&board.name), progress)?,
    ));
    for (name, text) in systems::doorbells(&board.name) {
        measured.push((name.to_owned(), prepare(&text, progress)?));
    }
    progress.step("measuring partitions of each kind", || {
        for (name, system) in &measured {
            let found = run(emulator, system)?;
            figures.extend(
                found
                    .into_iter()
                    .map(|(key, ticks)| (format!("{key}-{name}"), ticks)),
            );
        }
        Ok(())
    })
}

pub(crate) fn launch() -> Launch {
    Launch {
        deterministic: true,
        paced: false,
        virtual_seconds: Some(VIRTUAL_LIMIT),
        real_seconds: Some(REAL_LIMIT),
        gdb: None,
        log_base: None,
        trace: false,
        kept: Vec::new(),
        class: None,
        device_secret: None,
    }
}

/// Runs a program on the bare board, once with each of these numbers of CPUs.
pub(crate) fn measure_bare(emulator: &Emulator, program: &Path, cpus: &[usize]) -> Result<Figures, Problem> {
    let mut figures = Figures::new();
    for cpus in cpus {
        let mut reader = Reader::default();
        let bare = Bare::as_it_is(emulator, program).with_cpus(*cpus);
        bare.run(&launch(), Vec::new(), &mut reader)?;
        figures.append(&mut reader.figures()?);
    }
    Ok(figures)
}

/// Returns the emulator with a counter that counts instructions.
pub(crate) fn counting(emulator: &Emulator, arguments: &[String]) -> Emulator {
    let mut counting = emulator.clone();
    counting.arguments = arguments
        .iter()
        .chain(&emulator.instruction_clock)
        .cloned()
        .collect();
    counting
}

/// Returns the emulator with `1 << pace` nanoseconds for an instruction.
pub(crate) fn paced(emulator: &Emulator, pace: u32) -> Emulator {
    let mut paced = emulator.clone();
    for word in &mut paced.deterministic {
        *word = word.replace("shift=0", &format!("shift={pace}"));
    }
    paced
}

pub(crate) fn run(emulator: &Emulator, system: &Prepared) -> Result<Figures, Problem> {
    let mut reader = Reader::default();
    observe(emulator, system, &launch(), &mut reader)?;
    reader.figures()
}

/// Runs a system with a counter that counts instructions.
pub(crate) fn observe(
    emulator: &Emulator,
    system: &Prepared,
    launch: &Launch,
    observer: &mut dyn Observer,
) -> Result<Outcome, Problem> {
    let counting = counting(emulator, &emulator.arguments);
    let board = system.board_of(&counting);
    launch::run(launch, board, system.flash(), observer, &mut NoInput, None)
}

/// The findings of a run to a line.
pub(crate) struct Seen {
    /// The log area of the hypervisor.
    pub log_area: Option<Vec<u8>>,
    /// The costs that partitions printed: `cost NAME NUMBER`.
    pub costs: Figures,
}

/// Runs a system until a line is printed.
pub(crate) fn run_to_line(emulator: &Emulator, system: &Prepared, line: &str) -> Result<Seen, Problem> {
    let mut launch = launch();
    launch.look_at(system.system());
    let mut until = Until {
        end: line,
        costs: Figures::new(),
    };
    let outcome = observe(emulator, system, &launch, &mut until)?;
    Ok(Seen {
        log_area: outcome.log_area,
        costs: until.costs,
    })
}

/// Ends a run at a line, and collects costs.
struct Until<'a> {
    end: &'a str,
    costs: Figures,
}

impl Observer for Until<'_> {
    fn line(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        let mut words = line.text.split_ascii_whitespace();
        if let (Some("cost"), Some(name), Some(number)) = (words.next(), words.next(), words.next()) {
            self.costs
                .extend(number.parse().ok().map(|number| (name.to_owned(), number)));
        }
        control.stop = line.text == self.end;
    }
}

/// Runs a guest on the bare board, once with each of these numbers of CPUs. The last run counts: an idle CPU
/// must not disturb a part that needs one.
fn run_bare(emulator: &Emulator, program: &str, cpus: &[usize]) -> Result<Figures, Problem> {
    let guest = Workspace::locate()?.program(program);
    let bytes = std::fs::read(&guest).map_err(Problem::io(guest.display()))?;
    let file = TemporaryFile::write("bin", &bytes)?;
    let mut clocked = emulator.clone();
    clocked.bare = counting(emulator, &emulator.bare).arguments;
    measure_bare(&clocked, file.path(), cpus)
}

/// Returns the instructions that all digests of `system` take.
fn digests(
    board: &Board,
    emulator: &Emulator,
    system: &Prepared,
    progress: &Progress,
) -> Result<u64, Problem> {
    let ballast = TemporaryFile::write("bin", &vec![0xA5; BALLAST])?;
    let (part, vcpus) = PARTS.first().copied().unwrap_or_default();
    let heavy = prepare(
        &manifest(&board.name, part, vcpus, Some(ballast.path())),
        progress,
    )?;
    let reset = |system: &Prepared| {
        let figures = run(emulator, system)?;
        figures
            .get(RESET)
            .copied()
            .ok_or_else(|| Problem::new("the guest did not report its start"))
    };
    let difference = reset(&heavy)?.saturating_sub(reset(system)?) as f64;
    let per_byte = difference / (heavy.image().len() - system.image().len()) as f64;
    Ok((system.image().len() as f64 * per_byte) as u64)
}

/// Collects the guest's output.
#[derive(Default)]
pub(crate) struct Reader {
    figures: Figures,
    done: bool,
    rest: Vec<String>,
}

impl Reader {
    pub(crate) fn figures(self) -> Result<Figures, Problem> {
        if self.done {
            Ok(self.figures)
        } else {
            Err(Problem::new(format!(
                "the guest `bench` did not finish:\n{}",
                self.rest.join("\n")
            )))
        }
    }

    fn take(&mut self, text: &str) {
        let mut words = text.split_ascii_whitespace();
        let figure = match (words.next(), words.next(), words.next()) {
            (Some("bench"), Some("done"), None) => {
                self.done = true;
                None
            }
            (Some("bench"), Some(name), Some(ticks)) => ticks.parse().ok().map(|ticks| (name, ticks)),
            _ => None,
        };
        match figure {
            Some((name, ticks)) => drop(self.figures.insert(name.to_owned(), ticks)),
            None => self.rest.push(text.to_owned()),
        }
    }
}

impl Observer for Reader {
    fn line(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        self.take(line.text);
        // Other partitions on the board may go on for ever.
        control.stop = self.done;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_an_unfinished_run_is_an_error() {
        let mut reader = Reader::default();
        for line in ["bench reset 5", "hello", "bench null-call 12", "bench x y"] {
            reader.take(line);
        }
        let problem = reader.figures().unwrap_err().to_string();
        assert!(
            problem.contains("hello") && problem.contains("bench x y"),
            "{problem}"
        );
        let mut reader = Reader::default();
        for line in ["bench null-call 12", "bench done"] {
            reader.take(line);
        }
        assert_eq!(reader.figures().unwrap().get("null-call"), Some(&12));
    }

    #[test]
    fn first_turns_are_put_apart_whatever_their_system() {
        let mut results = Results {
            bare: [("a-first".to_owned(), 2)].into(),
            hypervised: [("a-first", 9), ("a", 5), ("b-first-vm-vm", 7)]
                .map(|(key, ticks)| (key.to_owned(), ticks))
                .into(),
            ..Results::default()
        };
        results.split();
        assert_eq!((results.cold("a"), results.cold("b-vm-vm")), (Some(7), Some(7)));
        assert_eq!((results.cold("c"), results.net("a")), (None, Some(5)));
        assert_eq!(results.hypervised.len(), 1);
    }

    #[test]
    fn bars_of_histograms_are_put_apart() {
        let mut results = Results {
            hypervised: [
                ("histogram-late-at-861-vm-vm", 126),
                ("histogram-late-at-870-vm-vm", 2),
                ("late-worst-vm-vm", 870),
            ]
            .map(|(key, count)| (key.to_owned(), count))
            .into(),
            bare: [("histogram-timer-busy-at-41".to_owned(), 128)].into(),
            ..Results::default()
        };
        results.split();
        assert_eq!(
            results.histograms["late-worst-vm-vm"],
            [(861, 126), (870, 2)].into()
        );
        assert_eq!((results.hypervised.len(), results.bare.len()), (1, 0));
        assert_eq!(
            bar("histogram-timer-busy-at-41"),
            Some(("timer-busy-worst".to_owned(), 41))
        );
        assert_eq!(bar("histogram-x"), None);
    }

    #[test]
    fn net_is_what_the_hypervisor_adds() {
        let figures = |list: &[(&str, u64)]| {
            list.iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect()
        };
        let results = Results {
            bare: figures(&[("a", 3), (RESET, 1)]),
            hypervised: figures(&[("a", 10), (RESET, 100), ("only", 7)]),
            digests: 40,
            ..Results::default()
        };
        assert_eq!(results.net("a"), Some(7));
        assert_eq!(results.net(RESET), Some(59));
        assert_eq!(results.net("only"), Some(7));
        assert_eq!(results.net("none"), None);
    }
}
