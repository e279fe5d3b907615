// SPDX-License-Identifier: Apache-2.0
//! Unfinished lines that do not change any more: prompts. One that still changes may be a part of another
//! line.

use crate::serial::consoles::ConsoleLine;
use crate::serial::framing::VirtualTime;
use std::collections::BTreeMap;

/// Microseconds of the board's time after which an unfinished line is taken for a prompt.
const SETTLED: u64 = 50_000;

/// The unfinished lines that nobody has taken yet. The list of consoles is bounded.
#[derive(Debug, Default)]
pub struct Prompts(BTreeMap<String, (String, VirtualTime)>);

impl Prompts {
    /// Notes the unfinished line of a console.
    pub fn note(&mut self, line: ConsoleLine<'_>) {
        let state = (line.text.to_owned(), line.time);
        self.0.insert(line.console.to_owned(), state);
    }

    /// Forgets the line of a console, because it is complete.
    pub fn forget(&mut self, console: &str) {
        self.0.remove(console);
    }

    /// Takes the console, text and time of each line that is settled at this time of the board, or of all
    /// lines if nothing arrives any more.
    pub fn take(&mut self, now: Option<VirtualTime>) -> Vec<(String, String, VirtualTime)> {
        let is_settled =
            |time: VirtualTime| now.is_none_or(|now| now.micros >= time.micros.saturating_add(SETTLED));
        let (settled, others) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(_, (_, time))| is_settled(*time));
        self.0 = others;
        let settled: BTreeMap<String, (String, VirtualTime)> = settled;
        settled
            .into_iter()
            .map(|(console, (text, time))| (console, text, time))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_line_is_no_prompt_and_a_flood_elsewhere_hides_none() {
        let at = |micros| VirtualTime { micros };
        let line = |console, text, micros| ConsoleLine {
            console,
            time: at(micros),
            text,
            cursor: 0,
        };
        let mut prompts = Prompts::default();
        prompts.note(line("linux", "2", 1000));
        assert!(prompts.take(Some(at(1500))).is_empty());
        prompts.note(line("linux", "25", 40_000));
        // Another console goes on all the time: only the clock tells.
        assert!(prompts.take(Some(at(60_000))).is_empty());
        let login = ("linux".to_owned(), "25".to_owned(), at(40_000));
        assert_eq!(prompts.take(Some(at(90_000))), [login]);
        assert!(prompts.take(None).is_empty(), "each is taken once");
        prompts.note(line("linux", "done", 100_000));
        prompts.forget("linux");
        assert!(prompts.take(None).is_empty());
        prompts.note(line("linux", "$ ", 100_001));
        assert_eq!(prompts.take(None).len(), 1);
    }
}
