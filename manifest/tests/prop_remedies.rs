// SPDX-License-Identifier: Apache-2.0
//! Remedies of refusals and suggestions of `--suggest`, on random manifests. A remedy that is written into
//! the manifest makes the manifest accepted. A little less of a longer budget or a farther move does not. A
//! suggestion is also in time in the simulator, which runs the policies' very code, and means no more
//! switches than necessary.
//!
//! `BULKHEAD_SYSTEMS=n` tries that many manifests per policy.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write;

use bulkhead_manifest::timing::{self, PcpuTiming};
use bulkhead_manifest::{Report, System, load_text};
use bulkhead_sched::Slot;
use bulkhead_sched::simulate::{Simulator, Source, SourceState};

/// Proposed times are multiples of this many nanoseconds.
const STEP: u64 = 10_000;

#[derive(Clone, Debug)]
struct Task {
    period: u64,
    wcet: u64,
    deadline: u64,
}

#[derive(Clone, Debug)]
struct Partition {
    priority: u64,
    /// Budget and period.
    server: Option<(u64, u64)>,
    domain: usize,
    tasks: Vec<Task>,
}

/// No suggested turn is shorter than this: ten times the costs of its ends on the board.
const SENSIBLE: u64 = 50_000;

/// One pCPU as a manifest describes it, in nanoseconds.
#[derive(Clone, Debug)]
struct Manifest {
    policy: &'static str,
    frame: u64,
    /// Partition, offset, duration.
    windows: Vec<(usize, u64, u64)>,
    domains: Vec<u64>,
    partitions: Vec<Partition>,
}

/// Random numbers that are the same each time (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end.max(1)
    }

    fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    fn micros(&mut self, from: u64, to: u64) -> u64 {
        self.within(from, to) * 1000
    }
}

impl Manifest {
    fn random(policy: &'static str, number: u64) -> Self {
        let mut numbers = Numbers(number.wrapping_mul(0x1234_5678_9abc_def1));
        let count = numbers.within(1, 3) as usize;
        let mut manifest = Self {
            policy,
            frame: 10_000_000,
            windows: Vec::new(),
            domains: Vec::new(),
            partitions: Vec::new(),
        };
        let (mut at, room) = (0, 10_000_000 / count as u64);
        for number in 0..count {
            let period = numbers.within(1, 8) * 5_000_000;
            let wcet = numbers.micros(100, period / 1000 / (2 * count as u64));
            let deadline = numbers.within(wcet * 3 / 2, period).min(period) / 1000 * 1000;
            let server = (policy == "edf").then(|| (numbers.micros(200, 2500), 10_000_000));
            // One of four declares nothing, but the first one always declares something.
            let declares = number == 0 || numbers.below(4) > 0;
            manifest.partitions.push(Partition {
                priority: numbers.within(1, 9),
                server,
                domain: number,
                tasks: Vec::from_iter(declares.then_some(Task {
                    period,
                    wcet,
                    deadline,
                })),
            });
            manifest.domains.push(numbers.micros(100, 2000));
            let duration = numbers.micros(100, room / 1000 - 100);
            let offset = at + numbers.below((room - duration) / 1000) * 1000;
            manifest.windows.push((number, offset, duration));
            at += room;
        }
        manifest
    }

    fn text(&self) -> String {
        let mut text = format!(
            "board = \"qemu-virt-aarch64\"\n[pcpu.0]\npolicy = \"{}\"\n",
            self.policy
        );
        if self.policy == "arinc653" {
            let _ = write!(
                text,
                "[pcpu.0.schedule.only]\nframe = \"{}ns\"\nwindows = [",
                self.frame
            );
            for (partition, offset, duration) in &self.windows {
                let _ = write!(
                    text,
                    "{{ partition = \"p{partition}\", offset = \"{offset}ns\", duration = \"{duration}ns\" }},"
                );
            }
            text.push_str("]\n");
        }
        if self.policy == "domains" {
            for (number, budget) in self.domains.iter().enumerate() {
                let _ = writeln!(text, "[pcpu.0.domain.d{number}]\nbudget = \"{budget}ns\"");
            }
        }
        for (number, partition) in self.partitions.iter().enumerate() {
            let mut vcpu = String::new();
            if matches!(self.policy, "fixed-priority" | "domains") {
                let _ = write!(vcpu, ", priority = {}", partition.priority);
            }
            if let Some((budget, period)) = partition.server {
                let _ = write!(vcpu, ", budget = \"{budget}ns\", period = \"{period}ns\"");
            }
            if self.policy == "domains" {
                let _ = write!(vcpu, ", domain = \"d{}\"", partition.domain);
            }
            let _ = write!(
                text,
                "[partition.p{number}]\nkind = \"vm\"\nimage = \"payloads/raw.bin\"\nmemory = \"2M\"\n\
                 vcpus = [{{ pcpu = 0{vcpu} }}]\n"
            );
            if partition.tasks.is_empty() {
                continue;
            }
            text.push_str("demand.tasks = [");
            for (number, task) in partition.tasks.iter().enumerate() {
                let Task {
                    period,
                    wcet,
                    deadline,
                } = task;
                let _ = write!(
                    text,
                    "{{ name = \"t{number}\", period = \"{period}ns\", wcet = \"{wcet}ns\", deadline = \"{deadline}ns\" }},"
                );
            }
            text.push_str("]\n");
        }
        text
    }

    fn load(&self) -> Option<System> {
        let path = support::root().join("tests/config-bad/prop.toml");
        load_text(&path, &self.text(), &support::resolve).ok()
    }

    fn judge(&self) -> Option<Report> {
        self.load().map(|system| timing::judge(&system))
    }

    /// Tells whether the manifest is accepted.
    fn passes(&self) -> bool {
        self.judge().is_some_and(|report| !report.has_errors())
    }

    fn pcpu(&self) -> Option<PcpuTiming> {
        self.load().map(|system| timing::pcpus(&system).remove(0))
    }

    /// Tells whether all jobs are in time on the virtual clock, released together and in two random phases.
    fn is_in_time(&self, seed: u64) -> bool {
        let pcpu = self.pcpu().unwrap();
        let sources = pcpu.vcpus.iter().flat_map(|vcpu| &vcpu.sources);
        let mut sources: Vec<Source> = sources.map(|(_, source)| *source).collect();
        let mut numbers = Numbers(seed);
        (0..3).all(|run| {
            for source in &mut sources {
                source.first = numbers.below(source.task.period) * u64::from(run > 0);
            }
            let mut states = vec![SourceState::default(); sources.len()];
            let policy = pcpu.policy(0).unwrap();
            let mut simulator = Simulator::new(policy, &sources, &mut states, pcpu.overheads, seed);
            for (slot, vcpu) in (0..).map(Slot).zip(&pcpu.vcpus) {
                simulator.set_scheduler(slot, vcpu.scheduler);
            }
            assert!(simulator.run(200_000_000, 1_000_000, &mut ()));
            states.iter().all(|state| state.statistics.missed == 0)
        })
    }

    /// Returns the manifest with the remedy of a refusal, and the manifest with a little less of the remedy,
    /// if the remedy has a measure.
    fn mended(&self, help: &str) -> (Self, Option<Self>) {
        let mut mended = self.clone();
        let mut less = None;
        let number = || name_in(help);
        if help.contains("for the time domain of") {
            let (domain, new) = (self.partitions[number()].domain, quoted(help, "budget"));
            mended.domains[domain] = new;
            less = with_less(&mended, self.domains[domain], new, |manifest, value| {
                manifest.domains[domain] = value;
            });
        } else if help.contains("with budget =") {
            let (number, new) = (number(), quoted(help, "budget"));
            let set = |manifest: &mut Self, value| {
                let server = &mut manifest.partitions[number].server;
                *server = server.map(|(_, period)| (value, period));
            };
            set(&mut mended, new);
            let old = self.partitions[number].server.map_or(0, |(budget, _)| budget);
            less = with_less(&mended, old, new, set);
        } else if help.contains("with priority =") {
            let priority = help
                .split("priority = ")
                .nth(1)
                .and_then(|rest| rest.split(' ').next());
            mended.partitions[number()].priority = priority.unwrap().parse().unwrap();
        } else if let Some(at) = help.split("its window at ").nth(1) {
            let at = nanoseconds(at.split(' ').next().unwrap());
            let place = self
                .windows
                .iter()
                .position(|(_, offset, _)| *offset == at)
                .unwrap();
            mended.windows[place].1 = quoted(help, "offset");
            if help.contains("duration =") {
                let new = quoted(help, "duration");
                mended.windows[place].2 = new;
            } else {
                let new = mended.windows[place].1;
                less = with_less(&mended, at, new, |manifest, value| {
                    manifest.windows[place].1 = value
                });
            }
        } else if let Some(rest) = help.split("` took ").nth(1) {
            let part: u64 = rest.split(' ').next().unwrap().parse().unwrap();
            for task in &mut mended.partitions[number()].tasks {
                task.wcet = (task.wcet * part / 100).max(1);
            }
        } else {
            panic!("{help}");
        }
        (mended, less)
    }

    /// Returns the manifest with the suggestion.
    fn suggested(&self, lines: &[String]) -> Self {
        let mut changed = self.clone();
        if self.policy == "arinc653" {
            changed.windows.clear();
        }
        for line in lines {
            if line.starts_with("frame") {
                changed.frame = quoted(line, "frame");
            } else if line.starts_with("window") {
                let name = line.split("partition = \"p").nth(1).unwrap();
                let number = name.split('"').next().unwrap().parse().unwrap();
                let window = (number, quoted(line, "offset"), quoted(line, "duration"));
                changed.windows.push(window);
            } else if let Some(rest) = line.strip_prefix("domain ") {
                let number: usize = rest.split([' ', ':']).next().unwrap().parse().unwrap();
                changed.domains[number] = quoted(line, "budget");
            } else {
                let number: usize = line[1..].split(':').next().unwrap().parse().unwrap();
                let partition = &mut changed.partitions[number];
                if let Some(priority) = line.split("priority = ").nth(1) {
                    partition.priority = priority.trim_end_matches(" }").parse().unwrap();
                    partition.server = None;
                } else {
                    partition.server = Some((quoted(line, "budget"), quoted(line, "period")));
                }
            }
        }
        changed
    }
}

/// Returns `manifest` with a value a step nearer to the old one, unless that is the old one itself.
fn with_less(manifest: &Manifest, old: u64, new: u64, set: impl Fn(&mut Manifest, u64)) -> Option<Manifest> {
    let value = if new > old { new - STEP } else { new + STEP };
    (old.abs_diff(new) > STEP).then(|| {
        let mut less = manifest.clone();
        set(&mut less, value);
        less
    })
}

/// Tells whether a time has at most two digits other than 0.
fn is_round(time: u64) -> bool {
    let mut digits = time;
    while digits.is_multiple_of(10) {
        digits /= 10;
    }
    digits < 100
}

/// Returns the number of the partition that a text names.
fn name_in(text: &str) -> usize {
    let name = text.split("`p").nth(1).unwrap_or_else(|| panic!("{text}"));
    name.split('`').next().unwrap().parse().unwrap()
}

/// Returns the time that `key = "..."` gives in a text.
fn quoted(text: &str, key: &str) -> u64 {
    let rest = text
        .split(&format!("{key} = \""))
        .nth(1)
        .unwrap_or_else(|| panic!("{text}"));
    nanoseconds(rest.split('"').next().unwrap())
}

fn nanoseconds(text: &str) -> u64 {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let factor = match &text[digits.len()..] {
        "ns" => 1,
        "us" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        unit => panic!("{unit}"),
    };
    digits.parse::<u64>().unwrap() * factor
}

/// Returns the partitions that have a refused task.
fn refused_in(report: &Report) -> BTreeSet<usize> {
    report
        .diagnostics
        .iter()
        .map(|finding| partition_of(&finding.message))
        .collect()
}

/// Returns the partition that a refusal is about.
fn partition_of(message: &str) -> usize {
    name_in(
        message
            .split(" of ")
            .nth(1)
            .unwrap_or_else(|| panic!("{message}")),
    )
}

fn count() -> u64 {
    let number = std::env::var("BULKHEAD_SYSTEMS").ok();
    number.and_then(|text| text.parse().ok()).unwrap_or(60)
}

fn try_all(policy: &'static str) {
    let (mut refused, mut mended_ones, mut suggested_ones) = (0, 0, 0);
    for seed in 0..count() {
        let manifest = Manifest::random(policy, seed);
        // A manifest whose budgets exceed the pCPU is refused before the analysis.
        let Some(report) = manifest.judge() else { continue };
        let before = refused_in(&report);
        refused += before.len();
        for finding in &report.diagnostics {
            if finding.help.starts_with("declare") || finding.help == "see above" {
                continue;
            }
            let number = partition_of(&finding.message);
            let helps = |changed: &Manifest| {
                let after = changed.judge().map(|report| refused_in(&report));
                after.is_some_and(|after| !after.contains(&number) && after.is_subset(&before))
            };
            let (mended, less) = manifest.mended(&finding.help);
            assert!(helps(&mended), "{seed}: {}\n{}", finding.help, manifest.text());
            assert!(
                less.is_none_or(|less| !helps(&less)),
                "{seed}: less would do than {}\n{}",
                finding.help,
                manifest.text()
            );
            mended_ones += 1;
        }
        if let Some(lines) = manifest.pcpu().and_then(|pcpu| timing::suggest(&pcpu)) {
            let changed = manifest.suggested(&lines);
            assert!(changed.passes(), "{seed}: {lines:#?}\n{}", manifest.text());
            assert!(
                changed.is_in_time(seed),
                "{seed}: {lines:#?}\n{}",
                manifest.text()
            );
            if policy == "domains" {
                let least = changed.domains.iter().min().unwrap();
                assert!(*least >= SENSIBLE, "{seed}: {lines:#?}\n{}", manifest.text());
                assert!(
                    changed.domains.iter().all(|budget| is_round(*budget)),
                    "{lines:#?}"
                );
            }
            suggested_ones += 1;
        }
    }
    println!("{policy}: {refused} refused, {mended_ones} mended, {suggested_ones} suggestions");
    assert!(mended_ones * 10 > count() && suggested_ones * 10 > count());
}

#[test]
fn fixed_priority() {
    try_all("fixed-priority");
}

#[test]
fn edf() {
    try_all("edf");
}

#[test]
fn arinc653() {
    try_all("arinc653");
}

#[test]
fn domains() {
    try_all("domains");
}
