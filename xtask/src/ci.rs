// SPDX-License-Identifier: Apache-2.0
//! Everything continuous integration checks besides the tests, in one command.

use crate::workspace::{self, Package, packages, root};
use crate::{
    Findings, Outcome, borders, circles, classes, dependencies, english, figures, forks, parts, porting,
    size, spdx, stack, toolchain, tuples, unsafety,
};
use std::process::Command;
use std::time::Instant;

/// A step: its name and what it does.
type Step = (&'static str, fn() -> Outcome);

/// Runs all steps, even after one has failed, so that one run shows all there is to mend.
pub fn run() -> Outcome {
    let steps: &[Step] = &[
        ("format", format),
        ("dependency rule", dependencies::check),
        ("circles of files", circles::check),
        ("borders of parts", borders::check),
        ("forks of the kernel", forks::check),
        ("tuples as parameters", tuples::check),
        ("unsafe budget", unsafety::check),
        ("licence lines", spdx::check),
        ("plain English", english::check),
        ("figures of the documentation", figures::check),
        ("parts of the kernel", parts::check),
        ("names of classes", classes::check),
        ("places of a class", porting::check),
        ("lints, host crates", lint_host),
        ("lints, target crates", lint_target),
        ("a class is a folder", stub_class),
        ("documentation", documentation),
        ("sizes, no heap", size::check_all),
        ("stacks", || stack::check_all(false, false)),
    ];
    let mut findings = Findings::new();
    for (name, step) in steps {
        let started = Instant::now();
        let found = step().unwrap_or_else(|why| vec![why]);
        let verdict = if found.is_empty() { "ok" } else { "FAILED" };
        println!("{name:<24} {verdict} ({:.1} s)", started.elapsed().as_secs_f32());
        findings.extend(found.into_iter().map(|finding| format!("{name}: {finding}")));
    }
    println!(
        "{} passed, {} failed",
        steps.len() - failed_steps(&findings, steps),
        failed_steps(&findings, steps)
    );
    Ok(findings)
}

fn failed_steps(findings: &[String], steps: &[Step]) -> usize {
    steps
        .iter()
        .filter(|(name, _)| {
            findings
                .iter()
                .any(|finding| finding.starts_with(&format!("{name}: ")))
        })
        .count()
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(workspace::cargo());
    command.args(arguments).current_dir(root());
    command
}

fn outcome_of(mut command: Command) -> Outcome {
    let status = command
        .status()
        .map_err(|error| format!("{command:?}: {error}"))?;
    Ok(if status.success() {
        Findings::new()
    } else {
        vec![format!("{command:?} failed")]
    })
}

fn format() -> Outcome {
    outcome_of(cargo(&["fmt", "--all", "--", "--check"]))
}

/// The package of the loader for UEFI.
const LOADER: &str = "bulkhead-uefi";

fn lint_host() -> Outcome {
    outcome_of(cargo(&[
        "clippy",
        "--quiet",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

fn lint_target() -> Outcome {
    let mut findings = Findings::new();
    for class in toolchain::Class::all() {
        let mut command = toolchain::target_command(class, "clippy")?;
        command.arg("--quiet");
        for name in target_packages(class, &packages()?) {
            command.args(["-p", &name]);
        }
        command.args(["--", "-D", "warnings"]);
        findings.extend(outcome_of(command)?);
        if let Some(mut command) = toolchain::loader_command(class, "clippy")? {
            command.args(["--quiet", "-p", LOADER, "--", "-D", "warnings"]);
            findings.extend(outcome_of(command)?);
        }
    }
    Ok(findings)
}

/// Checks that a class that is added by its folders and its lines in the lists builds, checks and simulates a
/// system.
fn stub_class() -> Outcome {
    outcome_of(cargo(&[
        "test",
        "--quiet",
        "-p",
        "bulkhead",
        "--features",
        "stub-class",
        "--test",
        "stub_class",
    ]))
}

fn target_packages(class: toolchain::Class, packages: &[Package]) -> Vec<String> {
    packages
        .iter()
        .filter(|package| class.has(&package.folder(), package.target()))
        .map(|package| package.name.clone())
        .collect()
}

fn documentation() -> Outcome {
    let mut command = cargo(&["doc", "--quiet", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    outcome_of(command)
}
