// SPDX-License-Identifier: Apache-2.0
//! Partition management (ARINC 653 Part 1, section 3.2).

use crate::limits::HANDLER;
use crate::record::Wait;
use crate::state::Apex;
use crate::types::{Answer, OperatingMode, ReturnCode, StartCondition, Time};

/// The state of the partition, `PARTITION_STATUS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// Its number.
    pub identifier: i64,
    /// The time between two starts of its processing, in the schedule in force.
    pub period: Time,
    /// The time it gets in each period.
    pub duration: Time,
    /// The lock level.
    pub lock_level: i32,
    /// Its mode.
    pub operating_mode: OperatingMode,
    /// The reason of its start.
    pub start_condition: StartCondition,
}

impl Apex {
    /// `GET_PARTITION_STATUS`. It has no errors.
    #[must_use]
    pub const fn get_partition_status(&self) -> PartitionStatus {
        PartitionStatus {
            identifier: self.configuration.identifier,
            period: self.times.0,
            duration: self.times.1,
            lock_level: self.lock_level,
            operating_mode: self.mode,
            start_condition: self.condition,
        }
    }

    /// `SET_PARTITION_MODE`. After `NORMAL` the caller switches to the first process, and `epoch` is a start
    /// of the partition's period that is not in the future. After any other mode the caller ends or restarts
    /// the partition.
    ///
    /// # Errors
    /// `NO_ACTION` if the partition is in normal mode and asks for it; `INVALID_MODE` for a warm start during
    /// a cold one.
    pub fn set_partition_mode(&mut self, mode: OperatingMode, epoch: Time, now: Time) -> Answer {
        if mode == OperatingMode::Normal && self.mode == OperatingMode::Normal {
            return Err(ReturnCode::NoAction);
        }
        if mode == OperatingMode::WarmStart && self.mode == OperatingMode::ColdStart {
            return Err(ReturnCode::InvalidMode);
        }
        self.mode = mode;
        if mode != OperatingMode::Normal {
            self.running = None;
            return Ok(());
        }
        self.epoch = epoch;
        for place in (0..self.count).chain([HANDLER]) {
            if let Wait::Normal(delay) = self.processes[place].waits {
                self.begin(place, delay, now);
            }
        }
        Ok(())
    }
}
