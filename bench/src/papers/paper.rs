// SPDX-License-Identifier: Apache-2.0
//! The papers as the files of `bench/papers` have them: figures of others, and the places of our own.
//!
//! A row has a place of ours, or the reason why no figure of ours exists. The figures of a paper are typed in
//! once, by hand. Ours never are: a row names the page, the row and the column.

use serde::Deserialize;

/// The column of our figures, unless a row names another one.
pub(super) const IN_A_VM: &str = "in a VM";

/// The files, in the order of the page.
const FILES: &[&str] = &[
    include_str!("../../papers/acrn.toml"),
    include_str!("../../papers/t-visor.toml"),
    include_str!("../../papers/urtzvisor.toml"),
    include_str!("../../papers/rodosvisor.toml"),
    include_str!("../../papers/hermes.toml"),
];

/// A paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Paper {
    /// The name on the command line.
    pub name: String,
    /// The name of the system.
    pub title: String,
    /// Where it was published.
    pub published: String,
    /// The hardware and the set-up of its measurements.
    pub machine: String,
    /// The clock by which its times become cycles, 0 if it has no times.
    #[serde(default)]
    pub clock_mhz: f64,
    /// The board and the pages of ours.
    pub ours: String,
    #[serde(rename = "table")]
    pub tables: Vec<Table>,
}

/// A table of a paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Table {
    /// The title, which says what the paper's figures are.
    pub title: String,
    /// The difference that holds for all rows that name no other one.
    #[serde(default)]
    pub differs: String,
    /// The reason that holds for all rows without a place of ours.
    #[serde(default)]
    pub why: String,
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// A row of a paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Row {
    /// The operation.
    pub operation: String,
    /// The figure of the paper, if it is one number that ours can be held against.
    pub figure: Option<f64>,
    #[serde(default)]
    pub unit: Unit,
    /// The paper's own words, in the place of number and unit.
    pub text: Option<String>,
    /// True if a larger figure is the better one.
    #[serde(default)]
    pub more_is_better: bool,
    /// Our figure.
    pub ours: Option<Place>,
    /// The figure of ours that ours is a multiple of, if the row has a ratio.
    pub per: Option<Place>,
    /// Another figure of ours that the paper's claim compares ours with. It stands for a number of the paper.
    pub against: Option<Place>,
    /// The difference between the two measurements.
    pub differs: Option<String>,
    /// The reason why there is no figure of ours.
    pub why: Option<String>,
    /// The claim, if the row is one of the paper's headlines.
    pub headline: Option<String>,
}

/// The unit of a paper's figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Unit {
    #[default]
    Cycles,
    Us,
    Ms,
    S,
    Lines,
    Bytes,
    #[serde(rename = "KB")]
    Kilobytes,
    Calls,
    Bit,
    Percent,
    Times,
}

/// The place of a figure of ours: a cell of a table of a page.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    /// The page, from the root of the repository.
    pub page: String,
    /// The first cell of the row.
    pub row: String,
    /// The second cell of the row, if there are several with the same first one.
    pub second: Option<String>,
    /// The title of the column.
    #[serde(default = "in_a_vm")]
    pub column: String,
    /// The number in the cell, counted from 1.
    #[serde(default = "first")]
    pub number: usize,
}

fn in_a_vm() -> String {
    IN_A_VM.to_owned()
}

const fn first() -> usize {
    1
}

/// Returns all papers.
///
/// # Errors
/// A file of a paper is wrong.
pub(super) fn all() -> Result<Vec<Paper>, String> {
    FILES.iter().map(|text| read(text)).collect()
}

fn read(text: &str) -> Result<Paper, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_paper_has_five_headlines_and_each_row_a_place_or_a_reason() {
        for paper in all().unwrap() {
            let rows = || {
                paper
                    .tables
                    .iter()
                    .flat_map(|table| table.rows.iter().map(move |row| (table, row)))
            };
            let headlines = rows().filter(|(_, row)| row.headline.is_some()).count();
            assert_eq!(headlines, 5, "{}", paper.name);
            for (table, row) in rows() {
                let name = format!("{}: {}: {}", paper.name, table.title, row.operation);
                assert!(
                    row.figure.is_some() || row.text.is_some(),
                    "{name}: no figure of the paper"
                );
                let reason = row.why.as_ref().unwrap_or(&table.why);
                assert!(row.ours.is_some() || !reason.is_empty(), "{name}: no reason");
                assert!(
                    row.ours.is_none() || row.why.is_none(),
                    "{name}: a figure, and a reason for none"
                );
                let differs = row.differs.as_ref().unwrap_or(&table.differs);
                assert!(row.ours.is_none() || !differs.is_empty(), "{name}: no difference");
                let has_time = row.figure.is_some() && row.unit.is_time();
                assert!(!has_time || paper.clock_mhz > 0.0, "{name}: no clock");
                assert!(
                    row.figure.is_none() || row.against.is_none(),
                    "{name}: two comparisons"
                );
            }
        }
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let error = read("name = \"x\"\ncolour = 1\n").unwrap_err();
        assert!(error.contains("colour"), "{error}");
    }
}
