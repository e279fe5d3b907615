// SPDX-License-Identifier: Apache-2.0
//! Patterns for lines of consoles.
//!
//! A pattern is a regular expression that is searched both in the text of a line and in `name: text`, so
//! `nproc=2` matches on every console and `^linux: .*nproc=2` on one.

use crate::serial::consoles::ConsoleLine;
use regex::Regex;

/// Three ways in which an unfinished line may go on: with a letter, with a space, with neither.
const NEXT: [&str; 3] = ["a", " ", "\0"];

/// A regular expression for lines.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// The error says for people why the pattern is wrong.
    pub fn new(text: &str) -> Result<Self, String> {
        Regex::new(text)
            .map(Self)
            .map_err(|error| format!("`{text}` is not a regular expression: {error}"))
    }

    /// Tells whether the pattern is found in `line`.
    #[must_use]
    pub fn matches(&self, line: ConsoleLine<'_>) -> bool {
        self.0.is_match(line.text) || self.0.is_match(&format!("{}: {}", line.console, line.text))
    }

    /// Tells whether the pattern is found in a line that begins with `line`, however the line goes on. So `$`
    /// is not found: the tool does not know that the line ends there.
    #[must_use]
    pub fn matches_beginning(&self, line: ConsoleLine<'_>) -> bool {
        let is_found = |begin: &str| {
            NEXT.iter().all(|next| {
                let end = self.0.shortest_match(&format!("{begin}{next}"));
                end.is_some_and(|end| end <= begin.len())
            })
        };
        is_found(line.text) || is_found(&format!("{}: {}", line.console, line.text))
    }

    /// Returns the groups that the pattern captures in `text`.
    #[must_use]
    pub fn captures<'a>(&self, text: &'a str) -> Option<Vec<&'a str>> {
        let captures = self.0.captures(text)?;
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
        self.0.as_str()
    }
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
}
