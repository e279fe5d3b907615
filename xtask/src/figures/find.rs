// SPDX-License-Identifier: Apache-2.0
//! Finds measured figures in Markdown: cheap rules that look at words beside numbers.
//!
//! A number, in digits, is taken for a measured figure
//!
//! - before `instructions` or `MIPS`;
//! - before a unit of time or size, or `%`, in a sentence with one of [`MEASURING`], unless it is a size that
//!   is a power of two: these are sizes of the architecture or of a table;
//! - before `lines`, unless it is a multiple of 32: these are lines of an interrupt controller;
//! - before `times`, if it has a fraction;
//! - from 100 on, without a noun, after one of [`BEFORE`] ("It was 2125.");
//! - in the column of a table whose heading has one of [`HEADINGS`].
//!
//! Listings, code spans and generated tables are left out. Numbers in words, other units, and later members
//! of a list of numbers are not seen. A figure with another meaning (a period beside the word "late") needs a
//! mark all the same.

use super::blocks::Block;
use std::collections::BTreeSet;

/// Units of a measurement in any sentence.
const SURE: &[&str] = &["instruction", "instructions", "MIPS"];
const TIMES: &[&str] = &["ns", "us", "ms", "s", "seconds", "min", "minutes", "ticks", "%"];
const SIZES: &[&str] = &["byte", "bytes", "KB", "KiB", "MiB"];

/// Words between a number and its unit.
const BETWEEN: &[&str] = &["thousand", "million", "more"];

/// Words of a sentence that tells of a measurement.
const MEASURING: &[&str] = &[
    "measured", "measures", "took", "takes", "take", "taken", "cost", "costs", "longest", "late", "latest",
    "slower", "faster", "dearer", "cheaper", "larger", "smaller", "shorter", "longer", "deepest", "saves",
    "saved", "save", "counted", "median", "reached", "jitter", "grew", "fell", "passes", "missed",
];

/// Words before a number that stands for a measurement without a unit.
const BEFORE: &[&str] = &[
    "cost", "costs", "take", "takes", "took", "was", "were", "bar", "bars", "sum",
];
/// Words that may stand between the two.
const ABOUT: &[&str] = &["about", "some", "only", "at", "most", "up", "to", "is", "of"];

/// Words of the heading of a column of measurements.
const HEADINGS: &[&str] = &[
    "instructions",
    "bytes",
    "us",
    "ns",
    "ms",
    "longest",
    "sum",
    "median",
    "least",
    "most",
    "net",
    "measured",
    "there",
    "back",
];

/// A measured figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The line of its sentence.
    pub line: usize,
    /// The number without separators.
    pub digits: String,
    /// The number and its unit.
    pub text: String,
}

/// Returns the measured figures of a block.
pub fn figures(block: &Block<'_>) -> Vec<Figure> {
    match block.lines.as_slice() {
        [(_, heading), (_, rule), rows @ ..] if rule.starts_with("|-") || rule.starts_with("|:") => {
            let headings = cells(heading);
            rows.iter()
                .flat_map(|(line, row)| in_row(&headings, *line, row))
                .collect()
        }
        lines => sentences(lines)
            .iter()
            .flat_map(|(line, words)| in_sentence(*line, words))
            .collect(),
    }
}

fn in_row(headings: &[String], line: usize, row: &str) -> Vec<Figure> {
    let mut all = Vec::new();
    for (heading, cell) in headings.iter().zip(cells(row)) {
        let words: Vec<String> = cell.split_whitespace().map(str::to_owned).collect();
        if plain_words(heading.split_whitespace()).any(|word| HEADINGS.contains(&word.as_str())) {
            let numbers = numbers_of(&words).into_iter().filter(|number| {
                let unit = words.get(number.next).map_or("", |word| trimmed(word));
                number.is_closed || unit.is_empty() || !unit.starts_with(char::is_alphabetic) || is_unit(unit)
            });
            all.extend(numbers.map(|number| number.figure(line, &words)));
        } else {
            all.extend(in_sentence(line, &words));
        }
    }
    all
}

fn cells(row: &str) -> Vec<String> {
    let row = without_code(row.trim());
    let row = row.strip_prefix('|').unwrap_or(&row);
    row.strip_suffix('|')
        .unwrap_or(row)
        .split('|')
        .map(|cell| cell.trim().to_owned())
        .collect()
}

/// Returns the sentences of a text, each with its first line and its words.
fn sentences(lines: &[(usize, &str)]) -> Vec<(usize, Vec<String>)> {
    let mut all: Vec<(usize, Vec<String>)> = Vec::new();
    let mut begins = true;
    let text: Vec<&str> = lines.iter().map(|(_, line)| *line).collect();
    let text = without_code(&text.join("\n"));
    for ((number, _), line) in lines.iter().zip(text.lines()) {
        begins |= line.starts_with("- ") || line.starts_with("#");
        for word in line.split_whitespace() {
            match all.last_mut() {
                Some((_, words)) if !begins => words.push(word.to_owned()),
                _ => all.push((*number, vec![word.to_owned()])),
            }
            begins = word
                .trim_end_matches([')', ']', '*', '_', '"'])
                .ends_with(['.', '!', '?']);
        }
    }
    all
}

/// Puts one sign in the place of each code span; line ends stay.
fn without_code(text: &str) -> String {
    let outside = |(index, piece): (usize, &str)| match index % 2 {
        0 => piece.to_owned(),
        _ => format!("`{}", "\n".repeat(piece.matches('\n').count())),
    };
    text.split('`').enumerate().map(outside).collect()
}

/// A number among words.
struct Number {
    /// The digits without separators.
    digits: String,
    /// The index of its first word.
    first: usize,
    /// The index of the word after it.
    next: usize,
    /// True if a sign such as a comma or a bracket stands after it.
    is_closed: bool,
    /// True if `%` is written at it.
    is_share: bool,
}

impl Number {
    fn figure(&self, line: usize, words: &[String]) -> Figure {
        let end = if self.is_closed { self.next } else { self.next + 1 };
        let text = words
            .get(self.first..end.min(words.len()))
            .unwrap_or_default()
            .join(" ");
        Figure {
            line,
            digits: self.digits.clone(),
            text,
        }
    }

    fn value(&self) -> f64 {
        self.digits.parse().unwrap_or(0.0)
    }
}

/// Returns the numbers among words. Groups of three digits with a space between them are one number.
fn numbers_of(words: &[String]) -> Vec<Number> {
    let mut all: Vec<Number> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let body = word.trim_start_matches(['(', '[', '*', '~', '"']);
        let core = body.trim_end_matches(['.', ',', ';', ':', ')', ']', '*', '"', '%', '?']);
        let digits = core.replace([',', '_'], "");
        if !core.starts_with(|letter: char| letter.is_ascii_digit()) || digits.parse::<f64>().is_err() {
            continue;
        }
        let rest = &body[core.len()..];
        let (is_closed, is_share) = (!rest.is_empty(), rest.starts_with('%'));
        let is_group = digits.len() == 3 && !digits.contains('.') && !core.contains(',') && body == word;
        match all.last_mut() {
            Some(last)
                if is_group
                    && last.next == index
                    && !last.is_closed
                    && (last.digits.len() <= 3 || last.next - last.first > 1)
                    && !last.digits.contains('.') =>
            {
                last.digits.push_str(&digits);
                last.next = index + 1;
                (last.is_closed, last.is_share) = (is_closed, is_share);
            }
            _ => all.push(Number {
                digits,
                first: index,
                next: index + 1,
                is_closed,
                is_share,
            }),
        }
    }
    all
}

/// Returns all numbers of a text, without separators.
pub fn numbers(text: &str) -> BTreeSet<String> {
    let signs = |letter: char| !(letter.is_ascii_alphanumeric() || ".,_".contains(letter));
    let mut all = BTreeSet::new();
    for line in text.lines() {
        let words: Vec<String> = line
            .split(signs)
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        all.extend(numbers_of(&words).into_iter().map(|number| number.digits));
        // Groups may also be two numbers beside each other.
        let single = words
            .iter()
            .flat_map(|word| numbers_of(std::slice::from_ref(word)));
        all.extend(single.map(|number| number.digits));
        // Numbers at letters: `57us`, `0.5ms`.
        let glued = words
            .iter()
            .map(|word| word.trim_end_matches(|letter: char| letter.is_alphabetic()));
        all.extend(
            glued
                .filter(|word| word.parse::<f64>().is_ok())
                .map(str::to_owned),
        );
    }
    all
}

fn in_sentence(line: usize, words: &[String]) -> Vec<Figure> {
    let is_measuring =
        plain_words(words.iter().map(String::as_str)).any(|word| MEASURING.contains(&word.as_str()));
    let numbers = numbers_of(words);
    let are_figures: Vec<bool> = numbers
        .iter()
        .map(|number| is_figure(number, words, is_measuring))
        .collect();
    let mut all = Vec::new();
    for (index, number) in numbers.iter().enumerate() {
        // "105 to 138 instructions": the second number has the unit of both.
        let joins = words
            .get(number.next)
            .is_some_and(|word| word == "to" || word == "and" || word == "or");
        let shares = !number.is_closed
            && joins
            && numbers
                .get(index + 1)
                .is_some_and(|second| second.first == number.next + 1)
            && are_figures.get(index + 1) == Some(&true);
        if are_figures[index] || shares {
            all.push(number.figure(line, words));
        }
    }
    all
}

fn is_figure(number: &Number, words: &[String], is_measuring: bool) -> bool {
    let word = |index: usize| words.get(index).map_or("", |word| trimmed(word));
    let unit = match word(number.next) {
        _ if number.is_share => "%",
        _ if number.is_closed => "",
        between if BETWEEN.contains(&between) => word(number.next + 1),
        unit => unit,
    };
    match unit {
        _ if SURE.contains(&unit) => true,
        "lines" => number.value() % 32.0 != 0.0,
        "times" => number.digits.contains('.'),
        _ if TIMES.contains(&unit) => is_measuring,
        _ if SIZES.contains(&unit) => is_measuring && !is_power_of_two(&number.digits),
        _ => number.value() >= 100.0 && stands_alone(number, words) && is_after(number, words),
    }
}

fn is_unit(word: &str) -> bool {
    [SURE, TIMES, SIZES].iter().any(|units| units.contains(&word))
}

fn is_power_of_two(digits: &str) -> bool {
    digits.parse::<u64>().is_ok_and(u64::is_power_of_two)
}

/// Tells whether no noun follows a number: a sign, the end or a small word.
fn stands_alone(number: &Number, words: &[String]) -> bool {
    const SMALL: &[&str] = &[
        "to", "and", "or", "for", "in", "on", "with", "beside", "instead", "when", "where",
    ];
    number.is_closed
        || words
            .get(number.next)
            .is_none_or(|word| SMALL.contains(&word.as_str()))
}

/// Tells whether a word of [`BEFORE`] stands before a number.
fn is_after(number: &Number, words: &[String]) -> bool {
    let before = words.get(..number.first).unwrap_or_default();
    let last = before.iter().rev().find(|word| !ABOUT.contains(&word.as_str()));
    last.is_some_and(|word| BEFORE.contains(&word.as_str()))
}

fn trimmed(word: &str) -> &str {
    word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '%')
}

/// Returns words in small letters, without signs.
fn plain_words<'a>(words: impl Iterator<Item = &'a str>) -> impl Iterator<Item = String> {
    words
        .map(|word| trimmed(word).to_lowercase())
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::super::blocks::{BEGIN, END, blocks};
    use super::*;

    fn found(page: &str) -> Vec<String> {
        blocks(page)
            .iter()
            .flat_map(figures)
            .map(|figure| figure.digits)
            .collect()
    }

    #[test]
    fn numbers_with_a_unit_of_measurement_are_figures() {
        assert_eq!(
            found("A trap is 105 to 138 instructions, or 9 057 instructions.\n"),
            ["105", "138", "9057"]
        );
        assert_eq!(found("Each MiB costs about 55 thousand\ninstructions.\n"), ["55"]);
        assert_eq!(found("It takes 17,688 bytes beside 4 KiB.\n"), ["17688"]);
        assert_eq!(found("It was 12.5 us late, 5 % of all.\n"), ["12.5", "5"]);
        assert_eq!(found("The file has 80 lines, the controller 64 lines.\n"), ["80"]);
        assert_eq!(
            found("The VM takes 1.04 times as long, 1000 times a second.\n"),
            ["1.04"]
        );
    }

    #[test]
    fn a_number_without_a_unit_counts_behind_some_words() {
        assert_eq!(found("*Doorbell*: bar 300. It was 2125.\n"), ["300", "2125"]);
        assert_eq!(found("They were 786 to 831.\n"), ["786"]);
        assert_eq!(found("There were 300 vCPUs, and it was 12.\n"), [""; 0]);
    }

    #[test]
    fn parameters_listings_and_generated_tables_are_no_figures() {
        assert_eq!(found("A window of 20 ms in pages of 4 KiB.\n"), [""; 0]);
        assert_eq!(found("It takes `57 instructions`.\n"), [""; 0]);
        assert_eq!(
            found("Text:\n\n    57 instructions\n\n```\n57 instructions\n```\n"),
            [""; 0]
        );
        let generated = format!("{BEGIN} by a tool -->\n| 57 instructions |\n{END} -->\n");
        assert_eq!(found(&generated), [""; 0]);
        assert_eq!(
            found("<!-- parts -->\n57 instructions\n<!-- end of parts -->\n\n58 instructions\n"),
            ["58"]
        );
    }

    #[test]
    fn columns_of_measurements_are_figures() {
        let table = "| stage | instructions | what |\n|---|---:|---|\n| entry | 17 | 11 stores |\n";
        assert_eq!(found(table), ["17"]);
        let table = "| kind | longest |\n|---|---|\n| a | 4 811, 4 673 |\n";
        assert_eq!(found(table), ["4811", "4673"]);
    }

    #[test]
    fn numbers_of_a_file_have_no_separators() {
        let numbers = numbers("longest_ns = 61_000 # 9 057 or 1,234\nperiod = \"0.5ms\"\n");
        for number in ["61000", "9057", "1234", "0.5"] {
            assert!(numbers.contains(number), "{number}");
        }
    }
}
