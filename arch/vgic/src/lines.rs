// SPDX-License-Identifier: Apache-2.0
//! The state of 32 interrupt lines, one bit per line in each word.

use crate::{PRIORITY_MASK, bit};
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

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
    /// There is a physical line behind.
    pub(crate) linked: AtomicU32,
    /// Four priorities a word, as in `IPRIORITYR`.
    pub(crate) priority: [AtomicU32; 8],
    /// The physical line behind, where linked.
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
            priority: [const { AtomicU32::new(0) }; 8],
            physical: [const { AtomicU16::new(0) }; 32],
        }
    }

    /// Everything but the links, as after a cold reset. Whoever makes a vCPU online publishes it.
    pub(crate) fn reset(&self, edge: u32) {
        self.enabled.store(0, Relaxed);
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

    /// Whether [`Lines::wanting`] is not empty, to a look whose order the caller sees to.
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
        let word = self
            .priority
            .get((line >> 2 & 7) as usize)
            .map_or(0, |word| word.load(SeqCst));
        word.wrapping_shr((line & 3).wrapping_mul(8)) as u8
    }

    /// Sets the priorities selected by `mask` (one byte per line) in `IPRIORITYR<index>`.
    pub(crate) fn set_priorities(&self, index: usize, mask: u32, value: u32) {
        let implemented = u32::from_ne_bytes([PRIORITY_MASK; 4]);
        if let Some(word) = self.priority.get(index) {
            let _ = word.fetch_update(SeqCst, SeqCst, |old| {
                Some(old & !mask | value & mask & implemented)
            });
        }
    }

    /// The physical line behind `line`, if it is linked.
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

/// Clears bits, without a write if there is nothing to clear.
pub(crate) fn clear(word: &AtomicU32, mask: u32) {
    if word.load(SeqCst) & mask != 0 {
        word.fetch_and(!mask, SeqCst);
    }
}
