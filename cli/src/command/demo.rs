// SPDX-License-Identifier: Apache-2.0
//! `bulkhead demo`: the showcase, with a list of its promises. Each promise is ticked off when it is seen.
//!
//! The run is deterministic. It ends by itself when all promises were seen, or when the time limit says that
//! one of them will never be. A promise is a pattern on one console. The text that the pattern captures is
//! the figure in the list.

use crate::build::artifacts::Workspace;
use crate::build::prepare::{Options, prepare};
use crate::build::variant::Choice;
use crate::class::{self, Showcase};
use crate::emulator::launch::{self, Launch};
use crate::emulator::session::{Ending, NoInput, Outcome};
use crate::log::summary::Summary;
use crate::problem::{Code, Problem};
use crate::serial::consoles::{ConsoleLine, Control, Observer};
use crate::serial::pattern::Pattern;
use crate::ui::progress::Progress;
use crate::ui::screen::{Look, Screen};
use crate::ui::terminal;
use std::io::{Stdout, stdout};
use std::os::fd::AsFd;

/// Seconds of the board's time after which the showcase has failed.
const LIMIT: f64 = 60.0;

/// Returns the class of this name, and its showcase.
fn showcase(name: Option<&str>) -> Result<Showcase, Problem> {
    let tool = match name {
        None => Some(class::default()),
        Some(name) => class::all().find(|tool| tool.facts().name == name),
    };
    tool.and_then(class::Tool::showcase).ok_or_else(|| {
        let with = class::all().filter(|tool| tool.showcase().is_some());
        let known: Vec<&str> = with.map(|tool| tool.facts().name).collect();
        Problem::usage(format!(
            "there is no showcase of class `{}`",
            name.unwrap_or_default()
        ))
        .remedy(format!("classes with a showcase: {}", known.join(", ")))
    })
}

fn headline(showcase: &Showcase) -> String {
    let Showcase {
        board, kernel, place, ..
    } = showcase;
    format!(
        "\
Four partitions of mixed criticality on one emulated two-core {board}, isolated by Bulkhead:
  linux       Debian's own {kernel}
  control     bare-metal control loop, 1 kHz, on {place}
  supervisor  task without an operating system, watches the others by capability
  rogue       will write to memory that is not its own
"
    )
}

/// Something the showcase promises.
struct Promise {
    text: &'static str,
    console: &'static str,
    /// The pattern. Its one capture group, if there is one, is the figure to show. `CPUS` stands for the
    /// number of CPUs that Linux has.
    pattern: &'static str,
    /// Times it must be seen.
    times: u32,
}

const PROMISES: &[Promise] = &[
    Promise {
        text: "Linux booted and sees the CPUs it has",
        console: "linux",
        pattern: r"^linux: .*nproc says (CPUS)\b",
        times: 1,
    },
    Promise {
        text: "Linux finished its workload",
        console: "linux",
        pattern: r"^linux: workload: (done.*)$",
        times: 1,
    },
    Promise {
        text: "Linux shows a shell prompt",
        console: "linux",
        pattern: r"^(.*[#$]) $",
        times: 1,
    },
    Promise {
        text: "rogue was stopped at memory that is not its own, and reported",
        console: "bulkhead",
        pattern: r"^health: partition=rogue .*class=(memory)",
        times: 1,
    },
    Promise {
        text: "rogue was restarted",
        console: "rogue",
        pattern: r"^rogue: (started)$",
        times: 2,
    },
    Promise {
        text: "the supervisor saw it happen",
        console: "supervisor",
        pattern: r"^supervisor: (rogue is .*restarts \d+.*)$",
        times: 1,
    },
    Promise {
        text: "the control loop reported",
        console: "control",
        pattern: r"^control: (second \d+, releases \d+, missed \d+, jitter max \d+ ns)",
        times: 3,
    },
];

/// The promise that cannot be ticked off early: it must hold in every line.
const NO_MISS: &str = r"^control: second .*, missed (\d+),";

/// Runs the showcase of the class of this name, or of the default class. The partitions have the same names
/// in all, so the promises are the same.
pub(super) fn run(class: Option<&str>) -> Result<Code, Problem> {
    let showcase = showcase(class)?;
    let workspace = Workspace::locate()?;
    super::print(&format!("{}\n", headline(&showcase)))?;
    let progress = Progress::new();
    let prepared = prepare(
        &workspace.root().join(showcase.example),
        &Options {
            stop_after: Some(LIMIT),
            trace_records: None,
            parts: Choice::Smallest,
            ..Options::default()
        },
        &progress,
    )?;
    drop(progress);
    let emulator = prepared.emulator()?;
    let look = Look {
        colour: terminal::has_colour(),
        live: None,
    };
    let mut audience = Audience::new(&showcase, Screen::new(stdout(), look, &prepared.consoles()))?;
    let launch = Launch {
        deterministic: true,
        virtual_seconds: Some(LIMIT),
        ..Launch::default()
    };
    let signals = super::Signals::listen()?;
    let board = prepared.board_of(&emulator);
    let outcome = launch::run(
        &launch,
        board,
        prepared.flash(),
        &mut audience,
        &mut NoInput,
        Some(signals.stream.as_fd()),
    )?;
    audience.conclude(&showcase, &outcome, look.colour)
}

/// Watches the showcase.
struct Audience {
    screen: Screen<Stdout>,
    promises: Vec<(Pattern, u32, String)>,
    no_miss: Pattern,
    missed: Option<u64>,
    summary: Summary,
    closed: bool,
}

impl Audience {
    fn new(showcase: &Showcase, screen: Screen<Stdout>) -> Result<Self, Problem> {
        let compile = |text: &str| Pattern::new(text).map_err(Problem::new);
        let promises = PROMISES.iter().map(|promise| {
            Ok((
                compile(&promise.pattern.replace("CPUS", showcase.cpus))?,
                0,
                String::new(),
            ))
        });
        Ok(Self {
            screen,
            promises: promises.collect::<Result<_, Problem>>()?,
            no_miss: compile(NO_MISS)?,
            missed: None,
            summary: Summary::default(),
            closed: false,
        })
    }

    /// Looks for the promises in a line. A line that `is_partial` comes again when it is whole. The tool
    /// therefore looks in such a line only for promises that need not be counted.
    fn look(&mut self, line: ConsoleLine<'_>, is_partial: bool, control: &mut Control) {
        for (promise, (pattern, count, figure)) in PROMISES.iter().zip(&mut self.promises) {
            if promise.console != line.console || is_partial && promise.times > 1 {
                continue;
            }
            if let Some(groups) = pattern.captures(line.text) {
                *count += 1;
                *figure = groups.first().map_or(String::new(), |group| (*group).to_owned());
            }
        }
        control.stop |= self.is_complete() || self.closed;
    }

    fn is_complete(&self) -> bool {
        PROMISES
            .iter()
            .zip(&self.promises)
            .all(|(promise, (_, count, _))| *count >= promise.times)
    }

    fn conclude(mut self, showcase: &Showcase, outcome: &Outcome, colour: bool) -> Result<Code, Problem> {
        // A screen that cannot be written any more is not the showcase's fault.
        let _ = self.screen.close();
        let mut list: Vec<(bool, String)> = PROMISES
            .iter()
            .zip(&self.promises)
            .map(|(promise, (_, count, figure))| {
                let kept = *count >= promise.times;
                let figure = if figure.is_empty() {
                    String::new()
                } else {
                    format!(": {}", figure.trim())
                };
                (kept, format!("{}{figure}", promise.text))
            })
            .collect();
        let missed = self.missed.map_or_else(
            || "nothing reported".to_owned(),
            |missed| format!("{missed} missed"),
        );
        list.push((
            self.missed == Some(0),
            format!("the control loop missed no release: {missed}"),
        ));
        let mut text = String::from("\n");
        for (kept, promise) in &list {
            text.push_str(&format!("  {} {promise}\n", mark(*kept, colour)));
        }
        text.push_str(&format!(
            "\n{}\n",
            self.summary.text(outcome.virtual_time, outcome.real_time)
        ));
        let kept = list.iter().all(|(kept, _)| *kept);
        if !kept {
            text.push_str(&format!(
                "\nThe showcase did not keep its promises; it ended by {:?}.\n",
                outcome.ending
            ));
            if !outcome.messages.is_empty() {
                text.push_str(&format!("The emulator says: {}\n", outcome.messages));
            }
        } else {
            text.push_str(&format!(
                "\nNext: ./bulkhead run {}   (type into Linux; Ctrl-A ? helps)\n",
                showcase.example
            ));
        }
        super::print(&text)?;
        let timeout = matches!(outcome.ending, Ending::VirtualLimit | Ending::RealLimit);
        Ok(match (kept, timeout) {
            (true, _) => Code::Done,
            (false, true) => Code::Timeout,
            (false, false) => Code::Fault,
        })
    }
}

fn mark(kept: bool, colour: bool) -> &'static str {
    match (kept, colour) {
        (true, true) => "\x1b[32m[ok]\x1b[0m    ",
        (true, false) => "[ok]    ",
        (false, true) => "\x1b[31m[FAILED]\x1b[0m",
        (false, false) => "[FAILED]",
    }
}

impl Observer for Audience {
    fn line(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        self.closed |= self.screen.line(line).is_err();
        self.summary.line(line);
        if line.console == "control"
            && let Some(groups) = self.no_miss.captures(line.text)
            && let Some(missed) = groups.first().and_then(|missed| missed.parse::<u64>().ok())
        {
            self.missed = Some(self.missed.unwrap_or(0).max(missed));
        }
        control.stop |= self.summary.lockdown.is_some();
        self.look(line, false, control);
    }

    fn partial(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        self.closed |= self.screen.partial(line).is_err();
        self.look(line, true, control);
    }

    fn quiet(&mut self, _: &mut Control) {
        self.closed |= self.screen.quiet().is_err();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serial::framing::VirtualTime;

    fn audience() -> Audience {
        Audience::new(
            &showcase(None).unwrap(),
            Screen::new(stdout(), Look::default(), &[]),
        )
        .unwrap()
    }

    fn show(audience: &mut Audience, console: &str, text: &str) -> bool {
        let mut control = Control::default();
        audience.look(
            ConsoleLine {
                console,
                time: VirtualTime::default(),
                text,
                cursor: 0,
            },
            false,
            &mut control,
        );
        control.stop
    }

    #[test]
    fn the_showcase_ends_when_every_promise_is_kept() {
        let mut audience = audience();
        for (console, text) in [
            ("linux", "linux: kernel 6.1.0-56-arm64, nproc says 2, 232 MiB"),
            ("linux", "linux: workload: done, 2 equal results"),
            ("linux", "~ # "),
            (
                "bulkhead",
                "health: partition=rogue vcpu=0 class=memory address=0x80000000 action=restart",
            ),
            ("rogue", "rogue: started"),
            ("rogue", "rogue: started"),
            ("supervisor", "supervisor: rogue is running (memory), restarts 1"),
            (
                "control",
                "control: second 1, releases 1000, missed 0, jitter max 900 ns, mean 400 ns",
            ),
            (
                "control",
                "control: second 2, releases 2000, missed 0, jitter max 900 ns, mean 400 ns",
            ),
        ] {
            assert!(!show(&mut audience, console, text), "{text}");
        }
        // The same words on another console prove nothing.
        assert!(!show(
            &mut audience,
            "rogue",
            "control: second 3, releases 3000, missed 0, jitter max 900 ns"
        ));
        assert!(show(
            &mut audience,
            "control",
            "control: second 3, releases 3000, missed 0, jitter max 900 ns"
        ));
    }
}
