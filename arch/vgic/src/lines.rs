// SPDX-License-Identifier: Apache-2.0
//! The state of 32 interrupt lines, one bit per line in each word.

use crate::bit;
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

/// Implemented bits of a priority.
const PLANES: usize = 5;
/// Levels of priority: the implemented bits of a priority, as a number.
pub(crate) const LEVELS: usize = 32;
/// The level of a word in which nothing waits.
pub(crate) const NO_LEVEL: u8 = LEVELS as u8;
/// The least significant of them.
const FIRST_BIT: u32 = 3;
/// The least significant bit of each byte.
const ONES: u32 = 0x0101_0101;
/// Multiplies a value of four bits so that each of them is the least significant bit of a byte.
const SPREAD: u32 = 0x0020_4081;
/// Multiplies a value with bits only where [`ONES`] has them so that they are the most significant four.
const GATHER: u32 = 0x1020_4080;

/// Returns the index of a shared line's word, or `None` for a private line.
pub(crate) fn shared_word(line: u32) -> Option<usize> {
    (line / 32).checked_sub(1).map(|word| word as usize)
}

/// 32 consecutive interrupt lines.
///
/// "Pending" as the guest reads it is `latch`, or `level` of a level-triggered line, or held in a list
/// register that the guest has not acknowledged.
#[derive(Debug)]
pub struct Lines {
    /// Forwarded if pending.
    pub(crate) enabled: AtomicU32,
    /// Group 1 (IRQ), else group 0 (FIQ).
    pub(crate) group1: AtomicU32,
    /// Edge-triggered, else level-triggered.
    pub(crate) edge: AtomicU32,
    /// Pending by an edge, by software, or (linked lines) by the physical interrupt; until it is loaded.
    pub(crate) latch: AtomicU32,
    /// The input is high.
    pub(crate) level: AtomicU32,
    /// Active, and not in a list register.
    pub(crate) active: AtomicU32,
    /// In a list register.
    pub(crate) held: AtomicU32,
    /// In a list register, and seen active there when it was last looked at.
    pub(crate) acknowledged: AtomicU32,
    /// In a list register, active, and made pending once more there.
    pub(crate) repended: AtomicU32,
    /// Request to the holder: no longer pending.
    pub(crate) clear_pending: AtomicU32,
    /// Request to the holder: no longer active.
    pub(crate) clear_active: AtomicU32,
    /// Lines with a physical line.
    pub(crate) linked: AtomicU32,
    /// The implemented bits of the priorities, one word a bit, the least significant first: so the most
    /// urgent of any lines is found without a look at each. Two vCPUs that write the priority of a line at
    /// the same time may leave bits of both.
    pub(crate) priority: [AtomicU32; PLANES],
    /// The physical line, where linked.
    pub(crate) physical: [AtomicU16; 32],
}

impl Lines {
    pub(crate) const fn new() -> Self {
        Self {
            enabled: AtomicU32::new(0),
            group1: AtomicU32::new(0),
            edge: AtomicU32::new(0),
            latch: AtomicU32::new(0),
            level: AtomicU32::new(0),
            active: AtomicU32::new(0),
            held: AtomicU32::new(0),
            acknowledged: AtomicU32::new(0),
            repended: AtomicU32::new(0),
            clear_pending: AtomicU32::new(0),
            clear_active: AtomicU32::new(0),
            linked: AtomicU32::new(0),
            priority: [const { AtomicU32::new(0) }; PLANES],
            physical: [const { AtomicU16::new(0) }; 32],
        }
    }

    /// Everything but the links, as after a cold reset. The code that makes a vCPU online publishes it.
    pub(crate) fn reset(&self, edge: u32, enabled: u32) {
        self.enabled.store(enabled, Relaxed);
        self.group1.store(0, Relaxed);
        self.latch.store(0, Relaxed);
        self.level.store(0, Relaxed);
        self.active.store(0, Relaxed);
        self.held.store(0, Relaxed);
        self.acknowledged.store(0, Relaxed);
        self.repended.store(0, Relaxed);
        self.clear_pending.store(0, Relaxed);
        self.clear_active.store(0, Relaxed);
        for word in &self.priority {
            word.store(0, Relaxed);
        }
        self.edge.store(edge, Relaxed);
    }

    /// Tells whether [`Lines::wanting`] is not empty. The caller takes care of the order of this look.
    pub(crate) fn wants_anything(&self) -> bool {
        let level = self.level.load(Relaxed) & !self.edge.load(Relaxed);
        self.latch.load(Relaxed) | level != 0
    }

    /// Lines that want delivery, whether or not they are already held.
    pub(crate) fn wanting(&self) -> u32 {
        self.latch.load(SeqCst) | self.level.load(SeqCst) & !self.edge.load(SeqCst)
    }

    /// Lines whose level alone makes them pending.
    pub(crate) fn high(&self) -> u32 {
        self.level.load(SeqCst) & !self.edge.load(SeqCst)
    }

    pub(crate) fn priority_of(&self, line: u32) -> u8 {
        let planes = self.priority.iter().zip(FIRST_BIT..);
        planes.fold(0, |priority, (plane, shift)| {
            priority | (plane.load(Relaxed).wrapping_shr(line & 31) as u8 & 1) << shift
        })
    }

    /// Returns the most urgent of these lines, all of them, and their level: the implemented bits of their
    /// priority, as a number. [`NO_LEVEL`] if there are no lines.
    #[inline]
    pub(crate) fn most_urgent(&self, lines: u32) -> (u8, u32) {
        if lines == 0 {
            return (NO_LEVEL, 0);
        }
        let planes = self.priority.iter().rev();
        planes.fold((0, lines), |(level, left), plane| {
            let urgent = left & !plane.load(Relaxed);
            if urgent == 0 {
                (level << 1 | 1, left)
            } else {
                (level << 1, urgent)
            }
        })
    }

    /// Returns the priorities of four lines, as in `IPRIORITYR`; `line` is the first.
    pub(crate) fn priorities(&self, line: u32) -> u32 {
        let planes = self.priority.iter().zip(FIRST_BIT..);
        planes.fold(0, |value, (plane, shift)| {
            let nibble = plane.load(Relaxed).wrapping_shr(line & 28) & 0xF;
            value | (nibble.wrapping_mul(SPREAD) & ONES) << shift
        })
    }

    /// Sets the priorities of the lines in `changed`, among four lines of which `line` is the first, to
    /// `value`, laid out as in `IPRIORITYR`.
    pub(crate) fn set_priorities(&self, line: u32, changed: u32, value: u32) {
        for (plane, shift) in self.priority.iter().zip(FIRST_BIT..) {
            let nibble = ((value >> shift) & ONES).wrapping_mul(GATHER) >> 28;
            let ones = nibble.wrapping_shl(line & 28) & changed;
            set(plane, ones);
            clear(plane, changed & !ones);
        }
    }

    /// Returns the physical line of `line`, if it is linked.
    pub(crate) fn physical_of(&self, line: u32) -> Option<u32> {
        if self.linked.load(SeqCst) & bit(line) == 0 {
            return None;
        }
        self.physical
            .get((line & 31) as usize)
            .map(|physical| u32::from(physical.load(SeqCst)))
    }

    pub(crate) fn link(&self, line: u32, physical: u32) {
        if let Some(slot) = self.physical.get((line & 31) as usize) {
            slot.store(physical as u16, SeqCst);
            self.linked.fetch_or(bit(line), SeqCst);
        }
    }
}

/// Sets bits, without a write if there is nothing to set.
fn set(word: &AtomicU32, mask: u32) {
    if !word.load(Relaxed) & mask != 0 {
        word.fetch_or(mask, SeqCst);
    }
}

/// Clears bits, without a write if there is nothing to clear.
pub(crate) fn clear(word: &AtomicU32, mask: u32) {
    if word.load(SeqCst) & mask != 0 {
        word.fetch_and(!mask, SeqCst);
    }
}
