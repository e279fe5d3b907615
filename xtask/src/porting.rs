// SPDX-License-Identifier: Apache-2.0
//! The page about a new class names every place that one touches.
//!
//! A place is a file outside the folders of the classes that names most of them, as a list does. The author
//! of a class finds all of them on the page, and the page has no place that is gone.

use crate::classes::without_tests;
use crate::workspace::{root, tracked};
use crate::{Findings, Outcome};
use bulkhead::class;
use std::collections::BTreeSet;

/// The page.
const PAGE: &str = "docs/porting.md";
/// A file whose code names so many classes lists them. Two are named by code that is like another class's.
const MOST: usize = 3;
/// Files that are data or prose about classes, or belong to one.
const OTHERS: &[&str] = &["docs/", "examples/", "tests/system/", "tests/config-bad/"];

/// A class: its name, and all words that code has for it.
struct Words {
    class: &'static str,
    words: Vec<String>,
}

/// Looks for places that the page does not name, and for names of places that are none.
pub fn check() -> Outcome {
    let page = std::fs::read_to_string(root().join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    let classes = classes()?;
    let mut findings = Findings::new();
    for file in tracked(&[".rs", ".toml", "bulkhead", "README.md"])? {
        let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        if belongs_elsewhere(&name, &classes) {
            continue;
        }
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
        if is_place(&name, &text, &classes) && !links(&page).any(|link| link == name) {
            findings.push(format!("{name} names the classes, and {PAGE} has no link to it"));
        }
    }
    findings.extend(
        links(&page)
            .filter(|link| !root().join(link).exists())
            .map(|link| format!("{PAGE} has a link to {link}, which is not there")),
    );
    Ok(findings)
}

/// Returns the classes with their words: the name, the name without a number, the architecture as the
/// compiler has it, and the boards.
fn classes() -> Result<Vec<Words>, String> {
    let mut classes: Vec<Words> = class::all()
        .map(|tool| {
            let class = tool.facts().name;
            let target = tool.target().split('-').next().unwrap_or_default();
            let architecture = if target.starts_with("thumb") {
                "arm"
            } else {
                target
            };
            let short = class.trim_end_matches(|char: char| char.is_ascii_digit());
            let words = [class, architecture, short].map(str::to_owned).into();
            Words { class, words }
        })
        .collect();
    for file in tracked(&[".toml"])? {
        let (Some(board), true) = (file.file_stem(), file.parent() == Some(&root().join("boards"))) else {
            continue;
        };
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let is_of = |words: &&mut Words| text.contains(&format!("\nclass = \"{}\"", words.class));
        if let Some(class) = classes.iter_mut().find(is_of) {
            class.words.push(board.to_string_lossy().into_owned());
        }
    }
    // A word of two classes tells of one.
    let mut seen = BTreeSet::new();
    for class in &mut classes {
        class.words.retain(|word| seen.insert(word.clone()));
    }
    Ok(classes)
}

/// Returns the paths from the root that a page of the documentation has links to.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("](../")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(path, _)| path))
}

/// Tells whether a file is one of [`OTHERS`] or of a class.
fn belongs_elsewhere(name: &str, classes: &[Words]) -> bool {
    let path = format!("/{name}");
    let is_of_class =
        |class: &str| path.contains(&format!("/{class}")) || path.contains(&format!("-{class}"));
    OTHERS.iter().any(|other| name.starts_with(other)) || classes.iter().any(|known| is_of_class(known.class))
}

/// Tells whether a file lists the classes: in its code, in its comments, or with the class of the stub.
fn is_place(name: &str, text: &str, classes: &[Words]) -> bool {
    let is_rust = name.ends_with(".rs");
    if is_rust && without_tests(text).contains("\n#[cfg(feature = \"stub-class\")]") {
        return true;
    }
    let (all, comment) = if is_rust {
        (without_tests(text), "//")
    } else {
        (text, "#")
    };
    let code: Vec<&str> = all
        .lines()
        .filter(|line| !line.trim_start().starts_with(comment))
        .collect();
    let code = code.join("\n").to_lowercase();
    let named = classes
        .iter()
        .filter(|known| known.words.iter().any(|word| is_word(&code, word)));
    let all = all.to_lowercase();
    named.count() >= MOST || classes.iter().all(|known| is_word(&all, known.class))
}

/// Tells whether a word stands in the text, alone or as a part of a name.
fn is_word(text: &str, word: &str) -> bool {
    let joins = |found: Option<char>| found.is_some_and(|char| char.is_ascii_alphanumeric());
    text.match_indices(word).any(|(start, found)| {
        !joins(text[..start].chars().next_back()) && !joins(text[start + found.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_page_names_every_place() {
        assert_eq!(check(), Ok(Findings::new()));
    }

    #[test]
    fn a_list_of_classes_is_a_place() {
        let classes = classes().expect("the boards can be read");
        let is_place = |name: &str, text: &str| super::is_place(name, text, &classes);
        let list = "static ALL: &[&dyn Way] = &[&aarch64::A, &armv7m::B, &x86_64::C];";
        assert!(is_place("a/src/lib.rs", list));
        assert!(!is_place("a/src/lib.rs", &format!("// {list}")));
        assert!(!is_place("a/src/lib.rs", &format!("\n#[cfg(test)]\n{list}")));
        assert!(!is_place(
            "a/src/lib.rs",
            "match class { Aarch64 => 1, Armv7m => 2 }"
        ));
        assert!(is_place(
            "a/src/lib.rs",
            "//! aarch64: x0. armv7m: r0. armv8m: r0. ppc405: r3. x86_64: rdi."
        ));
        assert!(is_place("a.toml", "aarch64 = 1\narmv7m = 2\nppc405 = 3"));
        assert!(is_place(
            "a.rs",
            "#[cfg(target_arch = \"arm\")]\nmod powerpc;\nmod x86_64;"
        ));
    }

    #[test]
    fn what_belongs_to_a_class_is_no_place() {
        let classes = classes().expect("the boards can be read");
        let belongs_elsewhere = |name: &str| super::belongs_elsewhere(name, &classes);
        for name in [
            "arch/ppc405/core/src/lib.rs",
            "hypervisor/conformance-x86_64/build.rs",
        ] {
            assert!(belongs_elsewhere(name), "{name}");
        }
        assert!(!belongs_elsewhere("cli/src/class/mod.rs"));
    }

    #[test]
    fn links_are_paths_from_the_root() {
        let page = "a [b](../b/c.rs), [d](d.md) and [e](../e)";
        assert_eq!(links(page).collect::<Vec<_>>(), ["b/c.rs", "e"]);
    }
}
