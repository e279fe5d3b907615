// SPDX-License-Identifier: Apache-2.0
//! The lines of the guest's interrupt controller (Arm DDI 0403E.e, B3.4): four bits and a priority each.

/// Words of 32 lines.
pub const LINE_WORDS: usize = 2;
/// Lines a guest's interrupt controller can have.
pub const MAX_LINES: u8 = 64;

/// Priority of what never interrupts anything: lower than every real one.
pub(crate) const NO_PRIORITY: i16 = 256;

/// State of all lines. Changes of lines that a guest does not have are ignored ([`Lines::mask`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    count: u8,
    pub(crate) enabled: [u32; LINE_WORDS],
    pub(crate) pending: [u32; LINE_WORDS],
    pub(crate) active: [u32; LINE_WORDS],
    /// The levels of the devices now: a line that is still high when its handler ends is pending again.
    level: [u32; LINE_WORDS],
    /// Lines whose handler has ended, until the backend asks.
    ended: [u32; LINE_WORDS],
    priority: [u8; MAX_LINES as usize],
}

impl Lines {
    pub(crate) const fn new(count: u8) -> Self {
        let count = if count < MAX_LINES { count } else { MAX_LINES };
        Self {
            count,
            enabled: [0; LINE_WORDS],
            pending: [0; LINE_WORDS],
            active: [0; LINE_WORDS],
            level: [0; LINE_WORDS],
            ended: [0; LINE_WORDS],
            priority: [0; MAX_LINES as usize],
        }
    }

    pub(crate) const fn count(&self) -> u8 {
        self.count
    }

    /// Returns the lines of word `index` that exist.
    pub(crate) fn mask(&self, index: usize) -> u32 {
        let before = u32::try_from(index).unwrap_or(u32::MAX).saturating_mul(32);
        let here = u32::from(self.count).saturating_sub(before);
        if here >= 32 {
            u32::MAX
        } else {
            (1_u32 << here).wrapping_sub(1)
        }
    }

    pub(crate) fn priority(&self, line: u8) -> u8 {
        self.priority.get(usize::from(line)).copied().unwrap_or(0)
    }

    pub(crate) fn set_priority(&mut self, line: u8, priority: u8) {
        if line >= self.count {
            return;
        }
        if let Some(slot) = self.priority.get_mut(usize::from(line)) {
            *slot = priority;
        }
    }

    /// Makes a line pending as an edge or a write of the guest does.
    pub(crate) fn pend(&mut self, line: u8) {
        if line < self.count {
            change(&mut self.pending, line, true);
        }
    }

    /// Takes the pending state of lines of word `index` away; what a device still asks for stays pending.
    pub(crate) fn clear_pending(&mut self, index: usize, bits: u32) {
        let (Some(level), Some(active)) = (self.level.get(index), self.active.get(index)) else {
            return;
        };
        let kept = level & !active;
        if let Some(pending) = self.pending.get_mut(index) {
            *pending &= !bits | kept;
        }
    }

    /// Sets what the device asks for from now on.
    pub(crate) fn set_level(&mut self, line: u8, high: bool) {
        if line >= self.count {
            return;
        }
        if high && !test(&self.level, line) && !test(&self.active, line) {
            change(&mut self.pending, line, true);
        }
        change(&mut self.level, line, high);
    }

    /// Notes that the line's handler starts.
    pub(crate) fn activate(&mut self, line: u8) {
        change(&mut self.pending, line, false);
        change(&mut self.active, line, true);
    }

    /// Notes that the line's handler has ended. If the device still asks, the line is pending again (B3.4.1):
    /// returns whether it is.
    pub(crate) fn deactivate(&mut self, line: u8) -> bool {
        change(&mut self.active, line, false);
        change(&mut self.ended, line, true);
        let is_high = test(&self.level, line);
        if is_high {
            change(&mut self.pending, line, true);
        }
        is_high
    }

    /// Tells whether the handler of any line is active.
    pub(crate) fn any_active(&self) -> bool {
        self.active.iter().any(|word| *word != 0)
    }

    pub(crate) fn is_active(&self, line: u8) -> bool {
        test(&self.active, line)
    }

    /// Tells whether there are lines whose handler has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.iter().any(|word| *word != 0)
    }

    /// Takes one of the lines whose handler has ended since.
    pub(crate) fn take_ended(&mut self) -> Option<u8> {
        let line = members(&self.ended).next()?;
        change(&mut self.ended, line, false);
        Some(line)
    }

    /// Returns the highest priority among the active lines.
    pub(crate) fn most_urgent_active(&self) -> i16 {
        members(&self.active).fold(NO_PRIORITY, |best, line| best.min(i16::from(self.priority(line))))
    }

    /// Returns the pending and enabled line with the highest priority; of several the lowest.
    pub(crate) fn most_urgent_pending(&self) -> Option<(i16, u8)> {
        let mut best = None;
        for line in members(&both(&self.pending, &self.enabled)) {
            let priority = i16::from(self.priority(line));
            if best.is_none_or(|(other, _)| priority < other) {
                best = Some((priority, line));
            }
        }
        best
    }

    pub(crate) fn is_enabled(&self, line: u8) -> bool {
        test(&self.enabled, line)
    }

    /// Tells whether the line is pending and enabled.
    pub(crate) fn is_pending_and_enabled(&self, line: u8) -> bool {
        test(&self.pending, line) && test(&self.enabled, line)
    }

    /// Tells whether any line is.
    pub(crate) fn any_pending_and_enabled(&self) -> bool {
        let words = self.pending.iter().zip(&self.enabled);
        words.fold(0, |all, (pending, enabled)| all | pending & enabled) != 0
    }

    /// Tells whether any line is pending, enabled or not.
    pub(crate) fn any_pending(&self) -> bool {
        self.pending.iter().any(|word| *word != 0)
    }
}

fn both(one: &[u32; LINE_WORDS], other: &[u32; LINE_WORDS]) -> [u32; LINE_WORDS] {
    let mut result = *one;
    for (word, mask) in result.iter_mut().zip(other) {
        *word &= mask;
    }
    result
}

fn test(words: &[u32; LINE_WORDS], line: u8) -> bool {
    words
        .get(usize::from(line >> 5))
        .is_some_and(|word| word & (1 << (line & 31)) != 0)
}

fn change(words: &mut [u32; LINE_WORDS], line: u8, value: bool) {
    if let Some(word) = words.get_mut(usize::from(line >> 5)) {
        let bit = 1 << (line & 31);
        *word = if value { *word | bit } else { *word & !bit };
    }
}

/// Returns the lines whose bit is set, lowest first; at most [`MAX_LINES`] steps.
fn members(words: &[u32; LINE_WORDS]) -> impl Iterator<Item = u8> + use<> {
    let mut rest = *words;
    core::iter::from_fn(move || {
        let mut base = 0_u8;
        for word in &mut rest {
            if *word != 0 {
                let bit = word.trailing_zeros() as u8;
                *word &= word.wrapping_sub(1);
                return Some(base.wrapping_add(bit));
            }
            base = base.wrapping_add(32);
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_is_found_and_of_equals_the_lowest() {
        let mut lines = Lines::new(40);
        for (line, priority) in [(3, 0x80), (5, 0x40), (33, 0x40), (39, 0x20)] {
            lines.set_priority(line, priority);
            lines.pend(line);
        }
        lines.enabled = [u32::MAX, 0x7F];
        assert_eq!(lines.most_urgent_pending(), Some((0x40, 5)), "39 is not enabled");
        lines.enabled = [!(1 << 5), 2];
        assert_eq!(lines.most_urgent_pending(), Some((0x40, 33)));
    }

    #[test]
    fn lines_that_do_not_exist_do_nothing() {
        let mut lines = Lines::new(33);
        lines.pend(33);
        lines.set_level(40, true);
        lines.set_priority(63, 1);
        assert!(!lines.any_pending());
        assert_eq!((lines.mask(0), lines.mask(1), lines.mask(2)), (u32::MAX, 1, 0));
        assert_eq!(lines.priority(63), 0);
    }

    #[test]
    fn a_level_that_stays_high_comes_again_after_its_handler_and_only_then() {
        let mut lines = Lines::new(32);
        lines.set_level(7, true);
        assert_eq!(lines.pending[0], 1 << 7);
        lines.activate(7);
        lines.set_level(7, true);
        assert!(!lines.any_pending());
        assert!(lines.deactivate(7));
        assert_eq!(lines.take_ended(), Some(7));
        assert_eq!(lines.take_ended(), None);
        assert!(lines.any_pending());
        lines.set_level(7, false);
        assert!(lines.any_pending(), "the pending state is a latch");
    }
}
