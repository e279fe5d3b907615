// SPDX-License-Identifier: Apache-2.0
//! Sizes of a partition's tables. The standard calls them `SYSTEM_LIMIT_...`; ours are smaller, so that a
//! partition fits into a microcontroller.

/// Processes, the error handler not counted.
pub const MAX_PROCESSES: usize = 16;
/// Buffers.
pub const MAX_BUFFERS: usize = 8;
/// Blackboards.
pub const MAX_BLACKBOARDS: usize = 8;
/// Semaphores.
pub const MAX_SEMAPHORES: usize = 8;
/// Events.
pub const MAX_EVENTS: usize = 8;
/// Mutexes.
pub const MAX_MUTEXES: usize = 8;
/// Sampling ports.
pub const MAX_SAMPLING_PORTS: usize = 8;
/// Queuing ports.
pub const MAX_QUEUING_PORTS: usize = 8;
/// Errors that wait for the error handler.
pub const MAX_ERRORS: usize = 8;
/// Bytes of a message at most.
pub const MAX_MESSAGE: usize = 512;
/// Bytes for all messages that can wait in buffers, blackboards and ports.
pub const POOL: usize = 8192;
/// Bytes of the text of an error at most.
pub const MAX_ERROR_MESSAGE: usize = 128;
/// The lowest priority of a process.
pub const MIN_PRIORITY: i32 = 1;
/// The highest priority of a process.
pub const MAX_PRIORITY: i32 = 239;
/// The highest lock level.
pub const MAX_LOCK_LEVEL: i32 = 16;
/// The highest value of a semaphore.
pub const MAX_SEMAPHORE_VALUE: i32 = 32_767;
/// Processes with the error handler, which is the last one.
pub(crate) const SLOTS: usize = MAX_PROCESSES + 1;
/// The place of the error handler.
pub(crate) const HANDLER: usize = MAX_PROCESSES;
