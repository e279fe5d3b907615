// SPDX-License-Identifier: Apache-2.0
//! The tables for a terminal.

use super::score::{Line, Scored, tally, wrapped};
use super::verdict::Verdict;
use bulkhead::build::tables::table;
use comfy_table::ColumnConstraint;

/// Words that a reader needs before any table.
const WARNING: &str = "\
Theirs are times and cycles of hardware with caches. Ours are instructions of an emulated board, where one
takes a nanosecond. A cycle is no instruction: `reached` says that we need fewer instructions than they need
cycles, and nothing about the time on their hardware.
";

/// The width of text.
const WIDTH: usize = 110;

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const PLAIN: &str = "\x1b[0m";

/// Returns the tables of these papers.
pub(super) fn text(scored: &[Scored], colour: bool) -> String {
    let mut text = format!("{WARNING}\n");
    headlines(&mut text, scored);
    for one in scored {
        of_paper(&mut text, one);
    }
    if colour { coloured(&text) } else { text }
}

fn headlines(text: &mut String, scored: &[Scored]) {
    let mut found = table(&["headline", "paper", "ours", ""]);
    for one in scored {
        for line in one.headlines() {
            let claim = line.headline.as_deref().unwrap_or_default();
            found.add_row([
                format!("{}: {claim}", one.paper.title),
                line.paper.clone(),
                line.ours.clone(),
                mark(line.verdict),
            ]);
        }
    }
    keep_together(&mut found, &[2, 3]);
    let counts = tally(scored.iter()).map(|(verdict, count)| format!("{count} {}", verdict.words()));
    let counts = counts.join(", ");
    text.push_str(&format!(
        "{found}\n\n{counts}. docs/papers.md has the place of each figure of ours.\n"
    ));
}

fn of_paper(text: &mut String, one: &Scored) {
    let paper = &one.paper;
    let published = wrapped(&format!("{}: {}", paper.title, paper.published), WIDTH, "  ");
    text.push_str(&format!("\n{published}\n"));
    let theirs = wrapped(&format!("theirs: {}", paper.machine), WIDTH, "        ");
    text.push_str(&format!("{theirs}\nours:   {}\n", paper.ours));
    for (table, lines) in paper.tables.iter().zip(&one.tables) {
        text.push_str(&format!("\n{}\n", table.title));
        for note in table.notes() {
            text.push_str(&format!("{}\n", wrapped(&note, WIDTH, "")));
        }
        of_table(text, lines);
    }
}

/// Adds a table. Its notes follow it, because a column would be too narrow for them. Equal notes are one.
fn of_table(text: &mut String, lines: &[Line]) {
    let mut found = table(&["operation", "paper", "ours", "bare", "", "note"]);
    let mut notes: Vec<&str> = Vec::new();
    for line in lines {
        found.add_row([
            line.operation.clone(),
            line.paper.clone(),
            line.ours.clone(),
            line.bare.clone(),
            mark(line.verdict),
            number(&mut notes, &line.remark),
        ]);
    }
    keep_together(&mut found, &[2, 4]);
    text.push_str(&format!("{found}\n"));
    for (number, note) in (1..).zip(notes) {
        text.push_str(&format!(
            "{}\n",
            wrapped(&format!("({number}) {note}"), WIDTH, "    ")
        ));
    }
}

/// Returns the number of a note, which joins the others if it is new. A row without a note has no number.
fn number<'a>(notes: &mut Vec<&'a str>, note: &'a str) -> String {
    if note.is_empty() {
        return String::new();
    }
    let place = notes.iter().position(|other| *other == note);
    let place = place.unwrap_or_else(|| {
        notes.push(note);
        notes.len() - 1
    });
    format!("({})", place + 1)
}

/// Keeps the words of columns on one line.
fn keep_together(table: &mut comfy_table::Table, columns: &[usize]) {
    for column in columns {
        if let Some(column) = table.column_mut(*column) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
}

fn mark(verdict: Verdict) -> String {
    let mark = match verdict {
        Verdict::Reached => "[+]",
        Verdict::NotReached => "[-]",
        Verdict::NotMeasured | Verdict::NotCompared => "[ ]",
    };
    format!("{mark} {}", verdict.words())
}

/// Colours the marks. The table is finished, so that no colour changes a width.
fn coloured(text: &str) -> String {
    let paint = |text: String, verdict, colour| {
        let mark = mark(verdict);
        text.replace(&mark, &format!("{colour}{mark}{PLAIN}"))
    };
    let text = paint(text.to_owned(), Verdict::Reached, GREEN);
    paint(text, Verdict::NotReached, RED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_notes_have_one_number() {
        let mut notes = Vec::new();
        let numbers = ["a", "", "b", "a"].map(|note| number(&mut notes, note));
        assert_eq!(numbers, ["(1)", "", "(2)", "(1)"]);
        assert_eq!(notes, ["a", "b"]);
    }

    #[test]
    fn marks_have_a_colour_and_other_words_have_none() {
        let text = coloured("reached [+] reached [-] not reached [ ] not measured");
        assert_eq!(
            text,
            "reached \x1b[32m[+] reached\x1b[0m \x1b[31m[-] not reached\x1b[0m [ ] not measured"
        );
    }
}
