// SPDX-License-Identifier: Apache-2.0
//! A vCPU that was ready and never ran: a table of what ran does not show it.

use serde_json::{Value, json};
use std::fmt;

/// Owners of the pCPU that are named.
const NAMED: usize = 3;

/// A vCPU that was ready and never ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeverRan {
    /// Its name.
    pub vcpu: String,
    /// When it became ready, in nanoseconds after boot, if that is known.
    pub since: Option<u64>,
    /// Its pCPU.
    pub pcpu: u32,
    /// The vCPUs that had the pCPU, and for how long, the longest first.
    pub had: Vec<(String, u64)>,
    /// The time of which these are shares.
    pub of: u64,
}

impl NeverRan {
    /// Makes one. `had` can be in any order, and can have those who never had the pCPU.
    #[must_use]
    pub fn new(vcpu: String, since: Option<u64>, pcpu: u32, mut had: Vec<(String, u64)>, of: u64) -> Self {
        had.retain(|(_, ran)| *ran != 0);
        had.sort_by_key(|(_, ran)| std::cmp::Reverse(*ran));
        had.truncate(NAMED);
        Self {
            vcpu,
            since,
            pcpu,
            had,
            of,
        }
    }

    /// Returns what a JSON document says of it.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({ "vcpu": self.vcpu, "since_ns": self.since, "pcpu": self.pcpu })
    }
}

impl fmt::Display for NeverRan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.since.map_or("its start".to_owned(), |since| {
            format!("{}.{:06} s", since / 1_000_000_000, since / 1000 % 1_000_000)
        });
        let share = |(name, ran): &(String, u64)| {
            format!("{name} {:.1} %", 100.0 * *ran as f64 / self.of.max(1) as f64)
        };
        let had: Vec<String> = self.had.iter().map(share).collect();
        write!(
            f,
            "{} was ready from {since} on and NEVER RAN; pCPU {} was with {}",
            self.vcpu,
            self.pcpu,
            if had.is_empty() {
                "nobody".to_owned()
            } else {
                had.join(", ")
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_owners_are_named() {
        let had = [("a", 10), ("b", 0), ("c", 70), ("idle", 15), ("d", 5)];
        let had = had.map(|(name, ran)| (name.to_owned(), ran)).to_vec();
        let text = NeverRan::new("x/1".to_owned(), Some(1_002_003_004), 2, had, 100).to_string();
        assert_eq!(
            text,
            "x/1 was ready from 1.002003 s on and NEVER RAN; pCPU 2 was with c 70.0 %, idle 15.0 %, a 10.0 %"
        );
        let text = NeverRan::new("x".to_owned(), None, 0, Vec::new(), 0).to_string();
        assert_eq!(
            text,
            "x was ready from its start on and NEVER RAN; pCPU 0 was with nobody"
        );
    }
}
