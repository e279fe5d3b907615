// SPDX-License-Identifier: Apache-2.0
//! Builds the programs of all cases beside the cases.
//!
//! One call of cargo builds all guests of a target, or a class binary. cargo does one call after the other,
//! so a case that called cargo itself would wait for the other lane's. A lane takes the next case whose
//! programs are there. The builds meanwhile use the CPU that the lanes leave.

use crate::case::Case;
use bulkhead::build::artifacts::Workspace;
use bulkhead::build::prepare::programs;
use bulkhead::build::variant::Choice;
use bulkhead::ui::progress::Progress;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A number of a case, and its programs that are not there yet.
type Waiting = (usize, BTreeSet<String>);

/// The cases that no lane has taken yet, and what is built for them.
pub(crate) struct Ahead {
    left: Mutex<Vec<Waiting>>,
    /// Something was built.
    built: Condvar,
    groups: Vec<Vec<String>>,
    workspace: Option<Workspace>,
}

impl Ahead {
    /// Looks at the programs of the cases. A program that cannot be built is left to its case, which tells.
    pub(crate) fn new(cases: &[Case]) -> Self {
        let workspace = Workspace::locate().ok();
        let of_case = |case: &Case| -> BTreeSet<String> {
            let found = programs(&case.path, &case.manifest, &case.options());
            found.unwrap_or_default().into_iter().collect()
        };
        let mut left: Vec<_> = cases.iter().map(of_case).enumerate().collect();
        let all: BTreeSet<String> = left
            .iter()
            .flat_map(|(_, programs)| programs.iter().cloned())
            .collect();
        let groups = workspace
            .as_ref()
            .map_or_else(Vec::new, |workspace| workspace.in_groups(&all));
        // A class binary of its own takes the longest.
        left.sort_by_key(|(number, _)| (cases[*number].parts != Choice::Tailored, *number));
        Self {
            left: Mutex::new(left),
            built: Condvar::new(),
            groups,
            workspace,
        }
    }

    fn left(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds everything. In the end no case waits any more, however the end came.
    pub(crate) fn build(&self, progress: &Progress) {
        let _end = End(self);
        for group in &self.groups {
            if let Some(workspace) = &self.workspace {
                let _ = workspace.build_once(group, progress);
            }
            self.note(|program| group.contains(program));
        }
    }

    /// Notes that these programs are there, or that nothing more is done about them.
    fn note(&self, is_there: impl Fn(&String) -> bool) {
        for (_, missing) in self.left().iter_mut() {
            missing.retain(|program| !is_there(program));
        }
        self.built.notify_all();
    }

    /// Returns the number of the next case, once its programs are there.
    pub(crate) fn take(&self) -> Option<usize> {
        let mut left = self.left();
        while !left.is_empty() {
            if let Some(place) = left.iter().position(|(_, missing)| missing.is_empty()) {
                return Some(left.remove(place).0);
            }
            left = self.built.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

/// The end of the builds, by a panic as well. A program that is missing then is left to its case, which
/// tells.
struct End<'a>(&'a Ahead);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.note(|_| true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_case_waits_for_a_program_that_no_build_makes() {
        let ahead = Ahead {
            left: Mutex::new(vec![(0, BTreeSet::from(["nobody-builds-this".to_owned()]))]),
            built: Condvar::new(),
            groups: Vec::new(),
            workspace: None,
        };
        ahead.build(&Progress::new());
        assert_eq!(ahead.take(), Some(0));
        assert_eq!(ahead.take(), None);
    }
}
