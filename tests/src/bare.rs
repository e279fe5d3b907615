// SPDX-License-Identifier: Apache-2.0
//! The image of a case's only partition on the bare board: it must print the same lines there.
//!
//! Lines `cost NAME N` are the exception. N is what something took, and a case says of each name by how much
//! the figure of the VM may be above that of the bare board. The figures are printed beside each other.

use crate::case::Case;
use bulkhead::build::prepare::Prepared;
use bulkhead::emulator::launch::Launch;
use bulkhead::emulator::session::{self, Limits, NoInput};
use bulkhead::serial::consoles::{ConsoleLine, Control, Observer};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

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

    /// Returns how the lines of a VM differ from these, and which cost is above this one by more than `most`
    /// says.
    fn difference(&self, vm: &Self, most: &BTreeMap<String, u64>) -> Vec<String> {
        let mut findings = Vec::new();
        if self.lines.is_empty() {
            findings.push("nothing was heard on the bare board".to_owned());
        }
        let count = self.lines.len().max(vm.lines.len());
        let line = |heard: &Self, index: usize| heard.lines.get(index).cloned().unwrap_or_default();
        if let Some(index) = (0..count).find(|index| line(self, *index) != line(vm, *index)) {
            findings.push(format!(
                "line {}: the bare board prints `{}`, the VM `{}`",
                index + 1,
                line(self, index),
                line(vm, index)
            ));
        }
        let names: BTreeSet<&String> = self
            .costs
            .keys()
            .chain(vm.costs.keys())
            .chain(most.keys())
            .collect();
        for name in names {
            match (self.costs.get(name), vm.costs.get(name), most.get(name)) {
                (Some(bare), Some(vm), Some(most)) if vm.saturating_sub(*bare) <= *most => {}
                (bare, vm, most) => findings.push(format!(
                    "cost {name}: {bare:?} on the bare board, {vm:?} in the VM, {most:?} more are allowed"
                )),
            }
        }
        findings
    }
}

impl Observer for Heard {
    fn line(&mut self, line: ConsoleLine<'_>, _: &mut Control) {
        self.take(line.text);
    }
}

/// Runs the image of the only partition on the bare board, and returns how that differs from `vm`.
pub(crate) fn difference(case: &Case, prepared: &Prepared, vm: &Heard) -> Vec<String> {
    let Some(most) = &case.bare else {
        return Vec::new();
    };
    match run(case, prepared) {
        Ok(bare) => {
            for (name, cost) in &bare.costs {
                let vm = vm.costs.get(name).copied().unwrap_or_default();
                println!(
                    "system {}: cost {name}: {cost} on the bare board, {vm} in the VM",
                    case.name
                );
            }
            bare.difference(vm, most)
        }
        Err(why) => vec![why],
    }
}

fn run(case: &Case, prepared: &Prepared) -> Result<Heard, String> {
    let consoles = prepared.consoles();
    let [partition] = consoles.as_slice() else {
        return Err(format!(
            "`bare` is for a system with one console, not {consoles:?}"
        ));
    };
    let image = prepared.image_of(partition).map_err(|why| why.to_string())?;
    let emulator = prepared.emulator().map_err(|why| why.to_string())?;
    if emulator.bare.is_empty() {
        return Err("the board's file does not say how the bare board is emulated".to_owned());
    }
    let mut bare = emulator.clone();
    bare.arguments.clone_from(&emulator.bare);
    let launch = Launch {
        deterministic: true,
        virtual_seconds: None,
        real_seconds: Some(case.real_limit),
        gdb: None,
        log_base: None,
        trace: false,
        kept: Vec::new(),
    };
    let mut heard = Heard::default();
    let limits = Limits {
        virtual_time: None,
        real: Some(Duration::from_secs_f64(case.real_limit)),
    };
    let command = launch.command(&bare, &image, 1, None);
    session::run(&command, limits, None, &mut heard, &mut NoInput, None).map_err(|why| why.to_string())?;
    Ok(heard)
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
        let findings = |lines: &[&str]| bare.difference(&heard(lines), &most);
        assert!(findings(&["ok: a", "cost tick 110", "done"]).is_empty());
        assert!(findings(&["ok: a", "done", "cost tick 7"]).is_empty());
        assert!(findings(&["ok: a", "cost tick 111", "done"])[0].contains("Some(111)"));
        assert!(findings(&["ok: b", "cost tick 100", "done"])[0].contains("line 1"));
        assert!(findings(&["ok: a", "cost tick 100"])[0].contains("line 2"));
        assert!(findings(&["ok: a", "done"])[0].contains("None in the VM"));
        assert!(findings(&["ok: a", "cost tick 100", "cost x 1", "done"])[0].contains("cost x"));
        assert!(!heard(&[]).difference(&heard(&[]), &BTreeMap::new()).is_empty());
    }
}
