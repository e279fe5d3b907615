// SPDX-License-Identifier: Apache-2.0
//! Mutexes (ARINC 653 Part 1, section 3.7.2.5). The owner of a mutex runs at the mutex's priority.

use crate::limits::HANDLER;
use crate::limits::{MAX_LOCK_LEVEL, MAX_PRIORITY, MIN_PRIORITY};
use crate::record::{Mutex, Wait};
use crate::state::Apex;
use crate::types::{Answer, Name, OperatingMode, Outcome, QueuingDiscipline, ReturnCode, Time};

/// The answer about a process that owns no mutex.
pub const NO_MUTEX_OWNED: i64 = -2;
/// The mutex that the lock of preemption is.
pub const PREEMPTION_LOCK_MUTEX: i64 = -3;

/// The state of a mutex, `MUTEX_STATUS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MutexStatus {
    /// The process that owns it, if one does.
    pub owner: Option<i64>,
    /// The priority of its owner.
    pub priority: i32,
    /// Times that it is locked.
    pub lock_count: i32,
    /// Processes that wait.
    pub waiting_processes: i32,
}

impl Apex {
    /// `CREATE_MUTEX`. Returns its identifier.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is no room; `NO_ACTION` if the name is in use; `INVALID_PARAM` for a wrong
    /// priority; `INVALID_MODE` in normal mode.
    pub fn create_mutex(&mut self, name: Name, priority: i32, discipline: QueuingDiscipline) -> Answer<i64> {
        self.mutexes.check_new(&name)?;
        if !(MIN_PRIORITY..=MAX_PRIORITY).contains(&priority) {
            return Err(ReturnCode::InvalidParam);
        }
        self.must_initialise()?;
        self.mutexes.add(Mutex {
            name,
            priority,
            discipline,
            owner: None,
            lock_count: 0,
        })
    }

    /// `ACQUIRE_MUTEX`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier or time-out; `INVALID_MODE` if the caller is no process, owns
    /// another mutex, or has a priority above the mutex's; `INVALID_CONFIG` at the highest lock count;
    /// `NOT_AVAILABLE` if another process owns it and the time-out is 0; `TIMED_OUT` after the wait.
    pub fn acquire_mutex(&mut self, identifier: i64, time_out: Time, now: Time) -> Answer<Outcome> {
        let index = self.mutexes.index(identifier)?;
        Self::check_time_out(time_out, now)?;
        let place = self.running.filter(|place| *place != HANDLER);
        let place = place.ok_or(ReturnCode::InvalidMode)?;
        let held = self.processes[place].mutex;
        if self.mode != OperatingMode::Normal
            || self.lock_holder == Some(place)
            || held.is_some_and(|held| held != index)
        {
            return Err(ReturnCode::InvalidMode);
        }
        let mutex = self.mutexes.at_mut(index)?;
        if mutex.owner == Some(place) {
            if mutex.lock_count >= MAX_LOCK_LEVEL {
                return Err(ReturnCode::InvalidConfig);
            }
            mutex.lock_count += 1;
            return Ok(Outcome::Done(()));
        }
        if self.processes[place].priority > mutex.priority {
            return Err(ReturnCode::InvalidMode);
        }
        if mutex.owner.is_none() {
            self.own_mutex(place, index);
            return Ok(Outcome::Done(()));
        }
        self.wait_for(Wait::Mutex(index), time_out, now)?;
        Ok(Outcome::Waits)
    }

    /// Makes a process the owner of a free mutex.
    fn own_mutex(&mut self, place: usize, index: usize) {
        let Ok(mutex) = self.mutexes.at_mut(index) else {
            return;
        };
        (mutex.owner, mutex.lock_count) = (Some(place), 1);
        let process = &mut self.processes[place];
        process.mutex = Some(index);
        process.kept_priority = process.priority;
        process.priority = mutex.priority;
    }

    /// `RELEASE_MUTEX`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier; `INVALID_MODE` if the caller does not own it.
    pub fn release_mutex(&mut self, identifier: i64) -> Answer {
        let index = self.mutexes.index(identifier)?;
        let place = self.running.ok_or(ReturnCode::InvalidMode)?;
        let mutex = self.mutexes.at_mut(index)?;
        if mutex.owner != Some(place) {
            return Err(ReturnCode::InvalidMode);
        }
        mutex.lock_count -= 1;
        if mutex.lock_count == 0 {
            self.free_mutex(index);
        }
        Ok(())
    }

    /// `RESET_MUTEX`: takes it from the process that owns it, however often that has locked it.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier or process; `INVALID_MODE` if that process does not own it.
    pub fn reset_mutex(&mut self, identifier: i64, process: i64) -> Answer {
        let index = self.mutexes.index(identifier)?;
        let place = self.place(process)?;
        if self.mutexes.at(index)?.owner != Some(place) {
            return Err(ReturnCode::InvalidMode);
        }
        self.free_mutex(index);
        Ok(())
    }

    /// Takes a mutex from its owner, and gives it to the process whose turn it is.
    pub(crate) fn free_mutex(&mut self, index: usize) {
        let Ok(mutex) = self.mutexes.at_mut(index) else {
            return;
        };
        let discipline = mutex.discipline;
        mutex.lock_count = 0;
        if let Some(place) = mutex.owner.take() {
            let process = &mut self.processes[place];
            process.mutex = None;
            process.priority = process.kept_priority;
            if process.can_run() {
                self.make_ready(place);
            }
        }
        if let Some(place) = self.first_waiter(Wait::Mutex(index), discipline) {
            self.own_mutex(place, index);
            self.wake(place, Ok(()));
        }
    }

    /// `GET_MUTEX_ID`.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is none of this name.
    pub fn get_mutex_id(&self, name: &Name) -> Answer<i64> {
        self.mutexes.find(name)
    }

    /// `GET_MUTEX_STATUS`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier.
    pub fn get_mutex_status(&self, identifier: i64) -> Answer<MutexStatus> {
        let index = self.mutexes.index(identifier)?;
        let mutex = self.mutexes.at(index)?;
        Ok(MutexStatus {
            owner: mutex.owner.map(|place| place as i64 + 1),
            priority: mutex.priority,
            lock_count: mutex.lock_count,
            waiting_processes: self.waiters(Wait::Mutex(index)),
        })
    }

    /// `GET_PROCESS_MUTEX_STATE`: the mutex that a process owns, [`PREEMPTION_LOCK_MUTEX`] or
    /// [`NO_MUTEX_OWNED`].
    ///
    /// # Errors
    /// `INVALID_PARAM` if there is no such process.
    pub fn get_process_mutex_state(&self, process: i64) -> Answer<i64> {
        let place = self.place(process)?;
        if self.lock_holder == Some(place) {
            return Ok(PREEMPTION_LOCK_MUTEX);
        }
        let owned = self.processes[place].mutex;
        Ok(owned.map_or(NO_MUTEX_OWNED, |index| index as i64 + 1))
    }
}
