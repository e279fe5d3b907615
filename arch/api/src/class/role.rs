// SPDX-License-Identifier: Apache-2.0
//! The parts that devices of a board play.

/// The part that a device of the board plays for the hypervisor. Its value is its number in a system image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The console.
    Console = 1,
    /// The interrupt controller.
    Interrupts = 2,
    /// The system timer.
    Timer = 3,
    /// The board's interface to network 0.
    Network = 4,
    /// The controllers that say which world may reach memory and devices. Only this role can have several
    /// devices: one for the whole board, and one for each memory that is guarded by itself.
    Security = 5,
    /// The parts by which CPUs start and interrupt each other, where the architecture does not say how.
    Processors = 6,
}

impl Role {
    /// Returns the number of the role in a system image.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }
}
