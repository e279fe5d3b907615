// SPDX-License-Identifier: Apache-2.0
//! The commands that hypercalls become: the commands of the core, and a group of each part.

use crate::cap::Capability;
use crate::channel::command::{ChannelCommand, ChannelId};
use crate::lent::command::LentCommand;
use crate::lock::LockId;
use crate::lock::command::LockCommand;
use crate::parts::{CHANNELS, If, LENT, LOCKS, PORTS, SECRETS, SERVICES, UPCALLS};
use crate::port::command::PortCommand;
use crate::secret::command::SecretCommand;
use crate::service::command::Service;
use crate::upcall::command::UpcallWish;
use bulkhead_abi::Rights;
use bulkhead_abi::hypercall::CAPABILITY_NAME;
use bulkhead_abi::status::StartOptions;
use bulkhead_arch_api::{PartitionId, PcpuId};

/// The number of bytes that a console write can carry in registers.
pub const WRITE_LEN: usize = 32;

/// A hypercall that has passed every check that needs no state of the object itself: one of the core, or one
/// of a part. A build that lacks a part has no such command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Answered at once.
    Core(CoreCommand),
    /// Answered later, perhaps.
    Wait(WaitCommand),
    /// Let the caller, a task, be interrupted by events of a partition's gate.
    Upcall(PartitionId, If<UPCALLS, UpcallWish>),
    /// About ports and replies.
    Port(If<PORTS, PortCommand>),
    /// About a lock.
    Lock(LockId, If<LOCKS, LockCommand>),
    /// About a channel.
    Channel(ChannelId, If<CHANNELS, ChannelCommand>),
    /// About a device, a line or a channel that the caller has only while it holds it.
    Lent(ChannelId, If<LENT, LentCommand>),
    /// Serve the clients of this partition.
    Serve(PartitionId, If<SERVICES, Service>),
    /// About the secret or the measurement of a partition.
    Secret(PartitionId, If<SECRETS, SecretCommand>),
}

/// A command of the core that is answered at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreCommand {
    /// Do nothing.
    Null,
    /// Return the ABI revision.
    Version,
    /// Return the state of a partition.
    Status(PartitionId),
    /// Start a partition.
    Start(PartitionId, StartOptions),
    /// Stop a partition.
    Stop(PartitionId),
    /// Restart a partition.
    Restart(PartitionId, StartOptions),
    /// Restart a partition's watchdog period.
    Kick(PartitionId),
    /// Look at a gate.
    Poll(PartitionId),
    /// Raise events at a gate.
    Signal(PartitionId, u64),
    /// Return the time.
    Now,
    /// Print: the partition of the console, the number of bytes, the bytes.
    Write(PartitionId, usize, [u8; WRITE_LEN]),
    /// Take input of the console of this partition.
    Read(PartitionId),
    /// Copy a capability within the caller's space.
    Derive(u64, Rights),
    /// Copy a capability into a partition's space.
    Grant(PartitionId, u64, Rights),
    /// Return the kind and the rights of a capability.
    Inspect(Capability),
    /// Find the capability with this name.
    Find([u8; CAPABILITY_NAME]),
    /// Return the schedule of a pCPU that is in force.
    ScheduleStatus(PcpuId),
    /// Change to another schedule of a pCPU from its next frame on.
    ScheduleChange(PcpuId, u64),
}

/// A command of the core that may block the caller, or take several steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitCommand {
    /// Wait at a gate, at most until this time (nanoseconds since boot, `None` for ever).
    Events(PartitionId, Option<u64>),
    /// Sleep until this time (nanoseconds since boot).
    Sleep(u64),
    /// Destroy everything derived from a capability, and the capability itself if the flag is set.
    Revoke(u64, bool),
}
