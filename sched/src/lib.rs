// SPDX-License-Identifier: Apache-2.0
//! Scheduling policies decide which vCPU runs. They are pure functions of ids and ticks.
//!
//! A policy sees vCPU slots (indices local to one pCPU), its parameters and the time. A policy sees nothing
//! else. The same code runs in the hypervisor and in the tests on the host. Each pCPU has one instance, and
//! no instance knows of another. The crate allocates nothing, touches no hardware and has no unsafe code.
//!
//! A policy of the user's own is a crate that implements [`Policy`] and [`OwnPolicy`]. The manifest names the
//! crate. The kernel runs every policy through [`PcpuPolicy`].
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod analysis;
mod any;
mod arinc653;
mod domains;
mod donation;
mod edf;
mod fixed_priority;
mod own;
#[cfg(feature = "own-policy")]
mod own_kind;
mod pcpu;
mod pinned;
mod policy;
mod run_queue;
mod server;
pub mod simulate;
mod table;
mod timers;
mod types;

pub use any::{AnyKind, AnyPolicy, PolicyParameters};
pub use arinc653::Arinc653;
pub use domains::Domains;
pub use donation::Donating;
pub use edf::Edf;
pub use fixed_priority::FixedPriority;
pub use own::OwnPolicy;
#[cfg(feature = "own-policy")]
pub use own_kind::{AnyOwnPolicy, Either, OwnKind};
pub use pcpu::PcpuPolicy;
pub use pinned::Pinned;
pub use policy::{Decision, InForce, Policy, PolicyError, ScheduleStatus, StopReason};
pub use types::{
    Arinc653Parameters, Domain, DomainsParameters, EdfParameters, FixedPriorityParameters, MAX_DOMAINS,
    MAX_SCHEDULES, MAX_SLOTS, MAX_WINDOWS, OwnParameters, PRIORITIES, Schedule, Server, ServerKind, Signals,
    Slot, SlotSet, Ticks, VcpuParameters, Window,
};
