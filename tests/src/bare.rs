// SPDX-License-Identifier: Apache-2.0
//! The program of a partition on the bare board: it must print the same lines there.
//!
//! Lines `cost NAME N` are the exception. N is what something took. A case says of each name by how much the
//! figure of the partition may be above the bare board's. The figures are printed beside each other.

use crate::case::Case;
use bulkhead::build::prepare::Prepared;
use bulkhead::emulator::bare::Bare;
use bulkhead::emulator::launch::Launch;
use bulkhead::problem::Problem;
use bulkhead::serial::consoles::{ConsoleLine, Control, Observer};
use bulkhead::ui::progress::Progress;
use std::collections::{BTreeMap, BTreeSet};

/// The lines of a program, and what things cost by its lines `cost NAME N`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    lines: Vec<String>,
    costs: BTreeMap<String, u64>,
}

impl Heard {
    pub(crate) fn take(&mut self, text: &str) {
        let mut words = text.split_ascii_whitespace();
        let cost = match (words.next(), words.next(), words.next(), words.next()) {
            (Some("cost"), Some(name), Some(number), None) => number.parse().ok().map(|cost| (name, cost)),
            _ => None,
        };
        match cost {
            Some((name, cost)) => drop(self.costs.insert(name.to_owned(), cost)),
            None => self.lines.push(text.to_owned()),
        }
    }

    /// Returns the lines that begin with a word, without the word.
    pub(crate) fn lines_of<'h>(&'h self, word: &'h str) -> impl Iterator<Item = &'h str> {
        let lines = self.lines.iter();
        lines.filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
    }

    /// Tells whether there is as much as in `other`.
    fn reaches(&self, other: &Self) -> bool {
        self.lines.len() >= other.lines.len() && self.costs.len() >= other.costs.len()
    }

    /// Returns how the lines of a partition differ from these, as far as the partition has printed, and which
    /// cost is above this one by more than `most` says.
    fn differences(&self, partition: &Self, most: &BTreeMap<String, u64>) -> Vec<String> {
        let mut findings = Vec::new();
        if partition.lines.is_empty() {
            findings.push("printed nothing that could be compared with the bare board".to_owned());
        }
        let lines = partition.lines.iter().enumerate();
        if let Some((index, line)) = lines
            .clone()
            .find(|(index, line)| self.lines.get(*index) != Some(*line))
        {
            let bare = self.lines.get(index).map_or("nothing", String::as_str);
            findings.push(format!(
                "line {} is `{line}`, on the bare board `{bare}`",
                index + 1
            ));
        }
        let names: BTreeSet<&String> = [self.costs.keys(), partition.costs.keys()]
            .into_iter()
            .flatten()
            .chain(most.keys())
            .collect();
        for name in names {
            match (self.costs.get(name), partition.costs.get(name), most.get(name)) {
                (Some(bare), Some(own), Some(most)) if own.saturating_sub(*bare) <= *most => {}
                (bare, own, most) => findings.push(format!(
                    "cost {name}: {own:?}, on the bare board {bare:?}, {most:?} more are allowed"
                )),
            }
        }
        findings
    }
}

/// Hears a program until there is as much as in `enough`.
struct Listener<'a> {
    heard: Heard,
    enough: &'a Heard,
}

impl Observer for Listener<'_> {
    fn line(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        if !self.heard.reaches(self.enough) {
            self.heard.take(line.text);
        }
        control.stop = self.heard.reaches(self.enough);
    }
}

/// Runs the programs of partitions on the bare board, and returns how they differ there.
pub(crate) fn differences(
    case: &Case,
    prepared: &Prepared,
    launch: &Launch,
    heard: &BTreeMap<String, Heard>,
) -> Vec<String> {
    let mut findings = Vec::new();
    for (partition, most) in &case.bare {
        let Some(own) = heard.get(partition) else { continue };
        let bare = match on_the_bare_board(prepared, launch, partition, own) {
            Ok(bare) => bare,
            Err(problem) => {
                findings.push(format!("{partition}: {problem}"));
                continue;
            }
        };
        for (name, cost) in &bare.costs {
            let own = own.costs.get(name).copied().unwrap_or_default();
            println!(
                "system {}: cost {name}: {cost} on the bare board, {own} here",
                case.name
            );
        }
        let differences = bare.differences(own, most);
        findings.extend(
            differences
                .into_iter()
                .map(|found| format!("{partition}: {found}")),
        );
    }
    findings
}

/// Runs the program of a partition on the bare board until it has printed as much as the partition.
fn on_the_bare_board(
    prepared: &Prepared,
    launch: &Launch,
    partition: &str,
    enough: &Heard,
) -> Result<Heard, Problem> {
    let program = prepared.image_of(partition)?;
    let emulator = prepared.emulator()?;
    if emulator.bare.is_empty() {
        return Err(Problem::new(
            "the board's file does not say how the bare board is emulated",
        ));
    }
    let bare = if prepared.system().board().class.facts().translates {
        let partitions = prepared.system().partitions().into_iter();
        let mut named = partitions.filter(|own| own.name() == partition);
        let cpus = named.next().map_or(1, |own| own.vcpus().len());
        Bare::as_it_is(&emulator, &program).with_cpus(cpus)
    } else {
        Bare::of_a_vm(prepared.system().board(), &emulator, &program, &Progress::new())?
    };
    let mut listener = Listener {
        heard: Heard::default(),
        enough,
    };
    bare.run(launch, Vec::new(), &mut listener)?;
    Ok(listener.heard)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(lines: &[&str]) -> Heard {
        let mut heard = Heard::default();
        lines.iter().for_each(|line| heard.take(line));
        heard
    }

    #[test]
    fn other_lines_and_higher_costs_are_found() {
        let bare = heard(&["ok: a", "cost tick 100", "done"]);
        let most = BTreeMap::from([("tick".to_owned(), 10)]);
        let findings = |lines: &[&str]| bare.differences(&heard(lines), &most);
        assert!(findings(&["ok: a", "cost tick 110", "done"]).is_empty());
        assert!(findings(&["ok: a", "cost tick 7"]).is_empty(), "not ended");
        assert!(findings(&["ok: a", "cost tick 111", "done"])[0].contains("Some(111)"));
        assert!(findings(&["ok: b", "cost tick 100", "done"])[0].contains("line 1"));
        assert!(findings(&["ok: a", "cost tick 100", "done", "more"])[0].contains("line 3"));
        assert!(findings(&["ok: a", "done"])[0].contains("None"));
        assert!(findings(&["ok: a", "cost tick 100", "cost x 1", "done"])[0].contains("cost x"));
        assert!(!bare.differences(&heard(&[]), &BTreeMap::new()).is_empty());
    }
}
