// SPDX-License-Identifier: Apache-2.0
//! The parts of this build of the kernel, and the small interface by which the core knows a part.
//!
//! **Commands and waits.** A group of commands, and a wait, belong to a part. A build that lacks the part has
//! no value of them: their types are [`If`]s, and such an `If` has no values. So the compiler leaves out the
//! code that would carry them out, and the core need not ask whether the part is there.
//!
//! **Occasions.** A part takes part in the lives of partitions and vCPUs. The core calls [`each_part!`] on
//! each occasion. The verbs are in [`PartOf`]: a part has the verbs that concern it, and the others do
//! nothing. A constant of the part says whether it is there.

use crate::channel::command::ChannelId;
use crate::outcome::Outcome;
pub(crate) use bulkhead_abi::parts::Part;
use bulkhead_abi::{Error, parts::PARTS};
use bulkhead_arch_api::{Access, GuestPhys, Line, PartitionId, Ticks, VcpuId};
use bulkhead_sched::Slot;

/// True if a part is in this build, for the types of its commands and waits.
pub(crate) const PORTS: bool = PARTS.has(Part::Ports);
/// As [`PORTS`].
pub(crate) const LOCKS: bool = PARTS.has(Part::Locks);
/// As [`PORTS`].
pub(crate) const CHANNELS: bool = PARTS.has(Part::Channels);
/// As [`PORTS`].
pub(crate) const LENT: bool = PARTS.has(Part::Lent);
/// As [`PORTS`].
pub(crate) const SERVICES: bool = PARTS.has(Part::Services);
/// As [`PORTS`].
pub(crate) const UPCALLS: bool = PARTS.has(Part::Upcalls);
/// As [`PORTS`].
pub(crate) const FUNCTIONS: bool = PARTS.has(Part::Functions);
/// As [`PORTS`].
pub(crate) const FLASH: bool = PARTS.has(Part::Flash);
/// As [`PORTS`].
pub(crate) const NETWORKS: bool = PARTS.has(Part::Networks);
/// As [`PORTS`].
pub(crate) const FRAME_RING: bool = PARTS.has(Part::FrameRing);
/// As [`PORTS`].
pub(crate) const TASK_LINES: bool = PARTS.has(Part::TaskLines);
/// As [`PORTS`].
pub(crate) const SEMIHOSTING: bool = PARTS.has(Part::Semihosting);
/// As [`PORTS`].
pub(crate) const TRACE: bool = PARTS.has(Part::Trace);
/// As [`PORTS`].
pub(crate) const EARLY_HANDLERS: bool = PARTS.has(Part::EarlyHandlers);
/// As [`PORTS`].
pub(crate) const MASK_WORDS: bool = PARTS.has(Part::MaskWords);
/// As [`PORTS`].
pub(crate) const SECRETS: bool = PARTS.has(Part::Secrets);
/// True if the hypervisor writes its log as text.
pub(crate) const TEXT: bool = PARTS.has(Part::Text);

/// True if vCPUs wait for each other: at ports, or for locks.
pub(crate) const HAS_SEATS: bool = PORTS || LOCKS;

/// Returns the entries of a table that belongs to a part. Without the part there is one entry, which is not
/// used.
pub(crate) const fn entries(part: Part, most: usize) -> usize {
    if PARTS.has(part) && most != 0 { most } else { 1 }
}

/// A value of a part: a `T` if the build has the part. Otherwise there is no such value.
pub(crate) type If<const HAS: bool, T> = <Is<HAS> as Presence>::Of<T>;

/// The answer to the question whether a part is there, as a type.
#[derive(Debug)]
pub struct Is<const HAS: bool>;

/// The type without values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Never {}

/// The values of a part.
pub trait Presence {
    /// The type of a value that would be a `T`.
    type Of<T>;

    /// Makes a value, if the part is there.
    ///
    /// # Errors
    /// The error of `make`, or `lacking` if the part is not there.
    fn make<T, E>(make: impl FnOnce() -> Result<T, E>, lacking: E) -> Result<Self::Of<T>, E>;

    /// Returns the value.
    fn get<T>(value: Self::Of<T>) -> T;
}

impl Presence for Is<true> {
    type Of<T> = T;

    #[inline(always)]
    fn make<T, E>(make: impl FnOnce() -> Result<T, E>, _lacking: E) -> Result<T, E> {
        make()
    }

    #[inline(always)]
    fn get<T>(value: T) -> T {
        value
    }
}

impl Presence for Is<false> {
    type Of<T> = Never;

    #[inline(always)]
    fn make<T, E>(_make: impl FnOnce() -> Result<T, E>, lacking: E) -> Result<Never, E> {
        Err(lacking)
    }

    #[inline(always)]
    fn get<T>(value: Never) -> T {
        match value {}
    }
}

/// Makes a value of a part.
///
/// # Errors
/// The error of `make`, or [`Error::NotSupported`] if the build lacks the part.
#[inline(always)]
pub(crate) fn decoded<const HAS: bool, T>(
    make: impl FnOnce() -> Result<T, Error>,
) -> Result<If<HAS, T>, Error>
where
    Is<HAS>: Presence,
{
    Is::<HAS>::make(make, Error::NotSupported)
}

/// Returns a value of a part.
#[inline(always)]
pub(crate) fn of<const HAS: bool, T>(value: If<HAS, T>) -> T
where
    Is<HAS>: Presence,
{
    Is::<HAS>::get(value)
}

/// The occasions on which the core turns to a part.
pub(crate) trait PartOf {
    /// True if the part is there: in this build, on this class, on this board.
    const IS_THERE: bool;

    /// Returns [`PartOf::IS_THERE`].
    #[inline(always)]
    fn is_there(&self) -> bool {
        Self::IS_THERE
    }

    /// Ends the calls of others that a partition has not answered. None of its vCPUs runs.
    #[inline(always)]
    fn life_ended(&mut self, _partition: PartitionId) {}

    /// Prepares the new life of a partition, which is about to be loaded on this pCPU. None of its vCPUs
    /// runs.
    #[inline(always)]
    fn life_begins(&mut self, _partition: PartitionId) {}

    /// Puts the devices of a partition into their first state.
    #[inline(always)]
    fn reset(&mut self, _partition: PartitionId) {}

    /// Raises the events that a new life finds, after all that its last life left is gone.
    #[inline(always)]
    fn was_reset(&mut self, _partition: PartitionId) {}

    /// Raises the lines that a new life finds. The state of the vCPUs is their first one.
    #[inline(always)]
    fn goes_live(&mut self, _partition: PartitionId) {}

    /// Tells whether a piece of a payload is not to be copied, because the partition has its contents.
    #[inline(always)]
    fn keeps(&mut self, _partition: PartitionId, _guest: GuestPhys) -> bool {
        false
    }

    /// Sees to a slot whose vCPU was switched on, or is about to be loaded.
    #[inline(always)]
    fn vcpu_is_on(&mut self, _slot: Slot) {}

    /// Sees to a slot whose vCPU goes on, and may have to go on elsewhere.
    #[inline(always)]
    fn vcpu_goes_on(&mut self, _slot: Slot) {}

    /// Takes back the interruption that a vCPU waits for, if there is one. The vCPU is about to wait for
    /// events, or stops.
    #[inline(always)]
    fn vcpu_is_quiet(&mut self, _slot: Slot, _vcpu: VcpuId) {}

    /// Takes from a vCPU that is being switched off, and waits no more, all that others wait for.
    #[inline(always)]
    fn vcpu_leaves(&mut self, _vcpu: VcpuId) {}

    /// Ends one thing that a partition has only while it holds a capability: of a partition that has lost
    /// the capability, or of this one, which is about to be loaded. Returns false if there is none.
    #[inline(always)]
    fn ends_one_hold(&mut self, _loaded: Option<PartitionId>) -> bool {
        false
    }

    /// Tells whether a stretch of memory, which the partition may access now, may be taken away later.
    #[inline(always)]
    fn may_take(&mut self, _partition: PartitionId, _guest: GuestPhys, _length: u64) -> bool {
        false
    }

    /// Gives up the capability by which a reply is sent, if `index` names one. Returns the answer to the
    /// caller.
    #[inline(always)]
    fn gives_up_reply(&mut self, _caller: PartitionId, _index: u64) -> Option<Outcome> {
        None
    }

    /// Takes an interrupt. Returns what is left to be done about the line.
    #[inline(always)]
    fn take_interrupt(&mut self, _line: Line) -> Rest {
        Rest::Others
    }

    /// Rings at a side of a channel that its partition sees as a device of its own. Returns false if the part
    /// has no such device.
    #[inline(always)]
    fn rings(&mut self, _partition: PartitionId, _channel: ChannelId) -> bool {
        false
    }

    /// Does the work whose time has come.
    #[inline(always)]
    fn work(&mut self, _now: Ticks) {}

    /// Answers an access that no device of the partition answers. Returns whether the access is answered
    /// already, or `None` if the part has no answer.
    #[inline(always)]
    fn answer(&mut self, _slot: Slot, _vcpu: VcpuId, _access: &Access) -> Option<bool> {
        None
    }
}

/// The rest of the work on an interrupt, after a part has looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Other parts look at the line.
    Others,
    /// The line may interrupt again.
    Unmasked,
    /// The line stays masked, until the part has time for it.
    Masked,
}

/// Does something with each part that is there and has verbs, in the order in which they are told.
macro_rules! each_part {
    ($pcpu:expr, $part:ident => $do:expr) => {
        $crate::parts::each_part!(
            @ $pcpu, $part => $do;
            networks lent services flash functions ports locks upcalls task_lines
        )
    };
    (@ $pcpu:expr, $part:ident => $do:expr; $($accessor:ident)*) => {
        $({
            let mut $part = $pcpu.$accessor();
            if $part.is_there() {
                $do;
            }
        })*
    };
}
pub(crate) use each_part;
