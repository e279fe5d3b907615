// SPDX-License-Identifier: Apache-2.0
//! The types that all services share, with the numbers of ARINC 653 Part 1.

/// A time in nanoseconds: since boot, or a duration. [`INFINITE_TIME_VALUE`] means for ever.
pub type Time = i64;
/// No limit of time.
pub const INFINITE_TIME_VALUE: Time = -1;
/// An absolute time that never comes. It is for our own tables only; a caller sees
/// [`INFINITE_TIME_VALUE`].
pub(crate) const NEVER: Time = Time::MAX;
/// Bytes of a name at most.
pub const MAX_NAME_LENGTH: usize = 32;

/// The reason why a service was refused. `NO_ERROR` is `Ok` here and 0 in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ReturnCode {
    /// `NO_ACTION`: the system is in the state that was asked for already.
    NoAction = 1,
    /// `NOT_AVAILABLE`: the request cannot be done now.
    NotAvailable = 2,
    /// `INVALID_PARAM`: a parameter is wrong.
    InvalidParam = 3,
    /// `INVALID_CONFIG`: a parameter does not agree with the configuration.
    InvalidConfig = 4,
    /// `INVALID_MODE`: the request does not agree with the present mode.
    InvalidMode = 5,
    /// `TIMED_OUT`: the time that the caller gave has passed.
    TimedOut = 6,
}

impl ReturnCode {
    /// Returns the code's name in the standard.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoAction => "NO_ACTION",
            Self::NotAvailable => "NOT_AVAILABLE",
            Self::InvalidParam => "INVALID_PARAM",
            Self::InvalidConfig => "INVALID_CONFIG",
            Self::InvalidMode => "INVALID_MODE",
            Self::TimedOut => "TIMED_OUT",
        }
    }
}

/// The answer of a service.
pub type Answer<T = ()> = Result<T, ReturnCode>;

/// The answer of a service that can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T = ()> {
    /// The service is done.
    Done(T),
    /// The caller waits. [`Apex::result`](crate::Apex::result) has the answer when the caller runs again.
    Waits,
}

/// A name. Bytes after the first zero byte do not count, and letters of either case are different.
#[derive(Clone, Copy, Debug)]
pub struct Name(pub [u8; MAX_NAME_LENGTH]);

impl Name {
    /// Returns the name with this text, cut to [`MAX_NAME_LENGTH`] bytes.
    #[must_use]
    pub const fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut name = [0; MAX_NAME_LENGTH];
        let mut i = 0;
        while i < bytes.len() && i < MAX_NAME_LENGTH {
            name[i] = bytes[i];
            i += 1;
        }
        Self(name)
    }

    /// Returns the bytes that count.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or(&[])
    }

    /// Returns the name as text; empty if it is none.
    #[must_use]
    pub fn text(&self) -> &str {
        core::str::from_utf8(self.bytes()).unwrap_or("")
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Name {}

/// The mode of a partition, `OPERATING_MODE_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum OperatingMode {
    /// Nothing runs.
    Idle = 0,
    /// Initialisation from cleared memory.
    ColdStart = 1,
    /// Initialisation with the memory of the earlier life.
    WarmStart = 2,
    /// Processes run.
    Normal = 3,
}

/// The reason of a partition's start, `START_CONDITION_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum StartCondition {
    /// The system has started.
    NormalStart = 0,
    /// The partition, or another one, has asked for it.
    PartitionRestart = 1,
    /// The health monitor has restarted the module.
    HmModuleRestart = 2,
    /// The health monitor has restarted the partition.
    HmPartitionRestart = 3,
}

/// The state of a process, `PROCESS_STATE_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ProcessState {
    /// It does not take part.
    Dormant = 0,
    /// It could run.
    Ready = 1,
    /// It runs.
    Running = 2,
    /// It waits for something.
    Waiting = 3,
    /// It is stopped for good.
    Faulted = 4,
}

/// The kind of a deadline, `DEADLINE_TYPE`. The health monitor's table decides what follows from either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Deadline {
    /// A miss is reported.
    Soft = 0,
    /// A miss is a failure.
    Hard = 1,
}

/// The order of those who wait, `QUEUING_DISCIPLINE_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum QueuingDiscipline {
    /// First come, first served.
    Fifo = 0,
    /// By current priority, then first come.
    Priority = 1,
}

/// The size of a queuing port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSize {
    /// Bytes of a message at most, `MAX_MESSAGE_SIZE`.
    pub message: u32,
    /// Messages at most, `MAX_NB_MESSAGE`.
    pub messages: u32,
}

/// The direction of a port, `PORT_DIRECTION_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PortDirection {
    /// Messages leave the partition.
    Source = 0,
    /// Messages come into the partition.
    Destination = 1,
}

/// The kind of an error, `ERROR_CODE_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    /// A process has missed its deadline.
    DeadlineMissed = 0,
    /// A process has raised the error itself.
    ApplicationError = 1,
    /// An overflow, or a division by zero.
    NumericError = 2,
    /// A request that is not allowed.
    IllegalRequest = 3,
    /// A process has used up its stack.
    StackOverflow = 4,
    /// An access to memory that is not the partition's.
    MemoryViolation = 5,
    /// An error of the hardware.
    HardwareFault = 6,
    /// Power goes.
    PowerFail = 7,
}

impl ErrorCode {
    /// Codes that there are.
    pub const COUNT: usize = 8;
}

/// The age of a message, `VALIDITY_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Validity {
    /// It is older than the refresh period, or there is none.
    Invalid = 0,
    /// It is recent.
    Valid = 1,
}
