// SPDX-License-Identifier: Apache-2.0
//! Unsafe code, counted per crate against a budget.
//!
//! `unsafe-budget.toml` lists the crates that may have any, how much, and why. A crate that is not in it must
//! forbid unsafe code at its root. More than the budget, but also less, is a finding: the number in the file
//! is the truth, and every change of it is read in review. Counted are unsafe blocks, functions,
//! implementations, traits and attributes, by parsing, not by text search. Two things are forbidden
//! everywhere: `static mut`, and functions that return `&'static mut`.

use crate::workspace::{Package, Source, packages, root, sources};
use crate::{Findings, Outcome};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use syn::visit::Visit;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    count: usize,
    reason: String,
}

/// Checks all Rust files of the workspace.
pub fn check() -> Outcome {
    let path = root().join("unsafe-budget.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let budgets: BTreeMap<String, Budget> =
        toml::from_str(&text).map_err(|error| format!("unsafe-budget.toml: {error}"))?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut findings = Findings::new();
    for Source { path, name, folder } in sources()? {
        let counter = count(&path)?;
        *counts.entry(folder).or_default() += counter.unsafe_uses;
        findings.extend(counter.forbidden.iter().map(|what| format!("{name}: {what}")));
    }
    for folder in packages()?.iter().map(Package::folder) {
        findings.extend(verdict(
            &folder,
            counts.get(&folder).copied().unwrap_or(0),
            budgets.get(&folder),
        ));
    }
    print_table(&counts, &budgets);
    Ok(findings)
}

fn verdict(folder: &str, count: usize, budget: Option<&Budget>) -> Option<String> {
    let Some(budget) = budget else {
        let forbids = ["src/lib.rs", "src/main.rs"]
            .iter()
            .filter_map(|file| std::fs::read_to_string(root().join(folder).join(file)).ok())
            .all(|text| text.contains("#![forbid(unsafe_code)]"));
        return (!forbids)
            .then(|| format!("{folder}: has no budget for unsafe code, so its roots must forbid it"));
    };
    if budget.reason.trim().is_empty() {
        return Some(format!("{folder}: its budget for unsafe code has no reason"));
    }
    (budget.count != count).then(|| {
        format!("{folder}: {count} uses of unsafe, the budget says {}: change it in the same commit, with the reason", budget.count)
    })
}

fn print_table(counts: &BTreeMap<String, usize>, budgets: &BTreeMap<String, Budget>) {
    for (folder, budget) in budgets {
        println!(
            "{:>5} of {:>4}  {folder}: {}",
            counts.get(folder).copied().unwrap_or(0),
            budget.count,
            budget.reason
        );
    }
}

#[derive(Default)]
struct Counter {
    unsafe_uses: usize,
    forbidden: Vec<&'static str>,
}

fn count(file: &Path) -> Result<Counter, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    count_text(&text).map_err(|error| format!("{}: {error}", file.display()))
}

fn count_text(text: &str) -> Result<Counter, syn::Error> {
    let syntax = syn::parse_file(text)?;
    let mut counter = Counter::default();
    counter.visit_file(&syntax);
    Ok(counter)
}

impl<'ast> Visit<'ast> for Counter {
    fn visit_expr_unsafe(&mut self, node: &'ast syn::ExprUnsafe) {
        self.unsafe_uses += 1;
        syn::visit::visit_expr_unsafe(self, node);
    }

    fn visit_signature(&mut self, node: &'ast syn::Signature) {
        self.unsafe_uses += usize::from(node.unsafety.is_some());
        if let syn::ReturnType::Type(_, returned) = &node.output
            && let syn::Type::Reference(reference) = &**returned
            && reference.mutability.is_some()
            && reference
                .lifetime
                .as_ref()
                .is_some_and(|lifetime| lifetime.ident == "static")
        {
            self.forbidden.push("a function returns &'static mut");
        }
        syn::visit::visit_signature(self, node);
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        self.unsafe_uses += usize::from(node.unsafety.is_some());
        syn::visit::visit_item_impl(self, node);
    }

    fn visit_item_trait(&mut self, node: &'ast syn::ItemTrait) {
        self.unsafe_uses += usize::from(node.unsafety.is_some());
        syn::visit::visit_item_trait(self, node);
    }

    fn visit_item_foreign_mod(&mut self, node: &'ast syn::ItemForeignMod) {
        self.unsafe_uses += usize::from(node.unsafety.is_some());
        syn::visit::visit_item_foreign_mod(self, node);
    }

    fn visit_attribute(&mut self, node: &'ast syn::Attribute) {
        self.unsafe_uses += usize::from(node.path().is_ident("unsafe"));
    }

    fn visit_item_static(&mut self, node: &'ast syn::ItemStatic) {
        if matches!(node.mutability, syn::StaticMutability::Mut(_)) {
            self.forbidden.push("static mut");
        }
        syn::visit::visit_item_static(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_counted_and_text_is_not() {
        let text = r#"
            // unsafe { in a comment }
            #[unsafe(no_mangle)]
            unsafe fn a() { unsafe { b() } }
            unsafe impl Send for C {}
            unsafe trait D { unsafe fn e(); }
            const F: &str = "unsafe {";
        "#;
        assert_eq!(count_text(text).unwrap().unsafe_uses, 6);
    }

    #[test]
    fn the_forbidden_forms_are_found() {
        let text = "static mut A: u8 = 0; fn b() -> &'static mut u8 { loop {} } fn c<'a>(d: &'a mut u8) -> &'a mut u8 { d }";
        assert_eq!(
            count_text(text).unwrap().forbidden,
            ["static mut", "a function returns &'static mut"]
        );
    }

    #[test]
    fn a_budget_is_exact() {
        let budget = Budget {
            count: 3,
            reason: "registers".into(),
        };
        assert!(verdict("arch/x", 3, Some(&budget)).is_none());
        assert!(verdict("arch/x", 4, Some(&budget)).is_some());
        assert!(verdict("arch/x", 2, Some(&budget)).is_some());
        assert!(
            verdict(
                "arch/x",
                3,
                Some(&Budget {
                    count: 3,
                    reason: " ".into()
                })
            )
            .is_some()
        );
    }
}
