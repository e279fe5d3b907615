// SPDX-License-Identifier: Apache-2.0
//! Compares the size of the class binary that a case runs with the most that the case allows.

use crate::case::{Case, Weight};
use bulkhead::build::artifacts::Workspace;
use bulkhead::build::prepare::Prepared;
use bulkhead_bench::{Sizes, is_of_this_compiler, trusted_lines};

/// Returns all in which the class binary is larger than the case allows, or why nothing can be compared.
pub(crate) fn findings(case: &Case, prepared: &Prepared) -> Vec<String> {
    let Some(most) = &case.weight else {
        return Vec::new();
    };
    match weigh(prepared) {
        Ok(found) => over(&found, &as_of_this_compiler(most)),
        Err(why) => vec![format!("the class binary: {why}")],
    }
}

/// Percent by which code may be larger that another compiler has made than the one of the figures.
const OF_ANOTHER_COMPILER: u64 = 2;

/// Returns the most that a case allows with the compiler in use.
fn as_of_this_compiler(most: &Weight) -> Weight {
    let is_own = is_of_this_compiler().unwrap_or(true);
    let more = if is_own {
        0
    } else {
        most.code * OF_ANOTHER_COMPILER / 100
    };
    Weight {
        code: most.code + more,
        ..*most
    }
}

/// Returns the size of a class binary.
fn weigh(prepared: &Prepared) -> Result<Weight, String> {
    let path = prepared.class_binary();
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let sizes = Sizes::of(&bytes)?;
    let workspace = Workspace::locate().map_err(|problem| problem.to_string())?;
    let partitions = prepared.system().partitions().len() as u64;
    Ok(Weight {
        code: sizes.text + sizes.read_only,
        ram: sizes.ram_of(partitions),
        lines: trusted_lines(&bytes, workspace.root())?,
    })
}

/// Returns a finding for each figure above the most.
fn over(found: &Weight, most: &Weight) -> Vec<String> {
    let rows = [
        ("bytes of code and constants", found.code, most.code),
        ("bytes of RAM", found.ram, most.ram),
        ("trusted lines", found.lines, most.lines),
    ];
    let larger = rows.into_iter().filter(|(_, found, most)| found > most);
    larger
        .map(|(what, found, most)| format!("the class binary has {found} {what}, and the case allows {most}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::over;
    use crate::case::Weight;

    #[test]
    fn each_figure_has_its_own_ceiling() {
        let most = Weight {
            code: 100,
            ram: 50,
            lines: 10,
        };
        assert!(over(&most, &most).is_empty());
        let larger = Weight {
            code: 101,
            ram: 51,
            lines: 11,
        };
        assert_eq!(over(&larger, &most).len(), 3);
        let one = Weight { lines: 11, ..most };
        assert_eq!(
            over(&one, &most),
            ["the class binary has 11 trusted lines, and the case allows 10"]
        );
    }
}
