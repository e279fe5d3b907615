// SPDX-License-Identifier: Apache-2.0
//! Time management (ARINC 653 Part 1, section 3.4), and all that becomes due.

use crate::configuration::Environment;
use crate::limits::HANDLER;
use crate::record::Wait;
use crate::state::Apex;
use crate::types::{
    Answer, ErrorCode, INFINITE_TIME_VALUE, NEVER, OperatingMode, Outcome, ProcessState, ReturnCode, Time,
};

impl Apex {
    /// Returns the first start of the partition's period that is later than `now`.
    pub(crate) const fn next_period(&self, now: Time) -> Time {
        let period = self.times.0;
        if period <= 0 || now < self.epoch {
            return now;
        }
        let since = (now - self.epoch) % period;
        now.saturating_add(period - since)
    }

    /// `TIMED_WAIT`: waits for so long; 0 lets others of the same priority go first.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong time; `INVALID_MODE` if the caller may not wait.
    pub fn timed_wait(&mut self, delay: Time, now: Time) -> Answer<Outcome> {
        if delay < 0 {
            return Err(ReturnCode::InvalidParam);
        }
        let until = now.checked_add(delay).ok_or(ReturnCode::InvalidParam)?;
        let place = self.running.ok_or(ReturnCode::InvalidMode)?;
        if !self.may_wait() {
            return Err(ReturnCode::InvalidMode);
        }
        if delay == 0 {
            self.processes[place].result = Ok(());
            self.make_ready(place);
        } else {
            self.block(Wait::Delay, until);
        }
        Ok(Outcome::Waits)
    }

    /// `PERIODIC_WAIT`: waits for the next release point.
    ///
    /// # Errors
    /// `INVALID_MODE` if the caller may not wait, or is not periodic.
    pub fn periodic_wait(&mut self, now: Time) -> Answer<Outcome> {
        let place = self.running.ok_or(ReturnCode::InvalidMode)?;
        let process = &mut self.processes[place];
        if !process.is_periodic() {
            return Err(ReturnCode::InvalidMode);
        }
        let release = process.release.saturating_add(process.attributes.period);
        if !self.may_wait() {
            return Err(ReturnCode::InvalidMode);
        }
        let process = &mut self.processes[place];
        process.release = release;
        process.deadline = NEVER;
        self.block(Wait::Release, release);
        // A release point that has passed already is taken at once. Times of others wait until the ports have
        // been looked at.
        if release <= now {
            self.expire(place);
        }
        Ok(Outcome::Waits)
    }

    /// `REPLENISH`: moves the deadline of the caller to `budget` from now.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong time; `INVALID_MODE` if the deadline of a periodic process would be after
    /// its next release point; `NO_ACTION` if the caller is the initialisation or the error handler.
    pub fn replenish(&mut self, budget: Time, now: Time) -> Answer {
        let place = match self.running {
            Some(place) if place != HANDLER && self.mode == OperatingMode::Normal => place,
            _ => return Err(ReturnCode::NoAction),
        };
        Self::check_time_out(budget, now)?;
        let deadline = if budget == INFINITE_TIME_VALUE {
            NEVER
        } else {
            now + budget
        };
        let process = &mut self.processes[place];
        if process.is_periodic() {
            let next = process.release.saturating_add(process.attributes.period);
            if deadline > next {
                return Err(ReturnCode::InvalidMode);
            }
        }
        // A process without a time capacity has no deadlines at all.
        if process.attributes.time_capacity != INFINITE_TIME_VALUE {
            process.deadline = deadline;
        }
        Ok(())
    }

    /// Does what has come from outside and what is due until `now`, in this order: a message, or room for
    /// one, that came while the partition had no window counts before the end of the wait for it.
    pub fn catch_up(&mut self, environment: &mut impl Environment, now: Time) {
        self.poll(environment);
        self.advance(now);
    }

    /// Does everything that is due: ends waits, releases periodic processes, finds missed deadlines. Bounded
    /// by the number of processes.
    pub fn advance(&mut self, now: Time) {
        if self.mode != OperatingMode::Normal {
            return;
        }
        for place in 0..self.count {
            let process = self.processes[place];
            if process.until <= now {
                self.expire(place);
            }
            if process.suspended_until <= now {
                self.end_suspension(place, Err(ReturnCode::TimedOut));
            }
            // The deadline of a release that has come just now counts from the release.
            if self.processes[place].deadline <= now {
                self.processes[place].deadline = NEVER;
                self.fail(Some(place), ErrorCode::DeadlineMissed, &[]);
            }
        }
    }

    /// Ends a wait whose time has come.
    fn expire(&mut self, place: usize) {
        let process = &mut self.processes[place];
        match process.waits {
            Wait::Release => {
                let release = process.release;
                process.set_deadline(release);
                self.wake(place, Ok(()));
            }
            Wait::Delay => self.wake(place, Ok(())),
            Wait::Nothing
            | Wait::Normal(_)
            | Wait::BufferSend(_)
            | Wait::BufferReceive(_)
            | Wait::Blackboard(_)
            | Wait::Semaphore(_)
            | Wait::Event(_)
            | Wait::Mutex(_)
            | Wait::QueueSend(_)
            | Wait::QueueReceive(_) => self.wake(place, Err(ReturnCode::TimedOut)),
        }
    }

    /// Returns the time at which [`Apex::advance`] has something to do; `None` if it never has.
    #[must_use]
    pub fn next_time(&self) -> Option<Time> {
        if self.mode != OperatingMode::Normal {
            return None;
        }
        let processes = self.processes[..self.count].iter();
        let time = processes
            .filter(|process| process.state != ProcessState::Dormant)
            .map(|process| process.until.min(process.suspended_until).min(process.deadline))
            .min();
        time.filter(|time| *time != NEVER)
    }
}
