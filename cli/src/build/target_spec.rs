// SPDX-License-Identifier: Apache-2.0
//! Targets of the compiler with small changes.
//!
//! A target's description settles some things that no flag of the compiler changes: frame pointers, and the
//! kind of atomic accesses. The tool therefore asks the compiler for its description of the target and writes
//! a file of the same name that differs in these keys only. The format may change between versions. Names and
//! folders of the build stay as for the target.

use crate::problem::Problem;
use std::path::{Path, PathBuf};
use std::process::Command;

/// First minor version of compiler and cargo for which the tool makes descriptions. For older versions,
/// targets are taken as they are.
pub const SINCE: u32 = 95;

/// Writes the description of `target` with `changes` (`key=value`, separated by blanks) into `folder`, and
/// returns its path.
///
/// # Errors
/// The compiler does not know the target, or the file cannot be written.
pub fn write(folder: &Path, target: &str, changes: &str) -> Result<PathBuf, Problem> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.env("RUSTC_BOOTSTRAP", "1").args([
        "-Zunstable-options",
        "--print",
        "target-spec-json",
        "--target",
        target,
    ]);
    let text = changed(&crate::build::debian::run(&mut command)?, changes);
    let path = folder.join(format!("{target}.json"));
    if std::fs::read_to_string(&path).is_ok_and(|before| before == text) {
        return Ok(path);
    }
    // The file appears whole and at once: another run of the tool may be about to read it.
    let draft = folder.join(format!("{target}.{}", std::process::id()));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&draft, text))
        .and_then(|()| std::fs::rename(&draft, &path))
        .map_err(|error| Problem::new(format!("cannot write {}: {error}", path.display())))?;
    Ok(path)
}

/// Returns a description, one key a line as the compiler prints it, with other values of some keys.
fn changed(description: &str, changes: &str) -> String {
    let changes = || changes.split(' ').filter_map(|change| change.split_once('='));
    let start = |key: &str| format!("  {key:?}: ");
    let is_kept = |line: &&str| !changes().any(|(key, _)| line.starts_with(&start(key)));
    let mut lines: Vec<String> = description.lines().filter(is_kept).map(str::to_owned).collect();
    let added = changes().map(|(key, value)| format!("{}{value},", start(key)));
    // The changes go after the opening brace. The lines after them keep their commas as they are.
    let at = lines.len().min(1);
    lines.splice(at..at, added);
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_replaced_and_added() {
        let before = "{\n  \"arch\": \"arm\",\n  \"frame-pointer\": \"always\",\n  \"metadata\": {\n    \"arch\": 1\n  },\n  \"width\": 32\n}\n";
        let after = "{\n  \"frame-pointer\": \"may-omit\",\n  \"singlethread\": true,\n  \"arch\": \"arm\",\n  \"metadata\": {\n    \"arch\": 1\n  },\n  \"width\": 32\n}\n";
        let changes = "frame-pointer=\"may-omit\" singlethread=true";
        assert_eq!(changed(before, changes), after);
        assert_eq!(changed(before, ""), before);
    }
}
