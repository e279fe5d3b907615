// SPDX-License-Identifier: Apache-2.0
//! Points in time, one for each rank. The policies want the earliest.
//!
//! The structure is a tournament: a complete binary tree over 32 leaves in which every node is the earlier of
//! its children. Setting a time takes five steps. The earliest of all times is at the root. The earliest
//! among the ranks from some rank on takes at most five steps. No other structure is as small and bounded in
//! the worst case as well.

use crate::{MAX_SLOTS, Ticks};

const NODES: usize = 2 * MAX_SLOTS;

/// The times. `Ticks::MAX` means that no time is set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timers {
    /// Node 1 is the root. The children of n are 2n and 2n + 1. Leaf r is `MAX_SLOTS + r`.
    nodes: [Ticks; NODES],
}

impl Timers {
    /// Returns timers of which none is set.
    pub const fn new() -> Self {
        Self {
            nodes: [Ticks::MAX; NODES],
        }
    }

    #[expect(clippy::indexing_slicing, reason = "a masked index is below NODES")]
    const fn node(&self, number: usize) -> Ticks {
        self.nodes[number & (NODES - 1)]
    }

    /// Returns the time of a rank.
    pub const fn get(&self, rank: u8) -> Ticks {
        self.node(MAX_SLOTS | rank as usize)
    }

    /// Sets the time of a rank. `Ticks::MAX` clears the time.
    #[expect(clippy::indexing_slicing, reason = "a masked index is below NODES")]
    pub fn set(&mut self, rank: u8, time: Ticks) {
        let mut number = MAX_SLOTS | usize::from(rank);
        let mut earliest = time;
        while number != 0 {
            self.nodes[number & (NODES - 1)] = earliest;
            earliest = earliest.min(self.node(number ^ 1));
            number /= 2;
        }
    }

    /// Does [`Timers::set`] for callers that mostly change nothing.
    pub fn update(&mut self, rank: u8, time: Ticks) {
        if self.get(rank) != time {
            self.set(rank, time);
        }
    }

    /// Returns the earliest of all times.
    pub const fn earliest(&self) -> Ticks {
        self.node(1)
    }

    /// Returns the lowest rank with the earliest time, if any is set.
    pub fn first(&self) -> Option<u8> {
        let earliest = self.earliest();
        let mut number = 1;
        while number < MAX_SLOTS {
            number <<= 1;
            if self.node(number) != earliest {
                number |= 1;
            }
        }
        (earliest != Ticks::MAX).then_some((number & (MAX_SLOTS - 1)) as u8)
    }

    /// Returns the earliest time among the ranks from `rank` on. The result is "never" if `rank` is beyond
    /// the last.
    pub fn earliest_from(&self, rank: u8) -> Ticks {
        if usize::from(rank) >= MAX_SLOTS || self.earliest() == Ticks::MAX {
            return Ticks::MAX;
        }
        let mut number = MAX_SLOTS | usize::from(rank);
        let mut earliest = self.node(number);
        while number > 1 {
            if number & 1 == 0 {
                earliest = earliest.min(self.node(number | 1));
            }
            number /= 2;
        }
        earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_agrees_with_a_list() {
        let mut timers = Timers::new();
        let mut list = [Ticks::MAX; MAX_SLOTS];
        let mut random = 1_u32;
        for _ in 0..5000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let rank = (random >> 27) as u8;
            let time = match random >> 8 & 15 {
                0..4 => Ticks::MAX,
                time => Ticks::from(time),
            };
            timers.set(rank, time);
            list[usize::from(rank)] = time;
            let earliest = list.iter().copied().min().unwrap();
            assert_eq!(timers.get(rank), time);
            assert_eq!(timers.earliest(), earliest);
            let first = list.iter().position(|time| *time == earliest).unwrap();
            assert_eq!(timers.first(), (earliest != Ticks::MAX).then_some(first as u8));
            for from in 0..MAX_SLOTS {
                assert_eq!(
                    timers.earliest_from(from as u8),
                    list[from..].iter().copied().min().unwrap()
                );
            }
            assert_eq!(timers.earliest_from(MAX_SLOTS as u8), Ticks::MAX);
        }
    }
}
