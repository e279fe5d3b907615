// SPDX-License-Identifier: Apache-2.0
//! The figures of `bulkhead bench` are as on the blessed pages, one for each class: `bench`, `bench-mcu`,
//! `bench-worlds`, `bench-x86` and `bench-ppc`. Linux is nearly as fast in a VM as on the bare board:
//! `bench-linux`, `bench-linux-x86` and `bench-linux-ppc`. The system of `bulkhead calibrate` measures no
//! more than the board's file charges: `bench-calibrate`.

use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_bench::{Charge, calibrate, differences, linux, pages, timing};
use bulkhead_tests::ENABLE;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The problems, in a line each.
type Findings = Result<Vec<String>, Problem>;

/// The name of a case, and the function that finds its verdict.
type Case = (&'static str, fn() -> Findings);

const CASES: [Case; 9] = [
    ("bench", || page("docs/timing.md")),
    ("bench-mcu", || page("docs/timing-mcu.md")),
    ("bench-worlds", || page("docs/timing-worlds.md")),
    ("bench-x86", || page("docs/timing-x86.md")),
    ("bench-ppc", || page("docs/timing-ppc405.md")),
    ("bench-calibrate", calibrated),
    ("bench-linux", || operations("qemu-virt-aarch64")),
    ("bench-linux-x86", || operations("qemu-q35-x86_64")),
    ("bench-linux-ppc", || operations("ref405ep")),
];

/// Tells what is wrong with the figures of the page in this file.
fn page(file: &str) -> Findings {
    let page = pages().find(|page| page.file == file);
    let page = page.ok_or_else(|| Problem::new(format!("no class has the page {file}")))?;
    let timing = timing(page.board, &Progress::new())?;
    // With any compiler, the analysis must not count on less than is measured.
    let mut findings = timing.undercharged();
    // And a bar is a bar.
    findings.extend(timing.broken());
    let Some(differences) = differences(&timing)? else {
        println!("system: {file}: not compared, the figures are of another compiler");
        return Ok(findings);
    };
    if !differences.is_empty() {
        findings.extend(differences);
        findings.push(format!(
            "bless the figures with `./bulkhead bench --board {} --bless` if they are right",
            page.board
        ));
    }
    Ok(findings)
}

/// Tells which costs the system of `bulkhead calibrate` measures that the board's file does not charge.
fn calibrated() -> Findings {
    let charges = calibrate::charges("qemu-virt-aarch64", 50)?;
    let wrong = charges.iter().filter(|charge| !charge.is_enough());
    Ok(wrong.map(Charge::text).collect())
}

/// Tells which operations of Linux cost too much in a VM on this board.
fn operations(board: &str) -> Findings {
    if linux::is_at_hand(board) {
        return Ok(linux::measure(board, &Progress::new())?.broken());
    }
    println!("system: Linux for {board}: not measured, its kernel has not been built");
    Ok(Vec::new())
}

/// Runs the cases, two at a time: each uses one CPU, and counts instructions. Returns how many fail.
fn run(cases: &[Case]) -> usize {
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some((name, find)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let findings = find().unwrap_or_else(|problem| vec![problem.to_string()]);
            for finding in &findings {
                println!("system {name}: {finding}");
            }
            failed.fetch_add(usize::from(!findings.is_empty()), Ordering::Relaxed);
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(work);
        work();
    });
    failed.into_inner()
}

fn main() -> ExitCode {
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let wanted = |name: &str| {
        std::env::var_os(ENABLE).is_some() && filter.as_ref().is_none_or(|filter| name.contains(filter))
    };
    let wanted: Vec<_> = CASES.into_iter().filter(|(name, _)| wanted(name)).collect();
    let skipped = CASES.len() - wanted.len();
    let failed = run(&wanted);
    let passed = wanted.len() - failed;
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {skipped} filtered out"
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
