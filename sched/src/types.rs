// SPDX-License-Identifier: Apache-2.0
//! The input of policies: slots, times and the parameters of the manifest.
//!
//! The same types carry the tables of the system image into the policies, the analysis and the simulator. A
//! policy holds no references to the tables: it copies the parts that it keeps.

/// True on a class whose CPU divides 128-bit numbers by an instruction or two.
pub(crate) const HAS_WIDE_DIVISION: bool = !IS_SMALL;

const IS_SMALL: bool = cfg!(feature = "small-tables");

/// Returns a limit: `small` on a microcontroller, whose memory is small, else `large`.
const fn limit(small: usize, large: usize) -> usize {
    if IS_SMALL { small } else { large }
}

/// Largest number of vCPUs of a pCPU.
pub const MAX_SLOTS: usize = limit(8, 32);
/// Number of priorities. The highest priority is one less.
pub const PRIORITIES: usize = 32;
/// Largest number of windows of a pCPU. The windows of all its schedules count together.
pub const MAX_WINDOWS: usize = limit(16, 64);
/// Largest number of schedules of a pCPU.
pub const MAX_SCHEDULES: usize = limit(4, 8);
/// Largest number of time domains of a pCPU.
pub const MAX_DOMAINS: usize = limit(4, 16);

/// A vCPU of one pCPU, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u8);

/// A set of slots. Bit n stands for slot n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SlotSet(pub u32);

/// A point in time or a duration. The caller chooses the unit. `u64::MAX` means "never".
pub type Ticks = u64;

/// The parameters of one vCPU in the manifest. Each policy reads those that concern the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct VcpuParameters {
    /// Priority (0..=31). A larger number is more important.
    pub priority: u8,
    /// The time that the vCPU may take, and how often it may take that time. `None` is no limit. Under `edf`,
    /// a vCPU with `None` runs in the background.
    pub server: Option<Server>,
    /// `edf`: the time from the start of a period in which the budget is to be delivered. 0 stands for the
    /// period.
    pub deadline: Ticks,
    /// `domains`: the time domain of the vCPU.
    pub domain: u8,
}

/// A budget of running time for each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// Running time per period. At least 1, and at most the period.
    pub budget: Ticks,
    /// The period.
    pub period: Ticks,
    /// The rule by which used budget comes back.
    pub kind: ServerKind,
}

/// The rule by which the used budget of a vCPU comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// `fixed-priority`: all of the budget comes back at each start of a period.
    Deferrable,
    /// `fixed-priority`: each piece comes back one period after the vCPU had become ready to use the piece.
    Sporadic,
    /// `edf`: all of the budget comes back at the end of the period, with a deadline one period later.
    ConstantBandwidth,
}

/// A stretch of a frame that belongs to one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Window {
    /// The vCPUs of the partition on this pCPU. The windows of two partitions have no slot in common.
    pub slots: SlotSet,
    /// Start of the window, counted from the start of the frame.
    pub offset: Ticks,
    /// Length. At least 1.
    pub duration: Ticks,
    /// True if a period of the partition's processing starts with this window.
    pub period_start: bool,
}

/// A major frame. Its windows are consecutive entries of a table, in the order of time and without overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Schedule {
    /// Length. At least 1.
    pub frame: Ticks,
    /// Number of the schedule's first window in the table.
    pub first_window: u8,
    /// Number of windows in the schedule.
    pub window_count: u8,
}

/// A time domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Domain {
    /// Running time per cycle. At least 1.
    pub budget: Ticks,
}

/// Parameters of `fixed-priority` on one pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedPriorityParameters {
    /// Length of a turn among equals, in ticks. At least 1.
    pub quantum: Ticks,
}

/// Parameters of `edf` on one pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EdfParameters {
    /// Length of a turn among vCPUs in the background, in ticks. At least 1.
    pub quantum: Ticks,
}

/// Parameters of `arinc653` on one pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arinc653Parameters<'a> {
    /// The windows of all schedules.
    pub windows: &'a [Window],
    /// The schedules. There is at least one.
    pub schedules: &'a [Schedule],
    /// The schedule to begin with.
    pub initial: u8,
    /// Start of the first frame. The pCPU idles before it.
    pub start: Ticks,
    /// Length of a turn among vCPUs of a partition with the same priority, in ticks. At least 1.
    pub quantum: Ticks,
}

/// Parameters of `domains` on one pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DomainsParameters<'a> {
    /// The domains in the order of their turns. There is at least domain 0.
    pub domains: &'a [Domain],
    /// Length of a time slice among vCPUs of a domain with the same priority, in ticks. At least 1.
    pub quantum: Ticks,
}

/// Parameters of an [`crate::OwnPolicy`] on one pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OwnParameters {
    /// The quantum of the pCPU, in ticks. At least 1. The policy gives the quantum its meaning.
    pub quantum: Ticks,
}

impl Schedule {
    /// No schedule: the entry of a table that has nothing to hold.
    pub(crate) const NONE: Self = Self {
        frame: 0,
        first_window: 0,
        window_count: 0,
    };
}

/// The effects of a decision beside the choice itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Signals {
    /// The vCPUs of partitions of which a window has started.
    pub window_start: SlotSet,
    /// The vCPUs of partitions of whose processing a period has started.
    pub period_start: SlotSet,
    /// The vCPUs that have used up their budget.
    pub exhausted: SlotSet,
    /// The vCPUs that had used up their budget and have some again.
    pub replenished: SlotSet,
    /// True if another schedule has begun.
    pub schedule_changed: bool,
}

impl Signals {
    /// No effect.
    pub(crate) const NONE: Self = Self {
        window_start: SlotSet(0),
        period_start: SlotSet(0),
        exhausted: SlotSet(0),
        replenished: SlotSet(0),
        schedule_changed: false,
    };

    /// Tells whether there is nothing to signal.
    pub(crate) const fn is_none(self) -> bool {
        let slots = self.window_start.0 | self.period_start.0 | self.exhausted.0 | self.replenished.0;
        slots == 0 && !self.schedule_changed
    }
}
