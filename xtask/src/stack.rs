// SPDX-License-Identifier: Apache-2.0
//! The deepest chains of calls of the class binaries ([`bulkhead_stack`]), against their stacks and against
//! `parts.toml`.

use crate::workspace::root;
use crate::{Outcome, parts};
use bulkhead::build::artifacts::{Workspace, class_binaries};
use bulkhead::build::costs::FILE;
use bulkhead::ui::progress::Progress;
use bulkhead_stack::{Frame, PREFIX, measure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Measures a class binary, and prints what was measured, with the functions of the deepest chain if
/// `is_long`.
fn of_file(name: &str, path: &Path, is_long: bool) -> Result<(u32, Vec<String>), String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    print!("{name:<38} ");
    let measured = measure(&root(), name, &bytes).map_err(|why| format!("{name}: {why}"))?;
    println!(
        "stack {}  deepest chain {}  a frame {}  a crash record {}",
        measured.stack, measured.deepest, measured.frame, measured.crash
    );
    if is_long {
        for Frame { function, bytes } in measured.chain {
            println!("{bytes:>7}  {function}");
        }
    }
    Ok((measured.deepest, measured.findings))
}

/// Checks the stacks of a class binary. `is_long` prints the deepest chain.
pub fn check(elf: &Path, is_long: bool) -> Outcome {
    let name = elf.file_name().unwrap_or_default().to_string_lossy();
    of_file(&name, elf, is_long).map(|(_, findings)| findings)
}

/// Checks the stacks of the class binaries of all boards, also against the limits. `is_long` prints the
/// deepest chains, and `is_lower` lowers the limits to what was measured.
pub fn check_all(is_long: bool, is_lower: bool) -> Outcome {
    let limits = parts::stacks()?;
    let mut findings = Vec::new();
    let mut measured = BTreeMap::new();
    for (name, path) in all()? {
        let (deepest, mut found) = of_file(&name, &path, is_long)?;
        let name = name.strip_prefix(PREFIX).unwrap_or(&name).to_owned();
        if !is_lower {
            found.extend(over(deepest, limits.get(&name).copied()));
        }
        findings.extend(found.into_iter().map(|finding| format!("{name}: {finding}")));
        measured.insert(name, deepest.into());
    }
    if is_lower {
        parts::lower_stacks(&measured)?;
    }
    Ok(findings)
}

/// Returns a finding if a chain is deeper than the file says.
fn over(deepest: u32, limit: Option<u64>) -> Option<String> {
    match limit {
        None => Some(format!("{FILE} has no limit: run `xtask stack --lower`")),
        Some(limit) if u64::from(deepest) > limit => Some(format!(
            "the deepest chain of calls takes {deepest} bytes, {limit} in {FILE}"
        )),
        Some(_) => None,
    }
}

/// Builds the class binaries of all boards, and returns their names and paths.
pub(crate) fn all() -> Result<Vec<(String, PathBuf)>, String> {
    let workspace = Workspace::locate().map_err(|problem| problem.to_string())?;
    let names: Vec<String> = class_binaries().into_iter().collect();
    let built = workspace.build(&names, &Progress::new());
    built.map_err(|problem| problem.to_string())?;
    let linked = names.into_iter().map(|name| {
        let path = workspace.any_class_binary(&name);
        path.map(|path| (name, path))
            .map_err(|problem| problem.to_string())
    });
    linked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_may_not_grow() {
        assert_eq!(over(7000, Some(7000)), None);
        assert_eq!(over(6000, Some(7000)), None);
        assert!(over(7001, Some(7000)).is_some());
        assert!(over(7000, None).is_some());
    }
}
