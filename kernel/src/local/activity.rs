// SPDX-License-Identifier: Apache-2.0
//! The activity of a vCPU, and the place of a vCPU among the slots of its pCPU.

use crate::load::Cursor;
use crate::wait::{Pause, Wait};
use bulkhead_abi::log::Vcpu;
use bulkhead_arch_api::{Ticks, VcpuId};
use bulkhead_sched::{Slot, StopReason};

/// The counters of a slot that is not in use.
static NOWHERE: Vcpu = Vcpu::new();

/// The activity of a vCPU. The variants that [`Activity::is_ready`] names come first, and the tag is a byte
/// of its own, because every decision asks for the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Activity {
    /// The vCPU runs, or would run if it were its turn.
    Ready,
    /// The partition of the vCPU is being loaded in the time of the vCPU.
    Loading(Cursor),
    /// The vCPU revokes, in its time, all that was derived from the capability with this index. If the flag
    /// is true, it also revokes that capability.
    Revoking(u64, bool),
    /// The vCPU, a task, is about to be interrupted by its upcall, in its own time.
    Calling,
    /// The vCPU is blocked in a hypercall and was woken. In its own time the vCPU finds out that there was no
    /// reason to wake it.
    Looking(Pause),
    /// The vCPU does nothing: it is switched off.
    Off,
    /// The vCPU has ended its partition, or its fault has. It must not go on before it is switched off.
    Ending,
    /// The vCPU waits for an interrupt, or for its own timer.
    Idle(Ticks),
    /// The vCPU is blocked in a hypercall.
    Blocked(Pause),
}

impl Activity {
    /// Tells whether the policy has the vCPU among the ready ones.
    #[must_use]
    pub const fn is_ready(self) -> bool {
        matches!(
            self,
            Self::Ready | Self::Loading(_) | Self::Revoking(..) | Self::Calling | Self::Looking(_)
        )
    }

    /// Returns the activity of a vCPU that waits, until a deadline or until the time of its timer.
    #[inline(always)]
    #[must_use]
    pub const fn waiting(wait: Wait, until: Ticks, timer: Ticks) -> Self {
        Self::Blocked(Pause { until, timer, wait })
    }

    /// Returns the wait of a vCPU that is blocked, or that looks why it was woken.
    #[must_use]
    pub const fn pause(self) -> Option<Pause> {
        match self {
            Self::Blocked(pause) | Self::Looking(pause) => Some(pause),
            _ => None,
        }
    }

    /// Returns the reason for which the policy is told that the vCPU stops.
    #[inline]
    pub(super) const fn stop_reason(self) -> StopReason {
        if self.is_ready() {
            StopReason::Preempted
        } else {
            StopReason::Blocked
        }
    }

    /// Tells whether [`Activity::until`] is a time. One step tells it of two times.
    #[inline(always)]
    pub(super) const fn has_end(self) -> bool {
        match self {
            Self::Idle(until) => until.0 != Ticks::NEVER.0,
            Self::Blocked(pause) => pause.until.0 & pause.timer.0 != Ticks::NEVER.0,
            _ => false,
        }
    }

    /// Returns the time at which the vCPU wants to be looked at without anybody waking it.
    #[must_use]
    #[cfg_attr(feature = "small-tables", inline(never))]
    pub const fn until(self) -> Ticks {
        match self {
            Self::Idle(until) => until,
            Self::Blocked(pause) => pause.deadline(),
            Self::Off
            | Self::Ready
            | Self::Loading(_)
            | Self::Revoking(..)
            | Self::Calling
            | Self::Looking(_)
            | Self::Ending => Ticks::NEVER,
        }
    }
}

/// One vCPU of this pCPU. Its size is a power of two, so that one instruction finds the place of a slot.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct SlotState {
    /// The number of the vCPU.
    pub vcpu: VcpuId,
    /// The activity of the vCPU.
    pub activity: Activity,
    /// The time at which the watchdog of the vCPU's partition must be looked at. Only vCPU 0 of a partition
    /// has one.
    pub watchdog: Ticks,
    /// The time that is noted ([`super::times`]).
    pub(super) time: Ticks,
    /// A member of the order of times.
    pub(super) member: Slot,
    /// The counters of the vCPU's exits and of its time.
    pub counters: &'static Vcpu,
}

const _: () = assert!(
    size_of::<SlotState>() == 64,
    "a larger one costs instructions and memory: a slot is found by a shift"
);

impl SlotState {
    pub(super) const UNUSED: Self = Self {
        vcpu: VcpuId(0),
        activity: Activity::Off,
        watchdog: Ticks::NEVER,
        time: Ticks::NEVER,
        member: Slot(0),
        counters: &NOWHERE,
    };
}
