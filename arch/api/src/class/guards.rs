// SPDX-License-Identifier: Apache-2.0
//! Answers whether controllers of a class guard memory. A class binary knows the answer when it is compiled.

use super::{ClassFacts, ONLY};

impl ClassFacts {
    /// Tells whether one of its drivers says which memory a guest can reach ([`super::DriverFacts::guards`]).
    #[inline]
    #[must_use]
    pub const fn guards_memory(&self) -> bool {
        let mut rest = self.drivers;
        while let [driver, others @ ..] = rest {
            if driver.guards {
                return true;
            }
            rest = others;
        }
        false
    }
}

/// Tells whether a class that this build serves has drivers that guard memory.
#[inline]
#[must_use]
pub const fn may_guard_memory() -> bool {
    match ONLY {
        Some(only) => only.guards_memory(),
        None => true,
    }
}
