// SPDX-License-Identifier: Apache-2.0
//! Module schedules (ARINC 653 Part 2).

use crate::configuration::{Configuration, Environment, ScheduleStatus};
use crate::state::Apex;
use crate::types::{Answer, Name, ReturnCode, Time};

impl Apex {
    /// Begins with the facts that the integrator has fixed.
    pub const fn configure(&mut self, configuration: &Configuration) {
        self.configuration = *configuration;
        self.times = (configuration.period, configuration.duration);
        self.schedule_since = None;
    }

    /// Takes the period and the duration of the schedule in force, if they differ by schedule. Periods
    /// begin at `start`, at which one of the partition's has begun. Called at each such start: it asks the
    /// environment only if there is more than one pair of times.
    pub fn follow_schedule(&mut self, environment: &mut impl Environment, start: Time) {
        if self.configuration.times.is_empty() {
            return;
        }
        let Some(status) = environment.schedules() else {
            return;
        };
        if self.schedule_since == Some(status.since) {
            return;
        }
        let times = usize::try_from(status.current).ok();
        let times = times.and_then(|current| self.configuration.times.get(current));
        self.times = times.copied().unwrap_or(self.times);
        self.schedule_since = Some(status.since);
        self.epoch = start;
    }

    /// `SET_MODULE_SCHEDULE`: from the end of the major frame on. The identifier of a schedule is its number
    /// plus one.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier; `INVALID_CONFIG` if the partition may not change the schedule;
    /// `NO_ACTION` if it is the one that follows already.
    pub fn set_module_schedule(&self, environment: &mut impl Environment, identifier: i64) -> Answer {
        let count = self.configuration.schedules.len() as i64;
        if !(1..=count).contains(&identifier) {
            return Err(ReturnCode::InvalidParam);
        }
        let status = environment.schedules().ok_or(ReturnCode::InvalidConfig)?;
        if status.next + 1 == identifier {
            return Err(ReturnCode::NoAction);
        }
        environment.change_schedule(identifier as u64 - 1)
    }

    /// `GET_MODULE_SCHEDULE_STATUS`.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if the partition may not know it.
    pub fn get_module_schedule_status(&self, environment: &mut impl Environment) -> Answer<ScheduleStatus> {
        let status = environment.schedules().ok_or(ReturnCode::InvalidConfig)?;
        Ok(ScheduleStatus {
            since: status.since,
            current: status.current + 1,
            next: status.next + 1,
        })
    }

    /// `GET_MODULE_SCHEDULE_ID`.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is none of this name.
    pub fn get_module_schedule_id(&self, name: &Name) -> Answer<i64> {
        let position = self
            .configuration
            .schedules
            .iter()
            .position(|known| known == name);
        position
            .map(|position| position as i64 + 1)
            .ok_or(ReturnCode::InvalidConfig)
    }
}
