// SPDX-License-Identifier: Apache-2.0
//! A class is a folder: nothing outside the folders of a class names the class.
//!
//! Code that differs from class to class is reached through a trait, and the properties of a class are in its
//! facts. So a new class is a folder in each room and a line in each list. Code that names a class, and code
//! that takes all that it does not know for something that it knows, would have to be found and changed one
//! by one.

use crate::workspace::{Source, sources};
use crate::{Findings, Outcome};
use bulkhead::class;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Where classes may be named: the rooms of the target, and the code that tries them out.
const ROOMS: &[&str] = &[
    "arch/",
    "hypervisor/",
    "guest/",
    "guests/",
    "tests/",
    "fuzz/",
    "drivers/",
];
/// The texts of the reference, which say for each key what it is for. A kind is there the type of a value.
const TEXTS: &str = "manifest/src/schema/";
/// Folders of the classes.
const FOLDER: &str = "/class/";
/// Types of which every value is named wherever values are told apart.
const KINDS: &[&str] = &[
    "Class",
    "Kind",
    "VirtualUart",
    "DeviceRole",
    "Tables",
    "Word",
    "Endianness",
    "Gic",
    "Role",
    "Symbols",
];

/// Looks for names of classes, and for wildcards beside the values of [`KINDS`].
pub fn check() -> Outcome {
    let names: Vec<String> = class::all()
        .flat_map(|class| {
            let name = class.facts().name;
            let (first, rest) = name.split_at(1);
            [name.to_owned(), name.to_uppercase(), first.to_uppercase() + rest]
        })
        .collect();
    let mut findings = Findings::new();
    for Source { path, name, .. } in sources()? {
        if name.starts_with(TEXTS) {
            continue;
        }
        if ROOMS.iter().any(|room| name.starts_with(room)) || name.contains(FOLDER) || name.contains("/tests")
        {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        let code = without_tests(&text);
        findings.extend(named(code, &names).map(|(line, class)| {
            format!("{name}:{line} names the class {class}: ask the trait or the facts of a class instead")
        }));
        let file = syn::parse_file(&text).map_err(|error| format!("{name}: {error}"))?;
        let mut wildcards = Wildcards::default();
        wildcards.visit_file(&file);
        findings.extend(
            wildcards.lines.iter().map(|line| {
                format!("{name}:{line} has a wildcard beside the values of a kind: name them all")
            }),
        );
    }
    Ok(findings)
}

/// Returns the text of a file before its tests.
pub fn without_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]").map_or(text, |end| &text[..end])
}

/// Finds the lines of code that name a class.
fn named<'a>(code: &'a str, names: &'a [String]) -> impl Iterator<Item = (usize, &'a str)> {
    let lines = code.lines().zip(1..);
    let code_only = lines.filter(|(line, _)| !line.trim_start().starts_with("//"));
    code_only.flat_map(move |(line, number)| {
        let found = names.iter().filter(move |name| is_named(line, name));
        found.map(move |name| (number, name.as_str()))
    })
}

/// Tells whether `name` stands in `line` by itself: neither within another name nor within a path or the name
/// of a board.
fn is_named(line: &str, name: &str) -> bool {
    let joins = |char: char| char.is_ascii_alphanumeric() || "_-/".contains(char);
    line.match_indices(name).any(|(start, found)| {
        let before = line[..start].chars().next_back();
        let after = line[start + found.len()..].chars().next();
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

/// Lines with a wildcard.
#[derive(Default)]
struct Wildcards {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Wildcards {
    fn visit_expr_match(&mut self, found: &'ast syn::ExprMatch) {
        let kinds = found.arms.iter().any(|arm| is_of_kind(&arm.pat));
        let wildcard = found.arms.iter().find(|arm| matches!(arm.pat, syn::Pat::Wild(_)));
        if let (true, Some(arm)) = (kinds, wildcard) {
            self.lines.push(arm.pat.span().start().line);
        }
        visit::visit_expr_match(self, found);
    }
}

/// Tells whether a pattern is a value of one of [`KINDS`].
fn is_of_kind(pattern: &syn::Pat) -> bool {
    let path = match pattern {
        syn::Pat::Path(found) => &found.path,
        syn::Pat::Struct(found) => &found.path,
        syn::Pat::TupleStruct(found) => &found.path,
        syn::Pat::Or(found) => return found.cases.iter().any(is_of_kind),
        _ => return false,
    };
    let owner = path.segments.iter().rev().nth(1);
    owner.is_some_and(|owner| KINDS.iter().any(|kind| owner.ident == kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_a_word_of_its_own() {
        assert!(is_named("match class { Class::Aarch64 => 1 }", "Aarch64"));
        assert!(is_named("\"armv7m\"", "armv7m"));
        assert!(!is_named(
            "qemu-virt-aarch64 arch/aarch64 aarch64_esr_decoder",
            "aarch64"
        ));
        assert_eq!(
            named("// aarch64\nlet a = aarch64;", &["aarch64".to_owned()]).count(),
            1
        );
    }

    #[test]
    fn this_repository_keeps_to_it() {
        assert_eq!(check(), Ok(Findings::new()));
    }

    #[test]
    fn a_wildcard_beside_a_kind_is_seen() {
        let seen = |code: &str| {
            let mut wildcards = Wildcards::default();
            wildcards.visit_file(&syn::parse_file(code).expect("code"));
            wildcards.lines
        };
        assert_eq!(seen("fn f() {\n match a { Kind::Vm => 1,\n _ => 2 } }"), [3]);
        assert!(seen("fn f() { match a { Some(1) => 1, _ => 2 } }").is_empty());
        assert!(seen("fn f() { match a { Kind::Vm => 1, Kind::Task => 2 } }").is_empty());
    }
}
