// SPDX-License-Identifier: Apache-2.0
//! The tables of a board file that a measurement gives.
//!
//! A board file is a person's text. Only the values of the measured keys change: comments, other keys, their
//! order, the form of the tables and the ends of lines stay as they are.

use super::readings::Costs;
use bulkhead::build::own_policy::toml_string;
use bulkhead::problem::Problem;
use bulkhead_manifest::Board;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Keys of `[overheads]` that no measurement sees.
const UNSEEN: [&str; 3] = ["longest", "longest-per-vcpu", "output"];

/// The circumstances of a measurement.
#[derive(Debug)]
pub(super) struct Origin<'a> {
    pub machine: &'a str,
    pub date: &'a str,
    pub margin: u32,
}

/// A table that a measurement gives: its name, and its keys with their values, as TOML writes them.
#[derive(Debug)]
pub(super) struct Measured {
    name: &'static str,
    rows: Vec<(&'static str, String)>,
}

impl Measured {
    /// Returns the rows as lines, each with these words before it.
    fn lines(&self, before: &str) -> String {
        let line = |(key, value): &(&str, String)| format!("{before}{key} = {value}\n");
        self.rows.iter().map(line).collect()
    }

    /// Returns the table as a text.
    fn text(&self) -> String {
        format!("[{}]\n{}", self.name, self.lines(""))
    }
}

/// Returns the two tables, with what a measurement sees.
pub(super) fn measured(costs: &Costs, origin: &Origin<'_>) -> [Measured; 2] {
    let time = |time: u64| format!("\"{time}ns\"");
    [
        Measured {
            name: "overheads",
            rows: vec![
                ("basis", toml_string("measured")),
                ("switch", time(costs.switch)),
                ("interrupt", time(costs.interrupt)),
                ("decision", time(costs.decision)),
            ],
        },
        Measured {
            name: "measurement",
            rows: vec![
                ("machine", toml_string(origin.machine)),
                ("date", toml_string(origin.date)),
                ("counter-hz", costs.counter_hz.to_string()),
                ("runs", costs.runs.to_string()),
                ("margin", origin.margin.to_string()),
                ("estimated", format!("[{}]", UNSEEN.map(toml_string).join(", "))),
            ],
        },
    ]
}

/// Returns the two tables as a text. The figures that no measurement sees stay as the board has them, in
/// nanoseconds.
pub(super) fn shown(tables: &[Measured; 2], board: &Board) -> String {
    let kept = board.costs.map_or([0; 3], |old| {
        [old.longest, old.longest_per_vcpu, old.output].map(|time| time.get())
    });
    // A key that is not there is derived from the others.
    let kept = UNSEEN.iter().zip(kept).filter(|(_, time)| *time != 0);
    let kept: String = kept
        .map(|(key, time)| format!("{key} = \"{time}ns\"\n"))
        .collect();
    let [costs, origin] = tables;
    format!("{}{kept}\n{}", costs.text(), origin.text())
}

/// Returns the text of a board file with the measured values in the place of the old ones. The last line gets
/// an end if it has none.
///
/// # Errors
/// The old tables are written in a way that this function does not understand.
pub(super) fn put(board: &str, tables: &[Measured; 2]) -> Result<String, Problem> {
    let odd = || {
        Problem::new("the tables cannot be put into the board file as it is written; nothing is written")
            .remedy("run the command without `--write`, and put the tables that it prints there yourself")
    };
    let end = if board.contains("\r\n") { "\r\n" } else { "\n" };
    let mut board = board.to_owned();
    if !board.ends_with('\n') {
        board.push_str(end);
    }
    let board = board.as_str();
    let document = DeTable::parse(board).map_err(|_| odd())?;
    let (mut edits, mut after) = (Vec::new(), None);
    for table in tables {
        let old = Old::find(board, document.get_ref(), table.name);
        let new = match &old {
            Some(old) => old.edits(board, table).ok_or_else(odd)?,
            None => vec![addition(board, after, table)],
        };
        edits.extend(
            new.into_iter()
                .map(|(place, text)| (place, text.replace('\n', end))),
        );
        after = old
            .filter(|old| old.form == Form::Header)
            .and_then(|old| old.last());
    }
    let new = edited(board, edits).ok_or_else(odd)?;
    holds(&new, tables).then_some(new).ok_or_else(odd)
}

/// Tells whether two texts are the same value in TOML.
fn is_same(one: &str, other: &str) -> bool {
    let value = |text: &str| format!("value = {text}").parse::<toml::Table>();
    value(one).is_ok_and(|one| value(other).is_ok_and(|other| one == other))
}

/// A stretch of a text, and what takes its place.
type Edit = (Range<usize>, String);

/// Returns a text with these edits. Of two at one place, the first one comes first.
fn edited(text: &str, mut edits: Vec<Edit>) -> Option<String> {
    edits.sort_by_key(|(place, _)| (place.start, place.end));
    let (mut out, mut from) = (String::new(), 0);
    for (place, new) in edits {
        out.push_str(text.get(from..place.start)?);
        out.push_str(&new);
        from = place.end;
    }
    out.push_str(text.get(from..)?);
    Some(out)
}

/// Tells whether a text has the values of the tables.
fn holds(text: &str, tables: &[Measured; 2]) -> bool {
    let Ok(document) = text.parse::<toml::Table>() else {
        return false;
    };
    tables.iter().all(|table| {
        let wanted: toml::Table = table.lines("").parse().unwrap_or_default();
        let given = document.get(table.name).and_then(toml::Value::as_table);
        let is_given = |(key, value)| given.is_some_and(|given| given.get(key) == Some(value));
        !wanted.is_empty() && wanted.iter().all(is_given)
    })
}

/// Returns the edit that adds a table that the file does not have: below the keys that end at `after`, or at
/// the end of the file.
fn addition(board: &str, after: Option<usize>, table: &Measured) -> Edit {
    let place = after.map_or(board.len(), |after| end_of_block(board, after));
    (place..place, format!("\n{}", table.text()))
}

/// Returns where the line ends in which a place is.
fn end_of_line(text: &str, place: usize) -> usize {
    let rest = text.get(place..).unwrap_or_default();
    rest.find('\n').map_or(text.len(), |end| place + end + 1)
}

/// Returns where the lines end that belong to the key at `place`: comments up to an empty line. Comments that
/// another heading follows at once belong to that one.
fn end_of_block(text: &str, place: usize) -> usize {
    let first = end_of_line(text, place);
    let mut end = first;
    for line in text.get(first..).unwrap_or_default().split_inclusive('\n') {
        match line.trim_start().chars().next() {
            None => return end,
            Some('#') => end += line.len(),
            Some(_) => return first,
        }
    }
    end
}

/// The form in which a board file has a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `[overheads]`.
    Header,
    /// `overheads = { basis = "counted" }`.
    Inline,
    /// `overheads.basis = "counted"`.
    Dotted,
}

/// A table that a board file has.
#[derive(Debug)]
struct Old {
    form: Form,
    /// The keys, and the places of their values.
    rows: Vec<(String, Range<usize>)>,
}

impl Old {
    /// Finds a table.
    fn find(text: &str, document: &DeTable<'_>, name: &str) -> Option<Self> {
        let (key, table) = document.iter().find(|(key, _)| key.get_ref().as_ref() == name)?;
        let DeValue::Table(rows) = table.get_ref() else {
            return None;
        };
        let before = text.get(..key.span().start)?;
        let form = if before
            .lines()
            .last()
            .is_some_and(|line| !before.ends_with('\n') && line.trim() == "[")
        {
            Form::Header
        } else if text.get(table.span())?.starts_with('{') {
            Form::Inline
        } else {
            Form::Dotted
        };
        let rows = rows
            .iter()
            .map(|(key, value)| (key.get_ref().to_string(), value.span()));
        Some(Self {
            form,
            rows: rows.collect(),
        })
    }

    /// Returns where the last value ends.
    fn last(&self) -> Option<usize> {
        self.rows.iter().map(|(_, place)| place.end).max()
    }

    /// Returns the edits that set the values of a table. A key that is not there comes after the last one.
    fn edits(&self, text: &str, table: &Measured) -> Option<Vec<Edit>> {
        let last = self.last()?;
        let line = end_of_line(text, last);
        let edit = |(key, value): &(&'static str, String)| {
            let old = self.rows.iter().find(|(old, _)| old == key);
            match (old, self.form) {
                // A list may have comments in it.
                (Some((_, place)), _) if is_same(text.get(place.clone())?, value) => None,
                (Some((_, place)), _) => Some((place.clone(), value.clone())),
                (None, Form::Header) => Some((line..line, format!("{key} = {value}\n"))),
                (None, Form::Dotted) => Some((line..line, format!("{}.{key} = {value}\n", table.name))),
                (None, Form::Inline) => Some((last..last, format!(", {key} = {value}"))),
            }
        };
        Some(table.rows.iter().filter_map(edit).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOARD: &str = "name = \"mine\"\n# Kept.\n\n[ overheads ] # head\nbasis = \"estimated\" # basis\n# Also \
        kept.\noutput = \"4us\"\nswitch =    '1us' # switch\ninterrupt = \"1us\"\ndecision = \"1us\"\nlongest = \
        \"14us\"\n# last\n\n# of the console\n[console]\nline = 3\n";
    const COSTS: Costs = Costs {
        switch: 2400,
        interrupt: 2424,
        decision: 1200,
        counter_hz: 100_000_000,
        runs: 1000,
    };
    const ORIGIN: &str = "[measurement]\nmachine = \"box \\\"7\\\"\"\ndate = \"2026-12-03\"\ncounter-hz = \
        100000000\nruns = 1000\nmargin = 20\nestimated = [\"longest\", \"longest-per-vcpu\", \"output\"]\n";
    const NEW: &str = "[overheads]\nbasis = \"measured\"\nswitch = \"2400ns\"\ninterrupt = \"2424ns\"\n\
        decision = \"1200ns\"\n";

    fn tables() -> [Measured; 2] {
        let origin = Origin {
            machine: "box \"7\"",
            date: "2026-12-03",
            margin: 20,
        };
        measured(&COSTS, &origin)
    }

    /// Returns the text after the edit, which a second edit leaves alone.
    fn put_twice(board: &str) -> String {
        let new = put(board, &tables()).unwrap();
        assert_eq!(put(&new, &tables()).unwrap(), new);
        new
    }

    /// Returns what the edit of [`BOARD`] gives.
    fn expected() -> String {
        let values = BOARD
            .replace("\"estimated\"", "\"measured\"")
            .replace("'1us'", "\"2400ns\"");
        let values = values.replace("interrupt = \"1us\"", "interrupt = \"2424ns\"");
        let values = values.replace("decision = \"1us\"", "decision = \"1200ns\"");
        values.replace("# last\n", &format!("# last\n\n{ORIGIN}"))
    }

    #[test]
    fn only_values_change() {
        assert_eq!(put_twice(BOARD), expected());
    }

    #[test]
    fn lines_keep_their_ends() {
        let board = BOARD.replace('\n', "\r\n");
        assert_eq!(put_twice(&board), expected().replace('\n', "\r\n"));
    }

    #[test]
    fn tables_keep_their_forms() {
        let new =
            put_twice("overheads = { basis = \"counted\", switch = \"1us\", output = \"4us\" } # one\n");
        assert_eq!(
            new,
            format!(
                "overheads = {{ basis = \"measured\", switch = \"2400ns\", output = \"4us\", interrupt = \
                 \"2424ns\", decision = \"1200ns\" }} # one\n\n{ORIGIN}"
            )
        );
        let new =
            put_twice("overheads.basis = \"counted\" # a\noverheads.output = \"4us\" # b\nname = \"x\"\n");
        assert_eq!(
            new,
            format!(
                "overheads.basis = \"measured\" # a\noverheads.output = \"4us\" # b\noverheads.switch = \
                 \"2400ns\"\noverheads.interrupt = \"2424ns\"\noverheads.decision = \"1200ns\"\nname = \
                 \"x\"\n\n{ORIGIN}"
            )
        );
        let new = put_twice("[\"overheads\"]\nbasis = \"counted\"");
        assert!(
            new.starts_with("[\"overheads\"]\nbasis = \"measured\"\nswitch = \"2400ns\"\n"),
            "{new}"
        );
    }

    #[test]
    fn tables_that_are_not_there_come_at_the_end() {
        let text = "# [overheads]\nname = \"\"\"\n[overheads]\n\"\"\"";
        assert_eq!(put_twice(text), format!("{text}\n\n{NEW}\n{ORIGIN}"));
    }

    #[test]
    fn a_list_that_says_the_same_keeps_its_comments() {
        let list = "estimated = [ # by hand\n  \"longest\", \"longest-per-vcpu\", \"output\",\n]\n";
        let new = put_twice(&format!(
            "[overheads]\nbasis = \"counted\"\n\n[measurement]\n{list}"
        ));
        assert!(new.contains(list), "{new}");
    }

    #[test]
    fn comments_before_a_heading_stay_with_it() {
        let new = put_twice("[overheads]\nbasis = \"counted\"\n# of the console\n[console]\n");
        assert!(
            new.ends_with(&format!("\n{ORIGIN}# of the console\n[console]\n")),
            "{new}"
        );
    }

    #[test]
    fn what_no_measurement_sees_is_shown_as_the_board_has_it() {
        let boards = bulkhead_manifest::boards();
        let board = boards.iter().find(|board| board.name == "xlnx-zcu102").unwrap();
        let text = shown(&tables(), board);
        let kept = "longest = \"14000ns\"\nlongest-per-vcpu = \"100ns\"\noutput = \"4000ns\"\n";
        assert_eq!(text, format!("{NEW}{kept}\n{ORIGIN}"));
    }

    #[test]
    fn a_text_that_is_no_toml_is_refused() {
        for odd in ["[overheads", "overheads = 1\n", "[overheads]\n[[measurement]]\n"] {
            assert!(put(odd, &tables()).is_err(), "{odd}");
        }
    }
}
