// SPDX-License-Identifier: Apache-2.0
//! The figures of `bulkhead bench` are those of the blessed pages, one for each class: `bench` and `bench-mcu`.

use bulkhead::bench::{AARCH64, ARMV7M, Page, differences, timing};
use bulkhead::problem::Problem;
use bulkhead::progress::Progress;
use bulkhead_tests::ENABLE;
use std::process::ExitCode;

const CASES: [(&str, Page); 2] = [("bench", AARCH64), ("bench-mcu", ARMV7M)];

/// What is wrong with the figures of a page.
fn findings(page: &Page) -> Result<Vec<String>, Problem> {
    let timing = timing(page.board, &Progress::new())?;
    // Whatever the compiler, the analysis must not count on less than is measured.
    let mut findings = timing.undercharged();
    // And a bar is a bar.
    findings.extend(timing.broken());
    // Figures of another compiler are not comparable.
    findings.extend(differences(&timing)?.unwrap_or_default());
    Ok(findings)
}

fn main() -> ExitCode {
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let wanted = |name: &str| {
        std::env::var_os(ENABLE).is_some() && filter.as_ref().is_none_or(|filter| name.contains(filter))
    };
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, page) in CASES {
        if !wanted(name) {
            skipped += 1;
            continue;
        }
        let findings = findings(&page).unwrap_or_else(|problem| vec![problem.to_string()]);
        for finding in &findings {
            println!("system {name}: {finding}");
        }
        if findings.is_empty() {
            passed += 1;
        } else {
            failed += 1;
            println!(
                "bless the figures with `./bulkhead bench --board {} --bless` if they are right",
                page.board
            );
        }
    }
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
