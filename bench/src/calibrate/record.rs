// SPDX-License-Identifier: Apache-2.0
//! One line of the guest that measures: its forms, and the numbers that a machine can give.
//!
//! A log goes through serial lines, terminals and editors. A number that no machine gives is refused, because
//! a cost that is too small makes a verdict of `check` wrong.

/// The first word of each line of the guest.
pub(super) const WORD: &str = "calibrate";
/// The name of the line that ends the list.
pub(super) const DONE: &str = "done";
/// The begin of the names of decisions.
pub(super) const DECISION: &str = "decide-";
/// Lines that say where a log is from.
pub(super) const ORIGINS: [&str; 2] = ["class", "board"];
/// Lines with turns, of which the worst takes a tick at least.
const PATHS: [&str; 3] = ["interrupt", "event", "switch"];
/// Turns of a measurement, as the guest takes them.
pub(super) const RUNS: std::ops::RangeInclusive<u64> = 2..=10_000;
/// Ticks of a counter in a second. The guest waits for a ten-thousandth of a second.
const HERTZ: std::ops::RangeInclusive<u64> = 10_000..=u32::MAX as u64;
/// Longest word of a line that says where a log is from.
const LABEL_MAX: usize = 64;

/// The ticks of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    pub worst: u64,
    pub median: u64,
    pub least: u64,
}

/// The contents of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The class or the board that the system was built for.
    Origin(&'static str, String),
    Figure(String, Ticks),
}

/// The fault of a line, and the remedy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong(pub String, pub &'static str);

/// The remedy for a line that has changed on its way.
pub(super) const DAMAGED: &str = "measure again and keep the log as it is; delete the line if the guest \
     did not write it (a reset cuts lines)";
/// The remedy for a number that is the machine's.
const MACHINE: &str =
    "look at the frequency that the firmware says the counter has (CNTFRQ_EL0), correct it and measure again";

/// Returns the word by which a log names a board: no space, and no character that a serial line could change.
pub(super) fn label(name: &str) -> String {
    let plain = |char: char| {
        if char.is_ascii_alphanumeric() || "-._".contains(char) {
            char
        } else {
            '_'
        }
    };
    name.chars().take(LABEL_MAX).map(plain).collect()
}

/// Reads a line; `None` if the guest does not print such a line. The log of a terminal may have something
/// before the words of the guest.
pub(super) fn read(text: &str) -> Option<Result<Record, Wrong>> {
    let mut words = text
        .split_ascii_whitespace()
        .skip_while(|word| *word != WORD)
        .skip(1);
    let name = words.next()?;
    let words: Vec<&str> = words.collect();
    if let Some(origin) = ORIGINS.into_iter().find(|origin| *origin == name) {
        return Some(word(&words).map(|word| Record::Origin(origin, word)));
    }
    let is_known =
        PATHS.contains(&name) || ["counter-hz", "runs", DONE].contains(&name) || name.starts_with(DECISION);
    is_known.then(|| {
        let ticks = ticks(&words)?;
        judge(name, ticks).map(|()| Record::Figure(name.to_owned(), ticks))
    })
}

fn word(words: &[&str]) -> Result<String, Wrong> {
    match words {
        &[word] if label(word) == word => Ok(word.to_owned()),
        _ => Err(Wrong("one word has to follow".to_owned(), DAMAGED)),
    }
}

fn ticks(words: &[&str]) -> Result<Ticks, Wrong> {
    let number = |word: &str| {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        // The guest writes the largest number for a turn that its counter cannot tell.
        let found = word
            .parse()
            .ok()
            .filter(|number| is_number && *number <= u64::from(u32::MAX));
        found.ok_or_else(|| Wrong(format!("`{word}` is no number from 0 to {}", u32::MAX), DAMAGED))
    };
    let &[worst, median, least] = words else {
        return Err(Wrong(
            "three numbers have to follow: worst, median, least".to_owned(),
            DAMAGED,
        ));
    };
    Ok(Ticks {
        worst: number(worst)?,
        median: number(median)?,
        least: number(least)?,
    })
}

/// Tells whether a machine can give these numbers.
fn judge(name: &str, ticks: Ticks) -> Result<(), Wrong> {
    let Ticks { worst, median, least } = ticks;
    let is_path = PATHS.contains(&name);
    let (what, remedy) = match name {
        _ if worst < median || median < least => (
            format!("the worst turn ({worst}), the median ({median}) and the least ({least}) must not rise"),
            DAMAGED,
        ),
        "counter-hz" if !HERTZ.contains(&worst) => (
            format!(
                "no counter has {worst} ticks in a second: from {} to {}",
                HERTZ.start(),
                HERTZ.end()
            ),
            MACHINE,
        ),
        "runs" if !RUNS.contains(&worst) => (
            format!(
                "the guest takes from {} to {} turns, never {worst}",
                RUNS.start(),
                RUNS.end()
            ),
            DAMAGED,
        ),
        _ if is_path && worst == 0 => ("no turn took a tick of the counter".to_owned(), MACHINE),
        _ if (is_path || name.starts_with(DECISION)) && worst == u64::from(u32::MAX) => (
            "the worst turn took longer than the guest can count".to_owned(),
            MACHINE,
        ),
        _ => return Ok(()),
    };
    Err(Wrong(what, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_others_are_passed_over() {
        for text in [
            "",
            "calibrate",
            "other switch 1 2 3",
            "calibrate cold-bytes 1 0 0",
            "calibrate the clock",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let ticks = Ticks {
            worst: 3,
            median: 2,
            least: 1,
        };
        let expected = Record::Figure("switch".to_owned(), ticks);
        assert_eq!(read("0.1 meter | calibrate switch 3 2 1"), Some(Ok(expected)));
    }

    #[test]
    fn numbers_that_no_machine_gives_are_refused() {
        for (text, why) in [
            ("switch", "three numbers"),
            ("switch 3 2", "three numbers"),
            ("switch 4 3 2 1", "three numbers"),
            ("switch -1 0 0", "`-1` is no number"),
            ("switch +3 2 1", "`+3` is no number"),
            ("switch 0x3 2 1", "`0x3` is no number"),
            ("event 18446744073709551616 3 2", "is no number"),
            ("event 4294967296 3 2", "is no number"),
            ("event 4294967295 3 2", "longer than the guest can count"),
            ("decide-edf-2 4294967295 3 2", "longer than the guest can count"),
            ("event 1 300 200", "must not rise"),
            ("switch 100 100 199", "must not rise"),
            ("switch 0 0 0", "no turn took a tick"),
            ("counter-hz 0 0 0", "no counter has 0 ticks"),
            ("counter-hz 1 0 0", "no counter has 1 ticks"),
            ("counter-hz 99999999999999999 0 0", "is no number"),
            ("runs 0 0 0", "never 0"),
            ("runs 10001 0 0", "never 10001"),
            ("board", "one word"),
            ("board a b", "one word"),
            ("class a\u{fffd}", "one word"),
        ] {
            let Some(Err(Wrong(what, _))) = read(&format!("calibrate {text}")) else {
                panic!("{text} is taken");
            };
            assert!(what.contains(why), "{text}: {what}");
        }
    }

    #[test]
    fn names_of_boards_become_one_word() {
        assert_eq!(label("xlnx-zcu102"), "xlnx-zcu102");
        assert_eq!(label("my \"board\"\u{e4}\n"), "my__board___");
        assert_eq!(label(&"x".repeat(100)).len(), LABEL_MAX);
    }
}
