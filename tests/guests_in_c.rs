// SPDX-License-Identifier: Apache-2.0
//! Every guest in C builds: a fresh machine must have the compilers, headers and libraries that they need.

use bulkhead::build::artifacts::Workspace;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_tests::ENABLE;
use std::process::ExitCode;

const NAME: &str = "guests-in-c";

fn main() -> ExitCode {
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    if std::env::var_os(ENABLE).is_none() || filter.is_some_and(|filter| !NAME.contains(&filter)) {
        println!("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out");
        return ExitCode::SUCCESS;
    }
    let findings = build_all().unwrap_or_else(|problem| vec![problem.display()]);
    for finding in &findings {
        println!("system {NAME}: {finding}");
    }
    if findings.is_empty() {
        println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        ExitCode::SUCCESS
    } else {
        println!("test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
        ExitCode::FAILURE
    }
}

/// Builds the guests one by one. Returns the reasons of those that do not build.
fn build_all() -> Result<Vec<String>, Problem> {
    let (workspace, progress) = (Workspace::locate()?, Progress::new());
    let guests = workspace.guests_in_c();
    if guests.is_empty() {
        return Ok(vec!["no guest is in C".to_owned()]);
    }
    let build = |guest: &String| workspace.build(std::slice::from_ref(guest), &progress).err();
    Ok(guests
        .iter()
        .filter_map(build)
        .map(|problem| problem.display())
        .collect())
}
