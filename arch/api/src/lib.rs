// SPDX-License-Identifier: Apache-2.0
//! The boundary between the kernel and a CPU class.
//!
//! The kernel sees a machine as one handle per pCPU that implements [`Arch`]: seven groups of verbs
//! over ids, ticks and guest-physical addresses. Drivers of the board's own devices come beside it
//! ([`Drivers`]). Storage (register contexts, translation tables,
//! interrupt state) belongs to the backend; decisions (who runs, who may, what a failure means)
//! belong to the kernel. Control goes one way: the kernel calls [`Vcpus::run`] and gets a reason back.
//!
//! A handle is used by its own pCPU only. The backend itself keeps the state consistent that several pCPUs
//! share through a handle, without blocking for longer than a bounded number of instructions.
#![no_std]
#![forbid(unsafe_code)]

mod address;
pub mod class;
mod device;
mod driver;
mod exit;
mod ids;
mod space;
mod verbs;

use bulkhead_abi::size::{limit, own};

pub use address::{GuestPhys, HostPhys, OutOfRange};
pub use class::ClassFacts;
pub use device::{FrameWords, Stored, VirtualDevice, Window};
pub use driver::{Console, Devices, Drivers, Network, NoNetwork, Received};
pub use exit::{
    Access, AccessKind, CpuOnResult, CpuPower, Dump, Exit, FaultReport, HostCall, Hypercall, REGISTER_WINDOW,
    RegisterAccess, Reply, ResetKind,
};
pub use ids::{Line, PartitionId, PcpuId, Ticks, VcpuId, VcpuSet, VirtualLine};
pub use space::{AddressSpace, RegisterRule, Treatment, treatment};
pub use verbs::{
    Arch, BuildError, CLEAR_AT_ONCE, CallRegisters, Clock, CopyError, Cpus, EntryState, Frames, Irqs,
    LineRoute, MemoryKind, PartitionKind, Permissions, Region, ShortCalls, SpacePlan, Spaces, StartError,
    TimeMode, Traces, VcpuPlan, VcpuReset, Vcpus,
};

/// Partitions a system can have; bounds every table and loop over partitions.
pub const MAX_PARTITIONS: usize = own("partitions", limit(8, 32));
/// vCPUs a system can have; bounds every table and loop over vCPUs.
pub const MAX_VCPUS: usize = own("vcpus", limit(8, 64));
/// vCPUs a partition can have.
pub const MAX_VCPUS_PER_PARTITION: usize = own("vcpus_per_partition", limit(1, 8));
/// Registers of a [`Dump`]: 32 without the stack pointer, and four of the last exception.
pub const DUMP_REGISTERS: usize = limit(16, 35);
/// Bytes that one [`HostCall`] moves: a short line, or a name.
pub const HOST_BYTES: usize = 32;
pub use bulkhead_abi::size::MAX_PCPUS;
