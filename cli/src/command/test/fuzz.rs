// SPDX-License-Identifier: Apache-2.0
//! The fuzz targets, which `bulkhead test` runs after the tests: builds the targets of `fuzz/` and runs each
//! for a fixed number of inputs from a fixed seed.
//!
//! The compiler flags are the ones of `cargo fuzz build --sanitizer none`, which any toolchain takes. A
//! target can therefore be run by cargo-fuzz for as long as one likes, and here without installing
//! cargo-fuzz. libFuzzer itself is C++.

use super::{FUZZ, FUZZ_TARGETS};
use crate::build::artifacts::Workspace;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Coverage that libFuzzer steers by.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1";

/// Targets, and how many inputs each gets: seconds of one CPU.
const TARGETS: [(&str, u32); 10] = [
    ("image", 20_000),
    ("manifest", 1_000),
    ("keys", 5_000),
    ("payload", 2_000),
    ("in_place", 10_000),
    ("vgic", 50_000),
    ("pl011", 50_000),
    ("framing", 50_000),
    ("virtio", 50_000),
    ("quote", 50_000),
];

/// Builds and runs all targets whose name, `fuzz/NAME`, contains `filter`. Returns a line for each target,
/// and a last line as a test program writes it.
pub(super) fn run(workspace: &Workspace, filter: Option<&str>) -> String {
    let wanted = |target: &str| filter.is_none_or(|filter| name(target).contains(filter));
    let chosen: Vec<_> = TARGETS.into_iter().filter(|(target, _)| wanted(target)).collect();
    let others = TARGETS.len() - chosen.len();
    if !chosen.is_empty() && Command::new("c++").arg("--version").output().is_err() {
        let lacking =
            format!("{FUZZ_TARGETS}: FAILED: there is no C++ compiler (Debian: g++) for libFuzzer\n");
        return lacking + &result(0, chosen.len(), 0, others);
    }
    let (mut text, failed) = run_all(workspace, &chosen);
    text += &result(chosen.len() - failed, failed, 0, others);
    text
}

/// Returns the name of a target among the tests.
fn name(target: &str) -> String {
    format!("{FUZZ}{target}")
}

/// Returns the last line of a test program.
fn result(passed: usize, failed: usize, ignored: usize, others: usize) -> String {
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    format!(
        "test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; {others} filtered out\n"
    )
}

/// Builds and runs these targets. Returns the lines about them, and the number of those that fail.
fn run_all(workspace: &Workspace, chosen: &[(&str, u32)]) -> (String, usize) {
    if chosen.is_empty() {
        return (String::new(), 0);
    }
    let folder = workspace.root().join("fuzz");
    let output = workspace.target().join("fuzz");
    if let Err(why) = build(&folder, &output, chosen) {
        return (format!("{FUZZ_TARGETS}: build FAILED\n{why}\n"), chosen.len());
    }
    let (mut text, mut failed) = (String::new(), 0);
    for (target, runs) in chosen {
        let started = Instant::now();
        let result = run_one(&folder, &output, target, *runs);
        let seconds = started.elapsed().as_secs_f32();
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        text += &format!(
            "{:<30} {runs:>7} inputs {verdict} ({seconds:.1} s)\n",
            name(target)
        );
        if let Err(why) = result {
            text += &format!("{why}\n");
            failed += 1;
        }
    }
    (text, failed)
}

/// Returns the triple of this machine, which keeps the flags away from build scripts.
fn host_triple() -> Result<String, String> {
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .arg("-vV")
        .output()
        .map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "rustc does not say its host".to_owned())
}

fn build(folder: &Path, output: &Path, targets: &[(&str, u32)]) -> Result<(), String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(folder)
        .args(["build", "--release", "--quiet", "--color", "never", "--target"])
        .arg(host_triple()?)
        .env("CARGO_TARGET_DIR", output)
        .env("RUSTFLAGS", FLAGS);
    for (target, _) in targets {
        command.args(["--bin", target]);
    }
    finish(&mut command)
}

fn run_one(folder: &Path, output: &Path, target: &str, runs: u32) -> Result<(), String> {
    let program = output.join(host_triple()?).join("release").join(target);
    let mut command = Command::new(program);
    command
        .current_dir(output)
        .args(["-seed=1", "-max_len=4096", "-timeout=60", "-rss_limit_mb=2048"])
        .arg(format!("-runs={runs}"))
        .arg(format!("-artifact_prefix={target}-"));
    if target == "in_place" {
        // A program of some instructions and a few changes is that long. Shorter inputs are all alike.
        command.args(["-len_control=0", "-max_len=160"]);
    }
    if target == "manifest" {
        // The search starts from manifests with one mistake each. They are read only: libFuzzer writes to its
        // first folder.
        let corpus = output.join("corpus-manifest");
        // The files of the run before are removed: the inputs are the same every time.
        let _ = std::fs::remove_dir_all(&corpus);
        std::fs::create_dir_all(&corpus).map_err(|error| error.to_string())?;
        command
            .arg(corpus)
            .arg(folder.join("..").join("tests").join("config-bad"));
    }
    finish(&mut command)
}

/// Runs a command. The error is the command's output.
fn finish(command: &mut Command) -> Result<(), String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    Err(lines[lines.len().saturating_sub(40)..].join("\n"))
}
