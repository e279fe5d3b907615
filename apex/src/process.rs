// SPDX-License-Identifier: Apache-2.0
//! Process management (ARINC 653 Part 1, section 3.3).

use crate::limits::HANDLER;
use crate::limits::{MAX_LOCK_LEVEL, MAX_PRIORITY, MAX_PROCESSES, MIN_PRIORITY};
use crate::record::{Attributes, Process, Wait};
use crate::state::Apex;
use crate::types::{
    Answer, INFINITE_TIME_VALUE, NEVER, Name, OperatingMode, Outcome, ProcessState, ReturnCode, Time,
};

/// The state of a process, `PROCESS_STATUS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStatus {
    /// Its deadline in force; infinite if there is none.
    pub deadline_time: Time,
    /// Its priority now.
    pub current_priority: i32,
    /// Its state.
    pub state: ProcessState,
    /// Its fixed facts.
    pub attributes: Attributes,
}

impl Apex {
    /// `CREATE_PROCESS`: adds a process. Returns its identifier.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is no room, or the period is no multiple of the partition's; `NO_ACTION` if
    /// the name is in use; `INVALID_PARAM` for a wrong attribute; `INVALID_MODE` in normal mode.
    pub fn create_process(&mut self, attributes: &Attributes) -> Answer<i64> {
        if self.count >= MAX_PROCESSES {
            return Err(ReturnCode::InvalidConfig);
        }
        if self.get_process_id(&attributes.name).is_ok() {
            return Err(ReturnCode::NoAction);
        }
        let (period, capacity) = (attributes.period, attributes.time_capacity);
        let is_time = |time: Time| time == INFINITE_TIME_VALUE || time > 0;
        if attributes.stack_size == 0
            || attributes.name.bytes().is_empty()
            || !(MIN_PRIORITY..=MAX_PRIORITY).contains(&attributes.base_priority)
            || !is_time(period)
            || !is_time(capacity)
            || (period != INFINITE_TIME_VALUE && capacity != INFINITE_TIME_VALUE && capacity > period)
        {
            return Err(ReturnCode::InvalidParam);
        }
        let own = self.configuration.period;
        if period != INFINITE_TIME_VALUE && (own <= 0 || period % own != 0) {
            return Err(ReturnCode::InvalidConfig);
        }
        self.must_initialise()?;
        let place = self.count;
        self.count += 1;
        self.processes[place].attributes = *attributes;
        self.processes[place].reset();
        Ok(place as i64 + 1)
    }

    /// Returns the place of a process.
    pub(crate) fn place(&self, identifier: i64) -> Answer<usize> {
        let place = usize::try_from(identifier.saturating_sub(1)).map_err(|_| ReturnCode::InvalidParam)?;
        if identifier < 1 || place >= self.count {
            return Err(ReturnCode::InvalidParam);
        }
        Ok(place)
    }

    /// Returns the entry point of the process at a place if its next run begins there. The answer is given
    /// once.
    pub fn take_entry(&mut self, place: usize) -> Option<usize> {
        let process = self.processes.get_mut(place)?;
        core::mem::take(&mut process.is_fresh).then_some(process.attributes.entry_point)
    }

    /// `GET_PROCESS_ID`.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is no process of this name.
    pub fn get_process_id(&self, name: &Name) -> Answer<i64> {
        let is_it = |process: &Process| process.attributes.name == *name;
        let place = self.processes[..self.count].iter().position(is_it);
        place
            .map(|place| place as i64 + 1)
            .ok_or(ReturnCode::InvalidConfig)
    }

    /// `GET_MY_ID`.
    ///
    /// # Errors
    /// `INVALID_MODE` if the caller is no process: the initialisation, or the error handler.
    pub fn get_my_id(&self) -> Answer<i64> {
        match self.running {
            Some(place) if place != HANDLER => Ok(place as i64 + 1),
            _ => Err(ReturnCode::InvalidMode),
        }
    }

    /// `GET_PROCESS_STATUS`.
    ///
    /// # Errors
    /// `INVALID_PARAM` if there is no such process.
    pub fn get_process_status(&self, identifier: i64) -> Answer<ProcessStatus> {
        let process = &self.processes[self.place(identifier)?];
        Ok(ProcessStatus {
            deadline_time: match process.deadline {
                NEVER => INFINITE_TIME_VALUE,
                deadline => deadline,
            },
            current_priority: process.priority,
            state: process.state,
            attributes: process.attributes,
        })
    }

    /// `SET_PRIORITY`: the process is then the last one of its new priority.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong process or priority; `INVALID_MODE` if it is dormant.
    pub fn set_priority(&mut self, identifier: i64, priority: i32) -> Answer {
        let place = self.place(identifier)?;
        if !(MIN_PRIORITY..=MAX_PRIORITY).contains(&priority) {
            return Err(ReturnCode::InvalidParam);
        }
        if self.processes[place].state == ProcessState::Dormant {
            return Err(ReturnCode::InvalidMode);
        }
        // The priority of the mutex holds until the mutex is released.
        if self.processes[place].mutex.is_some() {
            self.processes[place].kept_priority = priority;
            return Ok(());
        }
        self.processes[place].priority = priority;
        if self.processes[place].can_run() {
            self.make_ready(place);
        }
        Ok(())
    }

    /// `START`.
    ///
    /// # Errors
    /// `INVALID_PARAM` if there is no such process; `NO_ACTION` if it is not dormant; `INVALID_CONFIG` if its
    /// deadline would be out of range.
    pub fn start(&mut self, identifier: i64, now: Time) -> Answer {
        self.delayed_start(identifier, 0, now)
    }

    /// `DELAYED_START`.
    ///
    /// # Errors
    /// As [`Apex::start`]; `INVALID_PARAM` also for a delay that is negative, or no shorter than the period.
    pub fn delayed_start(&mut self, identifier: i64, delay: Time, now: Time) -> Answer {
        let place = self.place(identifier)?;
        let process = &self.processes[place];
        if process.state != ProcessState::Dormant {
            return Err(ReturnCode::NoAction);
        }
        let (period, capacity) = (process.attributes.period, process.attributes.time_capacity);
        if delay < 0 || (process.is_periodic() && delay != 0 && delay >= period) {
            return Err(ReturnCode::InvalidParam);
        }
        let first = now.checked_add(delay).ok_or(ReturnCode::InvalidParam)?;
        let last = first
            .checked_add(period.max(0))
            .ok_or(ReturnCode::InvalidConfig)?;
        last.checked_add(capacity.max(0))
            .ok_or(ReturnCode::InvalidConfig)?;
        self.processes[place].reset();
        if self.mode == OperatingMode::Normal {
            self.begin(place, delay, now);
        } else {
            self.set_waiting(place, Wait::Normal(delay), NEVER);
        }
        Ok(())
    }

    /// Starts a process in normal mode: an aperiodic one after the delay, a periodic one as long after the
    /// next start of the partition's period.
    pub(crate) fn begin(&mut self, place: usize, delay: Time, now: Time) {
        let release = if self.processes[place].is_periodic() {
            self.next_period(now).saturating_add(delay)
        } else {
            now.saturating_add(delay)
        };
        self.processes[place].release = release;
        if release > now {
            self.set_waiting(place, Wait::Release, release);
        } else {
            self.processes[place].set_deadline(release);
            self.wake(place, Ok(()));
        }
    }

    /// `STOP`.
    ///
    /// # Errors
    /// `INVALID_PARAM` if there is no such process, or it is the caller; `NO_ACTION` if it is dormant.
    pub fn stop(&mut self, identifier: i64) -> Answer {
        let place = self.place(identifier)?;
        if self.running == Some(place) {
            return Err(ReturnCode::InvalidParam);
        }
        if self.processes[place].state == ProcessState::Dormant {
            return Err(ReturnCode::NoAction);
        }
        self.end(place);
        Ok(())
    }

    /// `STOP_SELF`: the caller must switch.
    pub fn stop_self(&mut self) {
        if let Some(place) = self.running {
            self.end(place);
        }
    }

    /// Makes a process dormant. It gives back what it holds.
    pub(crate) fn end(&mut self, place: usize) {
        if let Some(mutex) = self.processes[place].mutex {
            self.free_mutex(mutex);
        }
        if self.lock_holder == Some(place) {
            self.lock_holder = None;
            self.lock_level = 0;
        }
        self.processes[place].reset();
        if place == HANDLER {
            self.errors.handler_ended();
            self.call_handler();
        }
    }

    /// `SUSPEND`.
    ///
    /// # Errors
    /// `INVALID_PARAM` if there is no such process, or it is the caller; `INVALID_MODE` if it is dormant or
    /// periodic, or holds a mutex; `NO_ACTION` if it is suspended.
    pub fn suspend(&mut self, identifier: i64) -> Answer {
        let place = self.place(identifier)?;
        if self.running == Some(place) {
            return Err(ReturnCode::InvalidParam);
        }
        let process = &mut self.processes[place];
        if process.state == ProcessState::Dormant
            || process.is_periodic()
            || process.mutex.is_some()
            || self.lock_holder == Some(place)
        {
            return Err(ReturnCode::InvalidMode);
        }
        if process.suspended {
            return Err(ReturnCode::NoAction);
        }
        process.suspended = true;
        process.suspended_until = NEVER;
        process.state = ProcessState::Waiting;
        Ok(())
    }

    /// `SUSPEND_SELF`. The answer is `TIMED_OUT` if no process resumes the caller in time.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong time-out; `INVALID_MODE` if the caller may not wait, or is periodic.
    pub fn suspend_self(&mut self, time_out: Time, now: Time) -> Answer<Outcome> {
        Self::check_time_out(time_out, now)?;
        let place = self.running.ok_or(ReturnCode::InvalidMode)?;
        if !self.may_wait() || self.processes[place].is_periodic() {
            return Err(ReturnCode::InvalidMode);
        }
        if time_out == 0 {
            return Ok(Outcome::Done(()));
        }
        let process = &mut self.processes[place];
        process.suspended = true;
        process.suspended_until = if time_out == INFINITE_TIME_VALUE {
            NEVER
        } else {
            now + time_out
        };
        process.state = ProcessState::Waiting;
        process.result = Ok(());
        Ok(Outcome::Waits)
    }

    /// `RESUME`.
    ///
    /// # Errors
    /// `INVALID_PARAM` if there is no such process, or it is the caller; `INVALID_MODE` if it is dormant, or
    /// periodic; `NO_ACTION` if it is not suspended.
    pub fn resume(&mut self, identifier: i64) -> Answer {
        let place = self.place(identifier)?;
        if self.running == Some(place) {
            return Err(ReturnCode::InvalidParam);
        }
        let process = &self.processes[place];
        if process.state == ProcessState::Dormant || process.is_periodic() {
            return Err(ReturnCode::InvalidMode);
        }
        if !process.suspended {
            return Err(ReturnCode::NoAction);
        }
        self.end_suspension(place, Ok(()));
        Ok(())
    }

    pub(crate) fn end_suspension(&mut self, place: usize, result: Answer) {
        let process = &mut self.processes[place];
        process.suspended = false;
        process.suspended_until = NEVER;
        if process.waits == Wait::Nothing {
            // A process that was suspended by another one waits for no answer, so it keeps the one it has.
            if result.is_err() {
                process.result = result;
            }
            self.make_ready(place);
        }
    }

    /// `LOCK_PREEMPTION`. Returns the lock level.
    ///
    /// # Errors
    /// `NO_ACTION` if the caller is the initialisation or the error handler; `INVALID_MODE` if the caller
    /// holds a mutex; `INVALID_CONFIG` at the highest level.
    pub fn lock_preemption(&mut self) -> Answer<i32> {
        let place = self.locker()?;
        if self.processes[place].mutex.is_some() {
            return Err(ReturnCode::InvalidMode);
        }
        if self.lock_level >= MAX_LOCK_LEVEL {
            return Err(ReturnCode::InvalidConfig);
        }
        self.lock_level += 1;
        self.lock_holder = Some(place);
        Ok(self.lock_level)
    }

    /// `UNLOCK_PREEMPTION`. Returns the lock level.
    ///
    /// # Errors
    /// `NO_ACTION` if the caller is the initialisation or the error handler, or nothing is locked.
    pub fn unlock_preemption(&mut self) -> Answer<i32> {
        self.locker()?;
        if self.lock_level == 0 {
            return Err(ReturnCode::NoAction);
        }
        self.lock_level -= 1;
        if self.lock_level == 0 {
            self.lock_holder = None;
        }
        Ok(self.lock_level)
    }

    fn locker(&self) -> Answer<usize> {
        match self.running {
            Some(place) if place != HANDLER && self.mode == OperatingMode::Normal => Ok(place),
            _ => Err(ReturnCode::NoAction),
        }
    }
}
