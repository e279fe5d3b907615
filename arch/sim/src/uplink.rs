// SPDX-License-Identifier: Apache-2.0
//! The frames of the board's network interface.

use bulkhead_arch_api::Line;
use std::collections::VecDeque;

/// The line on which the board's network interface interrupts.
pub const NETWORK_LINE: Line = Line(34);

/// The interface.
#[derive(Debug, Default)]
pub struct Uplink {
    /// Frames that have arrived and wait, without CRC.
    pub arrived: VecDeque<Vec<u8>>,
    /// Frames that were sent.
    pub sent: Vec<Vec<u8>>,
    /// It has no room for a frame to be sent.
    pub is_full: bool,
    /// It has interrupted, and that interrupt has not been completed.
    pub(crate) has_asked: bool,
    /// Where the frame that is being taken goes on.
    pub(crate) taken: usize,
}

impl Uplink {
    /// Returns the words of the oldest frame from where it was left off, zeros after its end.
    pub(crate) fn word(&mut self) -> u32 {
        let frame = self.arrived.front();
        let at = self.taken;
        self.taken += 4;
        let byte = |index: usize| {
            frame
                .and_then(|bytes| bytes.get(at + index))
                .copied()
                .unwrap_or(0)
        };
        u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
    }
}
