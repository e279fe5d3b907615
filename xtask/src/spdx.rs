// SPDX-License-Identifier: Apache-2.0
//! The licence line at the top of every source file.

use crate::Outcome;
use crate::workspace::{root, tracked};

const LINE: &str = "SPDX-License-Identifier: Apache-2.0";
const ENDINGS: &[&str] = &[
    ".rs", ".toml", ".S", ".ld", ".c", ".h", ".sh", ".md", ".dts", ".dtso", "/run", "bulkhead", "build.rs",
    ".py",
];

/// Checks all tracked source files.
pub fn check() -> Outcome {
    let mut findings = Vec::new();
    for file in tracked(ENDINGS)? {
        // Payloads of bad manifests are data: what is in them is the test.
        if file.starts_with(root().join("tests/config-bad/payloads")) {
            continue;
        }
        let text = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let head = String::from_utf8_lossy(&text[..text.len().min(512)]).into_owned();
        if !has_line(&head) {
            let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
            findings.push(format!("{name}: no `{LINE}` in its first three lines"));
        }
    }
    Ok(findings)
}

fn has_line(head: &str) -> bool {
    head.lines().take(3).any(|line| line.contains(LINE))
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_first_three_lines_count() {
        assert!(super::has_line(
            "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"
        ));
        assert!(!super::has_line("\n\n\n// SPDX-License-Identifier: Apache-2.0\n"));
    }
}
