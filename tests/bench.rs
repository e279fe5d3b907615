// SPDX-License-Identifier: Apache-2.0
//! The figures of `bulkhead bench` are those of `docs/timing.md`.

use bulkhead::bench::{differences, timing};
use bulkhead::progress::Progress;
use bulkhead_tests::ENABLE;
use std::process::ExitCode;

/// The board whose figures the page has.
const BOARD: &str = "qemu-virt-aarch64";

fn main() -> ExitCode {
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    if std::env::var_os(ENABLE).is_none() || filter.is_some_and(|filter| !"bench".contains(&filter)) {
        println!("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out");
        return ExitCode::SUCCESS;
    }
    let found = timing(BOARD, &Progress::new()).and_then(|timing| {
        // Whatever the compiler, the analysis must not count on less than is measured.
        let undercharged = timing.undercharged();
        Ok((undercharged, differences(&timing)?))
    });
    let findings = match found {
        // Another compiler: the figures are not comparable.
        Ok((undercharged, None)) => undercharged,
        Ok((undercharged, Some(findings))) => [undercharged, findings].concat(),
        Err(problem) => vec![problem.to_string()],
    };
    for finding in &findings {
        println!("system bench: {finding}");
    }
    if findings.is_empty() {
        println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        ExitCode::SUCCESS
    } else {
        println!("bless the figures with `./bulkhead bench --bless` if they are right");
        println!("test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
        ExitCode::FAILURE
    }
}
