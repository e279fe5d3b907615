// SPDX-License-Identifier: Apache-2.0
//! Counts the sentences that are hard to read, per crate or folder, against a budget that only falls.
//!
//! `english-budget.toml` says how many each folder may still have. A folder that it does not name may have
//! none. A larger count is a finding. [`lower`] writes smaller numbers into the file, never larger ones.

use crate::prose::{self, Finding, Rule};
use crate::workspace::{root, tracked};
use crate::{Findings, Outcome};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The number of places that break each rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Counts {
    headless: usize,
    long: usize,
    verbless: usize,
    nobody: usize,
    that_of: usize,
    behind: usize,
    of_its_own: usize,
    none_of: usize,
}

impl Counts {
    fn by_rule(self) -> [(&'static str, usize); 8] {
        [
            ("headless sentences", self.headless),
            ("lines over 110 columns", self.long),
            ("functions whose documentation opens with no verb", self.verbless),
            ("words such as \"nobody\" or \"whoever\"", self.nobody),
            ("times \"that of\" or \"those of\"", self.that_of),
            ("times \"behind\"", self.behind),
            ("times \"of its own\"", self.of_its_own),
            ("times \"is none\" or \"none of\"", self.none_of),
        ]
    }

    fn add(&mut self, rule: Rule) {
        match rule {
            Rule::Headless => self.headless += 1,
            Rule::Long => self.long += 1,
            Rule::Verbless => self.verbless += 1,
            Rule::Nobody => self.nobody += 1,
            Rule::ThatOf => self.that_of += 1,
            Rule::Behind => self.behind += 1,
            Rule::OfItsOwn => self.of_its_own += 1,
            Rule::NoneOf => self.none_of += 1,
        }
    }

    fn at_most(self, other: Self) -> Self {
        Self {
            headless: self.headless.min(other.headless),
            long: self.long.min(other.long),
            verbless: self.verbless.min(other.verbless),
            nobody: self.nobody.min(other.nobody),
            that_of: self.that_of.min(other.that_of),
            behind: self.behind.min(other.behind),
            of_its_own: self.of_its_own.min(other.of_its_own),
            none_of: self.none_of.min(other.none_of),
        }
    }
}

/// Counts by folder.
type Table = BTreeMap<String, Counts>;

const FILE: &str = "english-budget.toml";
const HEAD: &str = "# SPDX-License-Identifier: Apache-2.0
# Sentences that are hard to read: how many each crate or folder may still have (docs/style.md has the
# rules). headless: opens with What, Who, Whose, How or Whether and is no question. long: over 110 columns.
# verbless: the documentation of a function opens with no verb. `nobody`: \"nobody\", \"somebody\", \"whoever\" or
# \"whatever\", where a noun says more. that_of: \"that of\" and \"those of\", where the noun can be repeated.
# `behind`: where \"after\" or \"because of\" is meant, mostly. of_its_own: \"of its own\" and \"of their own\",
# where \"own\" before the noun, or nothing, says as much. none_of: \"is none\" and \"none of\", where \"not\" or
# \"no\" is plainer. `xtask ci` fails if a number rises; `xtask bless` lowers the numbers. `xtask english
# FOLDER` lists the places.

";

/// Checks all folders against the budget.
pub fn check() -> Outcome {
    let counted = count()?;
    let allowed = budget()?.unwrap_or_default();
    Ok(verdict(&counted, &allowed))
}

/// Prints every place of one folder that breaks a rule.
pub fn list(folder: &str) -> Outcome {
    for (name, found) in findings()?.iter().filter(|(name, _)| name.starts_with(folder)) {
        for Finding { rule, line, text } in found {
            println!("{name}:{line}: {rule:?}: {text}");
        }
    }
    Ok(Findings::new())
}

/// Lowers the budget to what is there. Without a budget, what is there becomes the budget.
pub fn lower() -> Outcome {
    let counted = count()?;
    let lowered = match budget()? {
        Some(allowed) => lowered(&counted, &allowed),
        None => counted,
    };
    std::fs::write(root().join(FILE), text_of(&lowered)).map_err(|error| format!("{FILE}: {error}"))?;
    Ok(Findings::new())
}

fn verdict(counted: &Table, allowed: &Table) -> Findings {
    let mut findings = Findings::new();
    for (folder, counts) in counted {
        let budget = allowed.get(folder).copied().unwrap_or_default();
        for ((what, count), (_, most)) in counts.by_rule().into_iter().zip(budget.by_rule()) {
            if count > most {
                findings.push(format!(
                    "{folder}: {count} {what}, {FILE} allows {most}: `xtask english {folder}` lists them"
                ));
            }
        }
    }
    findings
}

fn lowered(counted: &Table, allowed: &Table) -> Table {
    let lower = |(folder, counts): (&String, &Counts)| {
        let counts = counts.at_most(*counted.get(folder)?);
        (counts != Counts::default()).then(|| (folder.clone(), counts))
    };
    allowed.iter().filter_map(lower).collect()
}

fn text_of(table: &Table) -> String {
    let mut text = String::from(HEAD);
    for (folder, counts) in table {
        let Counts {
            headless,
            long,
            verbless,
            nobody,
            that_of,
            behind,
            of_its_own,
            none_of,
        } = counts;
        text += &format!("{folder:?} = {{ headless = {headless}, long = {long}, verbless = {verbless}");
        text += &format!(", nobody = {nobody}, that_of = {that_of}, behind = {behind}");
        text += &format!(", of_its_own = {of_its_own}, none_of = {none_of} }}\n");
    }
    text
}

/// Reads the budget, if there is one.
fn budget() -> Result<Option<Table>, String> {
    match std::fs::read_to_string(root().join(FILE)) {
        Ok(text) => toml::from_str(&text)
            .map(Some)
            .map_err(|error| format!("{FILE}: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{FILE}: {error}")),
    }
}

fn count() -> Result<Table, String> {
    let mut table = Table::new();
    for (name, found) in findings()? {
        let counts = table.entry(folder_of(&name)).or_default();
        found.iter().for_each(|finding| counts.add(finding.rule));
    }
    table.retain(|_, counts| *counts != Counts::default());
    Ok(table)
}

/// Returns the findings of all files, each with its path from the root.
fn findings() -> Result<Vec<(String, Vec<Finding>)>, String> {
    let mut all = Vec::new();
    for path in tracked(&[".rs", ".S", ".toml", ".md"])? {
        let name = path
            .strip_prefix(root())
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read(&path).map_err(|error| format!("{name}: {error}"))?;
        let found = prose::findings(&name, &String::from_utf8_lossy(&text));
        all.push((name, found));
    }
    Ok(all)
}

/// Returns the folder that a file is counted in: `arch/NAME` for backends and their parts, else the topmost
/// one.
fn folder_of(name: &str) -> String {
    let mut parts = name.split('/');
    let (first, second) = (parts.next().unwrap_or(""), parts.next());
    match second {
        None => ".".to_owned(),
        Some(second) if first == "arch" => format!("{first}/{second}"),
        Some(_) => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(headless: usize, long: usize, verbless: usize) -> Counts {
        Counts {
            headless,
            long,
            verbless,
            ..Counts::default()
        }
    }

    fn table(entries: &[(&str, Counts)]) -> Table {
        entries
            .iter()
            .map(|(folder, counts)| ((*folder).to_owned(), *counts))
            .collect()
    }

    #[test]
    fn a_count_that_rises_is_a_finding_and_a_folder_without_budget_has_none() {
        let allowed = table(&[("abi", counts(1, 2, 3))]);
        assert!(verdict(&table(&[("abi", counts(1, 2, 3))]), &allowed).is_empty());
        assert!(verdict(&table(&[("abi", counts(0, 0, 0))]), &allowed).is_empty());
        assert_eq!(
            verdict(
                &table(&[("abi", counts(2, 2, 4)), ("new", counts(0, 1, 0))]),
                &allowed
            )
            .len(),
            3
        );
    }

    #[test]
    fn the_budget_only_falls() {
        let allowed = table(&[
            ("a", counts(1, 2, 3)),
            ("b", counts(1, 1, 1)),
            ("gone", counts(1, 0, 0)),
        ]);
        let counted = table(&[("a", counts(5, 1, 3)), ("new", counts(1, 1, 1))]);
        assert_eq!(lowered(&counted, &allowed), table(&[("a", counts(1, 1, 3))]));
    }

    #[test]
    fn the_budget_can_be_read_back() {
        let habits = Counts {
            nobody: 1,
            that_of: 2,
            behind: 3,
            ..Counts::default()
        };
        let budget = table(&[
            (".", counts(1, 2, 3)),
            ("arch/api", counts(0, 0, 7)),
            ("b", habits),
        ]);
        assert_eq!(toml::from_str::<Table>(&text_of(&budget)).unwrap(), budget);
    }

    #[test]
    fn a_file_belongs_to_its_crate_or_folder() {
        let names = [
            "README.md",
            "kernel/src/lib.rs",
            "arch/api/src/lib.rs",
            "docs/policies/edf.md",
        ];
        assert_eq!(names.map(folder_of), [".", "kernel", "arch/api", "docs"]);
    }
}
