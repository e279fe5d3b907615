// SPDX-License-Identifier: Apache-2.0
//! The ways of partitions to reach each other: tables, and a graph in the DOT language of Graphviz.

use crate::build::tables::table;
use bulkhead_manifest::System;
use bulkhead_manifest::system::ReachRow;
use comfy_table::Table;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns the ways of partitions to act on each other that are there from the start.
pub(super) fn direct(system: &System) -> Table {
    rows(system, true)
}

/// Returns the ways that grants could add.
pub(super) fn by_grants(system: &System) -> Table {
    rows(system, false)
}

fn rows(system: &System, is_direct: bool) -> Table {
    let mut rows = table(&["partition", "can reach", "by", "how"]);
    let all = system.who_can_reach_whom().into_iter();
    for row in all.filter(|row| row.is_direct == is_direct) {
        rows.add_row([row.from, row.to, row.by, row.how]);
    }
    rows
}

/// Returns the capabilities that grants could bring.
pub(super) fn gains(system: &System) -> Table {
    let mut rows = table(&["partition", "could hold", "rights"]);
    for row in system.who_could_hold_what() {
        rows.add_row([row.partition, row.object, row.rights.join(", ")]);
    }
    rows
}

/// Returns a directed graph: a node for each partition, and an edge for each pair of which one can reach the
/// other. An edge that needs a grant is dashed.
pub(super) fn dot(name: &str, system: &System) -> String {
    let mut text = format!(
        "digraph {} {{\n  rankdir=LR;\n  node [shape=box];\n",
        quoted(name)
    );
    for partition in system.partitions() {
        let _ = writeln!(text, "  {};", quoted(partition.name()));
    }
    let rows = system.who_can_reach_whom();
    for (is_direct, style) in [(true, ""), (false, ", style=dashed")] {
        for ((from, to), ways) in pairs(&rows, is_direct) {
            let ways: Vec<String> = ways
                .iter()
                .map(|row| format!("{}: {}", row.by, row.how))
                .collect();
            let (from, to, label) = (quoted(from), quoted(to), quoted(&ways.join("\n")));
            let _ = writeln!(text, "  {from} -> {to} [label={label}{style}];");
        }
    }
    text.push_str("}\n");
    text
}

type Pairs<'r> = BTreeMap<(&'r str, &'r str), Vec<&'r ReachRow>>;

fn pairs(rows: &[ReachRow], is_direct: bool) -> Pairs<'_> {
    let mut pairs = Pairs::new();
    for row in rows.iter().filter(|row| row.is_direct == is_direct) {
        pairs.entry((&row.from, &row.to)).or_default().push(row);
    }
    pairs
}

/// Returns a text as a quoted ID of the DOT language (Graphviz, "DOT Language"). A backslash begins an escape
/// there, so a backslash of the text is doubled.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn marks_of_the_language_are_escaped() {
        assert_eq!(quoted("a\\b\"c\nd"), r#""a\\b\"c\nd""#);
    }
}
