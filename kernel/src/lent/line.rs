// SPDX-License-Identifier: Apache-2.0
//! Lines that are capabilities: interrupts as messages at a port.
//!
//! **Model.** The holder of a capability for a line binds the line to a port from which the holder may
//! receive. An interrupt masks the line, and is a message at the port, after the messages that wait there.
//! The holder receives the message, serves the device, and says that it is done. Only then may the line
//! interrupt again. So a line has one message at most, and a device that interrupts all the time costs the
//! others one short exit for each time that its driver is done.
//!
//! **None is lost.** The port keeps room for one message of each line that is bound to it. Messages of
//! partitions do not get that room. An interrupt that comes while the line should be masked is delivered when
//! the holder is done.
//!
//! **The end.** A binding stands as long as its slots have the capabilities by which it was made: for the
//! line, and for the port. It ends as a hold does ([`crate::lent::hold`]), in the same order of steps: slots
//! are emptied first, then the bindings are looked at under their lock.
//!
//! **Order of locks.** The bindings, then a port. The progress of a line changes with the lock of its port
//! held, so a receiver needs no other lock.
//!
//! **Work bounds.** Bind, done and unbind take constant time. An interrupt looks at each side of the system
//! once to find its line, and then delivers 8 bytes. A look for bindings without their capabilities is one
//! step for each line that can be lent, and ends one binding at most.

use crate::cap::Capability;
use crate::lent::counted::Counted;
use crate::parts::{Part, entries};
use crate::port_id::PortId;
use bulkhead_arch_api::{Line, PartitionId};
use bulkhead_image::MAX_CHANNELS;
use core::sync::atomic::{AtomicU32, Ordering};
use spin::RelaxStrategy;

/// Entries of the table: each channel may be a device with a line.
const LINES: usize = entries(Part::Lent, MAX_CHANNELS);

/// A line that is bound to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The one who has bound it.
    pub holder: PartitionId,
    /// The slot of the holder.
    pub index: u8,
    /// The capability that was in the slot.
    pub capability: Capability,
    /// The port.
    pub port: PortId,
    /// The slot of the holder with the capability for the port.
    pub port_index: u8,
    /// The physical line.
    pub line: Line,
    /// True if it is edge-triggered.
    pub edge: bool,
    /// True if the line has interrupted although it should be masked.
    pub again: bool,
}

/// The progress of a line that is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The line may interrupt.
    Armed,
    /// A message waits in the port.
    Queued,
    /// The message was received.
    Received,
}

/// A message of a line in a port, so that the message of an earlier binding is not taken for a later one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number of the line's device.
    pub device: u8,
    /// The number of the message, as far as it fits.
    pub number: u32,
}

const PROGRESS: u32 = 3;
/// The part of a state that counts messages.
const NUMBER: u32 = !PROGRESS;

/// All lines that can be lent.
#[derive(Debug)]
pub struct Lines<R> {
    /// The bindings, by the number of the device. A change takes locks of ports and seats, and the backend's
    /// own.
    pub bindings: Counted<Binding, LINES, R>,
    /// For each line its progress in bits 1:0, and above the number of its last message.
    states: [AtomicU32; LINES],
}

impl<R: RelaxStrategy> Lines<R> {
    /// Makes the state before boot.
    pub const fn new() -> Self {
        Self {
            bindings: Counted::new(),
            states: [const { AtomicU32::new(0) }; LINES],
        }
    }

    /// Returns the progress of a line. With the lock of its port held.
    pub fn progress(&self, device: u8) -> Progress {
        match self.state(device) & PROGRESS {
            0 => Progress::Armed,
            1 => Progress::Queued,
            _ => Progress::Received,
        }
    }

    /// Changes the progress of a line. With the lock of its port held.
    pub fn set_progress(&self, device: u8, progress: Progress) {
        self.set_state(device, self.state(device) & NUMBER | progress as u32);
    }

    /// Begins a message that waits in the port of a line. With the lock of the port held.
    pub fn queue(&self, device: u8) -> Mark {
        let number = (self.state(device) & NUMBER).wrapping_add(PROGRESS.wrapping_add(1));
        self.set_state(device, number | Progress::Queued as u32);
        Mark { device, number }
    }

    /// Tells whether a message is the one of its line that waits. With the lock of its port held.
    pub fn is_queued(&self, mark: Mark) -> bool {
        self.state(mark.device) == mark.number | Progress::Queued as u32
    }

    fn state(&self, device: u8) -> u32 {
        let state = self.states.get(usize::from(device));
        state.map_or(0, |state| state.load(Ordering::Relaxed))
    }

    fn set_state(&self, device: u8, value: u32) {
        if let Some(state) = self.states.get(usize::from(device)) {
            state.store(value, Ordering::Relaxed);
        }
    }
}
