// SPDX-License-Identifier: Apache-2.0
//! Hypercalls, typed on the numbers of `bulkhead-abi`.
//!
//! Each operation is one function with the arguments and results its definition names. [`call`] is the
//! path all of them take; it is public because a test also makes calls that are wrong.
//! Calling convention: see the head of `bulkhead-abi`.

use bulkhead_abi::hypercall::{CAPABILITY_NAME, function_id};
use bulkhead_abi::status::{StartOptions, StartWord, StatusWord};
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};

use crate::cpu;

/// A capability, by its index in the caller's own space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub u32);

/// The capability every partition has for itself.
pub const SELF: Handle = Handle(bulkhead_abi::hypercall::SELF_CAPABILITY);

/// Registers x0..x4 after a call, or what the CPU has in their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results(pub [u64; 5]);

/// Makes any call as the CPU makes hypercalls: `identifier` in x0, `arguments` in x1..x6, or what the CPU
/// has in their places.
pub fn raw(identifier: u64, arguments: [u64; 6]) -> Results {
    Results(cpu::call::call(identifier, arguments))
}

/// Asks for `operation` with `arguments` in x1..x6; returns x1..x4.
///
/// # Errors
/// The hypervisor's answer, if it refuses.
pub fn call(operation: Operation, arguments: [u64; 6]) -> Result<[u64; 4], Error> {
    let Results([x0, results @ ..]) = raw(u64::from(function_id(operation)), arguments);
    match x0.cast_signed() {
        0 => Ok(results),
        code => Err(Error::from_code(code).unwrap_or(Error::NotSupported)),
    }
}

/// Makes a call on the object of `handle` with one argument, of which only the first result counts.
fn on(operation: Operation, handle: Handle, argument: u64) -> Result<u64, Error> {
    call(operation, [u64::from(handle.0), argument, 0, 0, 0, 0]).map(|[x1, ..]| x1)
}

/// Takes back the upcall of a task. [`crate::task::process`] asks for upcalls.
///
/// # Errors
/// See [`null`].
pub fn event_no_upcall(gate: Handle) -> Result<(), Error> {
    call(Operation::EventUpcall, [u64::from(gate.0), 0, 0, 0, 0, 0]).map(drop)
}

/// Does nothing: the cost of the path itself.
///
/// # Errors
/// The hypervisor's answer, if it refuses; so for all functions of this module.
pub fn null() -> Result<(), Error> {
    on(Operation::Null, SELF, 0).map(drop)
}

/// Returns the revision of the hypervisor's interface: `major << 16 | minor`.
///
/// # Errors
/// See [`null`].
pub fn version() -> Result<u32, Error> {
    on(Operation::Version, SELF, 0).map(|version| version as u32)
}

/// Returns the state, restarts and health events of a partition.
///
/// # Errors
/// See [`null`]; `NotSupported` also if the answer is not a status.
pub fn partition_status(partition: Handle) -> Result<StatusWord, Error> {
    StatusWord::decode(on(Operation::PartitionStatus, partition, 0)?).ok_or(Error::NotSupported)
}

/// Returns how and why a partition started the last time, this one included.
///
/// # Errors
/// See [`null`]; `NotSupported` also if the answer is none.
pub fn partition_start_word(partition: Handle) -> Result<StartWord, Error> {
    let [_, word, ..] = call(
        Operation::PartitionStatus,
        [u64::from(partition.0), 0, 0, 0, 0, 0],
    )?;
    StartWord::decode(word).ok_or(Error::NotSupported)
}

/// Starts a stopped partition cold, with the payloads it has.
///
/// # Errors
/// See [`null`].
pub fn partition_start(partition: Handle) -> Result<(), Error> {
    partition_start_as(partition, StartOptions::default())
}

/// Starts a stopped partition.
///
/// # Errors
/// See [`null`]; `InvalidArgument` for an alternative that the manifest does not list.
pub fn partition_start_as(partition: Handle, options: StartOptions) -> Result<(), Error> {
    on(Operation::PartitionStart, partition, options.encode()).map(drop)
}

/// Stops a partition.
///
/// # Errors
/// See [`null`].
pub fn partition_stop(partition: Handle) -> Result<(), Error> {
    on(Operation::PartitionStop, partition, 0).map(drop)
}

/// Stops a partition and starts it cold, with the payloads it has.
///
/// # Errors
/// See [`null`].
pub fn partition_restart(partition: Handle) -> Result<(), Error> {
    partition_restart_as(partition, StartOptions::default())
}

/// Stops a partition and starts it.
///
/// # Errors
/// See [`null`]; `InvalidArgument` for an alternative that the manifest does not list.
pub fn partition_restart_as(partition: Handle, options: StartOptions) -> Result<(), Error> {
    on(Operation::PartitionRestart, partition, options.encode()).map(drop)
}

/// Restarts a partition's watchdog period.
///
/// # Errors
/// See [`null`].
pub fn partition_kick(partition: Handle) -> Result<(), Error> {
    on(Operation::PartitionKick, partition, 0).map(drop)
}

/// Which schedule of a pCPU is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedules {
    /// Number of the one in force, counted from 0 in the order of the manifest.
    pub current: u64,
    /// Number of the one after the frame in force; the same if no change is pending.
    pub next: u64,
    /// When the one in force began, in nanoseconds since boot.
    pub since: u64,
}

/// Returns which schedule is in force, and which follows.
///
/// # Errors
/// See [`null`].
pub fn schedule_status(schedule: Handle) -> Result<Schedules, Error> {
    let [current, next, since, _] = call(Operation::ScheduleStatus, [u64::from(schedule.0), 0, 0, 0, 0, 0])?;
    Ok(Schedules { current, next, since })
}

/// Asks for the schedule with this number, from the end of the frame in force on.
///
/// # Errors
/// See [`null`]; `InvalidArgument` for a number that the manifest does not have.
pub fn schedule_change(schedule: Handle, number: u64) -> Result<(), Error> {
    on(Operation::ScheduleChange, schedule, number).map(drop)
}

/// Waits for an event, at most until `deadline` (nanoseconds since boot, 0 = for ever); consumes and returns
/// the events that are pending.
///
/// # Errors
/// See [`null`]; `TimedOut` at the deadline.
pub fn event_wait(gate: Handle, deadline: u64) -> Result<u64, Error> {
    on(Operation::EventWait, gate, deadline)
}

/// Consumes and returns the events that are pending, without waiting.
///
/// # Errors
/// See [`null`].
pub fn event_poll(gate: Handle) -> Result<u64, Error> {
    on(Operation::EventPoll, gate, 0)
}

/// Raises events.
///
/// # Errors
/// See [`null`].
pub fn event_signal(gate: Handle, events: u64) -> Result<(), Error> {
    on(Operation::EventSignal, gate, events).map(drop)
}

/// Nanoseconds since boot.
///
/// # Errors
/// See [`null`].
pub fn timer_now(timer: Handle) -> Result<u64, Error> {
    on(Operation::TimerNow, timer, 0)
}

/// Sleeps until `deadline` (nanoseconds since boot).
///
/// # Errors
/// See [`null`].
pub fn timer_sleep(timer: Handle, deadline: u64) -> Result<(), Error> {
    on(Operation::TimerSleep, timer, deadline).map(drop)
}

/// Most bytes one console write takes.
pub const CONSOLE_WRITE_LEN: usize = 32;

/// Writes up to [`CONSOLE_WRITE_LEN`] bytes; returns how many were taken.
///
/// # Errors
/// See [`null`].
pub fn console_write(console: Handle, bytes: &[u8]) -> Result<usize, Error> {
    let length = bytes.len().min(CONSOLE_WRITE_LEN);
    let mut words = [0_u64; 4];
    for (word, chunk) in words.iter_mut().zip(bytes[..length].chunks(8)) {
        let mut buffer = [0; 8];
        buffer[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(buffer);
    }
    let [a, b, c, d] = words;
    let [taken, ..] = call(
        Operation::ConsoleWrite,
        [u64::from(console.0), length as u64, a, b, c, d],
    )?;
    Ok((taken as usize).min(length))
}

/// Reads what was typed; returns how many bytes of the array are valid.
///
/// # Errors
/// See [`null`].
pub fn console_read(console: Handle) -> Result<([u8; 24], usize), Error> {
    let [length, words @ ..] = call(Operation::ConsoleRead, [u64::from(console.0), 0, 0, 0, 0, 0])?;
    let mut bytes = [0; 24];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    Ok((bytes, (length as usize).min(bytes.len())))
}

/// Copies a capability with fewer rights within the caller's own space.
///
/// # Errors
/// See [`null`].
pub fn capability_derive(from: Handle, rights: Rights) -> Result<Handle, Error> {
    on(Operation::CapabilityDerive, from, u64::from(rights.0)).map(|index| Handle(index as u32))
}

/// Copies a capability with fewer rights into another partition's space; the handle is valid there.
///
/// # Errors
/// See [`null`].
pub fn capability_grant(partition: Handle, from: Handle, rights: Rights) -> Result<Handle, Error> {
    let arguments = [
        u64::from(partition.0),
        u64::from(from.0),
        u64::from(rights.0),
        0,
        0,
        0,
    ];
    call(Operation::CapabilityGrant, arguments).map(|[index, ..]| Handle(index as u32))
}

/// Destroys everything derived from a capability.
///
/// # Errors
/// See [`null`].
pub fn capability_revoke(capability: Handle) -> Result<(), Error> {
    on(Operation::CapabilityRevoke, capability, 0).map(drop)
}

/// Destroys a capability and everything derived from it.
///
/// # Errors
/// See [`null`].
pub fn capability_delete(capability: Handle) -> Result<(), Error> {
    on(Operation::CapabilityDelete, capability, 0).map(drop)
}

/// Finds the capability to which the manifest gives a name. Returns its handle, its kind and its rights.
///
/// # Errors
/// See [`null`]; `InvalidArgument` if the name is too long, `NoCapability` if there is none of this name.
pub fn capability_find(name: &str) -> Result<(Handle, ObjectKind, Rights), Error> {
    let mut bytes = [0; CAPABILITY_NAME];
    let to = bytes.get_mut(..name.len()).ok_or(Error::InvalidArgument)?;
    to.copy_from_slice(name.as_bytes());
    let mut arguments = [0; 6];
    for (word, chunk) in arguments.iter_mut().skip(1).zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*chunk);
    }
    let [index, word, ..] = call(Operation::CapabilityFind, arguments)?;
    let kind = ObjectKind::from_number((word >> 32) as u8).ok_or(Error::NotSupported)?;
    Ok((Handle(index as u32), kind, Rights(word as u8)))
}

/// Returns the kind and rights of a capability.
///
/// # Errors
/// See [`null`]; `NotSupported` also if the answer names no kind.
pub fn capability_inspect(capability: Handle) -> Result<(ObjectKind, Rights), Error> {
    let word = on(Operation::CapabilityInspect, capability, 0)?;
    let kind = ObjectKind::from_number((word >> 32) as u8).ok_or(Error::NotSupported)?;
    Ok((kind, Rights(word as u8)))
}
