// SPDX-License-Identifier: Apache-2.0
//! The facts of a partition that are fixed before it starts, and the world outside it.

use crate::types::{Answer, ErrorCode, Name, PortDirection, Time};

/// The reaction to an error that no error handler of the partition takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HmAction {
    /// Nothing besides a line in the log.
    Ignore,
    /// The partition ends.
    Idle,
    /// The partition starts cold.
    ColdStart,
    /// The partition starts warm.
    WarmStart,
}

/// The kind of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// It holds the newest message.
    Sampling {
        /// The age up to which a message is valid.
        refresh: Time,
    },
    /// It holds messages in their order.
    Queuing {
        /// Messages at most.
        depth: usize,
    },
}

/// A port of the partition, as the integrator has configured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortFacts {
    /// Its name.
    pub name: Name,
    /// Its direction.
    pub direction: PortDirection,
    /// Bytes of the longest message.
    pub size: usize,
    /// Sampling or queuing.
    pub kind: PortKind,
}

/// The facts of a partition.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// `PARTITION_IDENTIFIER`.
    pub identifier: i64,
    /// `PERIOD`: the time between two starts of the partition's processing.
    pub period: Time,
    /// `DURATION`: the time it gets in each period.
    pub duration: Time,
    /// Its ports.
    pub ports: &'static [PortFacts],
    /// The names of the module's schedules, in the order of their numbers.
    pub schedules: &'static [Name],
    /// Period and duration in each of these schedules, in the same order. Empty if they are the same in all.
    pub times: &'static [(Time, Time)],
    /// The reactions to errors, by [`ErrorCode`].
    pub health: [HmAction; ErrorCode::COUNT],
}

impl Configuration {
    /// A partition without ports that is not known yet.
    pub const BLANK: Self = Self {
        identifier: 0,
        period: 0,
        duration: 0,
        ports: &[],
        schedules: &[],
        times: &[],
        health: [HmAction::Idle; ErrorCode::COUNT],
    };

    /// Returns the configured port with this name.
    pub(crate) fn port(&self, name: &Name) -> Option<&'static PortFacts> {
        self.ports.iter().find(|port| port.name == *name)
    }
}

/// The module's schedules, as the kernel has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleStatus {
    /// `TIME_OF_LAST_SCHEDULE_SWITCH`: 0 if there was none.
    pub since: Time,
    /// `CURRENT_SCHEDULE`.
    pub current: i64,
    /// `NEXT_SCHEDULE`: the current one if no change is pending.
    pub next: i64,
}

/// The world outside the partition.
pub trait Environment {
    /// Returns the way to the other side of a port, by a number that the environment chooses. `None` if there
    /// is none.
    fn open(&mut self, name: &Name, direction: PortDirection) -> Option<u32>;
    /// Hands a message on. Returns false if there is no room for it now.
    fn send(&mut self, link: u32, message: &[u8]) -> bool;
    /// Hands a message on that takes the place of older ones for which there is no room. Returns false if
    /// there is none for it now.
    fn replace(&mut self, link: u32, message: &[u8]) -> bool;
    /// Takes the oldest message that has come. Returns its length.
    fn receive(&mut self, link: u32, buffer: &mut [u8]) -> Option<usize>;
    /// Writes a message of the application to the log.
    fn report(&mut self, message: &[u8]);
    /// Returns the state of the module's schedules; `None` if the partition may not know it.
    fn schedules(&mut self) -> Option<ScheduleStatus>;
    /// Asks for the schedule with this number from the end of the major frame on.
    ///
    /// # Errors
    /// `INVALID_CONFIG` if the partition may not ask.
    fn change_schedule(&mut self, number: u64) -> Answer;
}
