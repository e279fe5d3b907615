// SPDX-License-Identifier: Apache-2.0
//! What a partition can be told about a partition.

/// Life cycle of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PartitionState {
    /// Never started, or stopped by itself or by a capability holder.
    Stopped = 0,
    /// Its memory is being cleared and its payloads copied.
    Loading = 1,
    /// At least one vCPU is on.
    Running = 2,
    /// Stopped by a health action.
    Failed = 3,
    /// Being stopped: some pCPU has not yet confirmed that its vCPUs are off.
    Stopping = 4,
}

impl PartitionState {
    /// The state with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Stopped),
            1 => Some(Self::Loading),
            2 => Some(Self::Running),
            3 => Some(Self::Failed),
            4 => Some(Self::Stopping),
            _ => None,
        }
    }
}

/// Class of a health event: what went wrong in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum HealthClass {
    /// An access to memory or a device that is not the partition's own (a stage-2 abort).
    Memory = 1,
    /// A system register or instruction the partition may not use.
    System = 2,
    /// A hypercall with a bad number, capability or argument.
    Hypercall = 3,
    /// The watchdog period passed without a kick.
    Watchdog = 4,
    /// A task executed an instruction it cannot go on from.
    Task = 5,
}

impl HealthClass {
    /// All classes, in numeric order.
    pub const ALL: &'static [Self] = &[
        Self::Memory,
        Self::System,
        Self::Hypercall,
        Self::Watchdog,
        Self::Task,
    ];

    /// The class with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Memory),
            2 => Some(Self::System),
            3 => Some(Self::Hypercall),
            4 => Some(Self::Watchdog),
            5 => Some(Self::Task),
            _ => None,
        }
    }
}

/// Result x1 of `PartitionStatus`: state in bits 7:0, [`HealthClass`] of the last health event in bits
/// 15:8 (0 = none yet), restarts since boot in bits 31:16 (saturating), health events since boot in
/// bits 63:32 (saturating).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusWord {
    /// Life cycle.
    pub state: PartitionState,
    /// Class of the last health event.
    pub last_event: Option<HealthClass>,
    /// Restarts since boot.
    pub restarts: u16,
    /// Health events since boot.
    pub events: u32,
}

impl StatusWord {
    /// The word as a guest sees it.
    #[must_use]
    pub const fn encode(self) -> u64 {
        let last = match self.last_event {
            Some(class) => class as u64,
            None => 0,
        };
        self.state as u64 | last << 8 | (self.restarts as u64) << 16 | (self.events as u64) << 32
    }

    /// The reverse of [`StatusWord::encode`]; `None` if the word is not one.
    #[must_use]
    pub const fn decode(word: u64) -> Option<Self> {
        let Some(state) = PartitionState::from_number(word as u8) else {
            return None;
        };
        let last = (word >> 8) as u8;
        let last_event = HealthClass::from_number(last);
        if last != 0 && last_event.is_none() {
            return None;
        }
        Some(Self {
            state,
            last_event,
            restarts: (word >> 16) as u16,
            events: (word >> 32) as u32,
        })
    }
}

/// Bit of an event gate that is raised when the state of partition `partition` changes, if the
/// manifest connects the two (`watch`).
#[must_use]
pub const fn state_change_event(partition: u8) -> u64 {
    1 << (partition & 63)
}
