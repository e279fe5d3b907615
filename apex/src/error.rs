// SPDX-License-Identifier: Apache-2.0
//! Health monitoring (ARINC 653 Part 1, section 3.8).
//!
//! An error goes to the error handler, a process above all others. Without one, and for an error of the
//! handler itself, the partition's health table decides.

use crate::configuration::Environment;
use crate::limits::HANDLER;
use crate::limits::{MAX_ERROR_MESSAGE, MAX_PRIORITY};
use crate::record::{Attributes, ErrorStatus, MAIN_PROCESS, Wait};
use crate::state::Apex;
use crate::types::{
    Answer, Deadline, ErrorCode, INFINITE_TIME_VALUE, NEVER, Name, OperatingMode, ReturnCode,
};

impl Apex {
    /// `CREATE_ERROR_HANDLER`.
    ///
    /// # Errors
    /// `NO_ACTION` if there is one; `INVALID_CONFIG` for a wrong stack; `INVALID_MODE` in normal mode.
    pub fn create_error_handler(&mut self, entry_point: usize, stack_size: u32) -> Answer {
        if self.errors.exists {
            return Err(ReturnCode::NoAction);
        }
        if stack_size == 0 {
            return Err(ReturnCode::InvalidConfig);
        }
        self.must_initialise()?;
        self.errors.exists = true;
        self.processes[HANDLER].attributes = Attributes {
            name: Name::new("ERROR_HANDLER"),
            entry_point,
            stack_size,
            base_priority: MAX_PRIORITY,
            period: INFINITE_TIME_VALUE,
            time_capacity: INFINITE_TIME_VALUE,
            deadline: Deadline::Soft,
        };
        self.processes[HANDLER].reset();
        Ok(())
    }

    /// `GET_ERROR_STATUS`: takes the oldest error.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if the caller is not the error handler; `NO_ACTION` if there is none.
    pub fn get_error_status(&mut self) -> Answer<ErrorStatus> {
        if self.running != Some(HANDLER) {
            return Err(ReturnCode::InvalidConfig);
        }
        self.errors.pop().ok_or(ReturnCode::NoAction)
    }

    /// `RAISE_APPLICATION_ERROR`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a text that is too long, or a code other than [`ErrorCode::ApplicationError`].
    pub fn raise_application_error(&mut self, code: ErrorCode, message: &[u8]) -> Answer {
        if message.len() > MAX_ERROR_MESSAGE || code != ErrorCode::ApplicationError {
            return Err(ReturnCode::InvalidParam);
        }
        self.fail(self.running, code, message);
        Ok(())
    }

    /// Notes an error that the partition's own fault handling has found in the process that runs.
    pub fn note_error(&mut self, code: ErrorCode, message: &[u8]) {
        self.fail(self.running, code, message);
    }

    /// Notes an error of a process.
    pub(crate) fn fail(&mut self, place: Option<usize>, code: ErrorCode, message: &[u8]) {
        let is_handlers_own = place == Some(HANDLER);
        if !self.errors.exists || is_handlers_own || self.mode != OperatingMode::Normal {
            self.demand(place, code);
            return;
        }
        let mut error = ErrorStatus {
            code,
            process: place.map_or(MAIN_PROCESS, |place| place as i64 + 1),
            address: 0,
            length: message.len().min(MAX_ERROR_MESSAGE),
            message: [0; MAX_ERROR_MESSAGE],
        };
        error.message[..error.length].copy_from_slice(&message[..error.length]);
        if self.errors.push(error) {
            self.call_handler();
        } else {
            self.demand(place, code);
        }
    }

    /// Makes the error handler ready if there is something for it.
    pub(crate) fn call_handler(&mut self) {
        if !self.errors.exists || self.errors.is_called || self.errors.waiting[0].is_none() {
            return;
        }
        self.errors.is_called = true;
        self.processes[HANDLER].reset();
        self.processes[HANDLER].waits = Wait::Nothing;
        self.processes[HANDLER].until = NEVER;
        self.make_ready(HANDLER);
    }

    /// `REPORT_APPLICATION_MESSAGE`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a text that is too long.
    pub fn report_application_message(&self, environment: &mut impl Environment, message: &[u8]) -> Answer {
        if message.len() > MAX_ERROR_MESSAGE {
            return Err(ReturnCode::InvalidParam);
        }
        environment.report(message);
        Ok(())
    }
}
