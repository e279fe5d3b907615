// SPDX-License-Identifier: Apache-2.0
//! Values of registers: noted first, so that the console's device is untouched until all are read, and
//! printed then, a line for each run of equal values.

use crate::println;

/// Places for runs of equal values.
const ROOM: usize = 160;

/// Equal values of registers with one name and consecutive indices.
#[derive(Clone, Copy, Debug)]
struct Run {
    name: &'static str,
    first: usize,
    count: usize,
    value: u64,
}

/// The values, in the order in which they were read.
#[derive(Debug)]
pub struct Values {
    runs: [Run; ROOM],
    used: usize,
}

impl Values {
    const NOTHING: Run = Run {
        name: "",
        first: 0,
        count: 0,
        value: 0,
    };

    /// Returns no values.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            runs: [Self::NOTHING; ROOM],
            used: 0,
        }
    }

    /// Notes the value of a register. Registers of one name that follow each other are numbered from 0.
    pub fn note(&mut self, name: &'static str, value: impl Into<u64>) {
        let value = value.into();
        let mut first = 0;
        if let Some(last) = self.used.checked_sub(1).and_then(|last| self.runs.get_mut(last))
            && last.name == name
        {
            if last.value == value {
                last.count += 1;
                return;
            }
            first = last.first + last.count;
        }
        self.runs[self.used] = Run {
            name,
            first,
            count: 1,
            value,
        };
        self.used += 1;
    }

    /// Prints all.
    pub fn print(&self) {
        for run in &self.runs[..self.used] {
            let end = run.first + run.count;
            println!("reset: {}[{}..{end}] {:#x}", run.name, run.first, run.value);
        }
    }
}

impl Default for Values {
    fn default() -> Self {
        Self::new()
    }
}
