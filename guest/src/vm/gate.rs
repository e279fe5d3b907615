// SPDX-License-Identifier: Apache-2.0
//! The VM's event gate: an interrupt while there are events, and the way to take them.
//!
//! The interrupt is a level. It ends when the events are taken, so a handler takes them ([`EventGate::take`])
//! before it ends the interrupt at the controller. The device tree says where the gate is (`/event-gate`). A
//! VM has this node if its manifest gives it the right to wait for the events of its own gate.

use super::Machine;
use super::gic::FIRST_SHARED;
use crate::hypercall::{self, Handle};

/// The VM's own event gate.
#[derive(Clone, Copy, Debug)]
pub struct EventGate {
    line: u32,
    handle: Handle,
}

impl EventGate {
    /// Returns the gate of this machine, if it has one.
    #[must_use]
    pub fn of(machine: &Machine) -> Option<Self> {
        let tree = machine.device_tree()?;
        let node = ["event-gate"];
        // The binding counts shared lines from 0.
        let line = tree.cell(&node, "interrupts", 1)?.checked_add(FIRST_SHARED)?;
        let handle = Handle(tree.cell(&node, "capability", 0)?);
        Some(Self { line, handle })
    }

    /// Returns its interrupt.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line
    }

    /// Returns the capability by which events are taken.
    #[must_use]
    pub const fn handle(&self) -> Handle {
        self.handle
    }

    /// Takes all events there are; 0 if there are none.
    #[must_use]
    pub fn take(&self) -> u64 {
        hypercall::event_poll(self.handle).unwrap_or(0)
    }
}
