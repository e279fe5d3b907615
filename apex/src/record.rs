// SPDX-License-Identifier: Apache-2.0
//! The records of a partition: its processes, its objects and its errors, without their services.
//!
//! The state of a partition has these records in its tables. The services of each kind of object are in a
//! file of their own, and use the state.

use crate::limits::{MAX_ERROR_MESSAGE, MAX_ERRORS, MIN_PRIORITY};
use crate::memory::Queue;
use crate::table::Named;
use crate::types::{
    Answer, Deadline, ErrorCode, INFINITE_TIME_VALUE, NEVER, Name, PortDirection, ProcessState,
    QueuingDiscipline, Time, Validity,
};

/// The thing that a process waits for besides the end of its suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Nothing,
    /// A delay of its own.
    Delay,
    /// Its next release point.
    Release,
    /// The partition's normal mode, and this delay then.
    Normal(Time),
    BufferSend(usize),
    BufferReceive(usize),
    Blackboard(usize),
    Semaphore(usize),
    Event(usize),
    Mutex(usize),
    QueueSend(usize),
    QueueReceive(usize),
}

/// The identifier of the initialisation, which is no process.
pub const MAIN_PROCESS: i64 = -1;

/// The fixed facts of a process, `PROCESS_ATTRIBUTE_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its name.
    pub name: Name,
    /// Its first instruction.
    pub entry_point: usize,
    /// Bytes of its stack.
    pub stack_size: u32,
    /// Its priority at each start.
    pub base_priority: i32,
    /// The time between two releases; infinite for an aperiodic process.
    pub period: Time,
    /// The time from a release to the deadline; infinite for a process without deadlines.
    pub time_capacity: Time,
    /// The kind of its deadlines.
    pub deadline: Deadline,
}

/// A process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) attributes: Attributes,
    pub(crate) state: ProcessState,
    pub(crate) priority: i32,
    /// The priority to return to when a mutex is released.
    pub(crate) kept_priority: i32,
    pub(crate) ready_since: u64,
    pub(crate) waits_since: u64,
    pub(crate) waits: Wait,
    pub(crate) until: Time,
    pub(crate) suspended: bool,
    pub(crate) suspended_until: Time,
    pub(crate) deadline: Time,
    pub(crate) release: Time,
    pub(crate) result: Answer,
    pub(crate) mail_length: usize,
    pub(crate) mutex: Option<usize>,
    /// True if its next run begins at the entry point.
    pub(crate) is_fresh: bool,
}

impl Process {
    pub(crate) const UNUSED: Self = Self {
        attributes: Attributes {
            name: Name::new(""),
            entry_point: 0,
            stack_size: 0,
            base_priority: MIN_PRIORITY,
            period: INFINITE_TIME_VALUE,
            time_capacity: INFINITE_TIME_VALUE,
            deadline: Deadline::Soft,
        },
        state: ProcessState::Dormant,
        priority: MIN_PRIORITY,
        kept_priority: MIN_PRIORITY,
        ready_since: 0,
        waits_since: 0,
        waits: Wait::Nothing,
        until: NEVER,
        suspended: false,
        suspended_until: NEVER,
        deadline: NEVER,
        release: NEVER,
        result: Ok(()),
        mail_length: 0,
        mutex: None,
        is_fresh: false,
    };

    /// Tells whether it runs or could.
    pub(crate) fn can_run(&self) -> bool {
        matches!(self.state, ProcessState::Ready | ProcessState::Running)
    }

    pub(crate) fn is_periodic(&self) -> bool {
        self.attributes.period != INFINITE_TIME_VALUE
    }

    /// Sets the deadline of a release.
    pub(crate) fn set_deadline(&mut self, release: Time) {
        self.deadline = match self.attributes.time_capacity {
            INFINITE_TIME_VALUE => NEVER,
            capacity => release.saturating_add(capacity),
        };
    }

    /// Puts it back to the state before a start.
    pub(crate) fn reset(&mut self) {
        *self = Self {
            attributes: self.attributes,
            priority: self.attributes.base_priority,
            kept_priority: self.attributes.base_priority,
            is_fresh: true,
            ..Self::UNUSED
        };
    }
}

/// A buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) name: Name,
    pub(crate) queue: Queue,
    pub(crate) discipline: QueuingDiscipline,
}

impl Named for Buffer {
    fn name(&self) -> &Name {
        &self.name
    }
}

/// A blackboard. Its queue has one message at most.
#[derive(Debug)]
pub(crate) struct Blackboard {
    pub(crate) name: Name,
    pub(crate) queue: Queue,
}

impl Named for Blackboard {
    fn name(&self) -> &Name {
        &self.name
    }
}

/// A semaphore.
#[derive(Debug)]
pub(crate) struct Semaphore {
    pub(crate) name: Name,
    pub(crate) value: i32,
    pub(crate) maximum: i32,
    pub(crate) discipline: QueuingDiscipline,
}

impl Named for Semaphore {
    fn name(&self) -> &Name {
        &self.name
    }
}

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: Name,
    pub(crate) is_up: bool,
}

impl Named for Event {
    fn name(&self) -> &Name {
        &self.name
    }
}

/// A mutex.
#[derive(Debug)]
pub(crate) struct Mutex {
    pub(crate) name: Name,
    pub(crate) priority: i32,
    pub(crate) discipline: QueuingDiscipline,
    pub(crate) owner: Option<usize>,
    pub(crate) lock_count: i32,
}

impl Named for Mutex {
    fn name(&self) -> &Name {
        &self.name
    }
}

/// A sampling port.
#[derive(Debug)]
pub(crate) struct SamplingPort {
    pub(crate) name: Name,
    pub(crate) queue: Queue,
    pub(crate) size: usize,
    pub(crate) direction: PortDirection,
    pub(crate) refresh: Time,
    pub(crate) link: u32,
    pub(crate) validity: Validity,
}

impl Named for SamplingPort {
    fn name(&self) -> &Name {
        &self.name
    }
}

/// A queuing port.
#[derive(Debug)]
pub(crate) struct QueuingPort {
    pub(crate) name: Name,
    pub(crate) queue: Queue,
    pub(crate) direction: PortDirection,
    pub(crate) discipline: QueuingDiscipline,
    pub(crate) link: u32,
}

impl Named for QueuingPort {
    fn name(&self) -> &Name {
        &self.name
    }
}

/// An error, `ERROR_STATUS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorStatus {
    /// Its kind.
    pub code: ErrorCode,
    /// The process that it is about.
    pub process: i64,
    /// The address that it is about, or 0.
    pub address: u64,
    /// Bytes of `message` that count.
    pub length: usize,
    /// Text of the application.
    pub message: [u8; MAX_ERROR_MESSAGE],
}

/// The errors that wait for the handler.
#[derive(Debug)]
pub(crate) struct Errors {
    pub(crate) waiting: [Option<ErrorStatus>; MAX_ERRORS],
    pub(crate) exists: bool,
    pub(crate) is_called: bool,
}

impl Errors {
    pub(crate) const fn new() -> Self {
        Self {
            waiting: [None; MAX_ERRORS],
            exists: false,
            is_called: false,
        }
    }

    /// Notes that the handler has ended.
    pub(crate) const fn handler_ended(&mut self) {
        self.is_called = false;
    }

    /// Adds an error. Returns false if there is no room.
    pub(crate) fn push(&mut self, error: ErrorStatus) -> bool {
        let free = self.waiting.iter_mut().find(|entry| entry.is_none());
        match free {
            Some(entry) => {
                *entry = Some(error);
                true
            }
            None => false,
        }
    }

    /// Takes the oldest error.
    pub(crate) fn pop(&mut self) -> Option<ErrorStatus> {
        let first = self.waiting[0].take();
        self.waiting.rotate_left(1);
        first
    }
}
