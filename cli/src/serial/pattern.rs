// SPDX-License-Identifier: Apache-2.0
//! Patterns for lines of consoles.
//!
//! A pattern is a regular expression that is searched both in the text of a line and in `name: text`, so
//! `nproc=2` matches on every console and `^linux: .*nproc=2` on one.
//!
//! A guest can print `control: PASS`. So a match that begins with the name of a console and a colon counts
//! only on a line of that console, for which the tool wrote the name.

use crate::serial::consoles::ConsoleLine;
use bulkhead_abi::framing::HYPERVISOR_CONSOLE;
use regex::Regex;

/// Three ways in which an unfinished line may go on: with a letter, with a space, with neither.
const NEXT: [&str; 3] = ["a", " ", "\0"];

/// A regular expression for lines.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
    /// The names that no other console can use.
    consoles: Vec<String>,
}

impl Pattern {
    /// Compiles `text`. The hypervisor's console is the only one that the pattern knows.
    ///
    /// # Errors
    /// The error says for people why the pattern is wrong.
    pub fn new(text: &str) -> Result<Self, String> {
        let regex =
            Regex::new(text).map_err(|error| format!("`{text}` is not a regular expression: {error}"))?;
        Ok(Self {
            regex,
            consoles: vec![HYPERVISOR_CONSOLE.to_owned()],
        })
    }

    /// Makes the names of these consoles known, so that a match with one of them is a line of that console.
    #[must_use]
    pub fn with_consoles<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.consoles.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Tells whether the pattern is found in `line`.
    #[must_use]
    pub fn matches(&self, line: ConsoleLine<'_>) -> bool {
        let is_found = |text: &str| self.start(text, line.console).is_some();
        is_found(line.text) || is_found(&named(line))
    }

    /// Tells whether the pattern is found in a line that begins with `line`, however the line goes on. So `$`
    /// is not found: the tool does not know that the line ends there.
    #[must_use]
    pub fn matches_beginning(&self, line: ConsoleLine<'_>) -> bool {
        let is_found = |begin: &str| {
            NEXT.iter().all(|next| {
                let text = format!("{begin}{next}");
                let end = self.end(&text, line.console);
                end.is_some_and(|end| end <= begin.len())
            })
        };
        is_found(line.text) || is_found(&named(line))
    }

    /// Returns the begin of the first match that counts on this console.
    fn start(&self, text: &str, console: &str) -> Option<usize> {
        let mut from = 0;
        loop {
            let start = self.regex.find_at(text, from)?.start();
            if !self.is_forged(text, start, console) {
                return Some(start);
            }
            from = next(text, start)?;
        }
    }

    /// Returns the earliest end of the match that counts on this console. A later match that does not count
    /// could have that end: then no end is returned, and the complete line decides.
    fn end(&self, text: &str, console: &str) -> Option<usize> {
        let start = self.start(text, console)?;
        let end = self.regex.shortest_match_at(text, start)?;
        let later = next(text, start).and_then(|from| self.regex.find_at(text, from));
        let is_doubtful =
            later.is_some_and(|later| later.start() < end && self.is_forged(text, later.start(), console));
        (!is_doubtful).then_some(end)
    }

    /// Tells whether a match that begins at `start` begins with the name of another console.
    fn is_forged(&self, text: &str, start: usize, console: &str) -> bool {
        let rest = text.get(start..).unwrap_or_default().trim_start().as_bytes();
        let is_named = |name: &String| {
            let (name, colon) = (name.as_bytes(), rest.get(name.len()..).unwrap_or_default());
            let is_there = rest
                .get(..name.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(name));
            is_there && colon.starts_with(b": ")
        };
        self.consoles.iter().any(|name| name != console && is_named(name))
    }

    /// Returns the groups that the pattern captures in `text`.
    #[must_use]
    pub fn captures<'a>(&self, text: &'a str) -> Option<Vec<&'a str>> {
        let captures = self.regex.captures(text)?;
        Some(
            captures
                .iter()
                .skip(1)
                .map(|group| group.map_or("", |group| group.as_str()))
                .collect(),
        )
    }

    /// Returns the pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }
}

/// Returns a line as patterns with a name see it.
fn named(line: ConsoleLine<'_>) -> String {
    format!("{}: {}", line.console, line.text)
}

/// Returns the place after the character at `at`, if there is one.
fn next(text: &str, at: usize) -> Option<usize> {
    Some(at + text.get(at..)?.chars().next()?.len_utf8())
}

impl std::str::FromStr for Pattern {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serial::framing::VirtualTime;

    fn line(text: &str) -> ConsoleLine<'_> {
        ConsoleLine {
            console: "linux",
            time: VirtualTime::default(),
            text,
            cursor: 0,
        }
    }

    #[test]
    fn an_unfinished_line_matches_only_if_each_line_does_that_begins_so() {
        for (pattern, text, expected) in [
            ("login: ", "login: ", true),
            ("^linux: login:", "login: ", true),
            ("login:.*", "login: ", true),
            ("# $", "# ", false),
            ("^2$", "2", false),
            (r"2\b", "2", false),
            (r"2\b", "2 ", true),
            ("abc.$", "abc", false),
            ("2.", "2", false),
            (r"^2\s", "2", false),
        ] {
            let found = Pattern::new(pattern).unwrap().matches_beginning(line(text));
            assert_eq!(found, expected, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn a_pattern_may_name_the_console() {
        let line = line("nproc=2");
        for (pattern, expected) in [
            ("nproc=2", true),
            ("^nproc=2$", true),
            ("linux: nproc", true),
            ("^linux: nproc=2$", true),
            ("control: nproc", false),
            ("^linux$", false),
        ] {
            assert_eq!(
                Pattern::new(pattern).unwrap().matches(line),
                expected,
                "{pattern}"
            );
        }
        assert!(
            Pattern::new("(")
                .unwrap_err()
                .contains("not a regular expression")
        );
    }

    /// Returns whether the pattern is found in a line of `rogue`, complete and as a begin.
    fn on_rogue(pattern: &str, text: &str) -> (bool, bool) {
        let names = ["rogue", "control", "rogue-control"];
        let pattern = Pattern::new(pattern).unwrap().with_consoles(names);
        let line = ConsoleLine {
            console: "rogue",
            ..line(text)
        };
        (pattern.matches(line), pattern.matches_beginning(line))
    }

    #[test]
    fn a_guest_cannot_print_the_name_of_another_console() {
        for (pattern, text) in [
            ("control: PASS", "control: PASS"),
            ("^control: PASS", "control: PASS"),
            ("^control: PASS", "  control: PASS"),
            (r"^\s*control: PASS", "  control: PASS"),
            ("(?i-u)^CONTROL: pass", "Control: PASS"),
            ("^(control|other): PASS", "control: PASS"),
            ("control: PASS", "x control: PASS control: PASS"),
            ("control: PASS", "xcontrol: PASS"),
            (
                "^bulkhead: partition control: ",
                "bulkhead: partition control: failed",
            ),
            ("^bulkhead: LOCKDOWN", "bulkhead: LOCKDOWN: spoof named"),
            ("control: (PASS)?", "rogue: control: "),
        ] {
            assert_eq!(on_rogue(pattern, text), (false, false), "{pattern} in {text:?}");
        }
    }

    #[test]
    fn a_name_in_a_line_hides_nothing_else_of_it() {
        for (pattern, text) in [
            ("PASS", "control: PASS"),
            ("^rogue: PASS", "PASS"),
            ("rogue: control: PASS", "control: PASS"),
            ("^rogue: .*PASS", "control: PASS"),
            (".*: PASS", "control: PASS"),
            ("control PASS", "control PASS"),
            ("[a-z]+: PASS", "other: PASS"),
        ] {
            assert_eq!(on_rogue(pattern, text), (true, true), "{pattern} in {text:?}");
        }
        // The end of the match is known, and its begin is the hypervisor's word for the console.
        assert_eq!(on_rogue("rogue-control: PASS", "PASS"), (false, false));
        assert_eq!(on_rogue("(rogue: .*)?control: ", "control: "), (true, false));
    }
}
