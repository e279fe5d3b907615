// SPDX-License-Identifier: Apache-2.0
//! The papers' rows joined with our figures, as texts that a terminal and a page show alike.

use super::paper::{Paper, Place, Row, Table, Unit};
use super::place::{Found, Pages};
use super::verdict::Verdict;

/// A paper beside our figures.
#[derive(Debug)]
pub(super) struct Scored {
    pub paper: Paper,
    /// The rows of each table.
    pub tables: Vec<Vec<Line>>,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub operation: String,
    pub paper: String,
    pub ours: String,
    pub bare: String,
    pub verdict: Verdict,
    /// The place of our figure.
    pub from: Option<String>,
    /// The difference, or the reason why there is no figure of ours, if they are only for this row.
    pub remark: String,
    pub headline: Option<String>,
}

/// Joins a paper with our figures.
///
/// # Errors
/// A figure that a row names is not there.
pub(super) fn score(paper: Paper, pages: &Pages) -> Result<Scored, String> {
    let tables = paper.tables.iter().map(|table| {
        let rows = table.rows.iter().map(|row| line(row, paper.clock_mhz, pages));
        rows.collect::<Result<Vec<Line>, String>>()
    });
    let tables = tables.collect::<Result<_, _>>();
    let tables = tables.map_err(|error| format!("{}: {error}", paper.name))?;
    Ok(Scored { paper, tables })
}

fn line(row: &Row, clock_mhz: f64, pages: &Pages) -> Result<Line, String> {
    let read = |place: &Option<Place>| {
        let place = place.as_ref();
        place.map(|place| place.read(pages, row.unit)).transpose()
    };
    let (ours, against) = (read(&row.ours)?, read(&row.against)?);
    let ours = match read(&row.per)? {
        Some(per) => ours.map(|ours| ours.per(per, row.unit)),
        None => ours,
    };
    let figure = row.figure.map(|figure| row.unit.convert(figure, clock_mhz));
    let limit = figure.or_else(|| against.map(|against| against.figure));
    let mut text = ours.map_or_else(|| "-".to_owned(), |found| of_ours(found.figure, row));
    if let Some(against) = against {
        text.push_str(&format!(" against {}", short(against.figure)));
    }
    let remark = if ours.is_some() { &row.differs } else { &row.why };
    Ok(Line {
        operation: row.operation.clone(),
        paper: of_paper(row, clock_mhz),
        ours: text,
        bare: bare(ours),
        verdict: Verdict::of(ours.map(|found| found.figure), limit, row.more_is_better),
        from: row.ours.as_ref().map(Place::to_string),
        remark: remark.clone().unwrap_or_default(),
        headline: row.headline.clone(),
    })
}

/// Returns the figure of a paper in its own words, or as its number and in cycles.
fn of_paper(row: &Row, clock_mhz: f64) -> String {
    let unit = row.unit;
    let number = |figure| {
        let cycles = unit.convert(figure, clock_mhz);
        let own = format!("{} {}", short(figure), unit.name());
        if unit.is_time() && unit != Unit::Cycles {
            format!("{own} = {cycles:.0} cycles")
        } else {
            own
        }
    };
    let words = row.text.clone();
    words.or_else(|| row.figure.map(number)).unwrap_or_default()
}

/// Returns our figure, and the time of the emulated board.
fn of_ours(figure: f64, row: &Row) -> String {
    let text = format!("{} {}", short(figure), row.unit.of_ours());
    if row.unit.is_time() {
        let own = row.ours.as_ref().map(|place| place.page.as_str());
        let page = crate::pages().find(|page| Some(page.file) == own);
        let nanoseconds = 1_u32 << page.map_or(0, |page| page.pace);
        format!("{text} ({})", time(figure * f64::from(nanoseconds)))
    } else {
        text
    }
}

fn bare(ours: Option<Found>) -> String {
    let bare = ours.and_then(|found| found.bare);
    bare.map_or_else(|| "-".to_owned(), short)
}

/// Returns a number without digits that say nothing.
fn short(figure: f64) -> String {
    format!("{figure}")
}

fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        few if few < 1e3 => format!("{few} ns"),
        few if few < 1e6 => format!("{:.2} us", few / 1e3),
        many => format!("{:.2} ms", many / 1e6),
    }
}

/// Returns the number of headlines of each verdict, the reached ones first.
pub(super) fn tally<'a>(scored: impl Iterator<Item = &'a Scored>) -> [(Verdict, usize); 3] {
    let mut counts =
        [Verdict::Reached, Verdict::NotReached, Verdict::NotMeasured].map(|verdict| (verdict, 0));
    for line in scored.flat_map(Scored::headlines) {
        for (verdict, count) in &mut counts {
            *count += usize::from(*verdict == line.verdict);
        }
    }
    counts
}

impl Table {
    /// Returns the differences and the reasons that several rows share, as sentences.
    pub(super) fn notes(&self) -> Vec<String> {
        let rows = self.rows.iter();
        let uses_why = rows.clone().any(|row| row.ours.is_none() && row.why.is_none());
        let uses_differs = rows
            .clone()
            .any(|row| row.ours.is_some() && row.differs.is_none());
        let differs = uses_differs.then(|| format!("Difference: {}.", self.differs));
        let why = uses_why.then(|| format!("Not measured: {}.", self.why));
        differs.into_iter().chain(why).collect()
    }
}

/// Breaks a text into lines of a width. Each line after the first one begins with `indent`.
pub(super) fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let mut found = String::new();
    let mut length = 0;
    for word in text.split_ascii_whitespace() {
        if length > 0 && length + 1 + word.len() > width {
            found.push('\n');
            found.push_str(indent);
            length = indent.len();
        } else if length > 0 {
            found.push(' ');
            length += 1;
        }
        found.push_str(word);
        length += word.len();
    }
    found
}

impl Scored {
    /// Returns the rows that are headlines.
    pub(super) fn headlines(&self) -> impl Iterator<Item = &Line> {
        self.tables
            .iter()
            .flatten()
            .filter(|line| line.headline.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: &str = r#"
name = "x"
title = "X"
published = "somewhere"
machine = "a board"
clock-mhz = 650.0
ours = "another board"
[[table]]
title = "Calls"
differs = "theirs has caches"
why = "no guest does it"
[[table.row]]
operation = "call"
figure = 10.38
unit = "us"
ours = { page = "p.md", row = "call" }
headline = "A call takes 10.38 us"
[[table.row]]
operation = "jump"
figure = 500
headline = "A jump takes 500 cycles"
[[table.row]]
operation = "ping"
text = "faster than a call (picture)"
ours = { page = "p.md", row = "ping" }
against = { page = "p.md", row = "call" }
differs = "another wire"
headline = "A ping is faster than a call"
"#;

    fn scored(page: &str) -> Result<Scored, String> {
        let pages = [("p.md".to_owned(), page.to_owned())].into();
        score(toml::from_str(PAPER).unwrap(), &pages)
    }

    #[test]
    fn a_row_has_both_figures_in_both_units_its_place_and_its_difference() {
        let page = "| x | bare | in a VM |\n|---|---|---|\n| call | 3 | 1900 |\n| ping | - | 2000 |\n";
        let scored = scored(page).unwrap();
        let [call, jump, ping] = scored.tables[0].as_slice() else {
            panic!("{scored:?}")
        };
        assert_eq!(call.paper, "10.38 us = 6747 cycles");
        assert_eq!(
            (call.ours.as_str(), call.bare.as_str()),
            ("1900 instructions (1.90 us)", "3")
        );
        assert_eq!((call.verdict, call.remark.as_str()), (Verdict::Reached, ""));
        assert_eq!(call.from.as_deref(), Some("p.md: call"));
        assert_eq!((jump.paper.as_str(), jump.ours.as_str()), ("500 cycles", "-"));
        assert_eq!((jump.verdict, jump.remark.as_str()), (Verdict::NotMeasured, ""));
        assert_eq!(
            (ping.verdict, ping.remark.as_str()),
            (Verdict::NotReached, "another wire")
        );
        assert_eq!(ping.ours, "2000 instructions (2.00 us) against 1900");
        let notes = scored.paper.tables[0].notes();
        assert_eq!(
            notes,
            [
                "Difference: theirs has caches.",
                "Not measured: no guest does it."
            ]
        );
        let counts = tally([&scored].into_iter()).map(|(_, count)| count);
        assert_eq!(counts, [1, 1, 1]);
    }

    #[test]
    fn a_title_that_is_gone_is_an_error_with_the_name_of_the_paper() {
        let error = scored("| x | in a VM |\n|---|---|\n| call | 1 |\n").unwrap_err();
        assert_eq!(error, "x: p.md: ping: no such row");
    }

    #[test]
    fn long_texts_are_broken_between_words() {
        assert_eq!(wrapped("one two three four", 9, "  "), "one two\n  three\n  four");
        assert_eq!(wrapped("", 9, ""), "");
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        assert_eq!(time(51.0), "51 ns");
        assert_eq!(time(25_840.0), "25.84 us");
        assert_eq!(time(693_094.0), "693.09 us");
        assert_eq!(time(20_072_557.0), "20.07 ms");
    }
}
