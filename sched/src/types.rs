// SPDX-License-Identifier: Apache-2.0
//! What policies are told: slots, times and the parameters of the manifest.
//!
//! The same types carry the tables of the system image into the policies, the analysis and the simulator.
//! They hold no references: a policy copies what it keeps.

/// Whether what is frequent has a way of its own beside the general one. A microcontroller has no room for it.
pub(crate) const HAS_SHORT_WAYS: bool = !IS_SMALL;

const IS_SMALL: bool = cfg!(all(target_arch = "arm", target_os = "none"));

/// A limit: `small` on a microcontroller, whose memory is small, else `large`.
const fn limit(small: usize, large: usize) -> usize {
    if IS_SMALL { small } else { large }
}

/// vCPUs a pCPU can have.
pub const MAX_SLOTS: usize = limit(8, 32);
/// Number of priorities; the highest is one less.
pub const PRIORITIES: usize = 32;
/// Windows a pCPU can have, those of all its schedules together.
pub const MAX_WINDOWS: usize = limit(16, 64);
/// Schedules a pCPU can have.
pub const MAX_SCHEDULES: usize = limit(4, 8);
/// Time domains a pCPU can have.
pub const MAX_DOMAINS: usize = limit(4, 16);

/// A vCPU among those of one pCPU, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u8);

/// A set of slots, bit n for slot n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SlotSet(pub u32);

/// A point in time or a duration. The unit is the caller's; `u64::MAX` is never.
pub type Ticks = u64;

/// What the manifest says about one vCPU; each policy reads what concerns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct VcpuParameters {
    /// Larger is more important (0..=31).
    pub priority: u8,
    /// How much time it may take, and how often; `None` is without limit (`edf`: in the background).
    pub server: Option<Server>,
    /// `edf`: how long after a period starts its budget is to be delivered; 0 is the period.
    pub deadline: Ticks,
    /// `domains`: which time domain it is in.
    pub domain: u8,
}

/// A budget of running time for each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// Running time per period; at least 1, at most the period.
    pub budget: Ticks,
    /// The period.
    pub period: Ticks,
    /// When what was used comes back.
    pub kind: ServerKind,
}

/// When the used budget of a vCPU comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// `fixed-priority`: all of it, at each start of a period.
    Deferrable,
    /// `fixed-priority`: each piece one period after the vCPU had become ready to use it.
    Sporadic,
    /// `edf`: all of it, at the end of the period, with a deadline one period later.
    ConstantBandwidth,
}

/// A stretch of a frame that belongs to one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Window {
    /// The partition's vCPUs on this pCPU. Windows of two partitions have no slot in common.
    pub slots: SlotSet,
    /// Start, counted from that of the frame.
    pub offset: Ticks,
    /// Length; at least 1.
    pub duration: Ticks,
    /// A period of the partition's processing starts with this window.
    pub period_start: bool,
}

/// A major frame: its windows are consecutive ones of a table, in the order of time and without overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Schedule {
    /// Length; at least 1.
    pub frame: Ticks,
    /// Its first window in the table.
    pub first_window: u8,
    /// The number of its windows.
    pub window_count: u8,
}

/// A time domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Domain {
    /// Running time per cycle; at least 1.
    pub budget: Ticks,
}

/// Parameters of `fixed-priority` on one pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedPriorityParameters {
    /// Length of a turn among equals, in ticks; at least 1.
    pub quantum: Ticks,
}

/// Parameters of `edf` on one pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EdfParameters {
    /// Length of a turn among vCPUs in the background, in ticks; at least 1.
    pub quantum: Ticks,
}

/// Parameters of `arinc653` on one pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arinc653Parameters<'a> {
    /// The windows of all schedules.
    pub windows: &'a [Window],
    /// The schedules; at least one.
    pub schedules: &'a [Schedule],
    /// The schedule to begin with.
    pub initial: u8,
    /// When the first frame starts; the pCPU idles before.
    pub start: Ticks,
    /// Length of a turn among vCPUs of a partition with the same priority, in ticks; at least 1.
    pub quantum: Ticks,
}

/// Parameters of `domains` on one pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DomainsParameters<'a> {
    /// The domains in the order of their turns; at least domain 0.
    pub domains: &'a [Domain],
    /// Length of a time slice among vCPUs of a domain with the same priority, in ticks; at least 1.
    pub quantum: Ticks,
}

impl Schedule {
    /// None, for tables.
    pub(crate) const NONE: Self = Self {
        frame: 0,
        first_window: 0,
        window_count: 0,
    };
}

/// What a decision brought about beside the choice itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Signals {
    /// A window of these vCPUs' partition has started.
    pub window_start: SlotSet,
    /// A period of these vCPUs' partition's processing has started.
    pub period_start: SlotSet,
    /// These have used up their budget.
    pub exhausted: SlotSet,
    /// These had used up their budget and have some again.
    pub replenished: SlotSet,
    /// Another schedule has begun.
    pub schedule_changed: bool,
}

impl Signals {
    /// Nothing.
    pub(crate) const NONE: Self = Self {
        window_start: SlotSet(0),
        period_start: SlotSet(0),
        exhausted: SlotSet(0),
        replenished: SlotSet(0),
        schedule_changed: false,
    };
}
