// SPDX-License-Identifier: Apache-2.0
//! Rewrites what is generated, and lowers the budgets of hard sentences and of figures: run it, then read the
//! difference as code.

use crate::workspace::{cargo, root};
use crate::{Outcome, english, figures};
use std::process::Command;

/// Packages whose tests compare a committed file with a generated one, and rewrite it under `BLESS=1`.
const GENERATORS: &[&str] = &[
    "bulkhead-abi",
    "bulkhead-bench",
    "bulkhead-manifest",
    "bulkhead-sched",
];

/// Runs the generating tests in their rewriting mode, then lowers the budgets of `english` and `figures`.
pub fn run() -> Outcome {
    let mut findings = Vec::new();
    for package in GENERATORS {
        let status = Command::new(cargo())
            .args(["test", "--quiet", "-p", package])
            .env("BLESS", "1")
            .current_dir(root())
            .status()
            .map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            findings.push(format!(
                "{package}: its tests fail even when they may rewrite their files"
            ));
        }
    }
    findings.extend(english::lower()?);
    findings.extend(figures::lower()?);
    Ok(findings)
}
