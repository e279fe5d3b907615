// SPDX-License-Identifier: Apache-2.0
//! Semaphores (ARINC 653 Part 1, section 3.7.2.3).

use crate::limits::MAX_SEMAPHORE_VALUE;
use crate::record::{Semaphore, Wait};
use crate::state::Apex;
use crate::types::{Answer, Name, Outcome, QueuingDiscipline, ReturnCode, Time};

/// The state of a semaphore, `SEMAPHORE_STATUS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphoreStatus {
    /// Its value.
    pub current_value: i32,
    /// Its value at most.
    pub maximum_value: i32,
    /// Processes that wait.
    pub waiting_processes: i32,
}

impl Apex {
    /// `CREATE_SEMAPHORE`. Returns its identifier.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is no room; `NO_ACTION` if the name is in use; `INVALID_PARAM` for a wrong
    /// value; `INVALID_MODE` in normal mode.
    pub fn create_semaphore(
        &mut self,
        name: Name,
        value: i32,
        maximum: i32,
        discipline: QueuingDiscipline,
    ) -> Answer<i64> {
        self.semaphores.check_new(&name)?;
        if !(0..=MAX_SEMAPHORE_VALUE).contains(&maximum) || !(0..=maximum).contains(&value) {
            return Err(ReturnCode::InvalidParam);
        }
        self.must_initialise()?;
        self.semaphores.add(Semaphore {
            name,
            value,
            maximum,
            discipline,
        })
    }

    /// `WAIT_SEMAPHORE`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier or time-out; `NOT_AVAILABLE` if the value is 0 and the time-out
    /// is 0; `INVALID_MODE` if the caller may not wait; `TIMED_OUT` after the wait.
    pub fn wait_semaphore(&mut self, identifier: i64, time_out: Time, now: Time) -> Answer<Outcome> {
        let index = self.semaphores.index(identifier)?;
        Self::check_time_out(time_out, now)?;
        let semaphore = self.semaphores.at_mut(index)?;
        if semaphore.value > 0 {
            semaphore.value -= 1;
            return Ok(Outcome::Done(()));
        }
        self.wait_for(Wait::Semaphore(index), time_out, now)?;
        Ok(Outcome::Waits)
    }

    /// `SIGNAL_SEMAPHORE`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier; `NO_ACTION` if the value is at its maximum.
    pub fn signal_semaphore(&mut self, identifier: i64) -> Answer {
        let index = self.semaphores.index(identifier)?;
        let semaphore = self.semaphores.at(index)?;
        let (value, maximum, discipline) = (semaphore.value, semaphore.maximum, semaphore.discipline);
        if value >= maximum {
            return Err(ReturnCode::NoAction);
        }
        match self.first_waiter(Wait::Semaphore(index), discipline) {
            Some(place) => self.wake(place, Ok(())),
            None => self.semaphores.at_mut(index)?.value += 1,
        }
        Ok(())
    }

    /// `GET_SEMAPHORE_ID`.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is none of this name.
    pub fn get_semaphore_id(&self, name: &Name) -> Answer<i64> {
        self.semaphores.find(name)
    }

    /// `GET_SEMAPHORE_STATUS`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier.
    pub fn get_semaphore_status(&self, identifier: i64) -> Answer<SemaphoreStatus> {
        let index = self.semaphores.index(identifier)?;
        let semaphore = self.semaphores.at(index)?;
        Ok(SemaphoreStatus {
            current_value: semaphore.value,
            maximum_value: semaphore.maximum,
            waiting_processes: self.waiters(Wait::Semaphore(index)),
        })
    }
}
