// SPDX-License-Identifier: Apache-2.0
//! Sampling ports (ARINC 653 Part 1, section 3.6.2.1).
//!
//! A message travels with the time at which it was written. So a destination knows its age, however long it
//! was on the way. A source replaces what is on the way, and a destination takes everything that has come and
//! keeps the newest. So a reader gets the newest message, however slow it is and however many the way holds.
//! While the way refuses a message, the source keeps it.

use crate::configuration::{Environment, PortKind};
use crate::limits::MAX_MESSAGE;
use crate::record::SamplingPort;
use crate::state::Apex;
use crate::types::{Answer, Name, PortDirection, ReturnCode, Time, Validity};

/// Bytes before each message: the time at which it was written.
pub(crate) const STAMP: usize = 8;
/// Messages that a destination takes at a time at most: as many as a port of the kernel can hold.
const INTAKE: usize = 256;

/// The state of a sampling port, `SAMPLING_PORT_STATUS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplingPortStatus {
    /// The age up to which a message is valid.
    pub refresh_period: Time,
    /// Bytes of a message at most.
    pub size: u32,
    /// Its direction.
    pub direction: PortDirection,
    /// The age of the message that was read last.
    pub last_validity: Validity,
}

impl Apex {
    /// `CREATE_SAMPLING_PORT`. Returns its identifier.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is no room, or the configuration has no such port, or another size or
    /// refresh period; `NO_ACTION` if it is there; `INVALID_CONFIG` also for another direction;
    /// `INVALID_MODE` in normal mode.
    pub fn create_sampling_port(
        &mut self,
        environment: &mut impl Environment,
        name: Name,
        size: u32,
        direction: PortDirection,
        refresh: Time,
    ) -> Answer<i64> {
        self.sampling.check_new(&name)?;
        let facts = self.configuration.port(&name).ok_or(ReturnCode::InvalidConfig)?;
        let PortKind::Sampling { refresh: configured } = facts.kind else {
            return Err(ReturnCode::InvalidConfig);
        };
        let size = size as usize;
        if size != facts.size || direction != facts.direction || size > MAX_MESSAGE - STAMP {
            return Err(ReturnCode::InvalidConfig);
        }
        if refresh <= 0 || (direction == PortDirection::Destination && refresh != configured) {
            return Err(ReturnCode::InvalidConfig);
        }
        self.must_initialise()?;
        let link = environment
            .open(&name, direction)
            .ok_or(ReturnCode::InvalidConfig)?;
        let queue = self.pool.queue(size + STAMP, 1)?;
        self.sampling.add(SamplingPort {
            name,
            queue,
            size,
            direction,
            refresh,
            link,
            validity: Validity::Invalid,
        })
    }

    /// `WRITE_SAMPLING_MESSAGE`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier or an empty message; `INVALID_CONFIG` for a message that is too
    /// long; `INVALID_MODE` for a destination.
    pub fn write_sampling_message(
        &mut self,
        environment: &mut impl Environment,
        identifier: i64,
        message: &[u8],
        now: Time,
    ) -> Answer {
        let index = self.sampling.index(identifier)?;
        if message.is_empty() {
            return Err(ReturnCode::InvalidParam);
        }
        let port = self.sampling.at_mut(index)?;
        if message.len() > port.size {
            return Err(ReturnCode::InvalidConfig);
        }
        if port.direction != PortDirection::Source {
            return Err(ReturnCode::InvalidMode);
        }
        let mut stamped = [0; MAX_MESSAGE];
        stamped[..STAMP].copy_from_slice(&now.to_le_bytes());
        let end = STAMP + message.len();
        stamped[STAMP..end].copy_from_slice(message);
        port.queue.clear();
        if !environment.replace(port.link, &stamped[..end]) {
            self.pool.push(&mut port.queue, &stamped[..end]);
        }
        Ok(())
    }

    /// `READ_SAMPLING_MESSAGE`. Returns the validity and the length.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier; `INVALID_MODE` for a source; `NO_ACTION` if no message has
    /// come yet.
    pub fn read_sampling_message(
        &mut self,
        environment: &mut impl Environment,
        identifier: i64,
        to: &mut [u8],
        now: Time,
    ) -> Answer<(Validity, usize)> {
        let index = self.sampling.index(identifier)?;
        let port = self.sampling.at_mut(index)?;
        if port.direction != PortDirection::Destination {
            return Err(ReturnCode::InvalidMode);
        }
        let mut stamped = [0; MAX_MESSAGE];
        for _ in 0..INTAKE {
            let Some(length) = environment.receive(port.link, &mut stamped) else {
                break;
            };
            port.queue.clear();
            let length = length.clamp(STAMP, MAX_MESSAGE);
            self.pool.push(&mut port.queue, &stamped[..length]);
        }
        let Some(length) = self.pool.peek(&port.queue, &mut stamped) else {
            port.validity = Validity::Invalid;
            return Err(ReturnCode::NoAction);
        };
        let written = stamped
            .first_chunk()
            .map_or(0, |stamp| Time::from_le_bytes(*stamp));
        let is_recent = now.saturating_sub(written) <= port.refresh;
        port.validity = if is_recent {
            Validity::Valid
        } else {
            Validity::Invalid
        };
        let length = length.saturating_sub(STAMP).min(to.len());
        to[..length].copy_from_slice(&stamped[STAMP..STAMP + length]);
        Ok((port.validity, length))
    }

    /// Sends the messages that found no room when they were written. Bounded by the number of ports.
    pub(crate) fn flush_sampling(&mut self, environment: &mut impl Environment) {
        for index in self.sampling.positions() {
            let Ok(port) = self.sampling.at_mut(index) else {
                return;
            };
            let mut stamped = [0; MAX_MESSAGE];
            if port.direction == PortDirection::Source
                && let Some(length) = self.pool.peek(&port.queue, &mut stamped)
                && environment.replace(port.link, &stamped[..length])
            {
                port.queue.clear();
            }
        }
    }

    /// `GET_SAMPLING_PORT_ID`.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if there is none of this name.
    pub fn get_sampling_port_id(&self, name: &Name) -> Answer<i64> {
        self.sampling.find(name)
    }

    /// `GET_SAMPLING_PORT_STATUS`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a wrong identifier.
    pub fn get_sampling_port_status(&self, identifier: i64) -> Answer<SamplingPortStatus> {
        let port = self.sampling.get(identifier)?;
        Ok(SamplingPortStatus {
            refresh_period: port.refresh,
            size: port.size as u32,
            direction: port.direction,
            last_validity: port.validity,
        })
    }
}
