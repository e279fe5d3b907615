// SPDX-License-Identifier: Apache-2.0
//! Tells whether critical loops were done as early as `check` says of their manifest.
//!
//! A critical loop is a partition with one task in its demand and a guest that measures itself. It prints
//! lines with `missed N` and `response max N ns`, the longest time from a release to the end of its job. The
//! limit is not in the test but is the bound of the analysis, by the same code that prints the column "done
//! within" of `check`. So a test cannot be more generous than the promise is. An analysis that charges less
//! makes the test stricter.

use bulkhead::serial::pattern::Pattern;
use std::collections::BTreeMap;

/// The line of a critical loop.
const LINE: &str = r"missed (\d+),.* response max (\d+) ns";

/// The worst that a loop has said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Worst {
    missed: u64,
    response: u64,
}

/// The lines of the loops of a case so far.
pub(crate) struct Loops {
    line: Option<Pattern>,
    worst: BTreeMap<String, Option<Worst>>,
}

impl Loops {
    /// Returns a watcher of these partitions that has seen nothing yet.
    pub(crate) fn new(partitions: &[String]) -> Self {
        Self {
            line: Pattern::new(LINE).ok(),
            worst: partitions.iter().map(|name| (name.clone(), None)).collect(),
        }
    }

    /// Looks at a line of a console.
    pub(crate) fn look(&mut self, console: &str, text: &str) {
        let Some(worst) = self.worst.get_mut(console) else {
            return;
        };
        let Some(groups) = self.line.as_ref().and_then(|line| line.captures(text)) else {
            return;
        };
        let number = |index: usize| groups.get(index).and_then(|group| group.parse().ok());
        let before = worst.unwrap_or_default();
        *worst = Some(Worst {
            missed: before.missed.max(number(0).unwrap_or(u64::MAX)),
            response: before.response.max(number(1).unwrap_or(u64::MAX)),
        });
    }

    /// Tells what is not as `check` says, whose bounds these are by partition.
    pub(crate) fn findings(&self, bounds: &BTreeMap<String, Vec<Option<u64>>>) -> Vec<String> {
        let finding = |(name, worst): (&String, &Option<Worst>)| {
            let bounds = bounds.get(name).map_or(&[][..], Vec::as_slice);
            judge(bounds, *worst).map(|why| format!("{name}: {why}"))
        };
        self.worst.iter().filter_map(finding).collect()
    }
}

/// Tells what is wrong with a loop whose tasks have these bounds, in nanoseconds; `None` among them: the task
/// may be late.
fn judge(bounds: &[Option<u64>], worst: Option<Worst>) -> Option<String> {
    let [bound] = bounds else {
        return Some(format!("has to declare one task, and declares {}", bounds.len()));
    };
    let Some(bound) = bound else {
        return Some("`check` does not say that it is in time".to_owned());
    };
    let Some(worst) = worst else {
        return Some("has not said how long its responses were".to_owned());
    };
    if worst.missed != 0 {
        return Some(format!("missed {} releases", worst.missed));
    }
    (worst.response > *bound).then(|| {
        format!(
            "a response took {} ns, and `check` says {bound} ns",
            worst.response
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{Loops, Worst, judge};

    #[test]
    fn the_worst_of_all_lines_counts() {
        let mut loops = Loops::new(&["control".to_owned()]);
        for (console, text) in [
            ("control", "control: start, period 100 us"),
            (
                "control",
                "control: second 1, releases 9, missed 0, jitter max 5 ns, mean 1 ns, response max 70 ns",
            ),
            (
                "control",
                "control: second 2, releases 9, missed 0, jitter max 9 ns, mean 1 ns, response max 12 ns",
            ),
            ("other", "missed 7, response max 900 ns"),
        ] {
            loops.look(console, text);
        }
        let worst = Worst {
            missed: 0,
            response: 70,
        };
        assert_eq!(loops.worst["control"], Some(worst));
        assert_eq!(loops.worst.len(), 1);
    }

    #[test]
    fn a_loop_is_judged_by_its_bound() {
        let worst = |missed, response| Some(Worst { missed, response });
        assert_eq!(judge(&[Some(70)], worst(0, 70)), None);
        assert!(judge(&[Some(69)], worst(0, 70)).unwrap().contains("69 ns"));
        assert!(judge(&[Some(70)], worst(1, 5)).unwrap().contains("missed 1"));
        assert!(judge(&[Some(70)], None).unwrap().contains("has not said"));
        assert!(judge(&[None], worst(0, 1)).unwrap().contains("in time"));
        assert!(judge(&[], worst(0, 1)).unwrap().contains("declares 0"));
        assert!(
            judge(&[Some(1), Some(2)], worst(0, 1))
                .unwrap()
                .contains("declares 2")
        );
    }
}
