// SPDX-License-Identifier: Apache-2.0
//! The border between the kernel and the policy of a pCPU.
//!
//! **Model.** A pCPU of the kernel is generic over what decides for it; the class binary says which type that is. The one
//! here is [`crate::AnyPolicy`]: all policies of the manifest. A type of one's own implements [`Policy`] and the first two
//! methods below, and is linked into a class binary of its own: no other file changes.
//!
//! **Trust.** The kernel asks nothing of a policy that it cannot check: a decision for somebody who is not ready, or does not exist, is
//! taken for "nobody", and slots that do not exist are not heard of. So a wrong policy costs its own pCPU's vCPUs their
//! time, and nothing else. For policies that were proved to keep the protocol, the checks are left out.
//!
//! **Short ways.** What a switch consists of can be answered in one step, in registers. All of that has defaults.

use crate::any::PolicyParameters;
use crate::{Decision, Policy, PolicyError, Slot, SlotSet, Ticks, VcpuParameters};

/// What decides for a pCPU of the kernel.
pub trait PcpuPolicy: Policy {
    /// Whether its decisions need no check, because tests have shown that they keep the protocol of [`Policy`].
    const IS_TRUSTED: bool = false;

    /// What a pCPU has before it has a policy: no slots, and it idles.
    fn nobody() -> Self;

    /// What it has until [`PcpuPolicy::install`]: the same, and if it may be several KiB, of the kind that the manifest says, made where it
    /// stays. Tables among the parameters are empty.
    #[inline(always)]
    fn blank(_parameters: &PolicyParameters<'_>) -> Self
    where
        Self: Sized,
    {
        Self::nobody()
    }

    /// Becomes what the manifest says, with these vCPUs, slot 0 first. Called once, on what [`PcpuPolicy::blank`] has made.
    ///
    /// # Errors
    /// More vCPUs than it can hold, or parameters it has no use for. It is nobody's then, and must not be asked.
    fn install(
        &mut self,
        vcpus: &[VcpuParameters],
        parameters: &PolicyParameters<'_>,
    ) -> Result<(), PolicyError>;

    /// [`Policy::ready`], by a short way if there is one.
    #[inline]
    fn wake(&mut self, slot: Slot, now: Ticks) {
        self.ready(slot, now);
    }

    /// [`Policy::stopped`] because `slot` blocks, and [`Policy::decide`].
    #[inline]
    fn blocked(&mut self, _slot: Slot, _ran: Ticks, _now: Ticks) -> Successor {
        Successor::NONE
    }

    /// [`PcpuPolicy::blocked`], for the one place where that a vCPU blocks is the usual: the decision and the interest.
    #[inline(always)]
    fn blocked_at_once(&mut self, _slot: Slot, _ran: Ticks, _now: Ticks) -> Option<(Decision, SlotSet)> {
        None
    }

    /// [`Policy::ready`] and [`Policy::critical`] of `slot`, [`Policy::stopped`] of who runs, if anybody does, because of that, and
    /// [`Policy::decide`]: the decision and the interest. `None`, and nothing has been done: this is not the usual case. For the one place
    /// where a device asks for a vCPU that is more important than who runs, also on a microcontroller.
    #[inline]
    fn woken_at_once(
        &mut self,
        _slot: Slot,
        _running: Option<Slot>,
        _ran: Ticks,
        _now: Ticks,
    ) -> Option<(Decision, SlotSet)> {
        None
    }

    /// [`Policy::stopped`] because something else may be more important than `slot`, and [`Policy::decide`].
    #[inline]
    fn preempted(&mut self, _slot: Slot, _ran: Ticks, _now: Ticks) -> Successor {
        Successor::NONE
    }

    /// [`Policy::decide`] when nobody runs.
    #[inline]
    fn resumed(&mut self, _now: Ticks) -> Successor {
        Successor::NONE
    }
}

/// What [`PcpuPolicy::blocked`] and its like answer, in two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Successor {
    until: Ticks,
    /// From the lowest bit: slot, 8 bits; whether this is an answer, 1 bit; from bit 32 the interest.
    packed: u64,
}

impl Successor {
    /// No slot.
    pub const NOBODY: Slot = Slot(u8::MAX);
    const IS_VALID: u64 = 1 << 8;
    /// No answer.
    pub const NONE: Self = Self { until: 0, packed: 0 };

    /// This decision, and whose `ready` would change it.
    #[inline(always)]
    #[must_use]
    pub const fn of(decision: Decision, interested: SlotSet) -> Self {
        match decision {
            Decision::Run(slot, until) => Self::new(slot, until, interested),
            Decision::Idle(until) => Self::new(Self::NOBODY, until, interested),
        }
    }

    const fn new(slot: Slot, until: Ticks, interested: SlotSet) -> Self {
        let packed = (interested.0 as u64) << 32 | Self::IS_VALID | slot.0 as u64;
        Self { until, packed }
    }

    /// Whether this is an answer. If not, nothing was done.
    #[inline]
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.packed & Self::IS_VALID != 0
    }

    /// Who runs; [`Successor::NOBODY`] if the pCPU idles.
    #[inline]
    #[must_use]
    pub const fn slot(self) -> Slot {
        Slot(self.packed as u8)
    }

    /// When the decision ends.
    #[inline]
    #[must_use]
    pub const fn until(self) -> Ticks {
        self.until
    }

    /// The slots whose `ready` would change it.
    #[inline]
    #[must_use]
    pub const fn interested(self) -> SlotSet {
        SlotSet((self.packed >> 32) as u32)
    }
}
