// SPDX-License-Identifier: Apache-2.0
//! The sources of jobs, which make a slot ready, and their states.

use crate::analysis::Task;
use crate::{Slot, Ticks};

/// Jobs of one source that can be pending at once; more are dropped, and counted.
const PENDING_MAX: usize = 16;

/// When jobs are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Work that is always there and never complete.
    AlwaysReady,
    /// Every period.
    Periodic,
    /// A period after the last, and by chance up to this much later.
    Sporadic(Ticks),
    /// So many jobs at once, every period.
    Burst(u32),
    /// A period after the last one was complete: a device whose line stays pending until its vCPU has looked.
    Answered,
}

/// A source of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The slot that runs its jobs.
    pub slot: Slot,
    /// Period, longest execution, deadline, and priority within the slot.
    pub task: Task,
    /// When jobs are released.
    pub pattern: Pattern,
    /// The first release.
    pub first: Ticks,
    /// The shortest execution; a job takes between this and the longest, by chance.
    pub shortest: Ticks,
    /// Released by a device's interrupt, which is taken at once, and not by the slot's timer.
    pub is_interrupt: bool,
    /// The interrupt is marked critical.
    pub is_critical: bool,
    /// The time for which the hypervisor is busy for each job at its end, without looking at anything: a long
    /// hypercall.
    pub call: Ticks,
}

impl Source {
    /// Returns a source of jobs that all take as long as they may, released by the slot's timer from 0 on.
    #[must_use]
    pub const fn new(slot: Slot, task: Task, pattern: Pattern) -> Self {
        Self {
            slot,
            task,
            pattern,
            first: 0,
            shortest: task.wcet,
            is_interrupt: false,
            is_critical: false,
            call: 0,
        }
    }

    /// Returns a source of work that is never complete.
    #[must_use]
    pub const fn always_ready(slot: Slot) -> Self {
        let endless = Task {
            deadline: Ticks::MAX,
            ..Task::new(1, 1)
        };
        Self::new(slot, endless, Pattern::AlwaysReady)
    }
}

/// The statistics of the jobs of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Complete ones.
    pub completed: u64,
    /// Jobs that were not complete at their deadline.
    pub missed: u64,
    /// The longest time from release to completion.
    pub longest: Ticks,
    /// The shortest.
    pub shortest: Ticks,
    /// The sum.
    pub total: Ticks,
}

/// The state of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SourceState {
    /// The statistics so far.
    pub statistics: Statistics,
    /// The next release.
    pub(super) next: Ticks,
    /// When the pending jobs were released, oldest first from `oldest`.
    releases: [Ticks; PENDING_MAX],
    oldest: usize,
    pending: usize,
    /// The work that is left of the oldest job.
    pub(super) left: Ticks,
    /// The oldest job's deadline has been found missed.
    late: bool,
    /// True if there is work without end.
    pub(super) endless: bool,
}

/// The same numbers for the same seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub const fn new(seed: u64) -> Self {
        // The generator never leaves 0.
        Self(seed ^ 0x9e37_79b9_7f4a_7c15 | 1)
    }

    /// Draws a number from 0 to `most`.
    fn up_to(&mut self, most: Ticks) -> Ticks {
        // xorshift64*, Vigna 2016.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        let scaled = u128::from(number).wrapping_mul(u128::from(most).wrapping_add(1));
        (scaled >> 64) as u64
    }
}

impl SourceState {
    pub(super) fn start(&mut self, source: &Source) {
        *self = Self {
            next: source.first,
            ..Self::default()
        };
    }

    /// Tells whether there is a job to run.
    #[must_use]
    pub(super) const fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// Returns the deadline of the oldest job.
    pub(super) fn deadline(&self, source: &Source) -> Ticks {
        let release = self.releases.get(self.oldest).copied().unwrap_or(0);
        release.saturating_add(source.task.deadline)
    }

    /// Jobs to release at once.
    pub(super) const fn batch(source: &Source) -> u32 {
        match source.pattern {
            Pattern::Burst(count) => count,
            Pattern::AlwaysReady => 0,
            Pattern::Periodic | Pattern::Sporadic(_) | Pattern::Answered => 1,
        }
    }

    /// Releases a job. Returns whether it is kept.
    pub(super) fn release(&mut self, source: &Source, chance: &mut Chance) -> bool {
        if self.pending >= PENDING_MAX {
            self.statistics.missed = self.statistics.missed.saturating_add(1);
            return false;
        }
        let place = self.oldest.wrapping_add(self.pending) % PENDING_MAX;
        if let Some(release) = self.releases.get_mut(place) {
            *release = self.next;
        }
        self.pending = self.pending.saturating_add(1);
        if self.pending == 1 {
            self.begin(source, chance);
        }
        true
    }

    fn begin(&mut self, source: &Source, chance: &mut Chance) {
        let spread = source.task.wcet.saturating_sub(source.shortest);
        self.left = source.task.wcet.saturating_sub(chance.up_to(spread)).max(1);
        self.late = false;
    }

    /// Sets the next release.
    pub(super) fn advance(&mut self, source: &Source, chance: &mut Chance) {
        if source.pattern == Pattern::AlwaysReady {
            self.endless = true;
            self.next = Ticks::MAX;
            return;
        }
        let extra = match source.pattern {
            Pattern::Sporadic(most) => chance.up_to(most),
            Pattern::Answered => {
                self.next = Ticks::MAX;
                return;
            }
            _ => 0,
        };
        let distance = source.task.period.max(1).saturating_add(extra);
        self.next = self.next.saturating_add(distance);
    }

    /// Completes the oldest job at `now`. Returns the time it took.
    pub(super) fn complete(&mut self, source: &Source, now: Ticks, chance: &mut Chance) -> Ticks {
        let release = self.releases.get(self.oldest).copied().unwrap_or(now);
        let response = now.saturating_sub(release);
        let statistics = &mut self.statistics;
        statistics.shortest = if statistics.completed == 0 {
            response
        } else {
            statistics.shortest.min(response)
        };
        statistics.completed = statistics.completed.saturating_add(1);
        statistics.longest = statistics.longest.max(response);
        statistics.total = statistics.total.saturating_add(response);
        self.oldest = self.oldest.wrapping_add(1) % PENDING_MAX;
        self.pending = self.pending.saturating_sub(1);
        if source.pattern == Pattern::Answered {
            self.next = now.saturating_add(source.task.period.max(1));
        }
        self.begin(source, chance);
        response
    }

    /// Tells whether the oldest job's deadline has passed, if that is news.
    pub(super) fn is_newly_late(&mut self, source: &Source, now: Ticks) -> bool {
        if !self.is_pending() || self.late || self.deadline(source) >= now {
            return false;
        }
        self.late = true;
        self.statistics.missed = self.statistics.missed.saturating_add(1);
        true
    }
}
