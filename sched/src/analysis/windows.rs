// SPDX-License-Identifier: Apache-2.0
//! The supply that the windows of a frame give a partition: the least that any stretch of a length contains.
//!
//! The supply is exact. The worst moment to become ready is the end of one of the partition's windows. So the
//! time for some work is the longest over those moments, found by walking along the frame. Of each window the
//! hypervisor may take one event at its start. Before that it may take the time for work that began in the
//! window before and ends late. The steps of output that can come in the window count as lost at its start.
//!
//! When the schedule changes ([`ChangeSupply`]), the worst moment is the end of a window of the first
//! schedule any number of frames before the change. The rest of the work is done in frames of the second.
//! This is for one change at a time: if the schedule changes again before the work is done, the caller has to
//! add the frame in between.

use super::{Overheads, Shared, Supply};
use crate::{Schedule, SlotSet, Ticks, Window};

/// The windows of one partition in one schedule.
#[derive(Clone, Copy, Debug)]
pub struct WindowSupply<'a> {
    windows: &'a [Window],
    frame: Ticks,
    slots: SlotSet,
    overheads: Overheads,
}

impl<'a> WindowSupply<'a> {
    /// Returns the windows of `schedule` that `slot` shares, and the slots of its partition. Returns `None`
    /// if the schedule is not within the table of windows.
    #[must_use]
    pub fn new(shared: &Shared, slot: usize, windows: &'a [Window], schedule: Schedule) -> Option<Self> {
        let first = usize::from(schedule.first_window);
        let windows = windows.get(first..first.checked_add(usize::from(schedule.window_count))?)?;
        let own = 1_u32.checked_shl(u32::try_from(slot).ok()?)?;
        let is_own = |window: &&Window| window.slots.0 & own != 0;
        Some(Self {
            windows,
            frame: schedule.frame,
            slots: windows
                .iter()
                .find(is_own)
                .map_or(SlotSet(own), |window| window.slots),
            overheads: shared.overheads,
        })
    }

    /// Returns the slots of the partition.
    #[must_use]
    pub const fn slots(&self) -> SlotSet {
        self.slots
    }

    const fn is_own(&self, window: &Window) -> bool {
        window.slots.0 & self.slots.0 != 0
    }

    /// Returns the part of a window that the hypervisor takes. It counts as the beginning of the window.
    const fn lost(&self, window: &Window) -> Ticks {
        let written = self.overheads.written(window.duration);
        self.overheads.at_ends().saturating_add(written)
    }

    /// Returns the useful part of a window.
    const fn useful(&self, window: &Window) -> Ticks {
        window.duration.saturating_sub(self.lost(window))
    }

    /// Returns the partition's windows with their numbers.
    fn own(&self) -> impl Iterator<Item = (usize, &'a Window)> {
        let own = self.slots.0;
        let numbered = self.windows.iter().enumerate();
        numbered.filter(move |(_, window)| window.slots.0 & own != 0)
    }

    /// Returns the useful time in the windows after the first `passed` ones.
    fn left_of_frame(&self, passed: usize) -> Ticks {
        let own = self.own().filter(|(number, _)| *number >= passed);
        own.fold(0, |sum: Ticks, (_, window)| {
            sum.saturating_add(self.useful(window))
        })
    }

    /// Returns the time for `work` from the start of a frame.
    fn since_start(&self, work: Ticks) -> Ticks {
        let each = self.per_frame();
        let Some(frames) = work.saturating_sub(1).checked_div(each) else {
            return Ticks::MAX;
        };
        let rest = work.saturating_sub(frames.saturating_mul(each));
        frames
            .saturating_mul(self.frame)
            .saturating_add(self.walk(0, 0, rest))
    }

    /// Returns the useful time of the partition in each frame.
    #[must_use]
    pub fn per_frame(&self) -> Ticks {
        let own = self.windows.iter().filter(|window| self.is_own(window));
        own.fold(0, |sum: Ticks, window| sum.saturating_add(self.useful(window)))
    }

    /// Returns the time for `work`, at most a frame's, from `end` on, which is after the first `passed`
    /// windows.
    fn walk(&self, passed: usize, end: Ticks, work: Ticks) -> Ticks {
        let mut left = work;
        let later = self.windows.iter().skip(passed).map(|window| (window, 0));
        let again = self.windows.iter().map(|window| (window, self.frame));
        for (window, shift) in later.chain(again).filter(|(window, _)| self.is_own(window)) {
            let useful = self.useful(window);
            if useful >= left {
                let start = shift
                    .saturating_add(window.offset)
                    .saturating_add(self.lost(window));
                return start.saturating_add(left).saturating_sub(end);
            }
            left = left.saturating_sub(useful);
        }
        Ticks::MAX
    }
}

impl Supply for WindowSupply<'_> {
    fn time_for(&self, work: Ticks) -> Ticks {
        let each = self.per_frame();
        let Some(frames) = work.saturating_sub(1).checked_div(each) else {
            return Ticks::MAX;
        };
        let rest = work.saturating_sub(frames.saturating_mul(each));
        let own = self
            .windows
            .iter()
            .enumerate()
            .filter(|(_, window)| self.is_own(window));
        let longest = own.map(|(number, window)| {
            let end = window.offset.saturating_add(window.duration);
            self.walk(number.saturating_add(1), end, rest)
        });
        frames
            .saturating_mul(self.frame)
            .saturating_add(longest.max().unwrap_or(Ticks::MAX))
    }

    fn stolen(&self, _interval: Ticks) -> Ticks {
        0
    }
}

/// Frames before a change of the schedule that are looked at; a job that takes longer is given up.
const FRAMES: usize = 1000;

/// The windows of one partition while one schedule gives way to another.
#[derive(Clone, Copy, Debug)]
pub struct ChangeSupply<'a> {
    from: WindowSupply<'a>,
    to: WindowSupply<'a>,
}

impl<'a> ChangeSupply<'a> {
    /// Returns the supply of a change from the first schedule to the second.
    #[must_use]
    pub const fn new(from: WindowSupply<'a>, to: WindowSupply<'a>) -> Self {
        Self { from, to }
    }

    /// Returns the slots of the partition.
    #[must_use]
    pub const fn slots(&self) -> SlotSet {
        self.from.slots()
    }

    /// Returns the longest time for `work` from the end of a window, `passed` windows being over, with the
    /// change at the end of that frame or of a later one.
    fn across(&self, passed: usize, end: Ticks, work: Ticks) -> Ticks {
        let each = self.from.per_frame();
        let mut left = work.saturating_sub(self.from.left_of_frame(passed));
        let mut time = self.from.frame.saturating_sub(end);
        let mut longest = 0;
        for _ in 0..FRAMES {
            if left == 0 {
                return longest;
            }
            longest = longest.max(time.saturating_add(self.to.since_start(left)));
            left = left.saturating_sub(each);
            time = time.saturating_add(self.from.frame);
        }
        Ticks::MAX
    }
}

impl Supply for ChangeSupply<'_> {
    fn time_for(&self, work: Ticks) -> Ticks {
        let across = self.from.own().map(|(number, window)| {
            let end = window.offset.saturating_add(window.duration);
            self.across(number.saturating_add(1), end, work)
        });
        let longest = across.max().unwrap_or(Ticks::MAX);
        longest.max(self.from.time_for(work)).max(self.to.time_for(work))
    }

    fn stolen(&self, _interval: Ticks) -> Ticks {
        0
    }
}
