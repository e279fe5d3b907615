// SPDX-License-Identifier: Apache-2.0
//! A parameter of a function is no tuple: its parts have names where the function is called.
//!
//! Two numbers in parentheses are exchanged without a word from the compiler. A struct names them, and
//! separate parameters have names at least where the function is read. `tuples-budget.toml` has the crates
//! with such parameters, and how many each has. The numbers may only fall. A number that is too high is a
//! finding, too. A reference to a tuple counts, the empty tuple does not. Tests and closures are left out,
//! and so are the functions of an implementation of a trait, as the trait decides.

use crate::circles::is_for_tests;
use crate::workspace::{Package, Source, packages, root, sources};
use crate::{Findings, Outcome};
use std::collections::BTreeMap;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The file with the numbers, from the root of the repository.
const FILE: &str = "tuples-budget.toml";

/// Checks all Rust files of the workspace.
pub fn check() -> Outcome {
    let path = root().join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let budgets: BTreeMap<String, usize> =
        toml::from_str(&text).map_err(|error| format!("{FILE}: {error}"))?;
    let mut places: BTreeMap<String, Vec<String>> = packages()?
        .iter()
        .map(|package| (Package::folder(package), Vec::new()))
        .collect();
    for (folder, place) in all()? {
        places.entry(folder).or_default().push(place);
    }
    let mut findings = Findings::new();
    for (folder, places) in &places {
        let budget = budgets.get(folder).copied().unwrap_or(0);
        findings.extend(verdict(folder, places, budget));
    }
    let gone = budgets.keys().filter(|folder| !places.contains_key(*folder));
    findings.extend(gone.map(|folder| format!("{FILE} has {folder}, which is no crate")));
    Ok(findings)
}

/// Prints the places in a folder or file.
pub fn list(folder: &str) -> Outcome {
    for (_, place) in all()?.iter().filter(|(_, place)| place.starts_with(folder)) {
        println!("{place}");
    }
    Ok(Findings::new())
}

/// Compares the places of a crate with what it may have.
fn verdict(folder: &str, places: &[String], budget: usize) -> Option<String> {
    let count = places.len();
    if count < budget {
        return Some(format!(
            "{folder}: {count} parameters are tuples, {budget} in {FILE}: write the lower number"
        ));
    }
    (count > budget).then(|| {
        format!(
            "{folder}: {count} parameters are tuples, {FILE} allows {budget}: name their parts: {}",
            places.join(", ")
        )
    })
}

/// Returns all places, each with the folder of its crate.
fn all() -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for Source { path, name, folder } in sources()? {
        if name.starts_with("tests/") || name.contains("/tests/") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        let places = places(&text).map_err(|error| format!("{name}: {error}"))?;
        found.extend(
            places
                .into_iter()
                .map(|(line, function)| (folder.clone(), format!("{name}:{line} {function}"))),
        );
    }
    Ok(found)
}

/// Returns the parameters of a file that are tuples: the line, and the function.
fn places(text: &str) -> Result<Vec<(usize, String)>, syn::Error> {
    let mut tuples = Tuples::default();
    tuples.visit_file(&syn::parse_file(text)?);
    Ok(tuples.found)
}

#[derive(Default)]
struct Tuples {
    found: Vec<(usize, String)>,
}

impl<'ast> Visit<'ast> for Tuples {
    fn visit_item_mod(&mut self, found: &'ast syn::ItemMod) {
        if !is_for_tests(&found.attrs) {
            visit::visit_item_mod(self, found);
        }
    }

    fn visit_item_fn(&mut self, found: &'ast syn::ItemFn) {
        if !is_for_tests(&found.attrs) {
            visit::visit_item_fn(self, found);
        }
    }

    fn visit_item_impl(&mut self, found: &'ast syn::ItemImpl) {
        if found.trait_.is_none() && !is_for_tests(&found.attrs) {
            visit::visit_item_impl(self, found);
        }
    }

    fn visit_signature(&mut self, found: &'ast syn::Signature) {
        for input in &found.inputs {
            if let syn::FnArg::Typed(typed) = input
                && is_tuple(&typed.ty)
            {
                self.found
                    .push((typed.span().start().line, found.ident.to_string()));
            }
        }
        visit::visit_signature(self, found);
    }
}

fn is_tuple(found: &syn::Type) -> bool {
    match found {
        syn::Type::Tuple(tuple) => !tuple.elems.is_empty(),
        syn::Type::Reference(reference) => is_tuple(&reference.elem),
        syn::Type::Paren(inner) => is_tuple(&inner.elem),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_keeps_to_it() {
        assert_eq!(check(), Ok(Findings::new()));
    }

    fn lines(text: &str) -> Vec<usize> {
        let places = places(text).expect("code");
        places.into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn a_tuple_is_found() {
        assert_eq!(lines("fn f(a: u8,\n (b, c): (u8, u8)) {}"), [2]);
        assert_eq!(lines("trait T {\n fn f(&self, a: &(u8, u8));\n}"), [2]);
        assert_eq!(
            lines("impl S {\n fn f(a: &mut (u8, u8), b: (u8, u8)) {}\n}"),
            [2, 2]
        );
    }

    #[test]
    fn other_parameters_are_none() {
        assert_eq!(
            lines("fn f(a: (), b: [(u8, u8); 2], c: Option<(u8, u8)>) {}"),
            [0; 0]
        );
        assert_eq!(lines("impl T for S {\n fn f(a: (u8, u8)) {}\n}"), [0; 0]);
        assert_eq!(lines("#[cfg(test)]\nmod tests { fn f(a: (u8, u8)) {} }"), [0; 0]);
        assert_eq!(lines("fn f() { let g = |(a, b): (u8, u8)| a + b; }"), [0; 0]);
    }

    #[test]
    fn a_number_is_right_in_both_directions() {
        let places = ["x:1 f".to_owned(), "x:2 g".to_owned()];
        assert!(verdict("x", &places, 1).is_some_and(|finding| finding.ends_with("x:1 f, x:2 g")));
        assert_eq!(verdict("x", &places, 2), None);
        assert!(verdict("x", &places, 3).is_some());
    }
}
