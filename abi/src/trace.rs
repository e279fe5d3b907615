// SPDX-License-Identifier: Apache-2.0
//! Records of the trace: what a pCPU did and when, 16 bytes each.
//!
//! One definition for the hypervisor on its board, the kernel on the simulated machine, the scheduling
//! simulator of the host tool, and everything that reads or draws a trace. A record is two words:
//!
//! | word | bits | what |
//! |---|---|---|
//! | 0 | 0..64 | time in ticks of the board's counter |
//! | 1 | 0..8 | kind, `KIND_*` |
//! | 1 | 8..16 | pCPU |
//! | 1 | 16..24 | subject: a vCPU by its number in the system image, or a partition; [`NOBODY`] = none |
//! | 1 | 24..32 | detail |
//! | 1 | 32..64 | argument |
//!
//! Every record has exactly one encoding: [`Record::decode`] refuses all words that [`Record::encode`] cannot
//! have written. Kind 0 is no record, so memory of zeros holds none.
//!
//! In memory each pCPU has a ring of [`Entry`]s of its own, the newest overwriting the oldest. The number of
//! records ever stored is in the log area ([`crate::log::Pcpu::traced`]), so a reader knows exactly how many
//! it has missed.

use crate::atomic::AtomicU64;
use crate::status::{HealthClass, PartitionState};
use core::sync::atomic::Ordering;

/// Bytes of a record.
pub const RECORD_SIZE: usize = 16;
/// "No vCPU" where one is expected.
pub const NOBODY: u8 = u8::MAX;
/// Fewest records of a pCPU's ring.
pub const RING_MIN: u32 = 1 << 8;
/// Most records of a pCPU's ring.
pub const RING_MAX: u32 = 1 << 24;

/// [`Event::Switch`].
pub const KIND_SWITCH: u8 = 1;
/// [`Event::Exit`].
pub const KIND_EXIT: u8 = 2;
/// [`Event::Wake`].
pub const KIND_WAKE: u8 = 3;
/// [`Event::Block`].
pub const KIND_BLOCK: u8 = 4;
/// [`Event::Exhausted`].
pub const KIND_EXHAUSTED: u8 = 5;
/// [`Event::Replenished`].
pub const KIND_REPLENISHED: u8 = 6;
/// [`Event::WindowStart`].
pub const KIND_WINDOW_START: u8 = 7;
/// [`Event::PeriodStart`].
pub const KIND_PERIOD_START: u8 = 8;
/// [`Event::Schedule`].
pub const KIND_SCHEDULE: u8 = 9;
/// [`Event::DeadlineMissed`].
pub const KIND_DEADLINE_MISSED: u8 = 10;
/// [`Event::State`].
pub const KIND_STATE: u8 = 11;
/// [`Event::Health`].
pub const KIND_HEALTH: u8 = 12;
/// [`Event::Lost`].
pub const KIND_LOST: u8 = 13;
/// [`Event::Critical`].
pub const KIND_CRITICAL: u8 = 14;
/// [`Event::Short`].
pub const KIND_SHORT: u8 = 15;

numbered! {
    /// Why the vCPU that ran no longer does.
    SwitchReason {
        /// Nothing ran.
        Idle = 0, "idle";
        /// It has nothing to do.
        Blocked = 1, "blocked";
        /// It is still ready.
        Preempted = 2, "preempted";
    }
}

numbered! {
    /// Why the hypervisor got control.
    ExitCause {
        /// A hypercall; the argument is the operation.
        Hypercall = 0, "hypercall";
        /// An access to a virtual device or to nothing; the argument is the low word of the address.
        Access = 1, "access";
        /// An idle instruction.
        Idle = 2, "idle";
        /// A physical interrupt of the hypervisor's own; the argument is the line.
        Interrupt = 3, "interrupt";
        /// The armed deadline has come.
        Deadline = 4, "deadline";
        /// Another pCPU wants something.
        Signal = 5, "signal";
        /// An interrupt for vCPUs that do not run; the argument is the lowest one of them.
        Wake = 6, "wake";
        /// A request to switch a CPU on; the argument is its number.
        CpuOn = 7, "cpu-on";
        /// A question about a CPU; the argument is its number.
        CpuPower = 8, "cpu-power";
        /// The vCPU switches itself off.
        CpuOff = 9, "cpu-off";
        /// The partition wants to be reset or switched off.
        Reset = 10, "reset";
        /// A fault.
        Fault = 11, "fault";
        /// The backend cannot go on with the vCPU; the argument is its code.
        Failed = 12, "failed";
        /// A call of a debugger (semihosting).
        Host = 13, "host-call";
    }
}

numbered! {
    /// The cause of an exit that the backend answered without the kernel.
    ShortCause {
        /// A physical interrupt. The argument is 0.
        Interrupt = 0, "interrupt";
        /// A call. The argument of this cause and of all below is the class's own word about the exception
        /// (aarch64: ESR_EL2).
        Call = 1, "call";
        /// A load or store.
        Access = 2, "access";
        /// An instruction that the hypervisor carries out.
        Instruction = 3, "instruction";
        /// An instruction that waits.
        Idle = 4, "idle";
        /// The first use of the FP registers after another vCPU's.
        Fp = 5, "FP";
        /// Anything else.
        Other = 6, "other";
    }
}

numbered! {
    /// The reason why a vCPU waits.
    BlockReason {
        /// An interrupt, or its own timer.
        Idle = 0, "idle";
        /// Events, in a hypercall.
        Waiting = 1, "waiting";
        /// A time, in a hypercall.
        Sleeping = 2, "sleeping";
        /// It is switched off.
        Off = 3, "off";
        /// Its partition is ending.
        Ending = 4, "ending";
        /// A message, in a hypercall.
        Message = 5, "message";
        /// The reply to its call, in a hypercall.
        Reply = 6, "reply";
        /// A lock, in a hypercall.
        Lock = 7, "lock";
    }
}

/// An event. A `vcpu` is a number of the system image's vCPU table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Another vCPU than before runs from now on.
    Switch {
        /// The vCPU that ran before; `None`: none.
        from: Option<u8>,
        /// The vCPU that runs now; `None`: none.
        to: Option<u8>,
        /// Why `from` does not go on.
        why: SwitchReason,
    },
    /// The hypervisor got control.
    Exit {
        /// The vCPU that ran; `None`: the pCPU was waiting.
        vcpu: Option<u8>,
        /// Why.
        cause: ExitCause,
        /// As the cause says.
        argument: u32,
    },
    /// The backend answered an exit on a short way, without the kernel. The time is the end of the answer.
    /// Recorded only if the manifest asks for it.
    Short {
        /// The vCPU that ran on.
        vcpu: u8,
        /// Why.
        cause: ShortCause,
        /// As the cause says.
        argument: u32,
    },
    /// The vCPU has something to do.
    Wake {
        /// The vCPU.
        vcpu: u8,
        /// Ticks since the time at which its timer was due, or its wait over; 0 if it wakes for something
        /// else. They wrap, which is after more than a minute on any board.
        late: u32,
    },
    /// The vCPU has nothing to do.
    Block {
        /// The vCPU.
        vcpu: u8,
        /// The reason why it waits.
        why: BlockReason,
    },
    /// The vCPU's budget is used up.
    Exhausted {
        /// The vCPU that had it.
        vcpu: u8,
    },
    /// The vCPU got budget.
    Replenished {
        /// The vCPU.
        vcpu: u8,
    },
    /// A window of the vCPU's partition begins.
    WindowStart {
        /// A vCPU of the partition.
        vcpu: u8,
    },
    /// A window with which the partition's period begins.
    PeriodStart {
        /// A vCPU of the partition.
        vcpu: u8,
    },
    /// Another schedule of the pCPU is in force.
    Schedule {
        /// The number of the schedule.
        schedule: u8,
    },
    /// The vCPU was not done by its deadline.
    DeadlineMissed {
        /// The vCPU.
        vcpu: u8,
    },
    /// A critical interrupt came for the vCPU, which is ready.
    Critical {
        /// The vCPU.
        vcpu: u8,
    },
    /// A partition has entered a state.
    State {
        /// The partition.
        partition: u8,
        /// The state.
        state: PartitionState,
    },
    /// A partition had a health event.
    Health {
        /// The partition.
        partition: u8,
        /// Its class.
        class: HealthClass,
    },
    /// In a file: so many records of this pCPU before the next one are missing.
    Lost {
        /// The number of records; `u32::MAX` also stands for more.
        count: u32,
    },
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The time, in ticks of the board's counter.
    pub time: u64,
    /// The pCPU.
    pub pcpu: u8,
    /// The event.
    pub event: Event,
}

/// Why two words are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadRecord {
    /// There is none: the kind is 0.
    Empty,
    /// No record has this kind.
    Kind(u8),
    /// The kind has no such subject.
    Subject(u8),
    /// The kind has no such detail.
    Detail(u8),
    /// The kind has no such argument.
    Argument(u32),
}

/// The second word, taken apart.
#[derive(Clone, Copy)]
struct Fields {
    kind: u8,
    subject: u8,
    detail: u8,
    argument: u32,
}

impl Fields {
    const fn new(kind: u8, subject: u8) -> Self {
        Self {
            kind,
            subject,
            detail: 0,
            argument: 0,
        }
    }

    const fn of_nobody(kind: u8, argument: u32) -> Self {
        Self {
            argument,
            ..Self::new(kind, NOBODY)
        }
    }

    /// Returns the vCPU or partition that there must be, in a record with nothing else in it.
    const fn only_subject(self) -> Result<u8, BadRecord> {
        if self.detail != 0 {
            return Err(BadRecord::Detail(self.detail));
        }
        self.subject_of_detail()
    }

    /// Returns the vCPU or partition that there must be, in a record without argument.
    const fn subject_of_detail(self) -> Result<u8, BadRecord> {
        if self.argument != 0 {
            return Err(BadRecord::Argument(self.argument));
        }
        if self.subject == NOBODY {
            return Err(BadRecord::Subject(self.subject));
        }
        Ok(self.subject)
    }

    /// Returns the argument of a record that must have no subject and no detail.
    const fn anonymous(self) -> Result<u32, BadRecord> {
        if self.subject != NOBODY {
            return Err(BadRecord::Subject(self.subject));
        }
        if self.detail != 0 {
            return Err(BadRecord::Detail(self.detail));
        }
        Ok(self.argument)
    }

    fn event(self) -> Result<Event, BadRecord> {
        let detail = BadRecord::Detail(self.detail);
        Ok(match self.kind {
            0 => return Err(BadRecord::Empty),
            KIND_SWITCH => {
                let why = u8::try_from(self.argument)
                    .ok()
                    .and_then(SwitchReason::from_number)
                    .ok_or(BadRecord::Argument(self.argument))?;
                let from = somebody(self.detail);
                if from.is_none() != matches!(why, SwitchReason::Idle) {
                    return Err(BadRecord::Argument(self.argument));
                }
                Event::Switch {
                    from,
                    to: somebody(self.subject),
                    why,
                }
            }
            KIND_EXIT => Event::Exit {
                vcpu: somebody(self.subject),
                cause: ExitCause::from_number(self.detail).ok_or(detail)?,
                argument: self.argument,
            },
            KIND_WAKE => Event::Wake {
                late: self.argument,
                vcpu: Self { argument: 0, ..self }.only_subject()?,
            },
            KIND_BLOCK => Event::Block {
                vcpu: self.subject_of_detail()?,
                why: BlockReason::from_number(self.detail).ok_or(detail)?,
            },
            KIND_EXHAUSTED => Event::Exhausted {
                vcpu: self.only_subject()?,
            },
            KIND_REPLENISHED => Event::Replenished {
                vcpu: self.only_subject()?,
            },
            KIND_WINDOW_START => Event::WindowStart {
                vcpu: self.only_subject()?,
            },
            KIND_PERIOD_START => Event::PeriodStart {
                vcpu: self.only_subject()?,
            },
            KIND_SCHEDULE => {
                let argument = self.anonymous()?;
                let schedule = u8::try_from(argument).map_err(|_| BadRecord::Argument(argument))?;
                Event::Schedule { schedule }
            }
            KIND_CRITICAL => Event::Critical {
                vcpu: self.only_subject()?,
            },
            KIND_DEADLINE_MISSED => Event::DeadlineMissed {
                vcpu: self.only_subject()?,
            },
            KIND_STATE => Event::State {
                partition: self.subject_of_detail()?,
                state: PartitionState::from_number(self.detail).ok_or(detail)?,
            },
            KIND_HEALTH => Event::Health {
                partition: self.subject_of_detail()?,
                class: HealthClass::from_number(self.detail).ok_or(detail)?,
            },
            KIND_SHORT => Event::Short {
                vcpu: somebody(self.subject).ok_or(BadRecord::Subject(self.subject))?,
                cause: ShortCause::from_number(self.detail).ok_or(detail)?,
                argument: self.argument,
            },
            KIND_LOST => Event::Lost {
                count: self.anonymous()?,
            },
            kind => return Err(BadRecord::Kind(kind)),
        })
    }
}

impl Event {
    /// Returns the fields of a record. A `vcpu` or `partition` of [`NOBODY`] cannot be told from none; there
    /// are never so many.
    #[inline]
    const fn fields(self) -> Fields {
        match self {
            Self::Switch { from, to, why } => Fields {
                kind: KIND_SWITCH,
                subject: number(to),
                detail: number(from),
                argument: why as u32,
            },
            Self::Exit {
                vcpu,
                cause,
                argument,
            } => Fields {
                kind: KIND_EXIT,
                subject: number(vcpu),
                detail: cause as u8,
                argument,
            },
            Self::Short {
                vcpu,
                cause,
                argument,
            } => Fields {
                kind: KIND_SHORT,
                subject: vcpu,
                detail: cause as u8,
                argument,
            },
            Self::Wake { vcpu, late } => Fields {
                argument: late,
                ..Fields::new(KIND_WAKE, vcpu)
            },
            Self::Block { vcpu, why } => Fields {
                detail: why as u8,
                ..Fields::new(KIND_BLOCK, vcpu)
            },
            Self::Exhausted { vcpu } => Fields::new(KIND_EXHAUSTED, vcpu),
            Self::Replenished { vcpu } => Fields::new(KIND_REPLENISHED, vcpu),
            Self::WindowStart { vcpu } => Fields::new(KIND_WINDOW_START, vcpu),
            Self::PeriodStart { vcpu } => Fields::new(KIND_PERIOD_START, vcpu),
            Self::Schedule { schedule } => Fields::of_nobody(KIND_SCHEDULE, schedule as u32),
            Self::Critical { vcpu } => Fields::new(KIND_CRITICAL, vcpu),
            Self::DeadlineMissed { vcpu } => Fields::new(KIND_DEADLINE_MISSED, vcpu),
            Self::State { partition, state } => Fields {
                detail: state as u8,
                ..Fields::new(KIND_STATE, partition)
            },
            Self::Health { partition, class } => Fields {
                detail: class as u8,
                ..Fields::new(KIND_HEALTH, partition)
            },
            Self::Lost { count } => Fields::of_nobody(KIND_LOST, count),
        }
    }
}

impl Record {
    /// Returns the two words of the record.
    #[inline]
    #[must_use]
    pub const fn encode(self) -> [u64; 2] {
        let fields = self.event.fields();
        let word = fields.kind as u64
            | (self.pcpu as u64) << 8
            | (fields.subject as u64) << 16
            | (fields.detail as u64) << 24
            | (fields.argument as u64) << 32;
        [self.time, word]
    }

    /// Decodes the record from its two words.
    ///
    /// # Errors
    /// [`BadRecord`] names the field that is wrong.
    pub fn decode([time, word]: [u64; 2]) -> Result<Self, BadRecord> {
        let [kind, pcpu, subject, detail, ..] = word.to_le_bytes();
        let fields = Fields {
            kind,
            subject,
            detail,
            argument: (word >> 32) as u32,
        };
        Ok(Self {
            time,
            pcpu,
            event: fields.event()?,
        })
    }

    /// Returns the bytes of the record in a file: both words little-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; RECORD_SIZE] {
        let [time, word] = self.encode();
        (u128::from(time) | u128::from(word) << 64).to_le_bytes()
    }

    /// Decodes the record from bytes of a file.
    ///
    /// # Errors
    /// [`BadRecord`] names the field that is wrong.
    pub fn from_bytes(bytes: [u8; RECORD_SIZE]) -> Result<Self, BadRecord> {
        let words = u128::from_le_bytes(bytes);
        Self::decode([words as u64, (words >> 64) as u64])
    }
}

const fn somebody(number: u8) -> Option<u8> {
    if number == NOBODY { None } else { Some(number) }
}

const fn number(vcpu: Option<u8>) -> u8 {
    match vcpu {
        Some(vcpu) => vcpu,
        None => NOBODY,
    }
}

/// Room for one record in a ring. Any bytes are a value; numbers have the byte order of the CPU.
#[derive(Debug, Default)]
#[repr(C, align(16))]
pub struct Entry {
    time: AtomicU64,
    word: AtomicU64,
}

const _: () = assert!(size_of::<Entry>() == RECORD_SIZE);

impl Entry {
    /// Makes an entry without a record.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            time: AtomicU64::new(0),
            word: AtomicU64::new(0),
        }
    }

    /// Stores a record.
    #[inline]
    pub fn store(&self, [time, word]: [u64; 2]) {
        self.time.store(time, Ordering::Relaxed);
        self.word.store(word, Ordering::Relaxed);
    }

    /// Returns the two words of the record; torn if it is being stored.
    #[must_use]
    pub fn load(&self) -> [u64; 2] {
        [
            self.time.load(Ordering::Relaxed),
            self.word.load(Ordering::Relaxed),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [Event; 20] = [
        Event::Switch {
            from: None,
            to: Some(3),
            why: SwitchReason::Idle,
        },
        Event::Switch {
            from: Some(63),
            to: None,
            why: SwitchReason::Blocked,
        },
        Event::Switch {
            from: Some(0),
            to: Some(1),
            why: SwitchReason::Preempted,
        },
        Event::Exit {
            vcpu: None,
            cause: ExitCause::Deadline,
            argument: 0,
        },
        Event::Exit {
            vcpu: Some(9),
            cause: ExitCause::Access,
            argument: u32::MAX,
        },
        Event::Short {
            vcpu: 63,
            cause: ShortCause::Other,
            argument: u32::MAX,
        },
        Event::Wake { vcpu: 7, late: 0 },
        Event::Wake {
            vcpu: 7,
            late: u32::MAX,
        },
        Event::Block {
            vcpu: 7,
            why: BlockReason::Ending,
        },
        Event::Exhausted { vcpu: 1 },
        Event::Replenished { vcpu: 1 },
        Event::WindowStart { vcpu: 2 },
        Event::PeriodStart { vcpu: 2 },
        Event::Schedule { schedule: 7 },
        Event::DeadlineMissed { vcpu: 5 },
        Event::Critical { vcpu: 6 },
        Event::State {
            partition: 4,
            state: PartitionState::Failed,
        },
        Event::Health {
            partition: 31,
            class: HealthClass::Watchdog,
        },
        Event::Lost { count: 1 },
        Event::Lost { count: u32::MAX },
    ];

    #[test]
    fn every_record_comes_back_from_its_words_and_bytes() {
        for event in EVENTS {
            let record = Record {
                time: 0x0123_4567_89AB_CDEF,
                pcpu: 7,
                event,
            };
            assert_eq!(Record::decode(record.encode()), Ok(record));
            assert_eq!(Record::from_bytes(record.to_bytes()), Ok(record));
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let record = Record {
            time: 0x1122_3344_5566_7788,
            pcpu: 2,
            event: Event::Exit {
                vcpu: Some(5),
                cause: ExitCause::Interrupt,
                argument: 0x1234_5678,
            },
        };
        assert_eq!(record.encode(), [0x1122_3344_5566_7788, 0x1234_5678_0305_0202]);
        assert_eq!(record.to_bytes()[..3], [0x88, 0x77, 0x66]);
        assert_eq!(record.to_bytes()[8..12], [KIND_EXIT, 2, 5, 3]);
    }

    #[test]
    fn words_are_a_record_only_if_they_are_its_encoding() {
        // All kinds, subjects at both ends, all details, some arguments.
        for kind in 0..=u64::from(u8::MAX) {
            for subject in [0, 1, 254, 255] {
                for detail in 0..=u64::from(u8::MAX) {
                    for argument in [0, 1, 2, 3, 255, 256, u64::from(u32::MAX)] {
                        let word = kind | 3 << 8 | subject << 16 | detail << 24 | argument << 32;
                        if let Ok(record) = Record::decode([5, word]) {
                            assert_eq!(record.encode(), [5, word]);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_record_is_refused_for_what_is_wrong_with_it() {
        let word = |kind: u8, subject: u8, detail: u8, argument: u32| {
            let [kind, subject, detail] = [kind, subject, detail].map(u64::from);
            Record::decode([0, kind | subject << 16 | detail << 24 | u64::from(argument) << 32])
        };
        assert_eq!(word(0, 0, 0, 0), Err(BadRecord::Empty));
        assert_eq!(word(16, 0, 0, 0), Err(BadRecord::Kind(16)));
        assert_eq!(word(KIND_WAKE, NOBODY, 0, 0), Err(BadRecord::Subject(NOBODY)));
        assert_eq!(word(KIND_WAKE, 0, 1, 0), Err(BadRecord::Detail(1)));
        assert_eq!(word(KIND_EXIT, 0, 14, 0), Err(BadRecord::Detail(14)));
        assert_eq!(word(KIND_SHORT, 0, 7, 0), Err(BadRecord::Detail(7)));
        assert_eq!(word(KIND_SHORT, NOBODY, 0, 0), Err(BadRecord::Subject(NOBODY)));
        assert_eq!(word(KIND_SWITCH, 0, NOBODY, 1), Err(BadRecord::Argument(1)));
        assert_eq!(word(KIND_SCHEDULE, NOBODY, 0, 256), Err(BadRecord::Argument(256)));
    }

    #[test]
    fn an_entry_keeps_what_is_stored() {
        let entry = Entry::new();
        assert_eq!(Record::decode(entry.load()), Err(BadRecord::Empty));
        entry.store([1, 2]);
        assert_eq!(entry.load(), [1, 2]);
    }
}
