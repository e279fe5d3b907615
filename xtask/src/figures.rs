// SPDX-License-Identifier: Apache-2.0
//! Checks that each measured figure of a page says what holds it.
//!
//! A paragraph, list or table with such a figure has a mark, an HTML comment on the line above it:
//!
//! | mark | meaning | checked here |
//! |---|---|---|
//! | `<!-- held: PATH, ... -->` | tests or a generated table have the figure | a file has each figure |
//! | `<!-- bounded: PATH, ... -->` | a test fails beyond a limit; the figure lies within it | the paths exist |
//! | `<!-- source: PATH, ... -->` | constants of our sources have it | a file has each figure |
//! | `<!-- source: Name of a manual, section -->` | the manual has it | nothing |
//! | `<!-- once: YYYY-MM-DD, COMMAND -->` | measured once; the day may be left out | the section names the date |
//!
//! Marks add up: one of the files must have a figure, unless a mark among them checks no figures. A mark may
//! also stand between two items of a list, and holds from there on. Of a page that has generated tables,
//! `held` reads these alone. `figures-budget.toml` bounds the number of `once`; the bound may only fall.
//! [`find`] says what is taken for a measured figure, and what this check does not see. Pages that a test
//! compares as a whole ([`GENERATED`]) need no marks.

mod blocks;
mod find;

use crate::workspace::{root, tracked};
use crate::{Findings, Outcome};
use blocks::Block;
use find::Figure;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Pages that a test compares with the generated text.
const GENERATED: &[&str] = &[
    "docs/manifest-reference.md",
    "docs/manifest-errors.md",
    "docs/papers.md",
];

const FILE: &str = "figures-budget.toml";
const HEAD: &str = "# SPDX-License-Identifier: Apache-2.0
# Paragraphs and tables of the documentation whose figures were measured once and are held by no test.
# `xtask ci` fails if there are more, `xtask bless` lowers the number. `xtask/src/figures.rs` has the marks.

";

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    once: usize,
}

/// The thing that holds the figures of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mark {
    /// Files of which one has each figure.
    Files { held: bool, paths: Vec<String> },
    /// Tests that fail beyond a limit.
    Bounded(Vec<String>),
    /// A manual.
    Manual,
    /// The date of a measurement, as the page has it.
    Once(String),
}

/// Checks all pages, and the number of figures that were measured once.
pub fn check() -> Outcome {
    let (mut findings, once) = pages()?;
    let most = budget()?.once;
    if once > most {
        findings.push(format!("{once} marks `once`, {FILE} allows {most}"));
    }
    Ok(findings)
}

/// Lowers the budget to what is there.
pub fn lower() -> Outcome {
    let once = pages()?.1.min(budget()?.once);
    std::fs::write(root().join(FILE), format!("{HEAD}once = {once}\n"))
        .map_err(|error| format!("{FILE}: {error}"))?;
    Ok(Findings::new())
}

fn budget() -> Result<Budget, String> {
    let text = std::fs::read_to_string(root().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    toml::from_str(&text).map_err(|error| format!("{FILE}: {error}"))
}

/// Returns the findings of all pages, and the number of marks `once`.
fn pages() -> Result<(Findings, usize), String> {
    let (mut findings, mut once) = (Findings::new(), 0);
    for path in tracked(&[".md"])? {
        let name = path.strip_prefix(root()).unwrap_or(&path);
        let name = name.to_string_lossy().into_owned();
        if GENERATED.contains(&name.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        for block in blocks::blocks(&text) {
            let (found, is_once) = judge(&block, &|path| read(path));
            once += usize::from(is_once);
            findings.extend(
                found
                    .into_iter()
                    .map(|(line, what)| format!("{name}:{line}: {what}")),
            );
        }
    }
    Ok((findings, once))
}

/// Returns the text of a file or folder of the repository. A folder has no text.
fn read(path: &str) -> Option<String> {
    let path = root().join(path);
    if path.is_dir() {
        return Some(String::new());
    }
    std::fs::read_to_string(path).ok()
}

/// Judges one block: what is wrong with it on which line, and whether it has a mark `once`.
fn judge(block: &Block<'_>, read: &dyn Fn(&str) -> Option<String>) -> (Vec<(usize, String)>, bool) {
    let figures = find::figures(block);
    let (mut found, mut numbers) = (Vec::new(), BTreeSet::new());
    let (mut is_once, mut are_all_in_files) = (false, !block.marks.is_empty());
    for &(line, text) in &block.marks {
        let mark = match mark(text) {
            Ok(mark) => mark,
            Err(why) => {
                found.push((line, why));
                continue;
            }
        };
        is_once |= matches!(mark, Mark::Once(_));
        are_all_in_files &= matches!(mark, Mark::Files { .. });
        let wrong = judge_mark(&mark, &block.section, read, &mut numbers);
        found.extend(wrong.into_iter().map(|what| (line, what)));
    }
    if are_all_in_files {
        found.extend(missing(&figures, &numbers));
    }
    let unmarked = figures.first().filter(|_| block.marks.is_empty());
    found.extend(unmarked.map(|figure| {
        let what = format!("{:?} has no mark that says what holds it", figure.text);
        (figure.line, what)
    }));
    (found, is_once)
}

/// Judges one mark of a block in this section, and adds the numbers of its files.
fn judge_mark(
    mark: &Mark,
    section: &str,
    read: &dyn Fn(&str) -> Option<String>,
    numbers: &mut BTreeSet<String>,
) -> Findings {
    let (paths, held) = match mark {
        Mark::Files { held, paths } => (paths.as_slice(), *held),
        Mark::Bounded(paths) => (paths.as_slice(), false),
        Mark::Once(date) if !section.contains(date.as_str()) => {
            return vec![format!("the text does not say {date:?}")];
        }
        Mark::Manual | Mark::Once(_) => return Findings::new(),
    };
    let mut found = Findings::new();
    for path in paths {
        match read(path) {
            None => found.push(format!("there is no {path}")),
            Some(text) => numbers.extend(find::numbers(&evidence(&text, held))),
        }
    }
    found
}

/// Returns the figures that no file has.
fn missing(figures: &[Figure], numbers: &BTreeSet<String>) -> Vec<(usize, String)> {
    let missing = figures.iter().filter(|figure| !numbers.contains(&figure.digits));
    missing
        .map(|figure| {
            (
                figure.line,
                format!("{:?} is in none of the files of its mark", figure.text),
            )
        })
        .collect()
}

/// Returns what a file says: of a page with generated tables these alone, if they are asked for.
fn evidence(text: &str, generated: bool) -> String {
    let (mut end, mut tables) = (None, String::new());
    for line in text.lines() {
        end = end.or_else(|| blocks::end_of_tables(line, text));
        end = end.filter(|end: &String| !line.starts_with(end.as_str()));
        if end.is_some() {
            tables.push_str(line);
            tables.push('\n');
        }
    }
    if generated && !tables.is_empty() {
        tables
    } else {
        text.to_owned()
    }
}

/// Reads a mark.
fn mark(text: &str) -> Result<Mark, String> {
    let inner = text.trim_start_matches("<!--").trim_end_matches("-->").trim();
    let (kind, rest) = inner.split_once(": ").unwrap_or((inner, ""));
    let paths = || rest.split(", ").map(str::to_owned).collect::<Vec<_>>();
    match kind {
        "held" => Ok(Mark::Files {
            held: true,
            paths: paths(),
        }),
        "source" if rest.split(", ").all(|item| !item.contains(' ')) => Ok(Mark::Files {
            held: false,
            paths: paths(),
        }),
        "source" => Ok(Mark::Manual),
        "bounded" => Ok(Mark::Bounded(paths())),
        "once" => date(rest).map(Mark::Once),
        _ => Err(format!("{kind:?} is no mark")),
    }
}

/// Turns `YYYY-MM[-DD], COMMAND` into the date as a page writes it.
fn date(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is not YYYY-MM-DD, COMMAND");
    let (date, _) = text.split_once(", ").ok_or_else(wrong)?;
    let mut parts = date.split('-');
    let year = parts.next().filter(|year| year.len() == 4).ok_or_else(wrong)?;
    let month: usize = parts
        .next()
        .and_then(|month| month.parse().ok())
        .ok_or_else(wrong)?;
    let month = MONTHS.get(month.wrapping_sub(1)).ok_or_else(wrong)?;
    match parts.next() {
        None => Ok(format!("{month} {year}")),
        Some(day) => {
            let day: usize = day.parse().map_err(|_| wrong())?;
            Ok(format!("{day} {month} {year}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the findings of a page, where `a.toml` has 57 and `t.md` has 99, and 9057 in a generated
    /// table.
    fn found(page: &str) -> Vec<(usize, String)> {
        let read = |path: &str| match path {
            "a.toml" => Some("longest = 57\n".to_owned()),
            "t.md" => Some(format!(
                "99\n{} by a tool -->\n| 9057 |\n{} -->\n",
                blocks::BEGIN,
                blocks::END
            )),
            _ => None,
        };
        blocks::blocks(page)
            .iter()
            .flat_map(|block| judge(block, &read).0)
            .collect()
    }

    fn lines(page: &str) -> Vec<usize> {
        found(page).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn a_figure_needs_a_mark() {
        assert_eq!(lines("# Head\n\nA switch takes\n57 instructions.\n"), [3]);
        assert!(lines("<!-- held: a.toml -->\nA switch takes 57 instructions.\n").is_empty());
        assert!(lines("<!-- source: Arm IHI 0069, 2.1 -->\nA switch takes 58 instructions.\n").is_empty());
        assert!(lines("A switch has no figure.\n").is_empty());
    }

    #[test]
    fn a_file_must_have_the_figure_and_be_there() {
        assert_eq!(lines("<!-- held: a.toml -->\nIt takes 58 instructions.\n"), [2]);
        assert_eq!(
            lines("<!-- held: b.toml -->\nIt takes 57 instructions.\n"),
            [1, 2]
        );
        assert_eq!(
            lines("<!-- bounded: b.toml -->\nIt takes 57 instructions.\n"),
            [1]
        );
        assert!(lines("<!-- bounded: a.toml -->\nIt takes 58 instructions.\n").is_empty());
    }

    #[test]
    fn of_a_page_only_its_generated_tables_hold_a_figure() {
        assert!(lines("<!-- held: t.md -->\nIt takes 9 057 instructions.\n").is_empty());
        assert_eq!(lines("<!-- held: t.md -->\nIt takes 99 instructions.\n"), [2]);
        assert!(lines("<!-- held: t.md, a.toml -->\nIt takes 57 instructions.\n").is_empty());
    }

    #[test]
    fn the_reader_sees_the_date() {
        let mark = "<!-- once: 2026-11-24, xtask stretch -->\n";
        assert_eq!(lines(&format!("{mark}It takes 58 instructions.\n")), [1]);
        assert!(lines(&format!("{mark}It takes 58 instructions (24 November 2026).\n")).is_empty());
        assert!(
            lines(&format!(
                "On 24 November 2026:\n\n{mark}It takes 58 instructions.\n"
            ))
            .is_empty()
        );
        assert_eq!(
            lines(&format!(
                "24 November 2026\n# B\n{mark}It takes 58 instructions.\n"
            )),
            [3]
        );
        assert_eq!(date("2026-11, a"), Ok("November 2026".to_owned()));
        assert!(date("2026-13, a").is_err() && date("2026-11-24").is_err());
    }

    #[test]
    fn another_comment_marks_nothing() {
        assert!(lines("<!-- holds: a.toml -->\nText.\n").is_empty());
        assert_eq!(lines("<!-- holds: a.toml -->\nIt takes 57 instructions.\n"), [2]);
    }
}
