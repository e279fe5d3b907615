// SPDX-License-Identifier: Apache-2.0
//! The simulator's clockwork: a policy, the very code of the hypervisor, on a virtual clock.
//!
//! **Model.** A [`Source`] releases jobs on a slot. The slot's own scheduler
//! ([`TaskScheduler`](crate::analysis::TaskScheduler)) chooses among the pending ones. The pCPU follows the
//! hypervisor's loop. A slot that wakes interrupts the decision in force only if the policy is interested in
//! that slot. A timer of any other slot is noticed at the next decision. An interrupt is taken at once. The
//! hypervisor's work costs time ([`Overheads`](crate::analysis::Overheads)) and is not interrupted. As in the
//! hypervisor, that time counts as running time of the slot that was chosen.
//!
//! **Deterministic.** The same sources, seed and policy give the same events. At one instant the order is:
//! completions, then releases, then the end of the decision.
//!
//! The caller provides the state of the sources and sees the events through an [`Observer`]. There is no
//! allocation. The work per event is linear in the number of sources.

mod clockwork;
mod source;

pub use clockwork::Simulator;
pub use source::{Pattern, Source, SourceState, Statistics};

use crate::{Slot, StopReason, Ticks};

/// The events. The number of a source is its place in the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A source released a job.
    Released(usize),
    /// A job of the source is complete, this long after its release.
    Completed(usize, Ticks),
    /// The source's oldest job has run for so long, up to now.
    Worked(usize, Ticks),
    /// A job of the source was not complete at its deadline; it still goes on.
    Missed(usize),
    /// A source has so many jobs pending that this one is not even kept.
    Dropped(usize),
    /// The slot's work is done.
    Blocked(Slot),
    /// The slot has something to do again.
    Woken(Slot),
    /// A critical interrupt came for the slot, which is ready.
    Critical(Slot),
    /// The slot has used up its budget.
    Exhausted(Slot),
    /// The slot had used up its budget and has some again.
    Replenished(Slot),
    /// A window of the slot's partition has started.
    WindowStarted(Slot),
    /// A period of the slot's partition has started.
    PeriodStarted(Slot),
    /// This schedule has begun.
    ScheduleChanged(u8),
    /// The running slot has changed. The reason is the one for which the first left.
    Switched {
        /// The slot that ran.
        from: Option<Slot>,
        /// The slot that runs now.
        to: Option<Slot>,
        /// Why the first one does not go on.
        why: StopReason,
    },
}

/// Sees what happens.
pub trait Observer {
    /// `event` happens at `now`.
    fn event(&mut self, now: Ticks, event: Event);
}

/// Looks away.
impl Observer for () {
    fn event(&mut self, _now: Ticks, _event: Event) {}
}
