// SPDX-License-Identifier: Apache-2.0
//! Policy `arinc653`: a major frame of windows, each of which belongs to one partition.
//!
//! **Model.** The model is from ARINC Specification 653 part 1. A schedule is a frame that repeats for ever.
//! A window is a stretch of the frame in which only the vCPUs of one partition run. The most important ready
//! vCPU runs, and equals take turns ([`RunQueue`]). Time of a window that its partition does not use is lost:
//! no other vCPU runs in the window. A change of schedule takes effect at the end of the frame in force.
//!
//! **Time.** Boundaries are computed from the start of the first frame, never from the moment of a decision.
//! A late call shortens the window that it is late for by exactly the delay, and nothing drifts. The policy
//! catches up on all that was missed. Every window start is signalled, once per call for windows of skipped
//! frames.
//!
//! **Invariants.** Between the start of the frame and `now`, all windows that have started are after
//! `index`. Windows are in the order of time, do not overlap and are within the frame: the constructor
//! refuses others.
//!
//! **Cost.** The index moves on by one per window, so a decision is O(1). A decision that comes late by whole
//! frames looks at each window of a schedule twice at most. A decision ends with the window or before. A
//! decision to idle between windows ends with the start of the next window.

use crate::fixed_priority::check;
use crate::run_queue::{Band, RunQueue, all_slots};
use crate::table::{Table, bit, each};
use crate::{
    Arinc653Parameters, Decision, MAX_SCHEDULES, MAX_SLOTS, MAX_WINDOWS, Policy, PolicyError, Schedule,
    ScheduleStatus, Signals, Slot, SlotSet, StopReason, Ticks, VcpuParameters, Window,
};

/// A window, in the form in which it is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PackedWindow {
    band: Band,
    offset: Ticks,
    duration: Ticks,
    is_period_start: bool,
}

impl PackedWindow {
    const NONE: Self = Self {
        band: Band::NONE,
        offset: 0,
        duration: 0,
        is_period_start: false,
    };
}

/// The policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Arinc653 {
    queue: RunQueue,
    all: u32,
    windows: [PackedWindow; MAX_WINDOWS],
    schedules: [Schedule; MAX_SCHEDULES],
    schedule_count: u8,
    status: ScheduleStatus,
    /// Start of the frame in force.
    frame_start: Ticks,
    /// Number of windows of the frame that have started.
    index: u8,
    interested: SlotSet,
    signals: Signals,
}

impl Arinc653 {
    /// Returns the policy of a pCPU with these vCPUs, slot 0 first.
    ///
    /// # Errors
    /// [`PolicyError::TooManyVcpus`] if there are too many vCPUs. [`PolicyError::BadParameter`] for a
    /// priority above 31, a quantum of 0, more windows or schedules than there can be, no schedule, or a
    /// frame or window of length 0. [`PolicyError::BadParameter`] also for windows that are not in order,
    /// overlap or do not fit, and for windows that have no slot or the slots of two partitions.
    pub fn new(vcpus: &[VcpuParameters], parameters: Arinc653Parameters<'_>) -> Result<Self, PolicyError> {
        let mut policy = Self::blank(parameters.quantum);
        policy.fill(vcpus, &parameters)?;
        Ok(policy)
    }

    /// Returns a policy without slots.
    pub(crate) const fn blank(quantum: Ticks) -> Self {
        Self {
            queue: RunQueue::new(quantum),
            all: 0,
            windows: [PackedWindow::NONE; MAX_WINDOWS],
            schedules: [Schedule::NONE; MAX_SCHEDULES],
            schedule_count: 0,
            status: ScheduleStatus {
                current: 0,
                next: 0,
                since: 0,
            },
            frame_start: 0,
            index: 0,
            interested: SlotSet(0),
            signals: Signals::NONE,
        }
    }

    /// Gives a blank policy its slots and windows. After an error the policy must not be used.
    pub(crate) fn fill(
        &mut self,
        vcpus: &[VcpuParameters],
        parameters: &Arinc653Parameters<'_>,
    ) -> Result<(), PolicyError> {
        check(vcpus, parameters.quantum)?;
        let all = all_slots(vcpus.len()).0;
        let &Arinc653Parameters {
            windows,
            schedules,
            initial,
            start,
            ..
        } = parameters;
        if windows.len() > MAX_WINDOWS
            || schedules.len() > MAX_SCHEDULES
            || usize::from(initial) >= schedules.len()
        {
            return Err(PolicyError::BadParameter);
        }
        check_partitions(windows, all)?;
        self.queue.sort(vcpus, &classes(windows));
        for (place, window) in self.windows.iter_mut().zip(windows) {
            *place = PackedWindow {
                band: self.queue.band(window.slots.0),
                offset: window.offset,
                duration: window.duration,
                is_period_start: window.period_start,
            };
        }
        for (copy, schedule) in self.schedules.iter_mut().zip(schedules) {
            check_schedule(schedule, windows)?;
            *copy = *schedule;
        }
        self.all = all;
        self.schedule_count = schedules.len() as u8;
        self.status = ScheduleStatus {
            current: initial,
            next: initial,
            since: start,
        };
        self.frame_start = start;
        Ok(())
    }

    fn frame(&self) -> Ticks {
        self.schedules
            .get(usize::from(self.status.current))
            .map_or(Ticks::MAX, |schedule| schedule.frame)
    }

    /// Returns a window of the schedule in force.
    fn window(&self, index: u8) -> Option<&PackedWindow> {
        let schedule = self.schedules.get(usize::from(self.status.current))?;
        if index >= schedule.window_count {
            return None;
        }
        self.windows
            .get(usize::from(schedule.first_window).saturating_add(usize::from(index)))
    }

    /// Starts the windows of the frame in force that are due. These are at most all of them.
    fn start_windows(&mut self, now: Ticks) {
        while let Some(&window) = self.window(self.index) {
            if self.frame_start.saturating_add(window.offset) > now {
                return;
            }
            self.index = self.index.saturating_add(1);
            self.signals.window_start.0 |= window.band.slots;
            if window.is_period_start {
                self.signals.period_start.0 |= window.band.slots;
            }
        }
    }

    /// Comes up to the present. However late the call is, there are three frames to look at: the frame that
    /// was in force, one frame that stands for all missed frames, and the frame in force now.
    fn catch_up(&mut self, now: Ticks) {
        self.start_windows(now);
        for _ in 0..3 {
            let Some(late) = now.checked_sub(self.frame_start.saturating_add(self.frame())) else {
                return;
            };
            self.frame_start = now.saturating_sub(late);
            self.index = 0;
            if self.status.next != self.status.current {
                self.status.current = self.status.next;
                self.status.since = self.frame_start;
                self.signals.schedule_changed = true;
            }
            let missed = late.checked_div(self.frame()).unwrap_or(0);
            let skipped = missed.saturating_sub(1).wrapping_mul(self.frame());
            self.frame_start = self.frame_start.saturating_add(skipped);
            self.start_windows(now);
        }
    }

    /// Returns the window that is open, and its end. If none is open, returns when to look for the next one.
    fn open_window(&self, now: Ticks) -> (Option<Band>, Ticks) {
        let last = self.index.checked_sub(1).and_then(|index| self.window(index));
        if let Some(window) = last {
            let start = self.frame_start.saturating_add(window.offset);
            let end = start.saturating_add(window.duration);
            if now < end {
                return (Some(window.band), end);
            }
        }
        let next = self
            .window(self.index)
            .map_or(self.frame(), |window| window.offset);
        (None, self.frame_start.saturating_add(next))
    }
}

/// Checks that windows of different partitions have no slot in common.
fn check_partitions(windows: &[Window], all: u32) -> Result<(), PolicyError> {
    for (number, window) in windows.iter().enumerate() {
        let (own, before) = (window.slots.0, windows.iter().take(number));
        let mut before = before.map(|other| other.slots.0);
        if own == 0 || own & !all != 0 || before.any(|other| own != other && own & other != 0) {
            return Err(PolicyError::BadParameter);
        }
    }
    Ok(())
}

/// Returns the class of each vCPU: the first window of its partition. A vCPU without a window never runs.
fn classes(windows: &[Window]) -> Table<u8> {
    let mut classes = Table::new(MAX_WINDOWS as u8);
    for (number, window) in windows.iter().enumerate().rev() {
        for slot in each(window.slots.0) {
            *classes.at_mut(slot) = number as u8;
        }
    }
    classes
}

/// Checks that the windows of a schedule are in order, without overlap and within its frame.
fn check_schedule(schedule: &Schedule, windows: &[Window]) -> Result<(), PolicyError> {
    let first = usize::from(schedule.first_window);
    let own = windows
        .get(first..first.saturating_add(usize::from(schedule.window_count)))
        .ok_or(PolicyError::BadParameter)?;
    let mut end = 0;
    for window in own {
        if window.duration == 0 || window.offset < end {
            return Err(PolicyError::BadParameter);
        }
        end = window
            .offset
            .checked_add(window.duration)
            .ok_or(PolicyError::BadParameter)?;
    }
    if schedule.frame == 0 || end > schedule.frame {
        return Err(PolicyError::BadParameter);
    }
    Ok(())
}

impl Policy for Arinc653 {
    fn ready(&mut self, slot: Slot, _now: Ticks) {
        if usize::from(slot.0) < MAX_SLOTS && self.all & bit(slot.0) != 0 {
            self.queue.add(slot.0);
        }
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, _now: Ticks) {
        self.queue.stopped(slot.0, why, ran);
        if why == StopReason::Blocked {
            self.queue.remove(slot.0);
        }
    }

    fn withdraw(&mut self, slot: Slot, _now: Ticks) {
        if usize::from(slot.0) < MAX_SLOTS {
            self.queue.remove(slot.0);
        }
    }

    fn next(&mut self, now: Ticks) -> Decision {
        self.catch_up(now);
        let (band, end) = self.open_window(now);
        let pick = band.and_then(|band| self.queue.pick(band));
        let Some(pick) = pick else {
            self.interested = SlotSet(band.map_or(0, |band| band.slots));
            return Decision::Idle(end);
        };
        self.interested = SlotSet(pick.interested);
        Decision::Run(pick.slot, now.saturating_add(pick.left).min(end))
    }

    fn ready_slots(&self) -> SlotSet {
        SlotSet(self.queue.ready())
    }

    fn interested(&self) -> SlotSet {
        self.interested
    }

    fn has_signals(&self) -> bool {
        !self.signals.is_none()
    }

    fn signals(&mut self) -> Signals {
        core::mem::take(&mut self.signals)
    }

    fn change_schedule(&mut self, schedule: u8, _now: Ticks) -> Result<(), PolicyError> {
        if schedule >= self.schedule_count {
            return Err(PolicyError::BadParameter);
        }
        self.status.next = schedule;
        Ok(())
    }

    fn schedule(&self) -> ScheduleStatus {
        self.status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(slots: u32, offset: Ticks, duration: Ticks) -> Window {
        Window {
            slots: SlotSet(slots),
            offset,
            duration,
            period_start: offset == 0,
        }
    }

    fn schedule(frame: Ticks, first_window: u8, window_count: u8) -> Schedule {
        Schedule {
            frame,
            first_window,
            window_count,
        }
    }

    fn try_new(vcpus: usize, windows: &[Window], schedules: &[Schedule]) -> Result<Arinc653, PolicyError> {
        let parameters = Arinc653Parameters {
            windows,
            schedules,
            initial: 0,
            start: 100,
            quantum: 3,
        };
        Arinc653::new(&[VcpuParameters::default(); MAX_SLOTS][..vcpus], parameters)
    }

    /// Returns a policy with two schedules. In the first, slot 0 has 0..5 of 20, and slots 1 and 2 have
    /// 5..15. In the other, slot 0 has all of 10.
    fn policy() -> Arinc653 {
        let windows = [window(1, 0, 5), window(6, 5, 10), window(1, 0, 10)];
        try_new(3, &windows, &[schedule(20, 0, 2), schedule(10, 2, 1)]).unwrap()
    }

    #[test]
    fn only_the_window_s_partition_runs_and_only_until_its_end() {
        let mut policy = policy();
        (0..3).for_each(|slot| policy.ready(Slot(slot), 0));
        assert_eq!(policy.next(0), Decision::Idle(100));
        assert_eq!(policy.interested(), SlotSet(0));
        assert_eq!(policy.next(100), Decision::Run(Slot(0), 105));
        policy.stopped(Slot(0), StopReason::Blocked, 2, 102);
        assert_eq!(policy.next(102), Decision::Idle(105));
        assert_eq!(policy.interested(), SlotSet(1));
        assert_eq!(policy.next(105), Decision::Run(Slot(1), 108));
        policy.stopped(Slot(1), StopReason::Preempted, 3, 108);
        assert_eq!(policy.next(108), Decision::Run(Slot(2), 111));
        policy.stopped(Slot(2), StopReason::Blocked, 1, 109);
        assert_eq!(policy.next(109), Decision::Run(Slot(1), 115));
        policy.stopped(Slot(1), StopReason::Preempted, 6, 115);
        assert_eq!(policy.next(115), Decision::Idle(120));
        assert_eq!(policy.next(120), Decision::Idle(125));
    }

    #[test]
    fn starts_are_signalled_once_and_none_is_missed() {
        let mut policy = policy();
        let both = |window_start, period_start| Signals {
            window_start: SlotSet(window_start),
            period_start: SlotSet(period_start),
            ..Signals::default()
        };
        policy.next(100);
        assert_eq!(policy.signals(), both(1, 1));
        policy.next(104);
        assert_eq!(policy.signals(), Signals::default());
        // The call is late by less than a frame, then by many frames.
        policy.next(121);
        assert_eq!(policy.signals(), both(7, 1));
        assert_eq!(policy.next(20 * 1000 + 107), Decision::Idle(20 * 1000 + 115));
        assert_eq!(policy.signals(), both(7, 1));
    }

    #[test]
    fn a_change_waits_for_the_end_of_the_frame_even_if_that_is_seen_late() {
        let mut policy = policy();
        policy.ready(Slot(0), 0);
        assert_eq!(policy.next(101), Decision::Run(Slot(0), 105));
        assert_eq!(policy.change_schedule(2, 102), Err(PolicyError::BadParameter));
        assert_eq!(policy.change_schedule(1, 102), Ok(()));
        policy.stopped(Slot(0), StopReason::Preempted, 4, 105);
        assert_eq!(policy.next(105), Decision::Idle(115));
        assert_eq!(policy.schedule().current, 0);
        assert_eq!(policy.next(133), Decision::Run(Slot(0), 140));
        let now = ScheduleStatus {
            current: 1,
            next: 1,
            since: 120,
        };
        assert_eq!(policy.schedule(), now);
        assert!(policy.signals().schedule_changed);
    }

    #[test]
    fn bad_tables_are_refused() {
        let good = [window(1, 0, 5), window(2, 5, 5)];
        let one = [schedule(10, 0, 2)];
        assert!(try_new(2, &good, &one).is_ok());
        let bad = |windows: &[Window], schedules: &[Schedule]| {
            assert_eq!(
                try_new(2, windows, schedules),
                Err(PolicyError::BadParameter),
                "{windows:?} {schedules:?}"
            );
        };
        bad(&good, &[]);
        bad(&good, &[schedule(9, 0, 2)]);
        bad(&good, &[schedule(0, 0, 0)]);
        bad(&good, &[schedule(10, 1, 2)]);
        bad(&good, &[schedule(10, 0, 1); MAX_SCHEDULES + 1]);
        bad(&[window(1, 0, 6), window(2, 5, 5)], &one);
        bad(&[window(1, 5, 5), window(2, 0, 5)], &one);
        bad(&[window(1, 0, 0), window(2, 5, 5)], &one);
        bad(&[window(0, 0, 5), window(2, 5, 5)], &one);
        bad(&[window(4, 0, 5), window(2, 5, 5)], &one);
        bad(&[window(3, 0, 5), window(2, 5, 5)], &one);
        bad(&[window(1, 0, 5), window(2, 5, Ticks::MAX)], &one);
        bad(&[window(1, 0, 1); MAX_WINDOWS + 1], &[schedule(10, 0, 1)]);
    }
}
