// SPDX-License-Identifier: Apache-2.0
//! Queuing ports (ARINC 653 Part 1, section 3.6.2.2).
//!
//! Messages wait in the kernel's port and, at the destination, in a queue of the partition's own. No code
//! outside the partition wakes its processes. So [`Apex::poll`] looks at all ports: when a window of the
//! partition begins, and whenever the partition chooses a process.

use crate::configuration::{Environment, PortKind};
use crate::limits::MAX_MESSAGE;
use crate::limits::SLOTS;
use crate::record::{QueuingPort, Wait};
use crate::state::Apex;
use crate::types::{
    Answer, Name, OperatingMode, Outcome, PortDirection, QueueSize, QueuingDiscipline, ReturnCode, Time,
};

/// The state of a queuing port, `QUEUING_PORT_STATUS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuingPortStatus {
    /// Messages that wait: at a destination, those that have come.
    pub messages: u32,
    /// Messages that can wait.
    pub maximum: u32,
    /// Bytes of a message at most.
    pub size: u32,
    /// Its direction.
    pub direction: PortDirection,
    /// Processes that wait.
    pub waiting_processes: i32,
}

impl Apex {
    /// `CREATE_QUEUING_PORT`. Returns its identifier.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is no room, or the configuration has no such port, or another size, number
    /// or direction; `NO_ACTION` if it is there; `INVALID_MODE` in normal mode.
    pub fn create_queuing_port(
        &mut self,
        environment: &mut impl Environment,
        name: Name,
        size: QueueSize,
        direction: PortDirection,
        discipline: QueuingDiscipline,
    ) -> Answer<i64> {
        self.queuing.check_new(&name)?;
        let facts = self.configuration.port(&name).ok_or(ReturnCode::InvalidConfig)?;
        let (size, depth) = (size.message as usize, size.messages as usize);
        if facts.kind != (PortKind::Queuing { depth })
            || size != facts.size
            || direction != facts.direction
            || size == 0
            || size > MAX_MESSAGE
        {
            return Err(ReturnCode::InvalidConfig);
        }
        self.must_initialise()?;
        let link = environment
            .open(&name, direction)
            .ok_or(ReturnCode::InvalidConfig)?;
        let queue = match direction {
            PortDirection::Destination => self.pool.queue(size, depth)?,
            PortDirection::Source => self.pool.queue(size, 0)?,
        };
        self.queuing.add(QueuingPort {
            name,
            queue,
            direction,
            discipline,
            link,
        })
    }

    /// `SEND_QUEUING_MESSAGE`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier, time-out or an empty message; `INVALID_CONFIG` for a message
    /// that is too long; `INVALID_MODE` for a destination, or if the caller may not wait; `NOT_AVAILABLE` if
    /// there is no room and the time-out is 0; `TIMED_OUT` after the wait.
    pub fn send_queuing_message(
        &mut self,
        environment: &mut impl Environment,
        identifier: i64,
        message: &[u8],
        time_out: Time,
        now: Time,
    ) -> Answer<Outcome> {
        let index = self.queuing.index(identifier)?;
        Self::check_time_out(time_out, now)?;
        if message.is_empty() {
            return Err(ReturnCode::InvalidParam);
        }
        let port = self.queuing.at(index)?;
        if message.len() > port.queue.size() {
            return Err(ReturnCode::InvalidConfig);
        }
        if port.direction != PortDirection::Source {
            return Err(ReturnCode::InvalidMode);
        }
        let (wait, link) = (Wait::QueueSend(index), port.link);
        // Those who wait already go first.
        if self.waiters(wait) == 0 && environment.send(link, message) {
            return Ok(Outcome::Done(()));
        }
        self.wait_for(wait, time_out, now)?;
        self.keep(message);
        Ok(Outcome::Waits)
    }

    /// `RECEIVE_QUEUING_MESSAGE`: the message goes to `to`, or after a wait into [`Apex::result`]. The way
    /// never drops a message, so there is no overflow to report.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier or time-out; `INVALID_MODE` for a source, or if the caller may
    /// not wait; `NOT_AVAILABLE` if there is no message and the time-out is 0; `TIMED_OUT` after the wait.
    pub fn receive_queuing_message(
        &mut self,
        environment: &mut impl Environment,
        identifier: i64,
        to: &mut [u8],
        time_out: Time,
        now: Time,
    ) -> Answer<Outcome<usize>> {
        let index = self.queuing.index(identifier)?;
        Self::check_time_out(time_out, now)?;
        if self.queuing.at(index)?.direction != PortDirection::Destination {
            return Err(ReturnCode::InvalidMode);
        }
        self.fetch(environment, index);
        let port = self.queuing.at_mut(index)?;
        if let Some(length) = self.pool.pop(&mut port.queue, to) {
            return Ok(Outcome::Done(length));
        }
        self.wait_for(Wait::QueueReceive(index), time_out, now)?;
        Ok(Outcome::Waits)
    }

    /// Moves messages that have come into the partition's queue, as long as that has room.
    fn fetch(&mut self, environment: &mut impl Environment, index: usize) {
        let Ok(port) = self.queuing.at_mut(index) else {
            return;
        };
        let mut message = [0; MAX_MESSAGE];
        while !port.queue.is_full() {
            let Some(length) = environment.receive(port.link, &mut message) else {
                return;
            };
            let length = length.min(port.queue.size());
            self.pool.push(&mut port.queue, &message[..length]);
        }
    }

    /// Looks at all ports: sends what processes wait to send, and hands out what has come. Bounded by the
    /// ports, the processes and the messages that can wait.
    pub fn poll(&mut self, environment: &mut impl Environment) {
        if self.mode != OperatingMode::Normal {
            return;
        }
        self.flush_sampling(environment);
        for index in self.queuing.positions() {
            let Ok(port) = self.queuing.at(index) else { return };
            match port.direction {
                PortDirection::Source => self.send_waiting(environment, index),
                PortDirection::Destination => self.hand_out(environment, index),
            }
        }
    }

    fn send_waiting(&mut self, environment: &mut impl Environment, index: usize) {
        let Ok(port) = self.queuing.at(index) else { return };
        let (link, discipline) = (port.link, port.discipline);
        for _ in 0..SLOTS {
            let Some(place) = self.first_waiter(Wait::QueueSend(index), discipline) else {
                return;
            };
            let length = self.processes[place].mail_length;
            if !environment.send(link, &self.mail[place][..length]) {
                return;
            }
            self.wake(place, Ok(()));
        }
    }

    fn hand_out(&mut self, environment: &mut impl Environment, index: usize) {
        for _ in 0..SLOTS {
            self.fetch(environment, index);
            let Ok(port) = self.queuing.at_mut(index) else {
                return;
            };
            let discipline = port.discipline;
            let waits = Wait::QueueReceive(index);
            let mut message = [0; MAX_MESSAGE];
            if let Some(place) = self.first_waiter(waits, discipline)
                && let Ok(port) = self.queuing.at_mut(index)
                && let Some(length) = self.pool.pop(&mut port.queue, &mut message)
            {
                self.deliver(place, &message[..length]);
            } else {
                return;
            }
        }
    }

    /// `CLEAR_QUEUING_PORT`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier; `INVALID_MODE` for a source.
    pub fn clear_queuing_port(&mut self, environment: &mut impl Environment, identifier: i64) -> Answer {
        let index = self.queuing.index(identifier)?;
        let port = self.queuing.at_mut(index)?;
        if port.direction != PortDirection::Destination {
            return Err(ReturnCode::InvalidMode);
        }
        port.queue.clear();
        let mut dropped = [0; MAX_MESSAGE];
        for _ in 0..usize::from(u16::MAX) {
            if environment.receive(port.link, &mut dropped).is_none() {
                break;
            }
        }
        Ok(())
    }

    /// `GET_QUEUING_PORT_ID`.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is none of this name.
    pub fn get_queuing_port_id(&self, name: &Name) -> Answer<i64> {
        self.queuing.find(name)
    }

    /// `GET_QUEUING_PORT_STATUS`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier.
    pub fn get_queuing_port_status(
        &mut self,
        environment: &mut impl Environment,
        identifier: i64,
    ) -> Answer<QueuingPortStatus> {
        let index = self.queuing.index(identifier)?;
        self.fetch_if_destination(environment, index);
        let port = self.queuing.at(index)?;
        let maximum = match self.configuration.port(&port.name).map(|facts| facts.kind) {
            Some(PortKind::Queuing { depth }) => depth,
            _ => 0,
        };
        Ok(QueuingPortStatus {
            messages: port.queue.count as u32,
            maximum: maximum as u32,
            size: port.queue.size() as u32,
            direction: port.direction,
            waiting_processes: self.waiters(Wait::QueueSend(index)) + self.waiters(Wait::QueueReceive(index)),
        })
    }

    fn fetch_if_destination(&mut self, environment: &mut impl Environment, index: usize) {
        let is_destination = |port: &QueuingPort| port.direction == PortDirection::Destination;
        if self.queuing.at(index).is_ok_and(is_destination) {
            self.fetch(environment, index);
        }
    }
}
