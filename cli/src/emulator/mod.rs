// SPDX-License-Identifier: Apache-2.0
//! A run of the emulator, and a look at a board through its monitor or a debugger.

pub mod attach;
pub mod bare;
mod cpu_registers;
pub mod debugger;
pub mod launch;
pub mod monitor;
pub mod session;
pub mod stall;
mod watch;
