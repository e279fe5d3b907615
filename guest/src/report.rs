// SPDX-License-Identifier: Apache-2.0
//! The report of a test guest: one line per check, and a closing line with the totals.

use core::fmt::Debug;

use crate::println;

/// Counts and prints the checks of one test guest.
#[derive(Debug, Default)]
pub struct Report {
    passed: u32,
    failed: u32,
}

impl Report {
    /// Returns a report without checks.
    #[must_use]
    pub const fn new() -> Self {
        Self { passed: 0, failed: 0 }
    }

    /// Prints `PASS name` if `good`, else `FAIL name`.
    pub fn check(&mut self, name: &str, good: bool) {
        self.equal(name, good, true);
    }

    /// Prints `PASS name` if `got` is `want`, else `FAIL name: got .. want ..`.
    pub fn equal<T: PartialEq + Debug>(&mut self, name: &str, got: T, want: T) {
        if got == want {
            self.passed += 1;
            println!("PASS {name}");
        } else {
            self.failed += 1;
            println!("FAIL {name}: got {got:x?} want {want:x?}");
        }
    }

    /// Prints that a check does not apply here, and why; it counts as neither passed nor failed.
    pub fn skip(&self, name: &str, why: &str) {
        println!("SKIP {name}: {why}");
    }

    /// Prints the closing line.
    pub fn finish(&self) {
        println!("{} passed, {} failed", self.passed, self.failed);
    }
}
