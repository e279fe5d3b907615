// SPDX-License-Identifier: Apache-2.0
//! Bad manifests and the exact text of their refusal: `tests/config-bad/RULES/NAME.toml` and `NAME.err`.
//!
//! Each file is named after a rule, perhaps with a suffix, and lies in the folder of the file that reports
//! the rule: `ports` for `src/rules/ports.rs`, `aarch64-image` for `src/class/aarch64/image.rs`.
//! `BLESS=1 cargo test -p bulkhead-manifest` writes
//! the texts and the payloads anew; the difference is then reviewed like code.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bulkhead_manifest::{Code, Report, load, timing};

fn blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Compares a file with the expected contents, or writes it.
fn expect_file(path: &Path, expected: &[u8]) {
    if blessing() {
        // Another test may read the file now: a file that is right already is never empty meanwhile.
        if std::fs::read(path).is_ok_and(|found| found == expected) {
            return;
        }
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

/// Returns the name of a bad manifest: the name of its file.
fn name(path: &Path) -> &str {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    stem.expect("names of the corpus are words")
}

fn report(path: &Path) -> Report {
    // Paths in the texts are the paths that a user sees who calls the tool in the root of the repository.
    std::env::set_current_dir(support::root()).expect("the repository exists");
    match load(path, &support::resolve) {
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
        expect_file(
            &support::root().join(support::CORPUS).join("payloads").join(name),
            &bytes,
        );
    }
}

#[test]
fn every_refusal_is_exact() {
    if blessing() {
        payloads_are_those_made_here();
    }
    for path in support::bad_manifests() {
        let text = report(&path).render(false);
        assert!(!text.is_empty(), "{} is accepted without a word", path.display());
        expect_file(&support::root().join(path.with_extension("err")), text.as_bytes());
    }
}

#[test]
fn every_file_breaks_its_rule() {
    for path in support::bad_manifests() {
        let rule = rule(name(&path));
        let codes: Vec<_> = report(&path)
            .diagnostics
            .iter()
            .map(|diagnostic| diagnostic.code)
            .collect();
        assert!(
            codes.contains(&rule),
            "{} gives {codes:?}, not {rule:?}",
            path.display()
        );
    }
}

#[test]
fn every_rule_has_a_file() {
    let paths = support::bad_manifests();
    let names: BTreeSet<_> = paths.iter().map(|path| name(path)).collect();
    let missing: Vec<_> = Code::ALL
        .iter()
        .map(|code| kebab(*code))
        .filter(|name| !names.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "no bad file for {missing:?}");
    assert_eq!(names.len(), paths.len(), "a name is in two folders");
}

/// Returns the files below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the sources exist").flatten();
    let (folders, mut files): (Vec<_>, Vec<_>) =
        entries.map(|entry| entry.path()).partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| self::files(folder)));
    files
}

/// Returns the folder of the corpus for a source file: its path, without the words that hold other files.
fn folder(source: &Path) -> String {
    let words = source.iter().filter_map(|word| word.to_str());
    let words = words.filter(|word| !["rules", "class", "mod"].contains(word));
    words.collect::<Vec<_>>().join("-").replace('_', "-")
}

/// Returns the text of all sources that belong to each folder of the corpus.
fn sources() -> BTreeMap<String, String> {
    let root = support::root().join("manifest/src");
    let mut sources: BTreeMap<String, String> = BTreeMap::new();
    for file in files(&root) {
        let path = file.with_extension("");
        let path = path.strip_prefix(&root).expect("the file is below the folder");
        let text = std::fs::read_to_string(&file).expect("a source is a text");
        sources.entry(folder(path)).or_default().push_str(&text);
    }
    sources
}

#[test]
fn every_file_lies_beside_its_rule() {
    let sources = sources();
    for path in support::bad_manifests() {
        let rule = rule(name(&path));
        let reported = format!("Code::{rule:?}");
        let able = sources.iter().filter(|(_, text)| {
            let mut ends = text
                .match_indices(&reported)
                .map(|(at, _)| &text[at + reported.len()..]);
            ends.any(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
        });
        let folder = path.iter().rev().nth(1);
        let folders: Vec<_> = able.map(|(folder, _)| folder.as_str()).collect();
        assert!(
            folders.iter().any(|able| Some(able.as_ref()) == folder),
            "{} belongs in one of {folders:?}, which report {}",
            path.display(),
            rule.id()
        );
    }
}

#[test]
fn every_finding_says_where_why_and_what_to_do() {
    for path in support::bad_manifests() {
        let (name, report) = (name(&path), report(&path));
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
