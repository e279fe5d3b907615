// SPDX-License-Identifier: Apache-2.0
//! The meaning of a fault.
//!
//! A fault has a class. The manifest gives an action per partition and class. This module counts, decides and
//! limits the log. It neither touches a vCPU nor prints. `dispatch` carries the action out, because only
//! `dispatch` can.
//!
//! **A flood of faults must not be a flood of output.** Per partition, the first [`LOGGED_IN_FULL`] events
//! are logged, and after them the events whose number is a power of two. So a partition that faults for ever
//! costs the log a logarithm. Every report carries the number of the event, so that a reader sees how many
//! were left out.
//!
//! Counters are atomics, because the vCPUs of a partition fault on several pCPUs. Each event gets a number of
//! its own.

use bulkhead_abi::{HealthClass, PartitionState};
use bulkhead_image::layout::{HealthAction, NONE};
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// The number of events of a partition that are logged before the log thins out.
pub const LOGGED_IN_FULL: u32 = 16;

/// The health of one partition.
#[derive(Debug, Default)]
pub struct Record {
    events: AtomicU32,
    last: AtomicU8,
    /// Restarts since boot, for any reason.
    restarts: AtomicU32,
    /// Restarts by a health action since another partition last started or restarted it.
    health_restarts: AtomicU32,
    /// The number of times that the partition was stopped or failed.
    ends: AtomicU32,
    /// Other changes of the partition's life cycle.
    changes: AtomicU32,
}

/// The decision about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The action to carry out.
    pub action: HealthAction,
    /// True if the event is to be logged.
    pub logged: bool,
    /// The event's number, from 1.
    pub number: u32,
    /// True if the action would be a restart, but for the limit.
    pub limit_reached: bool,
}

impl Record {
    /// Makes a record in which nothing has happened.
    pub const fn new() -> Self {
        Self {
            events: AtomicU32::new(0),
            last: AtomicU8::new(0),
            restarts: AtomicU32::new(0),
            health_restarts: AtomicU32::new(0),
            ends: AtomicU32::new(0),
            changes: AtomicU32::new(0),
        }
    }

    /// Counts an event and decides about the event. `limit` bounds the restarts by health actions.
    pub fn event(&self, class: HealthClass, configured: HealthAction, limit: u32) -> Verdict {
        let number = increment(&self.events);
        self.last.store(class as u8, Ordering::Relaxed);
        let mut action = configured;
        let mut limit_reached = false;
        if matches!(configured, HealthAction::Restart | HealthAction::RestartWarm)
            && increment(&self.health_restarts) > limit
            && limit != NONE
        {
            action = HealthAction::Stop;
            limit_reached = true;
        }
        // A refused call or a watchdog is no fault that a vCPU could take, so these end the partition.
        let has_nowhere_to_go = matches!(class, HealthClass::Hypercall | HealthClass::Watchdog);
        let ends = action == HealthAction::Stop || action == HealthAction::Inject && has_nowhere_to_go;
        // The end of a partition is always logged: there is one end per start by a capability holder.
        let logged = worth_logging(number) || ends;
        Verdict {
            action,
            logged,
            number,
            limit_reached,
        }
    }

    /// Starts the count for the restart limit anew.
    pub fn forgive(&self) {
        self.health_restarts.store(0, Ordering::Relaxed);
    }

    /// Counts a restart.
    pub fn restarted(&self) {
        increment(&self.restarts);
    }

    /// Tells whether to log a change of the life cycle, and counts the change. Ends are counted apart. So the
    /// end of a partition that has often been restarted is not passed over.
    pub fn announce(&self, state: PartitionState) -> bool {
        match state {
            PartitionState::Stopping => false,
            PartitionState::Stopped | PartitionState::Failed => worth_logging(increment(&self.ends)),
            PartitionState::Loading | PartitionState::Running => worth_logging(increment(&self.changes)),
        }
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u32 {
        self.events.load(Ordering::Relaxed)
    }

    /// Returns the number of restarts so far.
    pub fn restarts(&self) -> u32 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Returns the class of the last event.
    pub fn last(&self) -> Option<HealthClass> {
        HealthClass::from_number(self.last.load(Ordering::Relaxed))
    }
}

const fn worth_logging(number: u32) -> bool {
    number <= LOGGED_IN_FULL || number.is_power_of_two()
}

/// Adds one and saturates. Returns the new value.
fn increment(counter: &AtomicU32) -> u32 {
    let previous = counter.fetch_add(1, Ordering::Relaxed);
    if previous == u32::MAX {
        counter.store(u32::MAX, Ordering::Relaxed);
    }
    previous.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_grows_with_the_logarithm_of_the_events() {
        let record = Record::new();
        let logged = (0..100_000)
            .filter(|_| record.event(HealthClass::Memory, HealthAction::Log, NONE).logged)
            .count();
        assert_eq!(logged, 16 + 12);
        assert_eq!(record.events(), 100_000);
    }

    #[test]
    fn the_event_that_ends_a_partition_is_logged_whatever_its_number() {
        let record = Record::new();
        for _ in 0..18 {
            record.event(HealthClass::Memory, HealthAction::Log, NONE);
        }
        for (class, action, logged) in [
            (HealthClass::Memory, HealthAction::Inject, false),
            (HealthClass::Memory, HealthAction::Stop, true),
            (HealthClass::Hypercall, HealthAction::Inject, true),
            (HealthClass::Watchdog, HealthAction::Inject, true),
            (HealthClass::Watchdog, HealthAction::Restart, false),
        ] {
            assert_eq!(
                record.event(class, action, NONE).logged,
                logged,
                "{class:?} {action:?}"
            );
        }
    }

    #[test]
    fn the_restart_limit_turns_a_restart_into_a_stop() {
        let record = Record::new();
        let actions = [(); 4].map(|()| record.event(HealthClass::Memory, HealthAction::Restart, 2));
        assert_eq!(
            actions.map(|verdict| verdict.action),
            [
                HealthAction::Restart,
                HealthAction::Restart,
                HealthAction::Stop,
                HealthAction::Stop
            ]
        );
        assert_eq!(
            actions.map(|verdict| verdict.limit_reached),
            [false, false, true, true]
        );
    }

    #[test]
    fn warm_restarts_count_too_until_somebody_forgives() {
        let record = Record::new();
        let event = || {
            record
                .event(HealthClass::Task, HealthAction::RestartWarm, 1)
                .action
        };
        assert_eq!(
            [event(), event()],
            [HealthAction::RestartWarm, HealthAction::Stop]
        );
        record.forgive();
        assert_eq!(
            [event(), event()],
            [HealthAction::RestartWarm, HealthAction::Stop]
        );
    }

    #[test]
    fn no_limit_means_none() {
        let record = Record::new();
        assert!((0..1000).all(|_| {
            record
                .event(HealthClass::Task, HealthAction::Restart, NONE)
                .action
                == HealthAction::Restart
        }));
        assert_eq!(record.last(), Some(HealthClass::Task));
    }

    #[test]
    fn counters_saturate() {
        let counter = AtomicU32::new(u32::MAX);
        assert_eq!(increment(&counter), u32::MAX);
        assert_eq!(increment(&counter), u32::MAX);
    }
}
