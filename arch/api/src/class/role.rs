// SPDX-License-Identifier: Apache-2.0
//! The parts that devices of a board play.

/// The part that a device of the board plays for the hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The console.
    Console,
    /// The interrupt controller.
    Interrupts,
    /// The system timer.
    Timer,
    /// The board's interface to network 0.
    Network,
    /// The controllers that say which world may reach memory and devices. Only this role can have several
    /// devices: one for the whole board, and one for each memory that is guarded by itself.
    Security,
    /// The parts by which CPUs start and interrupt each other, where the architecture does not say how.
    Processors,
}

impl Role {
    /// Returns the number of the role in a system image.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Console => 1,
            Self::Interrupts => 2,
            Self::Timer => 3,
            Self::Network => 4,
            Self::Security => 5,
            Self::Processors => 6,
        }
    }
}
