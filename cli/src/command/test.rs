// SPDX-License-Identifier: Apache-2.0
//! `bulkhead test`: all tests, with one line per test program and one closing line with the totals.
//!
//! cargo runs the tests, and beside them run the fuzz targets. The system tests are a test program of the
//! crate `bulkhead-tests`. They and the fuzz targets speak the language of cargo's tests. The output of cargo
//! is shown in full only for failures.

mod fuzz;
mod scope;

use self::scope::{SYSTEM_TESTS, Scope};
use super::TestArgs;
use crate::build::artifacts::Workspace;
use crate::problem::{Code, Problem};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Start of the name of a fuzz target.
const FUZZ: &str = "fuzz/";
/// The name of all fuzz targets together.
const FUZZ_TARGETS: &str = "fuzz targets";

pub(super) fn run(args: &TestArgs) -> Result<Code, Problem> {
    let workspace = Workspace::locate()?;
    let scope = match &args.filter {
        Some(filter) => scope::of_filter(&workspace, &mut cargo(&workspace), filter)?,
        None if args.changed => scope::of_change(&workspace, &mut cargo(&workspace))?,
        None => Scope::All,
    };
    let mut digest = Digest::new();
    std::thread::scope(|threads| {
        // cargo runs one test program after the other, and most of them use one CPU. The fuzz targets run
        // beside them, and their output is shown after cargo's.
        let has_fuzz = has_fuzz(args, &scope);
        let fuzz = has_fuzz.then(|| threads.spawn(|| fuzz::run(&workspace, args.filter.as_deref())));
        for mut command in commands(args, &workspace, &scope) {
            run_tests(command.args(&args.filter), &mut digest)?;
        }
        let Some(fuzz) = fuzz else { return Ok(()) };
        digest.begin(FUZZ_TARGETS);
        let failed_before = digest.totals.failed;
        let text = fuzz.join().ok();
        show(text.as_deref().unwrap_or_default().as_bytes(), &mut digest)?;
        count_crash(text.is_some(), failed_before, &mut digest)
    })?;
    let Digest {
        mut totals, failed, ..
    } = digest;
    if totals == Totals::default() {
        // If nothing ran, that is no success, for any reason.
        totals.failed = 1;
    }
    // The names are repeated at the end: the output before can have thousands of lines.
    for name in failed {
        super::print(&format!("failed: {name}\n"))?;
    }
    super::print(&totals.closing_line())?;
    Ok(if totals.failed == 0 {
        Code::Done
    } else {
        Code::Fault
    })
}

/// Tells whether fuzz targets are wanted.
fn has_fuzz(args: &TestArgs, scope: &Scope) -> bool {
    let is_named = match scope {
        Scope::All => true,
        Scope::Some { fuzz, .. } => *fuzz,
    };
    is_named && !args.no_fuzz && !args.system
}

/// Returns the calls of cargo that build and run the test programs.
fn commands(args: &TestArgs, workspace: &Workspace, scope: &Scope) -> Vec<Command> {
    let test = || {
        let mut command = cargo(workspace);
        command.args(["test", "--no-fail-fast", "--color", "never"]);
        if !args.host {
            command.env("BULKHEAD_SYSTEM_TESTS", "1");
            if args.long {
                command.env("BULKHEAD_LONG_TESTS", "1");
            }
        }
        command
    };
    let Scope::Some {
        packages,
        programs,
        cases,
        ..
    } = scope
    else {
        let mut command = test();
        if args.system {
            command.args(["-p", SYSTEM_TESTS]);
        }
        return vec![command];
    };
    let mut commands = Vec::new();
    if !packages.is_empty() && !args.system {
        let mut command = test();
        for package in packages {
            command.args(["-p", package]);
        }
        // The programs of system tests are named one by one below.
        command.env_remove("BULKHEAD_SYSTEM_TESTS");
        commands.push(command);
    }
    if !programs.is_empty() && !args.host {
        let mut command = test();
        command.args(["-p", SYSTEM_TESTS]);
        for program in programs {
            command.args(["--test", program]);
        }
        if !cases.is_empty() {
            command.env(
                "BULKHEAD_SYSTEM_ONLY",
                cases.iter().cloned().collect::<Vec<_>>().join(","),
            );
        }
        commands.push(command);
    }
    commands
}

/// Sums over all test programs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Totals {
    passed: u32,
    failed: u32,
    ignored: u32,
}

impl Totals {
    fn closing_line(self) -> String {
        let skipped = if self.ignored > 0 {
            format!(", {} skipped", self.ignored)
        } else {
            String::new()
        };
        format!("{} passed, {} failed{skipped}\n", self.passed, self.failed)
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }

    /// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
    fn read(line: &str) -> Option<Self> {
        let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
        let count = |name: &str| {
            counts
                .split("; ")
                .find_map(|count| count.trim().strip_suffix(name)?.trim().parse().ok())
                .unwrap_or(0)
        };
        Some(Self {
            passed: count("passed"),
            failed: count("failed"),
            ignored: count("ignored"),
        })
    }
}

fn cargo(workspace: &Workspace) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace.root()).stdin(Stdio::null());
    command
}

/// Runs cargo and shows the digest of its output.
fn run_tests(command: &mut Command, digest: &mut Digest) -> Result<(), Problem> {
    let (reader, writer) = std::io::pipe().map_err(Problem::io("cargo test"))?;
    let errors = writer.try_clone().map_err(Problem::io("cargo test"))?;
    let mut child = command
        .stdout(writer)
        .stderr(errors)
        .spawn()
        .map_err(Problem::io("cargo test"))?;
    // The command holds writing ends, too. Without this statement the pipe would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let failed_before = digest.totals.failed;
    show(BufReader::new(reader), digest)?;
    let status = child.wait().map_err(Problem::io("cargo test"))?;
    count_crash(status.success(), failed_before, digest)
}

/// Shows the digest of this output.
fn show(output: impl BufRead, digest: &mut Digest) -> Result<(), Problem> {
    for line in output.split(b'\n') {
        let line = line.map_err(Problem::io("cargo test"))?;
        for text in digest.line(&String::from_utf8_lossy(&line)) {
            super::print(&format!("{text}\n"))?;
        }
    }
    Ok(())
}

/// Counts a failure that is no test's: the build failed, or a test program crashed.
fn count_crash(success: bool, failed_before: u32, digest: &mut Digest) -> Result<(), Problem> {
    if !success && digest.totals.failed == failed_before {
        super::print(&format!("{}\n", digest.section.join("\n")))?;
        digest.totals.failed += 1;
        digest.failed.push(format!("{}, or its build", digest.program));
    }
    Ok(())
}

/// Condenses the output of `cargo test`.
struct Digest {
    totals: Totals,
    program: String,
    section: Vec<String>,
    failed: Vec<String>,
    started: Instant,
}

impl Digest {
    fn new() -> Self {
        Self {
            totals: Totals::default(),
            program: String::new(),
            section: Vec::new(),
            failed: Vec::new(),
            started: Instant::now(),
        }
    }

    /// Begins with the output of a test program.
    fn begin(&mut self, program: impl Into<String>) {
        self.program = program.into();
        self.section.clear();
        self.started = Instant::now();
    }

    /// Takes a line of cargo's output. Returns the lines to show.
    fn line(&mut self, line: &str) -> Vec<String> {
        if let Some(program) = program_of(line) {
            self.begin(program);
            return Vec::new();
        }
        self.failed
            .extend(failure_in(line).map(|test| format!("{}: {test}", self.program)));
        // The lines of the system tests and of the fuzz targets are shown as they come: each takes seconds.
        if ["system ", FUZZ, "skipped "]
            .iter()
            .any(|start| line.starts_with(start))
        {
            return vec![line.to_owned()];
        }
        self.section.push(line.to_owned());
        let Some(result) = Totals::read(line) else {
            return Vec::new();
        };
        self.totals.add(result);
        let mut shown = Vec::new();
        if result.failed > 0 {
            shown.append(&mut self.section);
            // A program without the harness may name no test.
            if !self
                .failed
                .iter()
                .any(|test| test.starts_with(&format!("{}: ", self.program)))
            {
                self.failed.push(self.program.clone());
            }
        }
        if result != Totals::default() {
            let seconds = self.started.elapsed().as_secs_f32();
            shown.push(format!(
                "{:<44} {:>4} passed, {} failed ({seconds:.1} s)",
                self.program, result.passed, result.failed
            ));
        }
        shown
    }
}

/// Returns the test that `test x ... FAILED`, `system x FAILED (2.1 s)` or `fuzz/x 50 inputs FAILED (2.1 s)`
/// is about.
fn failure_in(line: &str) -> Option<&str> {
    if let Some(test) = line.strip_prefix("test ") {
        return test.strip_suffix(" ... FAILED");
    }
    if line.starts_with(FUZZ) {
        let (target, rest) = line.split_once(' ')?;
        return rest.contains(" inputs FAILED (").then_some(target);
    }
    let (case, rest) = line.strip_prefix("system ")?.split_once(' ')?;
    rest.trim_start().starts_with("FAILED (").then_some(case)
}

/// Returns the test program in `Running unittests src/lib.rs (target/debug/deps/bulkhead-0123)` or
/// `Doc-tests x`.
fn program_of(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(name) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{name}, examples in the documentation"));
    }
    let (source, path) = line.strip_prefix("Running ")?.split_once(" (")?;
    let file = path.trim_end_matches(')').rsplit('/').next()?;
    let program = file.rsplit_once('-').map_or(file, |(program, _)| program);
    Some(if source.starts_with("unittests") {
        format!("{program}, unit tests")
    } else {
        program.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_added_up() {
        let mut digest = Digest::new();
        let mut shown = Vec::new();
        for line in [
            "   Compiling bulkhead v0.1.0",
            "     Running unittests src/lib.rs (target/debug/deps/bulkhead-2f0c)",
            "test framing::tests::x ... ok",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.05s",
            "     Running tests/prop_image.rs (target/debug/deps/prop_image-99)",
            "test bad ... FAILED",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
            "   Doc-tests bulkhead",
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        ] {
            shown.extend(digest.line(line));
        }
        assert_eq!(
            digest.totals,
            Totals {
                passed: 14,
                failed: 1,
                ignored: 1
            }
        );
        assert_eq!(digest.totals.closing_line(), "14 passed, 1 failed, 1 skipped\n");
        assert!(shown[0].starts_with("bulkhead, unit tests"), "{shown:?}");
        assert_eq!(shown[1], "test bad ... FAILED");
        assert!(shown[3].starts_with("prop_image "), "{shown:?}");
        assert_eq!(shown.len(), 4);
        assert_eq!(digest.failed, ["prop_image: bad"]);
    }

    #[test]
    fn a_program_that_names_no_test_is_named_itself() {
        let mut digest = Digest::new();
        for line in [
            "     Running tests/demo.rs (target/debug/deps/demo-2f0c)",
            "system demo: the picture differs",
            "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
        ] {
            digest.line(line);
        }
        assert_eq!(digest.failed, ["demo"]);
    }

    #[test]
    fn a_system_test_or_fuzz_target_that_failed_is_named() {
        let line = format!("system {:<38} FAILED (2.1 s)", "hostile/all");
        assert_eq!(failure_in(&line), Some("hostile/all"));
        assert_eq!(failure_in("system hostile/all: the guest printed FAILED"), None);
        assert_eq!(failure_in("system hostile/all ok (2.1 s)"), None);
        let line = |verdict: &str| format!("{:<30}   50000 inputs {verdict} (2.1 s)", "fuzz/vgic");
        assert_eq!(failure_in(&line("FAILED")), Some("fuzz/vgic"));
        assert_eq!(failure_in(&line("ok")), None);
    }
}
