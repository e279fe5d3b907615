// SPDX-License-Identifier: Apache-2.0
//! The tables of five published papers beside our own figures.
//!
//! `bench --paper` prints them, and `docs/papers.md` is made of them. The figures of the papers are in
//! `bench/papers`, one file a paper. Ours are read from the pages that a measurement wrote, so this page and
//! those never disagree. A row that we do not reach, or do not measure, stands there as such.
//!
//! | file | |
//! |---|---|
//! | `paper` | the files of the papers |
//! | `place` | our figures, read from the pages |
//! | `verdict` | conversion to cycles, and the comparison |
//! | `score` | the rows of both, joined |
//! | `markdown`, `terminal` | the page, and the tables for a terminal |

mod markdown;
mod paper;
mod place;
mod score;
mod terminal;
mod verdict;

use bulkhead::problem::Problem;
use paper::{Paper, Place};
use place::Pages;
use score::Scored;
use std::path::Path;

/// The page, from the root of the repository.
pub const PAGE: &str = "docs/papers.md";
/// The name that stands for all papers.
const ALL: &str = "all";

/// Returns the text of the page.
///
/// # Errors
/// A page that a row names cannot be read, or has no such figure.
pub fn page(root: &Path) -> Result<String, Problem> {
    Ok(markdown::page(&scored(root)?))
}

/// Returns the tables of a paper, or of all of them, for a terminal.
///
/// # Errors
/// There is no such paper, or a figure of ours cannot be read.
pub fn text(root: &Path, name: &str, colour: bool) -> Result<String, Problem> {
    let mut scored = scored(root)?;
    if name != ALL {
        let names: Vec<String> = scored.iter().map(|one| format!("`{}`", one.paper.name)).collect();
        scored.retain(|one| one.paper.name == name);
        if scored.is_empty() {
            let problem = Problem::usage(format!("there is no paper `{name}`"));
            return Err(problem.remedy(format!("choose one of {} or `{ALL}`", names.join(", "))));
        }
    }
    Ok(terminal::text(&scored, colour))
}

fn scored(root: &Path) -> Result<Vec<Scored>, Problem> {
    let papers = paper::all().map_err(Problem::new)?;
    let pages = read(root, &papers)?;
    let scored = papers.into_iter().map(|paper| score::score(paper, &pages));
    scored.collect::<Result<_, _>>().map_err(Problem::new)
}

/// Reads all pages that a row names.
fn read(root: &Path, papers: &[Paper]) -> Result<Pages, Problem> {
    let rows = papers
        .iter()
        .flat_map(|paper| &paper.tables)
        .flat_map(|table| &table.rows);
    let places = rows.flat_map(|row| [&row.ours, &row.per, &row.against]).flatten();
    let mut pages = Pages::new();
    for Place { page, .. } in places {
        if !pages.contains_key(page) {
            let path = root.join(page);
            let text = std::fs::read_to_string(&path).map_err(Problem::io(path.display()))?;
            pages.insert(page.clone(), text);
        }
    }
    Ok(pages)
}
