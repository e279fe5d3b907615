// SPDX-License-Identifier: Apache-2.0
//! The trait every policy implements.

/// vCPUs a pCPU can have.
pub const MAX_SLOTS: usize = 32;

/// A vCPU among those of one pCPU, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u8);

/// A set of slots, bit n for slot n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SlotSet(pub u32);

/// A point in time or a duration. The unit is the caller's; `u64::MAX` is never.
pub type Ticks = u64;

/// What the manifest says about one vCPU; each policy reads what concerns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct VcpuParameters {
    /// Larger is more important (0..=31).
    pub priority: u8,
}

/// Why a running vCPU does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Still ready: a decision is wanted (an event, or `until` has come).
    Preempted,
    /// Nothing to do before it is made ready again.
    Blocked,
    /// Still ready, and gives the rest of its turn to its equals.
    Yielded,
}

/// What to do, and how long that decision stands if nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run this slot until then.
    Run(Slot, Ticks),
    /// Run nothing until then.
    Idle(Ticks),
}

/// Why a policy refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// More vCPUs than the policy can hold.
    TooManyVcpus,
    /// A parameter is out of range.
    BadParameter,
    /// This policy has no such operation.
    NotSupported,
}

/// A scheduling policy of one pCPU.
///
/// Protocol: slots start blocked. `ready` may come at any time, also for a slot that is ready. After
/// `next` returned `Run(slot, _)`, exactly one `stopped(slot, ..)` comes before the following `next`.
pub trait Policy {
    /// `slot` has something to do.
    fn ready(&mut self, slot: Slot, now: Ticks);
    /// The slot that ran stops; it ran for `ran` ticks up to `now`.
    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks);
    /// `slot`, which is not running, is taken out of the ready set (its partition is stopped).
    fn withdraw(&mut self, slot: Slot, now: Ticks);
    /// The decision at `now`.
    fn next(&mut self, now: Ticks) -> Decision;
    /// The slots whose `ready` would change the decision made last. Others need not interrupt it:
    /// what happens to them is noticed at the next decision.
    fn interested(&self) -> SlotSet;
    /// `from` blocks on `to` and lends it its place until `return_donation`.
    ///
    /// # Errors
    /// [`PolicyError::NotSupported`] unless the policy has donation.
    fn donate(&mut self, _from: Slot, _to: Slot, _now: Ticks) -> Result<(), PolicyError> {
        Err(PolicyError::NotSupported)
    }
    /// Ends what `donate(from, ..)` began.
    ///
    /// # Errors
    /// [`PolicyError::NotSupported`] unless the policy has donation.
    fn return_donation(&mut self, _from: Slot, _now: Ticks) -> Result<(), PolicyError> {
        Err(PolicyError::NotSupported)
    }
    /// Switches to another of the policy's schedules at its next boundary.
    ///
    /// # Errors
    /// [`PolicyError::NotSupported`] unless the policy has schedules.
    fn change_schedule(&mut self, _schedule: u8, _now: Ticks) -> Result<(), PolicyError> {
        Err(PolicyError::NotSupported)
    }
}
