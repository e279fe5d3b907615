// SPDX-License-Identifier: Apache-2.0
//! Module schedules (ARINC 653 Part 2).

use crate::configuration::{Environment, ScheduleStatus};
use crate::state::Apex;
use crate::types::{Answer, Name, ReturnCode};

impl Apex {
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
