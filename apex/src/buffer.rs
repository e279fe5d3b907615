// SPDX-License-Identifier: Apache-2.0
//! Buffers (ARINC 653 Part 1, section 3.7.2.1).

use crate::limits::MAX_MESSAGE;
use crate::record::{Buffer, Wait};
use crate::state::Apex;
use crate::types::{Answer, Name, Outcome, QueuingDiscipline, ReturnCode, Time};

/// The state of a buffer, `BUFFER_STATUS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferStatus {
    /// Messages that wait.
    pub messages: u32,
    /// Messages that can wait.
    pub maximum: u32,
    /// Bytes of a message at most.
    pub size: u32,
    /// Processes that wait.
    pub waiting_processes: i32,
}

impl Apex {
    /// `CREATE_BUFFER`. Returns its identifier.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is no room; `NO_ACTION` if the name is in use; `INVALID_PARAM` for a wrong
    /// size or number; `INVALID_MODE` in normal mode.
    pub fn create_buffer(
        &mut self,
        name: Name,
        size: u32,
        maximum: u32,
        discipline: QueuingDiscipline,
    ) -> Answer<i64> {
        self.buffers.check_new(&name)?;
        let (size, depth) = (size as usize, maximum as usize);
        if size == 0 || size > MAX_MESSAGE || depth == 0 || depth > usize::from(u16::MAX) {
            return Err(ReturnCode::InvalidParam);
        }
        self.must_initialise()?;
        let queue = self.pool.queue(size, depth)?;
        self.buffers.add(Buffer {
            name,
            queue,
            discipline,
        })
    }

    /// `SEND_BUFFER`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier, time-out or length; `NOT_AVAILABLE` if the buffer is full and
    /// the time-out is 0; `INVALID_MODE` if the caller may not wait; `TIMED_OUT` after the wait.
    pub fn send_buffer(
        &mut self,
        identifier: i64,
        message: &[u8],
        time_out: Time,
        now: Time,
    ) -> Answer<Outcome> {
        let index = self.buffers.index(identifier)?;
        let buffer = self.buffers.at_mut(index)?;
        if message.is_empty() || message.len() > buffer.queue.size() {
            return Err(ReturnCode::InvalidParam);
        }
        Self::check_time_out(time_out, now)?;
        let discipline = buffer.discipline;
        if let Some(place) = self.first_waiter(Wait::BufferReceive(index), discipline) {
            self.deliver(place, message);
            return Ok(Outcome::Done(()));
        }
        if self.pool.push(&mut self.buffers.at_mut(index)?.queue, message) {
            return Ok(Outcome::Done(()));
        }
        self.wait_for(Wait::BufferSend(index), time_out, now)?;
        self.keep(message);
        Ok(Outcome::Waits)
    }

    /// `RECEIVE_BUFFER`: the message goes to `to`, or after a wait into [`Apex::result`].
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier or time-out; `NOT_AVAILABLE` if the buffer is empty and the
    /// time-out is 0; `INVALID_MODE` if the caller may not wait; `TIMED_OUT` after the wait.
    pub fn receive_buffer(
        &mut self,
        identifier: i64,
        to: &mut [u8],
        time_out: Time,
        now: Time,
    ) -> Answer<Outcome<usize>> {
        let index = self.buffers.index(identifier)?;
        Self::check_time_out(time_out, now)?;
        let buffer = self.buffers.at_mut(index)?;
        let discipline = buffer.discipline;
        if let Some(length) = self.pool.pop(&mut buffer.queue, to) {
            self.admit_sender(index, discipline);
            return Ok(Outcome::Done(length));
        }
        self.wait_for(Wait::BufferReceive(index), time_out, now)?;
        Ok(Outcome::Waits)
    }

    /// Puts the message of the sender whose turn it is into the buffer, which has room now.
    fn admit_sender(&mut self, index: usize, discipline: QueuingDiscipline) {
        let Some(place) = self.first_waiter(Wait::BufferSend(index), discipline) else {
            return;
        };
        let length = self.processes[place].mail_length;
        if let Ok(buffer) = self.buffers.at_mut(index)
            && self.pool.push(&mut buffer.queue, &self.mail[place][..length])
        {
            self.wake(place, Ok(()));
        }
    }

    /// `GET_BUFFER_ID`.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is none of this name.
    pub fn get_buffer_id(&self, name: &Name) -> Answer<i64> {
        self.buffers.find(name)
    }

    /// `GET_BUFFER_STATUS`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier.
    pub fn get_buffer_status(&self, identifier: i64) -> Answer<BufferStatus> {
        let index = self.buffers.index(identifier)?;
        let queue = &self.buffers.at(index)?.queue;
        Ok(BufferStatus {
            messages: queue.count as u32,
            maximum: queue.depth() as u32,
            size: queue.size() as u32,
            waiting_processes: self.waiters(Wait::BufferSend(index))
                + self.waiters(Wait::BufferReceive(index)),
        })
    }
}
