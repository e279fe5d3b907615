// SPDX-License-Identifier: Apache-2.0
//! Tells whether a run was what its case wants: an observer that ticks off what it sees.

use crate::bare::Heard;
use crate::bound::Loops;
use crate::case::{Case, End};
use bulkhead::emulator::session::{Ending, Outcome};
use bulkhead::emulator::stall::{Kind, Stall};
use bulkhead::explain::Explainer;
use bulkhead::log::log_area::LogArea;
use bulkhead::serial::consoles::{ConsoleLine, Control, Observer};
use bulkhead::serial::pattern::Pattern;
use bulkhead_abi::framing::HYPERVISOR_CONSOLE;
use std::collections::{BTreeMap, VecDeque};

/// Lines of each console that a failure shows.
const TAIL: usize = 15;

/// Watches a run.
pub(crate) struct Judge<'a> {
    case: &'a Case,
    seen: BTreeMap<&'a str, usize>,
    sent: Vec<bool>,
    reset: bool,
    forbidden: Option<String>,
    tail: BTreeMap<String, VecDeque<String>>,
    lines: BTreeMap<String, u64>,
    /// All lines of the partitions that are compared with the bare board, or print a quote.
    heard: BTreeMap<String, Heard>,
    loops: Loops,
    /// When the ends of the two stretches of `share` were seen, in microseconds.
    ends: [Option<u64>; 4],
    /// Explains reports, if the case looks at explanations.
    explainer: Option<Explainer<'a>>,
    explanations: Vec<String>,
}

impl<'a> Judge<'a> {
    /// Makes a judge. The explainer is for a case that looks at explanations.
    pub(crate) fn new(case: &'a Case, explainer: Option<Explainer<'a>>) -> Self {
        let seen = case.expect.keys().map(|console| (console.as_str(), 0)).collect();
        Self {
            case,
            seen,
            sent: vec![false; case.send.len()],
            reset: false,
            forbidden: None,
            tail: BTreeMap::new(),
            lines: BTreeMap::new(),
            loops: Loops::new(&case.within_bound),
            ends: [None; 4],
            explainer,
            explanations: Vec::new(),
            heard: case
                .bare
                .keys()
                .chain(&case.quote)
                .map(|name| (name.clone(), Heard::default()))
                .collect(),
        }
    }

    fn look(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        if let Some(pattern) = self.case.forbid.iter().find(|pattern| pattern.matches(line)) {
            self.forbidden.get_or_insert(format!(
                "forbidden `{}`: {}: {}",
                pattern.as_str(),
                line.console,
                line.text
            ));
        }
        if let (Some(count), Some(patterns)) = (
            self.seen.get_mut(line.console),
            self.case.expect.get(line.console),
        ) && patterns.get(*count).is_some_and(|pattern| pattern.matches(line))
        {
            *count += 1;
        }
        for ((pattern, send), sent) in self.case.send.iter().zip(&mut self.sent) {
            if *sent {
                continue;
            }
            if send.console == line.console && pattern.matches(line) {
                *sent = true;
                control
                    .typed
                    .push((send.console.clone(), send.text.clone().into_bytes()));
                break;
            }
            if self.case.send_in_order {
                break;
            }
        }
        if let Some((patterns, _)) = &self.case.share {
            for (pattern, end) in patterns.iter().zip(&mut self.ends) {
                if end.is_none() && pattern.matches(line) {
                    *end = Some(line.time.micros);
                }
            }
        }
        let due = |pattern: &Pattern| !self.reset && pattern.matches(line);
        if self.case.reset_after.as_ref().is_some_and(due) {
            self.reset = true;
            control.reset = true;
        }
        self.stop_if_done(control);
    }

    fn stop_if_done(&self, control: &mut Control) {
        let done = match self.case.end {
            End::Seen | End::Lockdown => self.missing().is_empty(),
            End::PowerOff | End::TimeLimit | End::Stalled => false,
        };
        control.stop |= done || self.forbidden.is_some();
    }

    fn missing(&self) -> Vec<String> {
        let next = |(console, count): (&&str, &usize)| {
            let pattern = self.case.expect.get(*console)?.get(*count)?;
            Some(format!("{console}: `{}`", pattern.as_str()))
        };
        let explained = |pattern: &&Pattern| {
            let mut all = self.explanations.iter();
            !all.any(|text| pattern.captures(text).is_some())
        };
        let unexplained = self.case.explained.iter().filter(explained);
        let unexplained = unexplained.map(|pattern| format!("explanation: `{}`", pattern.as_str()));
        self.seen.iter().filter_map(next).chain(unexplained).collect()
    }

    /// Lets the tool explain a line of the hypervisor.
    fn explain(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        if line.console != HYPERVISOR_CONSOLE {
            return;
        }
        if let Some(explainer) = &mut self.explainer {
            let explanation = explainer.line_and_looks(line.text, &mut control.looks);
            self.explanations.extend(explanation);
        }
    }

    /// Returns a finding if the part of `share` took too much of the whole, or was not seen.
    fn too_large_a_share(&self) -> Option<String> {
        let (patterns, at_most) = self.case.share.as_ref()?;
        let [Some(a), Some(b), Some(c), Some(d)] = self.ends else {
            let names: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
            return Some(format!("not all of {names:?} were seen: {:?}", self.ends));
        };
        let (part, whole) = (b.saturating_sub(a), d.saturating_sub(c));
        let good = part > 0 && (part as f64) <= at_most * whole as f64;
        (!good).then(|| format!("{part} us are not above 0 and at most {at_most} of {whole} us"))
    }

    /// Tells what was wrong; empty if nothing was. `bounds` is what `check` says, by partition.
    pub(crate) fn findings(
        self,
        outcome: &Outcome,
        bounds: &BTreeMap<String, Vec<Option<u64>>>,
    ) -> Vec<String> {
        let mut findings: Vec<String> = self.forbidden.iter().cloned().collect();
        findings.extend(
            self.missing()
                .into_iter()
                .map(|missing| format!("not seen: {missing}")),
        );
        for (console, most) in &self.case.at_most {
            let count = self.lines.get(console).copied().unwrap_or(0);
            if count > *most {
                findings.push(format!("{console}: {count} lines, at most {most} are allowed"));
            }
        }
        findings.extend(self.too_large_a_share());
        findings.extend(self.loops.findings(bounds));
        let area = outcome.log_area.as_deref().and_then(LogArea::find);
        let text = area.map(|(_, area)| area.text_of_all()).unwrap_or_default();
        for pattern in &self.case.log_area {
            if !text.lines().any(|line| pattern.captures(line).is_some()) {
                findings.push(format!("not in the log area: {}\n{text}", pattern.as_str()));
            }
        }
        let stall = outcome.stall.as_ref().map(|stall| stall.text(|_, _| None));
        if let Some(pattern) = &self.case.stall
            && stall
                .as_deref()
                .is_none_or(|text| pattern.captures(text).is_none())
        {
            findings.push(format!(
                "the tool does not warn of {}: {stall:?}",
                pattern.as_str()
            ));
        }
        let expected_end = match (&outcome.ending, self.case.end) {
            (Ending::Stopped, End::Seen | End::Lockdown) => true,
            (Ending::Exited(status), End::PowerOff) => status.success(),
            (Ending::VirtualLimit | Ending::Exited(_), End::TimeLimit) => true,
            (Ending::Stopped, End::Stalled) => outcome.stall.is_some(),
            _ => false,
        };
        if !expected_end && self.forbidden.is_none() {
            findings.push(format!(
                "the run ended otherwise than by {:?}: {:?} at {} s",
                self.case.end, outcome.ending, outcome.virtual_time
            ));
        }
        if !findings.is_empty() {
            if !outcome.messages.is_empty() {
                findings.push(format!("the emulator says: {}", outcome.messages));
            }
            findings.extend(self.explanations.iter().map(|text| format!("explained:\n{text}")));
            for (console, lines) in &self.tail {
                findings.extend(lines.iter().map(|line| format!("  {console} | {line}")));
            }
        }
        findings
    }
}

impl Judge<'_> {
    /// Returns what the partitions have printed that are compared with the bare board, or print a quote.
    pub fn heard(&mut self) -> BTreeMap<String, Heard> {
        std::mem::take(&mut self.heard)
    }

    /// Tells whether one of these consoles has written a line.
    pub fn has_heard(&self, consoles: &[String]) -> bool {
        consoles.iter().any(|console| self.lines.contains_key(console))
    }
}

impl Observer for Judge<'_> {
    fn line(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        self.loops.look(line.console, line.text);
        self.explain(line, control);
        self.look(line, control);
        *self.lines.entry(line.console.to_owned()).or_default() += 1;
        if let Some(heard) = self.heard.get_mut(line.console) {
            heard.take(line.text);
        }
        let tail = self.tail.entry(line.console.to_owned()).or_default();
        if tail.len() == TAIL {
            tail.pop_front();
        }
        tail.push_back(line.text.to_owned());
    }

    fn partial(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        self.look(line, control);
    }

    fn looked(&mut self, bytes: Option<&[u8]>, control: &mut Control) {
        let explanation = self
            .explainer
            .as_mut()
            .and_then(|explainer| explainer.looked(bytes));
        self.explanations.extend(explanation);
        self.stop_if_done(control);
    }

    fn stalled(&mut self, stall: &Stall, control: &mut Control) {
        // A tool that looks at each instruction makes the clock of any run creep.
        if stall.kind != Kind::Stands && self.case.end != End::Stalled {
            return;
        }
        // Nothing else happens in such a run.
        control.stop = true;
        let tail = self.tail.entry("clock".to_owned()).or_default();
        tail.push_back(stall.text(|_, _| None));
    }
}
