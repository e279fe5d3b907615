// SPDX-License-Identifier: Apache-2.0
//! Who runs: scheduling policies as pure functions of ids and ticks.
//!
//! A policy sees vCPU slots (indices local to one pCPU), its parameters and the time; nothing else. The same
//! code runs in the hypervisor, in the simulator, in the analysis and in the tests. One instance per
//! pCPU; no instance knows of another. No allocation, no hardware, no unsafe.
#![no_std]
#![forbid(unsafe_code)]

mod any;
mod fixed_priority;
mod pinned;
mod policy;

pub use any::AnyPolicy;
pub use fixed_priority::{FixedPriority, FixedPriorityParameters};
pub use pinned::Pinned;
pub use policy::{Decision, MAX_SLOTS, Policy, PolicyError, Slot, SlotSet, StopReason, Ticks, VcpuParameters};
