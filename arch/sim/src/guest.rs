// SPDX-License-Identifier: Apache-2.0
//! The program that runs in a simulated vCPU.

use bulkhead_arch_api::{AccessKind, AddressSpace, FaultReport, HostCall, Reply, ResetKind, VcpuReset};

/// The next action of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Keeps the CPU busy for so many ticks.
    Compute(u64),
    /// Leaves a mark in the world's record.
    Mark(u64),
    /// Makes a hypercall.
    Hypercall(u16, [u64; 6]),
    /// Loads from an address: memory answers at once, anything else is an exit.
    Read {
        /// Where.
        address: u64,
        /// Bytes.
        size: u8,
    },
    /// Stores to an address.
    Write {
        /// Where.
        address: u64,
        /// Bytes.
        size: u8,
        /// The value.
        value: u64,
    },
    /// Loads from, or stores to, a port or a numbered register.
    Reach {
        /// Which.
        space: AddressSpace,
        /// Its number.
        number: u64,
        /// Bytes.
        size: u8,
        /// Which way.
        kind: AccessKind,
    },
    /// Sets its own timer to an absolute time, or switches it off.
    SetTimer(Option<u64>),
    /// Waits for an interrupt.
    Idle,
    /// Takes a pending interrupt.
    Acknowledge,
    /// Sends an interrupt to a vCPU of its partition.
    Send(u8),
    /// Switches a vCPU on.
    CpuOn(u8, u64, u64),
    /// Asks for the power state of a vCPU.
    CpuPower(u8),
    /// Switches itself off.
    CpuOff,
    /// Ends or restarts its partition.
    Reset(ResetKind),
    /// Does something it may not.
    Fault(FaultReport),
    /// Calls a debugger, again and again until it is answered.
    Host(HostCall),
    /// Makes the backend fail.
    Fail(u64),
}

/// The outcome of a guest's last action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// None yet: this is the first instruction.
    Started(VcpuReset),
    /// It is done.
    Done,
    /// The answer to an exit.
    Replied(Reply),
    /// The value that memory answered.
    Value(u64),
    /// The interrupt taken: a line of the partition, `Some(TIMER)`, `Some(SENT)`, or none.
    Interrupt(Option<u32>),
    /// An upcall came, with this argument.
    Upcall(u64),
    /// A fault was reflected.
    Faulted(FaultReport),
}

/// A program for a vCPU.
pub trait Guest {
    /// Returns what the guest does next, given what came of the last action and the time.
    fn next(&mut self, last: Outcome, now: u64) -> Action;
}

impl<F: FnMut(Outcome, u64) -> Action> Guest for F {
    fn next(&mut self, last: Outcome, now: u64) -> Action {
        self(last, now)
    }
}

/// Returns a guest that does these things in turn and then idles for ever.
pub fn script(actions: impl IntoIterator<Item = Action>) -> impl Guest {
    let mut rest = actions.into_iter().collect::<Vec<_>>().into_iter();
    move |_: Outcome, _: u64| rest.next().unwrap_or(Action::Idle)
}
