// SPDX-License-Identifier: Apache-2.0
//! Events (ARINC 653 Part 1, section 3.7.2.4).

use crate::limits::SLOTS;
use crate::record::{Event, Wait};
use crate::state::Apex;
use crate::types::{Answer, Name, Outcome, Time};

/// The state of an event, `EVENT_STATUS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventStatus {
    /// True if it is up.
    pub is_up: bool,
    /// Processes that wait.
    pub waiting_processes: i32,
}

impl Apex {
    /// `CREATE_EVENT`. The event is down. Returns its identifier.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is no room; `NO_ACTION` if the name is in use; `INVALID_MODE` in normal
    /// mode.
    pub fn create_event(&mut self, name: Name) -> Answer<i64> {
        self.events.check_new(&name)?;
        self.must_initialise()?;
        self.events.add(Event { name, is_up: false })
    }

    /// `SET_EVENT`: all processes that wait go on.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier.
    pub fn set_event(&mut self, identifier: i64) -> Answer {
        let index = self.events.index(identifier)?;
        self.events.at_mut(index)?.is_up = true;
        self.wake_all(Wait::Event(index));
        Ok(())
    }

    /// Wakes all processes that wait for something, the one of the highest priority first.
    fn wake_all(&mut self, wait: Wait) {
        for _ in 0..SLOTS {
            let Some(place) = self.first_waiter(wait, crate::types::QueuingDiscipline::Priority) else {
                return;
            };
            self.wake(place, Ok(()));
        }
    }

    /// `RESET_EVENT`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier.
    pub fn reset_event(&mut self, identifier: i64) -> Answer {
        let index = self.events.index(identifier)?;
        self.events.at_mut(index)?.is_up = false;
        Ok(())
    }

    /// `WAIT_EVENT`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier or time-out; `NOT_AVAILABLE` if the event is down and the
    /// time-out is 0; `INVALID_MODE` if the caller may not wait; `TIMED_OUT` after the wait.
    pub fn wait_event(&mut self, identifier: i64, time_out: Time, now: Time) -> Answer<Outcome> {
        let index = self.events.index(identifier)?;
        Self::check_time_out(time_out, now)?;
        if self.events.at(index)?.is_up {
            return Ok(Outcome::Done(()));
        }
        self.wait_for(Wait::Event(index), time_out, now)?;
        Ok(Outcome::Waits)
    }

    /// `GET_EVENT_ID`.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is none of this name.
    pub fn get_event_id(&self, name: &Name) -> Answer<i64> {
        self.events.find(name)
    }

    /// `GET_EVENT_STATUS`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier.
    pub fn get_event_status(&self, identifier: i64) -> Answer<EventStatus> {
        let index = self.events.index(identifier)?;
        Ok(EventStatus {
            is_up: self.events.at(index)?.is_up,
            waiting_processes: self.waiters(Wait::Event(index)),
        })
    }
}
