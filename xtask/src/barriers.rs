// SPDX-License-Identifier: Apache-2.0
//! The rules of silicon that no emulator shows, in the machine code of the class binaries
//! ([`bulkhead_stack::barriers`]).

use crate::stack::all;
use crate::{Findings, Outcome};
use bulkhead_stack::barriers::{Barriers, Removed};
use std::path::Path;

/// The verdict on a class binary.
struct Judged {
    findings: Findings,
    /// The result of taking its barriers away.
    removed: Option<Removed>,
}

/// Judges a class binary. Also takes its barriers away, one at a time: a rule that holds without any of them
/// judges nothing, and is a finding.
pub fn check(elf: &Path) -> Outcome {
    let name = elf.file_name().unwrap_or_default().to_string_lossy();
    Ok(show(&name, judge(&name, elf, true)?))
}

/// Judges the class binaries of all boards. Those with all parts are also judged without their barriers.
pub fn check_all() -> Outcome {
    let binaries = all()?;
    let is_variant = |name: &str| {
        let mut others = binaries.iter().filter(|(other, _)| other != name);
        others.any(|(other, _)| name.starts_with(other))
    };
    let judged = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (name, path) in &binaries {
            let is_thorough = !is_variant(name);
            threads.push(scope.spawn(move || judge(name, path, is_thorough)));
        }
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.collect::<Result<Vec<_>, _>>()
    });
    let judged = judged.map_err(|_| "a thread has panicked")?;
    let mut findings = Findings::new();
    for ((name, _), judged) in binaries.iter().zip(judged) {
        let found = show(name, judged?);
        findings.extend(found.into_iter().map(|finding| format!("{name}: {finding}")));
    }
    Ok(findings)
}

/// Judges a class binary, also without its barriers if `is_thorough`.
fn judge(name: &str, path: &Path, is_thorough: bool) -> Result<Judged, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut barriers = Barriers::read(name, &bytes)?;
    let findings = barriers.findings();
    let removed = is_thorough.then(|| barriers.without_barriers());
    Ok(Judged { findings, removed })
}

/// Prints the number of barriers, and returns all findings.
fn show(name: &str, judged: Judged) -> Findings {
    let mut findings = judged.findings;
    if let Some(Removed { all, missed, never }) = judged.removed {
        println!("{name:<38} barriers {all}  of them missed if taken away {missed}");
        let blind = |rule| format!("no barrier that is taken away makes this rule fail: {rule}");
        findings.extend(never.into_iter().map(blind));
    }
    findings
}
