// SPDX-License-Identifier: Apache-2.0
//! Bad manifests and the exact text of their refusal: `tests/config-bad/NAME.toml` and `NAME.err`.
//!
//! Each file is named after a rule, perhaps with a suffix. `BLESS=1 cargo test -p bulkhead-manifest` writes
//! the texts and the payloads anew; the difference is then reviewed like code.

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use bulkhead_manifest::{Code, Report, load, timing};

const FOLDER: &str = "tests/config-bad";

fn blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Compares a file with the expected contents, or writes it.
fn expect_file(path: &Path, expected: &[u8]) {
    if blessing() {
        std::fs::write(path, expected).expect("the repository can be written");
        return;
    }
    let found = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if found != expected {
        let text = String::from_utf8_lossy(expected);
        panic!(
            "{} differs (BLESS=1 rewrites it); now it would be:\n{text}",
            path.display()
        );
    }
}

/// Returns the names in the corpus.
fn names() -> Vec<String> {
    let entries = std::fs::read_dir(support::root().join(FOLDER)).expect("the corpus exists");
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    names.sort();
    names
}

fn report(name: &str) -> Report {
    // Paths in the texts are the paths that a user sees who calls the tool in the root of the repository.
    std::env::set_current_dir(support::root()).expect("the repository exists");
    let path = Path::new(FOLDER).join(format!("{name}.toml"));
    match load(&path, &support::resolve) {
        Ok(system) => {
            let mut report = system.report().clone();
            report.diagnostics.extend(timing::judge(&system).diagnostics);
            report
        }
        Err(report) => report,
    }
}

/// Returns a name such as `NoSuchThing` as `no-such-thing`.
fn kebab(code: Code) -> String {
    let name = format!("{code:?}");
    let dashed = name.chars().flat_map(|letter| {
        letter
            .is_ascii_uppercase()
            .then_some('-')
            .into_iter()
            .chain([letter])
    });
    dashed
        .collect::<String>()
        .trim_start_matches('-')
        .to_ascii_lowercase()
}

/// Returns the rule that a file is named after: the longest name that fits.
fn rule(name: &str) -> Code {
    let fits = |code: &&Code| name == kebab(**code) || name.starts_with(&format!("{}-", kebab(**code)));
    let rule = Code::ALL
        .iter()
        .filter(fits)
        .max_by_key(|code| kebab(**code).len());
    *rule.unwrap_or_else(|| panic!("{name}.toml is named after no rule"))
}

#[test]
fn payloads_are_those_made_here() {
    for (name, bytes) in support::payloads() {
        expect_file(&support::root().join(FOLDER).join("payloads").join(name), &bytes);
    }
}

#[test]
fn every_refusal_is_exact() {
    if blessing() {
        payloads_are_those_made_here();
    }
    for name in names() {
        let text = report(&name).render(false);
        assert!(!text.is_empty(), "{name}.toml is accepted without a word");
        expect_file(
            &support::root().join(FOLDER).join(format!("{name}.err")),
            text.as_bytes(),
        );
    }
}

#[test]
fn every_file_breaks_its_rule() {
    for name in names() {
        let rule = rule(&name);
        let codes: Vec<_> = report(&name)
            .diagnostics
            .iter()
            .map(|diagnostic| diagnostic.code)
            .collect();
        assert!(codes.contains(&rule), "{name}.toml gives {codes:?}, not {rule:?}");
    }
}

#[test]
fn every_rule_has_a_file() {
    let names: BTreeSet<_> = names().into_iter().collect();
    let missing: Vec<_> = Code::ALL
        .iter()
        .map(|code| kebab(*code))
        .filter(|name| !names.contains(name))
        .collect();
    assert!(missing.is_empty(), "no bad file for {missing:?}");
}

#[test]
fn every_finding_says_where_why_and_what_to_do() {
    for name in names() {
        let report = report(&name);
        for diagnostic in &report.diagnostics {
            let place = diagnostic
                .place
                .unwrap_or_else(|| panic!("{name}: {} has no place", diagnostic.code.id()));
            assert!(report.sources.line_column(place).0 > 0, "{name}");
            assert!(
                !diagnostic.message.is_empty() && !diagnostic.help.is_empty(),
                "{name}: {diagnostic:?}"
            );
            assert!(
                !diagnostic.message.contains('\n'),
                "{name}: {}",
                diagnostic.message
            );
        }
    }
}

#[test]
fn codes_are_unique() {
    let ids: BTreeSet<_> = Code::ALL.iter().map(|code| code.id()).collect();
    assert_eq!(ids.len(), Code::ALL.len());
}
