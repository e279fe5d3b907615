// SPDX-License-Identifier: Apache-2.0
//! The tables of a board file that a measurement gives.

use super::readings::Costs;
use bulkhead::build::own_policy::toml_string;
use bulkhead::problem::Problem;
use bulkhead_manifest::Board;
use std::fmt::Write;

/// Tables of a board file that a measurement replaces.
const TABLES: [&str; 2] = ["[overheads]", "[measurement]"];
/// Keys of `[overheads]` that no measurement sees.
const UNSEEN: [&str; 3] = ["longest", "longest-per-vcpu", "output"];

/// The circumstances of a measurement.
#[derive(Debug)]
pub(super) struct Origin<'a> {
    pub machine: &'a str,
    pub date: &'a str,
    pub margin: u32,
}

/// Returns the two tables. The figures that no measurement sees stay as the board has them, in nanoseconds.
pub(super) fn tables(costs: &Costs, origin: &Origin<'_>, board: Option<&Board>) -> String {
    let mut text = format!(
        "[overheads]\nbasis = \"measured\"\nswitch = \"{}ns\"\ninterrupt = \"{}ns\"\ndecision = \"{}ns\"\n",
        costs.switch, costs.interrupt, costs.decision
    );
    let kept = board.and_then(|board| board.costs);
    let kept = kept.map_or([0; 3], |old| {
        [old.longest, old.longest_per_vcpu, old.output].map(|time| time.get())
    });
    // A key that is not there is derived from the others.
    for (key, time) in UNSEEN.iter().zip(kept).filter(|(_, time)| *time != 0) {
        let _ = writeln!(text, "{key} = \"{time}ns\"");
    }
    let _ = write!(
        text,
        "\n[measurement]\nmachine = {}\ndate = {}\ncounter-hz = {}\nruns = {}\nmargin = {}\nestimated = [{}]\n",
        toml_string(origin.machine),
        toml_string(origin.date),
        costs.counter_hz,
        costs.runs,
        origin.margin,
        UNSEEN.map(toml_string).join(", ")
    );
    text
}

/// Returns the text of a board file with new tables in the place of the old ones, or at its end.
///
/// # Errors
/// The old tables are written in a way that this function does not understand.
pub(super) fn put(board: &str, tables: &str) -> Result<String, Problem> {
    let mut out = String::new();
    let (mut is_old, mut is_written) = (false, false);
    for line in board.lines() {
        let heading = line.split('#').next().unwrap_or_default().trim();
        if heading.starts_with('[') {
            is_old = TABLES.contains(&heading);
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
    match out.parse::<toml::Table>() {
        Ok(_) => Ok(out),
        Err(error) => Err(Problem::new(format!(
            "the tables cannot be put into the file: {}",
            error.message()
        ))
        .remedy("run the command without `--write`, and put the tables that it prints there yourself")),
    }
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
        let boards = bulkhead_manifest::boards();
        let board = boards.iter().find(|board| board.name == "xlnx-zcu102");
        let own = tables(&COSTS, &origin, board);
        let new = put(BOARD, &own).unwrap();
        assert_eq!(put(&new, &own).unwrap(), new);
        for part in [
            "# Kept.",
            "[console]\nline = 3",
            "longest = \"14000ns\"",
            "machine = \"box \\\"7\\\"\"",
        ] {
            assert_eq!(new.matches(part).count(), 1, "{part} in\n{new}");
        }
        assert!(
            new.contains("estimated = [\"longest\", \"longest-per-vcpu\", \"output\"]")
                && !new.contains("Gone"),
            "{new}"
        );
        let bare = put("name = \"mine\"\n", "[overheads]\n").unwrap();
        assert_eq!(bare, "name = \"mine\"\n\n[overheads]\n");
    }
    #[test]
    fn headings_may_have_comments_and_other_forms_are_refused() {
        let new = put("[overheads] # old\nswitch = \"1us\"\n", "[overheads]\n").unwrap();
        assert_eq!(new, "[overheads]\n\n");
        for odd in [
            "overheads = { switch = \"1us\" }\n",
            "[ overheads ]\nswitch = \"1us\"\n",
        ] {
            assert!(put(odd, "[overheads]\n").is_err(), "{odd}");
        }
    }
}
