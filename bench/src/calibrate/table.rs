// SPDX-License-Identifier: Apache-2.0
//! The tables of a board file that a measurement gives.

use super::figures::Costs;
use std::fmt::Write;

/// Tables of a board file that a measurement replaces.
const TABLES: [&str; 2] = ["[overheads]", "[measurement]"];
/// Keys of `[overheads]` that stay as they are, because no measurement sees them.
pub(super) const UNSEEN: [&str; 3] = ["longest", "longest-per-vcpu", "output"];

/// The circumstances of a measurement.
#[derive(Debug)]
pub(super) struct Origin<'a> {
    pub machine: &'a str,
    pub date: &'a str,
    pub margin: u32,
}

/// Returns the two tables. `old` is the text of the board file, from which figures stay that were not seen.
pub(super) fn tables(costs: &Costs, origin: &Origin<'_>, old: &str) -> String {
    let kept: Vec<(&str, &str)> = kept(old).collect();
    let mut text = format!(
        "[overheads]\nbasis = \"measured\"\nswitch = \"{}ns\"\ninterrupt = \"{}ns\"\ndecision = \"{}ns\"\n",
        costs.switch, costs.interrupt, costs.decision
    );
    for (key, value) in &kept {
        let _ = writeln!(text, "{key} = {value}");
    }
    let Origin {
        machine,
        date,
        margin,
    } = origin;
    // `longest` is the sum of the others where the file does not give it.
    let names: Vec<String> = kept.iter().map(|(key, _)| format!("{key:?}")).collect();
    let _ = write!(
        text,
        "\n[measurement]\nmachine = {machine:?}\ndate = \"{date}\"\ncounter-hz = {}\nruns = {}\nmargin = {margin}\n\
         estimated = [{}]\n",
        costs.counter_hz,
        costs.runs,
        names.join(", ")
    );
    text
}

/// Returns the figures of a board file that no measurement sees.
fn kept(board: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = board.lines().skip_while(|line| line.trim() != TABLES[0]).skip(1);
    let own = lines.take_while(|line| !line.trim_start().starts_with('['));
    own.filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        UNSEEN.contains(&key.trim()).then(|| (key.trim(), value.trim()))
    })
}

/// Returns the text of a board file with new tables in the place of the old ones, or at its end.
pub(super) fn put(board: &str, tables: &str) -> String {
    let mut out = String::new();
    let (mut is_old, mut is_written) = (false, false);
    for line in board.lines() {
        if line.trim_start().starts_with('[') {
            is_old = TABLES.contains(&line.trim());
            if is_old && !is_written {
                out.push_str(tables);
                out.push('\n');
                is_written = true;
            }
        }
        if !is_old {
            out.push_str(line);
            out.push('\n');
        }
    }
    if !is_written {
        out.push('\n');
        out.push_str(tables);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOARD: &str = "name = \"mine\"\n# Kept.\n\n[overheads]\nbasis = \"estimated\"\n# Gone.\nswitch = \"1us\"\n\
        longest = \"14us\"\n\n[console]\nline = 3\n";
    const COSTS: Costs = Costs {
        switch: 2400,
        interrupt: 2424,
        decision: 1200,
        counter_hz: 100_000_000,
        runs: 1000,
    };

    #[test]
    fn tables_take_the_place_of_the_old_ones_and_are_stable() {
        let origin = Origin {
            machine: "box \"7\"",
            date: "2026-12-03",
            margin: 20,
        };
        let new = put(BOARD, &tables(&COSTS, &origin, BOARD));
        let again = put(&new, &tables(&COSTS, &origin, &new));
        assert_eq!(new, again);
        for part in [
            "# Kept.",
            "[console]\nline = 3",
            "longest = \"14us\"",
            "machine = \"box \\\"7\\\"\"",
        ] {
            assert_eq!(new.matches(part).count(), 1, "{part} in\n{new}");
        }
        assert!(
            new.contains("estimated = [\"longest\"]") && !new.contains("Gone"),
            "{new}"
        );
        let bare = put("name = \"mine\"\n", "[overheads]\n");
        assert_eq!(bare, "name = \"mine\"\n\n[overheads]\n");
    }
}
