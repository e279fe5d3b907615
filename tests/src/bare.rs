// SPDX-License-Identifier: Apache-2.0
//! Compares what a partition printed with what the same program prints on the bare board.

use bulkhead::build::prepare::Prepared;
use bulkhead::emulator::bare::Bare;
use bulkhead::emulator::launch::Launch;
use bulkhead::problem::Problem;
use bulkhead::serial::consoles::{ConsoleLine, Control, Observer};

/// Collects lines until there are enough.
struct Collector {
    lines: Vec<String>,
    enough: usize,
}

impl Observer for Collector {
    fn line(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        if self.lines.len() < self.enough {
            self.lines.push(line.text.to_owned());
        }
        control.stop = self.lines.len() >= self.enough;
    }
}

/// Returns how the lines of a partition differ from those of the same program on the bare board. As many are
/// compared as the partition has printed.
pub(crate) fn difference(
    prepared: &Prepared,
    launch: &Launch,
    heard: (&String, &Vec<String>),
) -> Option<String> {
    let (partition, lines) = heard;
    match on_the_bare_board(prepared, launch, partition, lines.len()) {
        Ok(bare) => first_difference(lines, &bare).map(|found| format!("{partition}: {found}")),
        Err(problem) => Some(problem.to_string()),
    }
}

/// Runs the program of a partition on the bare board until it has printed `enough` lines.
fn on_the_bare_board(
    prepared: &Prepared,
    launch: &Launch,
    partition: &str,
    enough: usize,
) -> Result<Vec<String>, Problem> {
    let mut collector = Collector {
        lines: Vec::new(),
        enough,
    };
    let program = prepared.image_of(partition)?;
    Bare::new(&prepared.emulator()?, &program)?.run(launch, Vec::new(), &mut collector)?;
    Ok(collector.lines)
}

/// Returns the first difference between the lines of a partition and those of the bare board.
fn first_difference(lines: &[String], bare: &[String]) -> Option<String> {
    if lines.is_empty() {
        return Some("printed nothing that could be compared with the bare board".to_owned());
    }
    let different = lines
        .iter()
        .enumerate()
        .find(|(number, line)| bare.get(*number) != Some(*line));
    different.map(|(number, line)| {
        let own = bare.get(number).map_or("nothing", String::as_str);
        format!("line {} is `{line}`, on the bare board `{own}`", number + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_found() {
        let lines = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let found = |lines_of: &str, bare: &str| first_difference(&lines(lines_of), &lines(bare));
        assert_eq!(found("a b", "a b"), None);
        assert_eq!(found("a b", "a b c"), None);
        assert_eq!(
            found("a b", "a"),
            Some("line 2 is `b`, on the bare board `nothing`".to_owned())
        );
        assert_eq!(
            found("a c", "a b"),
            Some("line 2 is `c`, on the bare board `b`".to_owned())
        );
        assert!(found("", "a").is_some());
    }
}
