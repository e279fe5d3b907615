// SPDX-License-Identifier: Apache-2.0
//! The output that a pCPU still has to hand on, and the steps in which it does.

use bulkhead_arch_api::Ticks;
use bulkhead_sched::Slot;

/// The lines and output that are due, as far as they are handled before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    /// Nothing.
    None,
    /// Nothing this time, because another slot came first.
    PutOff,
    /// One step, if no other slot comes first.
    Due,
    /// One step, which was put off once.
    Owed,
}

/// The output of a pCPU that is not handed on yet.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Output {
    /// The time at which output that this pCPU's partitions left unsent is to be handed on. `NEVER` if there
    /// is none.
    pub(super) due: Ticks,
    /// The line or output that is to be handed on before anything runs.
    pub chore: Chore,
    /// True if a line has just been written that the transmitter has not been given.
    pub has_line: bool,
    /// True if more output waits and the transmitter took all of the last call's.
    pub may_pump: bool,
    /// The slot that pays for more steps of output, because its own exit has left output.
    payer: Option<Slot>,
    /// The number of steps that the slot still pays for.
    paid_steps: u8,
}

impl Output {
    /// Returns the state before boot. The function is inlined, so the state is made where it stays.
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Self {
            due: Ticks::NEVER,
            chore: Chore::None,
            has_line: false,
            may_pump: false,
            payer: None,
            paid_steps: 0,
        }
    }

    /// Tells whether output left unsent is to be handed on at some time.
    pub fn is_planned(&self) -> bool {
        self.due != Ticks::NEVER
    }

    /// Tells whether a step of output comes before anything runs.
    #[inline(always)]
    pub(crate) const fn is_step_due(&self) -> bool {
        matches!(self.chore, Chore::Due | Chore::Owed)
    }

    /// Makes a slot pay for some steps of output.
    pub(crate) const fn charge(&mut self, payer: Option<Slot>, steps: u8) {
        self.payer = payer;
        self.paid_steps = steps;
    }

    /// Takes one of the steps that the running slot pays for. Returns false if it pays for none more.
    pub(crate) fn take_paid_step(&mut self, running: Option<Slot>) -> bool {
        if self.may_pump
            && self.payer == running
            && let Some(left) = self.paid_steps.checked_sub(1)
        {
            self.paid_steps = left;
            return true;
        }
        false
    }
}
