// SPDX-License-Identifier: Apache-2.0
//! Forks of the kernel: places that ask a constant of the build.
//!
//! A build differs from another one in its parts, in its class, and in the size of its tables. The core asks
//! for none of them in passing: a part says once whether it is there (`kernel/src/parts.rs`), and a value of
//! a part that is not there does not exist. The places that are left are counted, and may only become fewer.
//! The definition of such a constant, or of the length of a table, is no fork.

use crate::workspace::sources;
use crate::{Findings, Outcome};

/// The folder of the files that are looked at.
const FOLDER: &str = "kernel/src/";

/// The forks that the kernel may have. If it has fewer, write the lower number.
const MOST: usize = 22;

/// The constants of a build, as the code writes them.
const CONSTANTS: &[&str] = &[
    "cfg(feature",
    "cfg!(feature",
    "has(Part::",
    "CHANNELS",
    "FLASH",
    "FUNCTIONS",
    "LENT",
    "LOCKS",
    "NETWORKS",
    "PORTS",
    "SEMIHOSTING",
    "SERVICES",
    "TRACE",
    "UPCALLS",
    "HAS_SEATS",
    "HAS_NETWORK",
    "HAS_UPCALLS",
    "IS_SMALL",
    "IS_STATIC",
    "IS_TRUSTED",
    "SEVERAL_VCPUS",
    "SHORTENS",
    "START == 0",
    "TRACED {",
    "CAPS.has_other_spaces",
    "CAPS.masks_lines",
    "CAPS.semihosting",
];

/// Checks the number of forks.
pub fn check() -> Outcome {
    let places = places()?;
    let mut findings = Findings::new();
    if places.len() < MOST {
        findings.push(format!(
            "the kernel has {} forks, xtask/src/forks.rs allows {MOST}: write the lower number",
            places.len()
        ));
    } else if places.len() > MOST {
        findings.push(format!(
            "the kernel has {} forks, xtask/src/forks.rs allows {MOST}: {}",
            places.len(),
            places.join(", ")
        ));
    }
    Ok(findings)
}

/// Prints the forks.
pub fn list() -> Outcome {
    for place in places()? {
        println!("{place}");
    }
    Ok(Findings::new())
}

/// Returns the forks: file, line, and the line's text.
fn places() -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for source in sources()? {
        if !source.name.starts_with(FOLDER) || source.name.ends_with("tests.rs") {
            continue;
        }
        let text =
            std::fs::read_to_string(&source.path).map_err(|error| format!("{}: {error}", source.name))?;
        found.extend(forks(&text).map(|(line, text)| format!("{}:{line} {text}", source.name)));
    }
    Ok(found)
}

/// Returns the lines of a file that fork, up to its tests.
fn forks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let own = text.lines().take_while(|line| *line != "mod tests {");
    (1..).zip(own).filter_map(|(number, line)| {
        let line = line.trim();
        is_fork(line).then_some((number, line))
    })
}

/// Tells whether a line forks.
fn is_fork(line: &str) -> bool {
    let is_other = ["//", "use ", "const ", "pub const ", "pub(crate) const "]
        .iter()
        .any(|begin| line.starts_with(begin) && !line.contains("const fn"));
    !is_other && CONSTANTS.iter().any(|name| asks(line, name))
}

/// Tells whether a line has a name by itself, and not as an argument of a type.
fn asks(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back().unwrap_or(' ');
        let after = line[at + name.len()..].chars().next().unwrap_or(' ');
        let is_part_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let is_own = !name.ends_with(char::is_alphanumeric) || !is_part_of_word(after);
        // `If<PORTS, ..>` is a type, and `PORTS, ...` in a list of names is one of an import.
        !is_part_of_word(before) && before != '<' && is_own && after != ',' && after != ':'
    })
}

#[cfg(test)]
mod tests {
    use super::forks;

    #[test]
    fn a_line_that_asks_a_constant_is_a_fork() {
        let text = "use crate::PORTS;\nconst SEATS: usize = if HAS_SEATS { 1 } else { 0 };\nif HAS_SEATS {\n\
                    // if HAS_SEATS\nPort(If<PORTS, X>),\n    PORTS && word\nhas(Part::Ports)\nREPORTS &&\n\
                    #[cfg(test)]\nmod tests {\nif HAS_SEATS {\n";
        let lines: Vec<_> = forks(text).map(|(line, _)| line).collect();
        assert_eq!(lines, [3, 6, 7]);
    }
}
