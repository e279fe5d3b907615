// SPDX-License-Identifier: Apache-2.0
//! A mock class on the host: every verb of the boundary, a virtual clock, scripted guests.
//!
//! A [`World`] is a board with several pCPUs; a [`SimMachine`] is one pCPU's handle on it, the type that
//! implements [`bulkhead_arch_api::Arch`]. It stands for one class or another
//! ([`SimClass`]). Guests are closures that say what they do next ([`Action`]) and
//! are told what came of it ([`Outcome`]).
//!
//! **Time.** Each pCPU has a clock of its own that moves while it runs, waits or copies. A driver keeps the
//! pCPUs together: it always advances the one whose clock is the earliest, and no further than the next one's
//! ([`World::advance`]). So a signal arrives when it should, everything happens in one thread, and a run
//! repeats exactly. A caller without a driver just calls `run` and `wait`: they advance without a limit.
//!
//! **Strictness.** The mock panics when the boundary's protocol is broken: a vCPU touched by another pCPU
//! than its own, run before it was reset, run with its last exit unanswered, answered without a question. A
//! kernel that passes here keeps the promises that a real backend relies on without checking.
#![forbid(unsafe_code)]

mod classes;
mod guest;
mod machine;
mod memory;
mod network;
mod uplink;
mod world;

pub use classes::{
    CONSTANT, CONSTANT_REGISTER, LikeAarch64, LikeArmv7m, LikeArmv8m, LikePpc, LikeX86, OWN_REGISTER,
    PORT_UART, REGISTER_UART, Sim, SimClass,
};
pub use guest::{Action, Guest, Outcome, script};
pub use machine::{Halted, SimMachine};
pub use memory::Memory;
pub use uplink::{NETWORK_LINE, Uplink};
pub use world::{CONSOLE_LINE, External, Record, What, World};
