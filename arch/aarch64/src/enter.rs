// SPDX-License-Identifier: Apache-2.0
//! The way into a guest: the functions that the assembly of `entry` offers, and the answers that handlers
//! give to `entry`.

use crate::context::Context;
use crate::machine::Machine;
use bulkhead_abi::log::Exits;

/// Handler's answer: go on in the guest. The handler may have changed only those registers of the guest that
/// are saved.
pub(crate) const RESUME: u64 = 0;
/// Answer of a handler of a synchronous exception: nothing is done yet but counting, call the handler of
/// complete registers.
pub(crate) const ALL_REGISTERS: u64 = 3;

/// Reason of `bulkhead_enter`: a hypercall whose arguments are in the general registers.
pub(crate) const LEAVE_HYPERCALL: u64 = 1;
/// Reason of `bulkhead_enter`: the exit that is in the context.
pub(crate) const LEAVE_EXIT: u64 = 2;
/// Reason of `bulkhead_enter`: `Exit::Idle`, the time is in the context's timers.
pub(crate) const LEAVE_IDLE: u64 = 4;
/// Reason of `bulkhead_enter`: `Exit::CpuOn` with the vCPU, entry and argument in x1..x3.
pub(crate) const LEAVE_CPU_ON: u64 = 5;

/// Reason of `bulkhead_enter`: `Exit::Register`, as the context's syndrome describes it.
pub(crate) const LEAVE_REGISTER: u64 = 6;

#[allow(
    improper_ctypes,
    reason = "assembly passes the pointers on and knows three fields by offset_of!"
)]
unsafe extern "C" {
    /// Runs the guest whose registers are in `context`. See the table in `entry`. `exits` is there once the
    /// vCPU is adopted.
    pub(crate) fn bulkhead_enter(
        context: *mut Context,
        machine: *mut Machine,
        exits: Option<&'static Exits>,
    ) -> u64;
    /// Lets a pending SError be taken. Returns its ESR_EL2, or 0 if none came.
    pub(crate) fn bulkhead_take_serror() -> u64;
    /// Starts a secondary pCPU: its first instruction is here.
    pub(crate) fn bulkhead_secondary_start();
}
