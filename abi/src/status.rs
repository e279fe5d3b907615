// SPDX-License-Identifier: Apache-2.0
//! The status words that tell a partition about a partition.

numbered! {
    /// Life cycle of a partition.
    PartitionState {
        /// Never started, or stopped by itself or by a capability holder.
        Stopped = 0, "stopped";
        /// Its memory is being cleared and its payloads copied.
        Loading = 1, "loading";
        /// At least one vCPU is on.
        Running = 2, "running";
        /// Stopped by a health action.
        Failed = 3, "failed";
        /// Being stopped: some pCPU has not yet confirmed that its vCPUs are off.
        Stopping = 4, "stopping";
    }
}

numbered! {
    /// Class of a health event: what went wrong in a partition.
    HealthClass {
        /// An access to memory or a device that is not the partition's own (a stage-2 abort).
        Memory = 1, "memory";
        /// A system register or instruction the partition may not use.
        System = 2, "system";
        /// A hypercall with a bad number, capability or argument.
        Hypercall = 3, "hypercall";
        /// The watchdog period passed without a kick.
        Watchdog = 4, "watchdog";
        /// A task executed an instruction it cannot go on from.
        Task = 5, "task";
    }
}

crate::numbered! {
    /// The action that answers a health event.
    HealthAction {
        /// Let the partition go on: the access reads as zero, the write is ignored, the hypercall returns its
        /// error. If the operation cannot be completed so, reflect it.
        Log = 1, "log";
        /// Reflect it into the partition as its architecture would report it.
        Inject = 2, "inject";
        /// Stop the partition; it is then `Failed`.
        Stop = 3, "stop";
        /// Stop the partition and start it cold.
        Restart = 4, "restart";
        /// Stop the partition and start it warm.
        RestartWarm = 5, "restart-warm";
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
    /// Returns the word as a guest sees it.
    #[must_use]
    pub const fn encode(self) -> u64 {
        let last = match self.last_event {
            Some(class) => class as u64,
            None => 0,
        };
        self.state as u64 | last << 8 | (self.restarts as u64) << 16 | (self.events as u64) << 32
    }

    /// Decodes the word, the reverse of [`StatusWord::encode`]; `None` if the word is not one.
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

/// The state of a partition's memory when the partition starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum StartMode {
    /// Its memory is cleared and its payloads are copied anew (ARINC 653 COLD_START).
    #[default]
    Cold = 0,
    /// Its memory is as its earlier life left it (ARINC 653 WARM_START); vCPUs, virtual devices, interrupts
    /// and capabilities are new all the same.
    Warm = 1,
}

impl StartMode {
    /// Returns the mode with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Cold),
            1 => Some(Self::Warm),
            _ => None,
        }
    }
}

/// Why a partition starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum StartCause {
    /// The system starts, and the manifest starts the partition with it.
    #[default]
    Boot,
    /// Another partition has asked for it.
    Supervisor,
    /// The partition itself has asked for it.
    Own,
    /// A health event of this class has led to it.
    Health(HealthClass),
}

impl StartCause {
    const fn encode(self) -> u64 {
        match self {
            Self::Boot => 0,
            Self::Supervisor => 1,
            Self::Own => 2,
            Self::Health(class) => 3 | (class as u64) << 8,
        }
    }

    const fn decode(kind: u8, class: u8) -> Option<Self> {
        match (kind, class) {
            (0, 0) => Some(Self::Boot),
            (1, 0) => Some(Self::Supervisor),
            (2, 0) => Some(Self::Own),
            (3, class) => match HealthClass::from_number(class) {
                Some(class) => Some(Self::Health(class)),
                None => None,
            },
            _ => None,
        }
    }
}

/// Result x2 of `PartitionStatus`, about the start that the partition is in or had last: [`StartMode`] in
/// bits 7:0, cause in bits 15:8 (0 boot, 1 another partition, 2 the partition itself, 3 a health event),
/// [`HealthClass`] of that event or 0 in bits 23:16, the alternative it runs in bits 31:24 (0 = the payloads
/// that the partition's own section names), starts since boot in bits 63:32 (saturating).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StartWord {
    /// The state of its memory.
    pub mode: StartMode,
    /// Why.
    pub cause: StartCause,
    /// Which payloads.
    pub alternative: u8,
    /// Starts since boot that came as far as the first instruction.
    pub starts: u32,
}

impl StartWord {
    /// Returns the word as a guest sees it.
    #[must_use]
    pub const fn encode(self) -> u64 {
        self.mode as u64
            | self.cause.encode() << 8
            | (self.alternative as u64) << 24
            | (self.starts as u64) << 32
    }

    /// Decodes the word, the reverse of [`StartWord::encode`]; `None` if the word is not one.
    #[must_use]
    pub const fn decode(word: u64) -> Option<Self> {
        let (mode, cause) = (
            StartMode::from_number(word as u8),
            StartCause::decode((word >> 8) as u8, (word >> 16) as u8),
        );
        match (mode, cause) {
            (Some(mode), Some(cause)) => Some(Self {
                mode,
                cause,
                alternative: (word >> 24) as u8,
                starts: (word >> 32) as u32,
            }),
            _ => None,
        }
    }
}

/// Argument x2 of `PartitionStart` and `PartitionRestart`: [`StartMode`] in bits 7:0; bit 8 set if bits 23:16
/// choose an alternative, else the partition keeps the one it has; bit 9 set if an error is the reason; all
/// other bits are zero. 0 is a cold start with what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StartOptions {
    /// The state in which the partition is to find its memory. A warm start of memory that was never loaded
    /// completely, or not with the chosen alternative, is a cold one.
    pub mode: StartMode,
    /// Which payloads it is to run from now on.
    pub alternative: Option<u8>,
    /// True if the partition restarts itself because its own health monitoring demands it. The cause is then
    /// [`StartCause::Health`] of class `task`. It changes nothing for other partitions.
    pub is_health: bool,
}

impl StartOptions {
    const CHOSEN: u64 = 1 << 8;
    const IS_HEALTH: u64 = 1 << 9;

    /// Returns the argument.
    #[must_use]
    pub const fn encode(self) -> u64 {
        let chosen = match self.alternative {
            Some(number) => Self::CHOSEN | (number as u64) << 16,
            None => 0,
        };
        let health = if self.is_health { Self::IS_HEALTH } else { 0 };
        self.mode as u64 | chosen | health
    }

    /// Decodes the argument, the reverse of [`StartOptions::encode`]; `None` if the argument is not one.
    #[must_use]
    pub const fn decode(argument: u64) -> Option<Self> {
        let Some(mode) = StartMode::from_number(argument as u8) else {
            return None;
        };
        let alternative = if argument & Self::CHOSEN != 0 {
            Some((argument >> 16) as u8)
        } else {
            None
        };
        let options = Self {
            mode,
            alternative,
            is_health: argument & Self::IS_HEALTH != 0,
        };
        if options.encode() == argument {
            Some(options)
        } else {
            None
        }
    }
}

/// Returns the bit of an event gate that is raised when the state of partition `partition` changes, if the
/// manifest connects the two (`watch`).
#[must_use]
pub const fn state_change_event(partition: u8) -> u64 {
    1 << (partition & 63)
}

/// Event that is raised at a partition's gate when one of its windows starts, if its manifest asks for it.
pub const WINDOW_START_EVENT: u64 = 1 << 62;
/// Event that is raised together with [`WINDOW_START_EVENT`] if the partition's periodic processing starts
/// with the window.
pub const PERIOD_START_EVENT: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_words_survive_the_way_to_a_guest_and_back() {
        let causes = [StartCause::Boot, StartCause::Supervisor, StartCause::Own]
            .into_iter()
            .chain(HealthClass::ALL.iter().map(|class| StartCause::Health(*class)));
        for cause in causes {
            for mode in [StartMode::Cold, StartMode::Warm] {
                let word = StartWord {
                    mode,
                    cause,
                    alternative: 200,
                    starts: 0xFEDC_BA98,
                };
                assert_eq!(StartWord::decode(word.encode()), Some(word));
            }
        }
        for wrong in [2, 4 << 8, 1 << 16, 3 << 8, 3 << 8 | 6 << 16] {
            assert_eq!(StartWord::decode(wrong), None, "{wrong:#x}");
        }
    }

    #[test]
    fn start_options_have_one_encoding_each() {
        let accepted = (0..1_u64 << 25)
            .filter(|word| word & 0xFC == 0)
            .filter_map(|word| StartOptions::decode(word).map(|options| (word, options)));
        let mut count = 0;
        for (word, options) in accepted {
            assert_eq!(options.encode(), word);
            count += 1;
        }
        assert_eq!(count, 2 * 2 * (1 + 256));
        assert_eq!(StartOptions::decode(0), Some(StartOptions::default()));
        assert_eq!(StartOptions::decode(1 << 63), None);
        assert_eq!(StartOptions::decode(1 << 16), None);
    }
}
