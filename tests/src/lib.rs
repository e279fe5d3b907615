// SPDX-License-Identifier: Apache-2.0
//! System tests: whole systems in the emulator of their board, on an instruction-counted clock.
//!
//! A test is data: a folder `tests/system/CLASS/SUBJECT/NAME` with a manifest and a `test.toml`. The file
//! says what must be seen on each console, in order, what must never be seen, what is typed, and how the
//! run ends. It may also say how the flashable file is damaged first. Variants of one system are cases of
//! one folder: each replaces some text of the manifest.
//!
//! The tests boot machines and take seconds each, so a plain `cargo test` skips them. `./bulkhead test` sets
//! [`ENABLE`]. Cases that take minutes say `long = true` and run only with [`ENABLE_LONG`], too. Readers that
//! count Rust's own test programs can count this output, too.
#![forbid(unsafe_code)]

mod ahead;
mod bare;
mod bound;
mod case;
mod converted;
mod entries;
mod exits;
mod folders;
mod function;
mod peer;
mod privilege;
mod quote;
mod registers;
mod runner;
mod secure_boot;
pub mod stretch;
mod verdict;
mod weight;

pub use case::{Case, load_all};

use std::process::ExitCode;

/// Environment variable that enables the system tests.
pub const ENABLE: &str = "BULKHEAD_SYSTEM_TESTS";
/// Environment variable with the names of the folders whose cases run, with commas between them; without it,
/// all of them.
pub const ONLY: &str = "BULKHEAD_SYSTEM_ONLY";
/// Environment variable that enables those that take minutes.
pub const ENABLE_LONG: &str = "BULKHEAD_LONG_TESTS";

/// Runs the system tests whose name contains the first argument, if there is one.
#[must_use]
pub fn main() -> ExitCode {
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let listing = std::env::args().any(|argument| argument == "--list");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("system");
    let mut cases = match load_all(&folder) {
        Ok(cases) => cases,
        Err(why) => {
            println!("{why}\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
            return ExitCode::FAILURE;
        }
    };
    let all = cases.len();
    cases.retain(|case| filter.as_deref().is_none_or(|filter| case.name.contains(filter)));
    if let Ok(only) = std::env::var(ONLY) {
        cases.retain(|case| {
            only.split(',')
                .any(|folder| case.name.split('/').next() == Some(folder))
        });
    }
    if listing {
        cases.iter().for_each(|case| println!("{}: test", case.name));
        return ExitCode::SUCCESS;
    }
    if std::env::var_os(ENABLE).is_none() {
        println!(
            "skipped {} system tests: run them with `./bulkhead test`",
            cases.len()
        );
        cases.clear();
    }
    if std::env::var_os(ENABLE_LONG).is_none() {
        cases.retain(|case| !case.long);
    }
    let filtered = all - cases.len();
    let results = runner::run_all(&cases);
    let failed = results.iter().filter(|passed| !**passed).count();
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    let passed = results.len() - failed;
    println!(
        "test result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {filtered} filtered out"
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
