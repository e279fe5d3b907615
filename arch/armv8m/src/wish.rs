// SPDX-License-Identifier: Apache-2.0
//! Wishes for virtual lines, on a system with two pCPUs: any pCPU makes them, and the pCPU of the partition
//! carries them out.
//!
//! A wish is a bit of its partition and line. A level stays noted until it is taken back, so a level that was
//! raised and lowered by two pCPUs at the same time is what the last of them has left.

use crate::line_set::{Lines, WORDS, bit_of, word_of};
use crate::pair::PLACES;
use bulkhead_arch_api::{MAX_PARTITIONS, PartitionId};
use core::sync::atomic::{AtomicU32, Ordering};

/// A wish for a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Its level is high from now on.
    High,
    /// Its level is low from now on, and nothing is pending.
    Low,
    /// It is pending once.
    Once,
}

/// A set of lines that both pCPUs change.
struct Shared([AtomicU32; WORDS]);

impl Shared {
    const fn new() -> Self {
        Self([const { AtomicU32::new(0) }; WORDS])
    }

    fn change(&self, line: u32, is_in: bool) {
        if let Some(word) = self.0.get(word_of(line)) {
            if is_in {
                word.fetch_or(bit_of(line), Ordering::SeqCst);
            } else {
                word.fetch_and(!bit_of(line), Ordering::SeqCst);
            }
        }
    }

    fn read(&self) -> Lines {
        self.0.each_ref().map(|word| word.load(Ordering::SeqCst))
    }

    fn take(&self) -> Lines {
        self.0.each_ref().map(|word| word.swap(0, Ordering::SeqCst))
    }
}

/// The wishes for the lines of a partition.
struct Wishes {
    high: Shared,
    low: Shared,
    once: Shared,
}

static WISHES: [Wishes; PLACES * MAX_PARTITIONS] = [const {
    Wishes {
        high: Shared::new(),
        low: Shared::new(),
        once: Shared::new(),
    }
}; PLACES * MAX_PARTITIONS];

fn of(partition: PartitionId) -> Option<&'static Wishes> {
    WISHES.get(usize::from(partition.0))
}

/// Notes a wish.
pub(crate) fn note(partition: PartitionId, line: u32, wish: Wish) {
    let Some(wishes) = of(partition) else { return };
    if wish != Wish::Once {
        wishes.high.change(line, wish == Wish::High);
    }
    if wish == Wish::Low {
        wishes.once.change(line, false);
        wishes.low.change(line, true);
    } else {
        wishes.once.change(line, true);
    }
}

/// The wishes that a partition's pCPU carries out.
pub(crate) struct Taken {
    /// Lines whose level is high.
    pub(crate) high: Lines,
    /// Lines that are not pending any more.
    pub(crate) low: Lines,
    /// Lines that become pending, after that.
    pub(crate) once: Lines,
}

/// Takes the wishes for the lines of a partition.
pub(crate) fn take(partition: PartitionId) -> Option<Taken> {
    let wishes = of(partition)?;
    Some(Taken {
        low: wishes.low.take(),
        once: wishes.once.take(),
        high: wishes.high.read(),
    })
}

/// Forgets all wishes for the lines of a partition, which starts anew.
pub(crate) fn forget(partition: PartitionId) {
    if let Some(wishes) = of(partition) {
        for set in [&wishes.high, &wishes.low, &wishes.once] {
            set.take();
        }
    }
}
