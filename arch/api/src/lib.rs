// SPDX-License-Identifier: Apache-2.0
//! The boundary between the kernel and a CPU class.
//!
//! The kernel sees a machine as one handle per pCPU that implements [`Arch`]: eight groups of verbs
//! over ids, ticks and guest-physical addresses. Storage (register contexts, translation tables,
//! interrupt state) belongs to the backend; decisions (who runs, who may, what a failure means)
//! belong to the kernel. Control goes one way: the kernel calls [`Vcpus::run`] and gets a reason back.
//!
//! A handle is used by its own pCPU only. What several pCPUs share behind it, the backend keeps
//! consistent by itself, without blocking for longer than a bounded number of instructions.
#![no_std]
#![forbid(unsafe_code)]

mod address;
mod exit;
mod ids;
mod verbs;
mod window;

use bulkhead_abi::size::limit;

pub use address::{GuestPhys, HostPhys, OutOfRange};
pub use exit::{
    Access, AccessKind, CpuOnResult, CpuPower, Dump, Exit, FaultReport, HostCall, Hypercall, Reply, ResetKind,
};
pub use ids::{Line, PartitionId, PcpuId, Ticks, VcpuId, VcpuSet, VirtualLine};
pub use verbs::{
    Arch, ArchCaps, BuildError, CLEAR_AT_ONCE, Clock, Console, ControllerKind, CopyError, Cpus, Irqs,
    LineRoute, MemoryKind, Network, PartitionKind, Permissions, Received, Region, Spaces, StartError,
    TimeMode, Traces, VcpuPlan, VcpuReset, Vcpus, VirtualController,
};
pub use window::{FrameWords, Place, Stored, Window};

/// Partitions a system can have; bounds every table and loop over partitions.
pub const MAX_PARTITIONS: usize = limit(8, 32);
/// vCPUs a system can have; bounds every table and loop over vCPUs.
pub const MAX_VCPUS: usize = limit(8, 64);
/// vCPUs a partition can have.
pub const MAX_VCPUS_PER_PARTITION: usize = limit(1, 8);
/// General registers of a [`Dump`].
pub const DUMP_REGISTERS: usize = limit(14, 31);
/// Bytes that one [`HostCall`] moves: a short line, or a name.
pub const HOST_BYTES: usize = 32;
/// pCPUs a system can use.
pub const MAX_PCPUS: usize = limit(1, 8);
