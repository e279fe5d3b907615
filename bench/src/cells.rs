// SPDX-License-Identifier: Apache-2.0
//! The tables of a page in Markdown, as their cells.
//!
//! Figures of the documentation are read back from here, so that a figure has one home: the page that a
//! measurement wrote.

/// A table: the titles of its columns, and its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table<'a> {
    pub head: Vec<&'a str>,
    pub rows: Vec<Vec<&'a str>>,
}

impl<'a> Table<'a> {
    /// Returns the cell of a row in the column with this title.
    pub(crate) fn cell(&self, row: &[&'a str], column: &str) -> Option<&'a str> {
        let place = self.head.iter().position(|title| *title == column)?;
        row.get(place).copied()
    }
}

/// Returns all tables of a page. A row whose first cell is empty goes on with the first cell above it.
pub(crate) fn tables(page: &str) -> Vec<Table<'_>> {
    let mut tables = Vec::new();
    let mut block = Vec::new();
    for line in page.lines().chain([""]) {
        match cells(line) {
            Some(cells) => block.push(cells),
            None => tables.extend(table(std::mem::take(&mut block))),
        }
    }
    tables
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// Makes a table of its lines. A block needs the rule under its head.
fn table(block: Vec<Vec<&str>>) -> Option<Table<'_>> {
    let mut lines = block.into_iter();
    let head = lines.next()?;
    let is_rule = |cell: &&str| !cell.is_empty() && cell.chars().all(|sign| matches!(sign, '-' | ':'));
    lines.next().filter(|rule| rule.iter().all(is_rule))?;
    let mut above = "";
    let rows = lines.map(|mut row| {
        match row.first_mut() {
            Some(first) if first.is_empty() => *first = above,
            Some(first) => above = first,
            None => {}
        }
        row
    });
    Some(Table {
        head,
        rows: rows.collect(),
    })
}

/// Returns the numbers of a cell, each with the unit after it. A number may have a space or a comma between
/// its groups of three digits.
pub(crate) fn numbers(cell: &str) -> Vec<(f64, &str)> {
    let mut found = Vec::new();
    let mut rest = cell;
    while let Some(start) = rest.find(|sign: char| sign.is_ascii_digit()) {
        let (_, from) = rest.split_at(start);
        let (number, after) = from.split_at(length(from));
        let digits: String = number.chars().filter(|sign| !matches!(sign, ' ' | ',')).collect();
        let end = after.find(|sign: char| sign.is_ascii_digit() || matches!(sign, '(' | ')' | ',' | ';'));
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        if let Ok(number) = digits.parse() {
            found.push((number, unit.trim()));
        }
        rest = after;
    }
    found
}

/// Returns the length of the number at the start of a text.
fn length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = 0;
    while end < bytes.len() {
        let is_inside = match bytes.get(end) {
            Some(b'.') => is_digit(end + 1),
            Some(b' ' | b',') => (1..=3).all(|ahead| is_digit(end + ahead)) && !is_digit(end + 4),
            _ => is_digit(end),
        };
        if !is_inside {
            break;
        }
        end += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_and_an_empty_first_cell_goes_on() {
        let page = "text\n| a | b |\n|---|---:|\n| x | 1 |\n|  | 2 |\n\n| no rule |\n\n| c |\n|---|\n";
        let found = tables(page);
        let [first, second] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(first.rows, [["x", "1"], ["x", "2"]]);
        assert_eq!(first.cell(&first.rows[1], "b"), Some("2"));
        assert_eq!(first.cell(&first.rows[1], "c"), None);
        assert_eq!((second.head.as_slice(), second.rows.len()), (["c"].as_slice(), 0));
    }

    #[test]
    fn numbers_have_their_units_and_groups() {
        assert_eq!(numbers("197617 (28620)"), [(197_617.0, ""), (28_620.0, "")]);
        assert_eq!(numbers("4.67 us"), [(4.67, "us")]);
        assert_eq!(numbers("13 631"), [(13_631.0, "")]);
        assert_eq!(numbers("20,800 here"), [(20_800.0, "here")]);
        assert_eq!(numbers("1891, 2256"), [(1891.0, ""), (2256.0, "")]);
        assert_eq!(numbers("-"), []);
    }
}
