// SPDX-License-Identifier: Apache-2.0
//! Judges the machine code of a class binary by the rules of silicon that no emulator shows: barriers, and
//! sequences that a CPU forbids.
//!
//! A rule is an automaton with one state: a fact that one instruction begins, that another one ends, and that
//! may not be pending at a third one (`class`). It is followed on every way through each function and into
//! those that are called (`flow`). So a barrier that is missing on one way only is found, and none is
//! searched for in the text.

mod class;
mod flow;

use crate::program::Program;
use class::Rules;
use flow::{Facts, Graph, Violation};
use object::{Object, ObjectSection};
use std::collections::BTreeSet;

/// A class binary that has been read for the rules of its class.
pub struct Barriers {
    rules: &'static Rules,
    program: Program,
    graph: Graph,
}

impl Barriers {
    /// Reads the class binary with this name and these bytes.
    ///
    /// # Errors
    /// A sentence: the file is no class binary, or has code that cannot be read.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, String> {
        let way = crate::class::of(name)?;
        let rules = class::of(way.name()).ok_or(format!("no rules are known of {name}"))?;
        let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
        let program = Program::read(&file, way)?;
        let sections: Vec<(u32, &[u8])> = file
            .sections()
            .filter(|section| section.address() != 0)
            .filter_map(|section| Some((section.address() as u32, section.data().ok()?)))
            .collect();
        let word = |address: u32| {
            sections.iter().find_map(|(start, data)| {
                let offset = address.checked_sub(*start)? as usize;
                let bytes = data.get(offset..offset.checked_add(4)?)?;
                Some(u32::from_le_bytes(bytes.try_into().ok()?))
            })
        };
        let nodes = rules.nodes(&program, &word);
        let mut graph = Graph::new(nodes, program.taken.clone());
        graph.solve();
        Ok(Self {
            rules,
            program,
            graph,
        })
    }

    /// Returns a sentence for each rule that does not hold somewhere.
    pub fn findings(&self) -> Vec<String> {
        let mut violations: Vec<_> = self.graph.violations(self.rules.at_start).into_iter().collect();
        // One way to each place is enough.
        violations.sort_by_key(|found| (found.fact, found.place));
        violations.dedup_by_key(|found| (found.fact, found.place));
        let sequences = (self.rules.sequences)(&self.program).into_iter();
        let sequences = sequences.map(|(address, why)| format!("{}: {why}", self.place(address)));
        violations
            .iter()
            .map(|found| self.sentence(found))
            .chain(sequences)
            .collect()
    }

    fn sentence(&self, found: &Violation) -> String {
        let rule = &self.rules.rules[found.fact];
        format!(
            "{} at {} has no end on a way to {}: it needs {} ({})",
            rule.fact,
            self.place(found.origin),
            self.place(found.place),
            rule.end,
            rule.manual
        )
    }

    /// Returns the first address of the function around an address, and its name.
    fn function(&self, address: u32) -> (u32, &str) {
        let function = self.program.functions.range(..=address).next_back();
        function.map_or((address, ""), |(start, function)| (*start, &function.name))
    }

    /// Returns the function and the instruction at an address.
    fn place(&self, address: u32) -> String {
        let (start, name) = self.function(address);
        let found = self
            .program
            .code
            .binary_search_by_key(&address, |found| found.address);
        let text = found.ok().and_then(|place| self.program.code.get(place));
        let text = text.map(|found| format!("{} {}", found.mnemonic, found.operands));
        format!(
            "{:#} + {:#x} (`{}`)",
            rustc_demangle::demangle(name),
            address - start,
            text.unwrap_or_default().trim_end()
        )
    }

    /// Takes the barriers away, one at a time. Returns the number of instructions that end a fact, the number
    /// of those that some rule misses, and the rules that miss none.
    pub fn without_barriers(&mut self) -> Removed {
        let nodes = self.graph.nodes.iter();
        let (begun, needed) = nodes.fold((0, 0), |(begun, needed), node| {
            let turned: Facts = node.turns.iter().map(|(_, to)| 1 << to).sum();
            (begun | node.begins | turned, needed | node.needs | node.promises)
        });
        let is_used = |fact: &usize| (begun & needed) >> fact & 1 != 0;
        let mut removed = Removed::default();
        let mut failed = BTreeSet::new();
        for place in 0..self.graph.nodes.len() {
            let node = &self.graph.nodes[place];
            if node.ends == 0 && node.turns.is_empty() {
                continue;
            }
            removed.all += 1;
            let found = self.graph.without(place, self.rules.at_start);
            removed.missed += usize::from(!found.is_empty());
            failed.extend(found.into_iter().map(|found| found.fact));
        }
        let rules = self.rules.rules.iter().enumerate();
        let never = rules.filter(|(fact, _)| is_used(fact) && !failed.contains(fact));
        removed.never = never
            .map(|(_, rule)| format!("{}: {}", rule.fact, rule.end))
            .collect();
        removed
    }
}

/// The result of taking barriers away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The barriers.
    pub all: usize,
    /// Those without which a rule fails.
    pub missed: usize,
    /// The rules that hold without any of them.
    pub never: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a program of one function of the class with this name.
    pub(super) fn program(class: &str, code: &[u8]) -> Program {
        let way = crate::class::of(class).expect("a class");
        Program::of_code(way, 0x1000, code)
    }

    /// Returns the facts that the code leaves pending where they may not be.
    pub(super) fn judged(class: &str, code: &[u8]) -> Vec<usize> {
        let rules = class::of(class).expect("a class");
        let program = program(class, code);
        let mut graph = Graph::new(rules.nodes(&program, &|_| None), BTreeSet::new());
        graph.solve();
        let facts: BTreeSet<usize> = graph
            .violations(rules.at_start)
            .into_iter()
            .map(|found| found.fact)
            .collect();
        facts.into_iter().collect()
    }
}
