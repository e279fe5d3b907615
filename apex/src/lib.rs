// SPDX-License-Identifier: Apache-2.0
//! The services of ARINC 653 Part 1 (required services) and of Part 2 (module schedules), as state machines.
//!
//! Model: an [`Apex`] is one partition. It holds all processes, buffers, blackboards, semaphores, events,
//! mutexes and ports of the partition in tables of fixed size, and knows nothing of a CPU. Each service is a
//! method with the name of the standard in small letters. Its answer is `Ok` for `NO_ERROR`, else a
//! [`ReturnCode`]. A service that can wait answers with an [`Outcome`]: after [`Outcome::Waits`]
//! the caller of
//! the state machine saves the process, asks [`Apex::dispatch`] for the process that runs next, and
//! switches.
//! When the first one runs again, [`Apex::result`] has the answer of its service.
//!
//! Time comes from outside: each service that needs it is told the present time, and [`Apex::advance`] does
//! what has become due until then. [`Apex::next_time`] says when something is due next. All that lies
//! outside the partition (ports, schedules, the log) is reached through the trait [`Environment`].
//!
//! So the same code runs on every class that has tasks, of either word size and either byte order, and on
//! the host under test. Invariants: no allocation, no recursion, every loop is bounded by the length of a
//! table.
//!
//! References: ARINC Specification 653 Part 1 (required services), sections 3.2 to 3.8; Part 2 (extended
//! services), module schedules.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod blackboard;
mod buffer;
mod configuration;
mod error;
mod event;
pub mod limits;
mod memory;
mod mutex;
mod partition;
mod process;
mod queuing;
mod record;
mod sampling;
mod schedule;
mod semaphore;
mod state;
mod table;
#[cfg(target_os = "none")]
pub mod task;
mod time;
mod types;

pub use blackboard::BlackboardStatus;
pub use buffer::BufferStatus;
pub use configuration::{Configuration, Environment, HmAction, PortFacts, PortKind, ScheduleStatus};
pub use event::EventStatus;
pub use mutex::{MutexStatus, NO_MUTEX_OWNED, PREEMPTION_LOCK_MUTEX};
pub use partition::PartitionStatus;
pub use process::ProcessStatus;
pub use queuing::QueuingPortStatus;
pub use record::{Attributes, ErrorStatus, MAIN_PROCESS};
pub use sampling::SamplingPortStatus;
pub use semaphore::SemaphoreStatus;
pub use state::{Apex, Woken};
pub use types::{
    Answer, Deadline, ErrorCode, INFINITE_TIME_VALUE, MAX_NAME_LENGTH, Name, OperatingMode, Outcome,
    PortDirection, ProcessState, QueueSize, QueuingDiscipline, ReturnCode, StartCondition, Time, Validity,
};
