// SPDX-License-Identifier: Apache-2.0
//! Blackboards (ARINC 653 Part 1, section 3.7.2.2).

use crate::limits::MAX_MESSAGE;
use crate::limits::SLOTS;
use crate::record::{Blackboard, Wait};
use crate::state::Apex;
use crate::types::{Answer, Name, Outcome, QueuingDiscipline, ReturnCode, Time};

/// The state of a blackboard, `BLACKBOARD_STATUS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlackboardStatus {
    /// True if it shows a message.
    pub is_occupied: bool,
    /// Bytes of a message at most.
    pub size: u32,
    /// Processes that wait.
    pub waiting_processes: i32,
}

impl Apex {
    /// `CREATE_BLACKBOARD`. Returns its identifier.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is no room; `NO_ACTION` if the name is in use; `INVALID_PARAM` for a wrong
    /// size; `INVALID_MODE` in normal mode.
    pub fn create_blackboard(&mut self, name: Name, size: u32) -> Answer<i64> {
        self.blackboards.check_new(&name)?;
        let size = size as usize;
        if size == 0 || size > MAX_MESSAGE {
            return Err(ReturnCode::InvalidParam);
        }
        self.must_initialise()?;
        let queue = self.pool.queue(size, 1)?;
        self.blackboards.add(Blackboard { name, queue })
    }

    /// `DISPLAY_BLACKBOARD`: all processes that wait go on with the message.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier or length.
    pub fn display_blackboard(&mut self, identifier: i64, message: &[u8]) -> Answer {
        let index = self.blackboards.index(identifier)?;
        let board = self.blackboards.at_mut(index)?;
        if message.is_empty() || message.len() > board.queue.size() {
            return Err(ReturnCode::InvalidParam);
        }
        board.queue.clear();
        self.pool.push(&mut board.queue, message);
        for _ in 0..SLOTS {
            let waiter = self.first_waiter(Wait::Blackboard(index), QueuingDiscipline::Priority);
            match waiter {
                Some(place) => self.deliver(place, message),
                None => break,
            }
        }
        Ok(())
    }

    /// `READ_BLACKBOARD`: the message goes to `to`, or after a wait into [`Apex::result`].
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier or time-out; `NOT_AVAILABLE` if nothing is shown and the
    /// time-out is 0; `INVALID_MODE` if the caller may not wait; `TIMED_OUT` after the wait.
    pub fn read_blackboard(
        &mut self,
        identifier: i64,
        to: &mut [u8],
        time_out: Time,
        now: Time,
    ) -> Answer<Outcome<usize>> {
        let index = self.blackboards.index(identifier)?;
        Self::check_time_out(time_out, now)?;
        let board = self.blackboards.at_mut(index)?;
        if let Some(length) = self.pool.peek(&board.queue, to) {
            return Ok(Outcome::Done(length));
        }
        self.wait_for(Wait::Blackboard(index), time_out, now)?;
        Ok(Outcome::Waits)
    }

    /// `CLEAR_BLACKBOARD`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier.
    pub fn clear_blackboard(&mut self, identifier: i64) -> Answer {
        let index = self.blackboards.index(identifier)?;
        self.blackboards.at_mut(index)?.queue.clear();
        Ok(())
    }

    /// `GET_BLACKBOARD_ID`.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is none of this name.
    pub fn get_blackboard_id(&self, name: &Name) -> Answer<i64> {
        self.blackboards.find(name)
    }

    /// `GET_BLACKBOARD_STATUS`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier.
    pub fn get_blackboard_status(&self, identifier: i64) -> Answer<BlackboardStatus> {
        let index = self.blackboards.index(identifier)?;
        let queue = &self.blackboards.at(index)?.queue;
        Ok(BlackboardStatus {
            is_occupied: queue.count != 0,
            size: queue.size() as u32,
            waiting_processes: self.waiters(Wait::Blackboard(index)),
        })
    }
}
