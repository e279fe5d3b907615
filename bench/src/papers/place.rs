// SPDX-License-Identifier: Apache-2.0
//! Our figures, read from the pages that have them.

use super::paper::{IN_A_VM, Place, Unit};
use crate::cells::{Table, numbers, tables};
use std::collections::BTreeMap;

/// The pages by their paths.
pub(super) type Pages = BTreeMap<String, String>;

/// The column of the bare board.
const BARE: &str = "bare";
/// The columns of differences from it.
const DIFFERENCES: [&str; 2] = ["net", "cold"];

/// A figure of ours, and the figure of the bare board beside it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    pub figure: f64,
    pub bare: Option<f64>,
}

impl Found {
    /// Returns the ratio of this figure to another one in this unit, to a hundredth.
    pub(super) fn per(self, other: Self, unit: Unit) -> Self {
        let whole = if unit == Unit::Percent { 100.0 } else { 1.0 };
        Self {
            figure: (self.figure / other.figure.max(1.0) * whole * 100.0).round() / 100.0,
            bare: None,
        }
    }
}

impl Place {
    /// Reads the figure.
    ///
    /// # Errors
    /// The page has no such row, has it twice, or the cell has no such number or another unit.
    pub(super) fn read(&self, pages: &Pages, unit: Unit) -> Result<Found, String> {
        let page = pages
            .get(&self.page)
            .ok_or_else(|| format!("no page {}", self.page))?;
        let tables = tables(page);
        let mut rows = tables.iter().flat_map(|table| self.rows(table));
        let (table, row) = rows.next().ok_or_else(|| format!("{self}: no such row"))?;
        if rows.next().is_some() {
            return Err(format!("{self}: the page has this row twice"));
        }
        let cell = table.cell(row, &self.column).unwrap_or_default();
        let number = numbers(cell).into_iter().nth(self.number.saturating_sub(1));
        let (figure, found) =
            number.ok_or_else(|| format!("{self}: no number {} in `{cell}`", self.number))?;
        let right = if unit.is_time() { "" } else { unit.name() };
        if !found.is_empty() && found != right {
            return Err(format!(
                "{self}: the unit of `{cell}` is not that of the paper's figure"
            ));
        }
        // A difference from the bare board has no bare figure beside it.
        let bare = table
            .cell(row, BARE)
            .filter(|_| !DIFFERENCES.contains(&self.column.as_str()));
        let bare = bare.map(numbers);
        let bare = bare.and_then(|numbers| numbers.first().map(|(number, _)| *number));
        Ok(Found { figure, bare })
    }

    /// Returns the rows of a table that this place names.
    fn rows<'t, 'p>(&'t self, table: &'t Table<'p>) -> impl Iterator<Item = (&'t Table<'p>, &'t [&'p str])> {
        let has_column = table.head.contains(&self.column.as_str());
        let rows = table.rows.iter().filter(move |row| {
            let second = self.second.as_deref();
            has_column
                && row.first() == Some(&self.row.as_str())
                && second.is_none_or(|second| row.get(1) == Some(&second))
        });
        rows.map(move |row| (table, row.as_slice()))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.page, self.row)?;
        if let Some(second) = &self.second {
            write!(f, ", {second}")?;
        }
        if self.column != IN_A_VM {
            write!(f, ", {}", self.column)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
| instructions | bare | in a VM | net |\n|---|---:|---:|---:|\n| call | 3 | 54 | 51 |\n| switch | - | 468 | 468 |\n
| | from | entropy |\n|---|---|---:|\n| quiet | ISR | 0.17 bit |\n|  | arrival | 0.71 bit |\n
| variant | x86_64 |\n|---|---|\n| `full` | 257699 (26440) |\n";

    fn place(text: &str) -> Place {
        toml::from_str(&format!("page = \"p.md\"\n{text}")).unwrap()
    }

    fn read(text: &str, unit: Unit) -> Result<Found, String> {
        let pages = [("p.md".to_owned(), PAGE.to_owned())].into();
        place(text).read(&pages, unit)
    }

    #[test]
    fn a_figure_is_read_with_the_bare_one_beside_it() {
        let found = |figure, bare| Ok(Found { figure, bare });
        assert_eq!(read("row = \"call\"", Unit::Us), found(54.0, Some(3.0)));
        assert_eq!(
            read("row = \"call\"\ncolumn = \"net\"", Unit::Us),
            found(51.0, None)
        );
        assert_eq!(read("row = \"switch\"", Unit::Us), found(468.0, None));
        let arrival = "row = \"quiet\"\nsecond = \"arrival\"\ncolumn = \"entropy\"";
        assert_eq!(read(arrival, Unit::Bit), found(0.71, None));
        let lines = "row = \"`full`\"\ncolumn = \"x86_64\"\nnumber = 2";
        assert_eq!(read(lines, Unit::Lines), found(26_440.0, None));
    }

    #[test]
    fn a_ratio_has_two_digits_and_nothing_bare() {
        let found = |figure| Found {
            figure,
            bare: Some(3.0),
        };
        let ratio = found(11_943.0).per(found(4103.0), Unit::Times);
        assert_eq!((ratio.figure, ratio.bare), (2.91, None));
        assert_eq!(found(5.0).per(found(0.0), Unit::Times).figure, 5.0);
        assert_eq!(found(5.0).per(found(400.0), Unit::Percent).figure, 1.25);
    }

    #[test]
    fn a_title_or_a_number_that_is_missing_and_another_unit_are_errors() {
        let error = |text, unit| read(text, unit).unwrap_err();
        assert_eq!(error("row = \"trap\"", Unit::Us), "p.md: trap: no such row");
        assert!(error("row = \"call\"\ncolumn = \"cold\"", Unit::Us).contains("no such row"));
        assert!(error("row = \"switch\"\ncolumn = \"bare\"", Unit::Us).contains("no number 1"));
        let twice = error("row = \"quiet\"\ncolumn = \"entropy\"", Unit::Bit);
        assert!(twice.contains("twice"), "{twice}");
        let unit = error(
            "row = \"quiet\"\nsecond = \"ISR\"\ncolumn = \"entropy\"",
            Unit::Us,
        );
        assert!(unit.contains("unit"), "{unit}");
        let pages = Pages::new();
        assert_eq!(
            place("row = \"call\"").read(&pages, Unit::Us),
            Err("no page p.md".to_owned())
        );
    }
}
