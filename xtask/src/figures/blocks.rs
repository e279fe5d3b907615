// SPDX-License-Identifier: Apache-2.0
//! Splits a page of Markdown into blocks, each with the marks above it.
//!
//! Listings and generated tables are in no block.

/// The line that opens generated tables.
pub const BEGIN: &str = "<!-- begin generated";
/// The line that closes generated tables.
pub const END: &str = "<!-- end generated";

/// The kinds of marks. Other comments are left alone.
const MARKS: &[&str] = &["held", "bounded", "source", "once"];

/// A run of lines without an empty one between two marks: text, a list or a table.
pub struct Block<'a> {
    /// The marks above it, each with its line.
    pub marks: Vec<(usize, &'a str)>,
    /// The lines, from 1.
    pub lines: Vec<(usize, &'a str)>,
    /// The section around it.
    pub section: String,
}

/// Splits a page into its blocks.
pub fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut all: Vec<Block<'_>> = Vec::new();
    let (mut is_new, mut first_of_section) = (true, 0);
    let (mut in_listing, mut tables, mut section) = (false, None, String::new());
    for (number, line) in (1..).zip(page.lines()) {
        let is_fence = line.trim_start().starts_with("```");
        in_listing ^= is_fence;
        tables = tables.or_else(|| end_of_tables(line, page));
        if in_listing || is_fence || tables.is_some() || line.starts_with("    ") || line.trim().is_empty() {
            is_new = true;
            tables = tables.filter(|end: &String| !line.starts_with(end.as_str()));
            continue;
        }
        if line.starts_with('#') {
            let blocks = all.iter_mut().skip(first_of_section);
            blocks.for_each(|block| block.section.clone_from(&section));
            first_of_section = all.len();
            section.clear();
            is_new = true;
        }
        section.push_str(line);
        section.push(' ');
        if line.starts_with("<!--") {
            if MARKS
                .iter()
                .any(|kind| line.starts_with(&format!("<!-- {kind}: ")))
            {
                next(&mut all, |block| is_new || !block.lines.is_empty())
                    .marks
                    .push((number, line));
                is_new = false;
            }
            continue;
        }
        let is_table = line.starts_with('|');
        let begins = |block: &Block<'_>| {
            let last = block.lines.last();
            is_new || last.is_some_and(|(_, last)| last.starts_with('|') != is_table)
        };
        next(&mut all, begins).lines.push((number, line));
        is_new = line.starts_with('#');
    }
    all.iter_mut()
        .skip(first_of_section)
        .for_each(|block| block.section.clone_from(&section));
    all
}

/// Returns the line that closes the generated tables that this one opens: tables of the bench, or tables
/// between `<!-- NAME -->` and `<!-- end of NAME -->`.
pub fn end_of_tables(line: &str, page: &str) -> Option<String> {
    if line.starts_with(BEGIN) {
        return Some(END.to_owned());
    }
    let name = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    let end = format!("<!-- end of {name} -->");
    page.contains(&end).then_some(end)
}

/// Returns the last block, or a new one if `is_new` says so of it.
fn next<'a, 'b>(all: &'b mut Vec<Block<'a>>, is_new: impl Fn(&Block<'a>) -> bool) -> &'b mut Block<'a> {
    if all.last().is_none_or(is_new) {
        all.push(Block {
            marks: Vec::new(),
            lines: Vec::new(),
            section: String::new(),
        });
    }
    let last = all.len() - 1;
    &mut all[last]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_belong_to_the_lines_below_them() {
        let page = "<!-- SPDX -->\n# A\n<!-- held: m -->\none\n\ntwo\n<!-- held: n -->\n- three\n| four |\n";
        let blocks = blocks(page);
        let shape: Vec<_> = blocks
            .iter()
            .map(|block| (block.marks.len(), block.lines.len()))
            .collect();
        assert_eq!(shape, [(0, 1), (1, 1), (0, 1), (1, 1), (0, 1)]);
        assert!(blocks[1].section.contains("two"));
    }
}
