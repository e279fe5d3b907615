// SPDX-License-Identifier: Apache-2.0
//! The lines that wait for a list register, by urgency.
//!
//! A vCPU can have a thousand lines that want delivery and four list registers. Its pCPU must never walk over
//! the lines, so each vCPU has an index. For each word of lines and each group the index has the level of the
//! most urgent line that waits. For each level it has the words that have such a line. The most urgent line
//! of all is two searches for a lowest bit away. The most urgent line of a word is found in the bit planes of
//! the priorities ([`Lines::most_urgent`](crate::Lines)). Both take the same time however many lines there
//! are.
//!
//! The index belongs to the vCPU's own pCPU. A change that makes a line deliverable marks its word dirty, and
//! [`Vgic::look`] notes a dirty word anew. A change that makes a line undeliverable may mark nothing, so an
//! entry can be out of date: [`Vgic::next_waiting`] looks at a word again before it says that a line waits.
//! Both groups are noted whether the guest has enabled them or not, so that `GICD_CTLR` changes no entry.

use crate::lines::{LEVELS, Lines, NO_LEVEL, shared_word};
use crate::{Bank, Vgic, WORDS, bits};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Dirty words that are looked at before the guest runs again. The others are looked at after that, so that
/// the pCPU takes interrupts in between.
pub(crate) const DIRTY_LOOKS: u32 = 4;
/// Looks at words for the sake of the most urgent line, before the guest runs again: two for each list
/// register, because the word of a line that was loaded is out of date, and some for other such entries.
pub(crate) const LOOKS: u32 = 10;
/// Dirty words that are looked at to find out whether a vCPU may wait.
pub(crate) const WAIT_LOOKS: u32 = 12;

/// The waiting lines of one vCPU and one group.
#[derive(Clone, Debug)]
struct Group {
    /// Bit n: some word of level n.
    levels: u32,
    /// Words by the level of their most urgent line.
    words: [u32; LEVELS],
    /// Level of the most urgent line of each word, or [`NO_LEVEL`].
    level: [u8; WORDS],
}

/// The waiting lines of one vCPU.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    groups: [Group; 2],
}

/// A line that waits.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) line: u32,
    pub(crate) lines: &'a Lines,
    pub(crate) level: u8,
}

impl Group {
    const EMPTY: Self = Self {
        levels: 0,
        words: [0; LEVELS],
        level: [NO_LEVEL; WORDS],
    };

    /// Notes that the most urgent line of `word` has this level, or that none waits.
    #[expect(clippy::indexing_slicing, reason = "masked indices are below the lengths")]
    fn note(&mut self, word: u32, level: u8) {
        let place = &mut self.level[word as usize % WORDS];
        if *place == level {
            return;
        }
        let before = core::mem::replace(place, level);
        let mask = crate::bit(word);
        if before < NO_LEVEL {
            let words = &mut self.words[usize::from(before) % LEVELS];
            *words &= !mask;
            if *words == 0 {
                self.levels &= !crate::bit(u32::from(before));
            }
        }
        if level < NO_LEVEL {
            self.words[usize::from(level) % LEVELS] |= mask;
            self.levels |= crate::bit(u32::from(level));
        }
    }

    /// Returns the most urgent level that is noted, and the first word that has it; [`NO_LEVEL`] if there is
    /// none.
    #[expect(clippy::indexing_slicing, reason = "masked indices are below the lengths")]
    fn first(&self) -> (u8, u32) {
        let level = self.levels.trailing_zeros();
        (level as u8, self.words[level as usize % LEVELS].trailing_zeros())
    }
}

impl Waiting {
    pub(crate) const EMPTY: Self = Self {
        groups: [Group::EMPTY; 2],
    };

    /// Forgets everything. An empty index costs two looks.
    pub(crate) fn clear(&mut self) {
        for group in &mut self.groups {
            if group.levels != 0 {
                *group = Group::EMPTY;
            }
        }
    }

    /// Tells whether something is noted in one of these groups (as in `GICD_CTLR`).
    pub(crate) fn is_noted(&self, groups: u32) -> bool {
        let [group0, group1] = &self.groups;
        groups & 1 != 0 && group0.levels != 0 || groups & 2 != 0 && group1.levels != 0
    }

    /// Returns the most urgent word of these groups: whether it is one of group 1, its level, its number.
    fn first(&self, groups: u32) -> Option<(bool, u8, u32)> {
        let [group0, group1] = &self.groups;
        let (level0, word0) = if groups & 1 != 0 {
            group0.first()
        } else {
            (NO_LEVEL, 0)
        };
        let (level1, word1) = if groups & 2 != 0 {
            group1.first()
        } else {
            (NO_LEVEL, 0)
        };
        if level0.min(level1) >= NO_LEVEL {
            None
        } else if level0 < level1 {
            Some((false, level0, word0))
        } else {
            Some((true, level1, word1))
        }
    }

    /// Returns the word that comes first, as a set; none if there is none.
    pub(crate) fn first_word(&self, groups: u32) -> u32 {
        self.first(groups).map_or(0, |(_, _, word)| crate::bit(word))
    }

    fn note(&mut self, is_group1: bool, word: u32, level: u8) {
        let [group0, group1] = &mut self.groups;
        if is_group1 { group1 } else { group0 }.note(word, level);
    }
}

impl Vgic<'_> {
    /// Notes anew what waits in a word.
    pub(crate) fn look(&self, me: usize, bank: &mut Bank, word: u32) {
        self.look_besides(me, bank, word, 0);
    }

    /// Looks at a word again, without the lines `others`, which are another vCPU's.
    pub(crate) fn look_besides(&self, me: usize, bank: &mut Bank, word: u32, others: u32) {
        let Some(lines) = self.word(me, word) else {
            return;
        };
        crate::step();
        let waiting = self.deliverable(me, word, lines) & !others;
        let group1 = lines.group1.load(Relaxed);
        let (level, _) = lines.most_urgent(waiting & !group1);
        bank.waiting.note(false, word, level);
        let (level, _) = lines.most_urgent(waiting & group1);
        bank.waiting.note(true, word, level);
    }
}

impl<'a> Vgic<'a> {
    /// Returns the most urgent line that waits for vCPU `me` in one of these groups. Each look at a word is
    /// one of `looks`: if none is left, `None` says nothing, and the index still has the word.
    pub(crate) fn next_waiting(
        &self,
        me: usize,
        bank: &mut Bank,
        groups: u32,
        looks: &mut u32,
    ) -> Option<Candidate<'a>> {
        while let Some(left) = looks.checked_sub(1) {
            let (is_group1, noted, word) = bank.waiting.first(groups)?;
            *looks = left;
            crate::step();
            let Some(lines) = self.word(me, word) else {
                bank.waiting.note(is_group1, word, NO_LEVEL);
                continue;
            };
            let group1 = lines.group1.load(Relaxed);
            let of_group = if is_group1 { group1 } else { !group1 };
            let (level, found) = lines.most_urgent(self.deliverable(me, word, lines) & of_group);
            if level == noted {
                let line = word.wrapping_mul(32) | found.trailing_zeros();
                return Some(Candidate { line, lines, level });
            }
            bank.waiting.note(is_group1, word, level);
        }
        None
    }

    /// Candidates of one word: wanting, enabled, not active, not held, and this vCPU's. Their groups may be
    /// disabled.
    #[inline]
    pub(crate) fn deliverable(&self, me: usize, word: u32, lines: &Lines) -> u32 {
        self.deliverable_besides(me, word, lines, lines.held.load(SeqCst))
    }

    /// Returns the deliverable lines of the word if these of its lines are held.
    pub(crate) fn deliverable_besides(&self, me: usize, word: u32, lines: &Lines, held: u32) -> u32 {
        let found = lines.wanting() & lines.enabled.load(SeqCst) & !lines.active.load(SeqCst) & !held;
        if word == 0 || found == 0 {
            return found;
        }
        found & self.routed(me, word)
    }

    /// Groups that the distributor forwards.
    pub(crate) fn groups(&self) -> u32 {
        self.distributor.control.load(SeqCst)
    }

    /// Lines of a word of shared lines that vCPU `index` gets.
    pub(crate) fn routed(&self, index: usize, word: u32) -> u32 {
        let Some(routes) = shared_word(word.wrapping_mul(32)).and_then(|word| {
            self.distributor
                .routed
                .get(word)
                .zip(self.distributor.any.get(word))
        }) else {
            return 0;
        };
        let (routes, any) = (routes.0.of(index), routes.1.load(SeqCst));
        if any == 0 {
            routes
        } else if self.first_online() == index {
            routes | any
        } else {
            routes & !any
        }
    }

    /// Tells which vCPU takes lines that any vCPU may take: the first one on line, else the first.
    pub(crate) fn first_online(&self) -> usize {
        let is_online = |r: &crate::Redistributor| r.online.load(SeqCst);
        self.redistributors.iter().position(is_online).unwrap_or(0)
    }
}

/// Returns the words among `words` to look at now, at most `looks`, and those to look at later.
pub(crate) fn first_looks(words: u32, looks: u32) -> (u32, u32) {
    if words.count_ones() <= looks {
        return (words, 0);
    }
    let now = bits(words)
        .take(looks as usize)
        .fold(0, |mask, word| mask | crate::bit(word));
    (now, words & !now)
}
