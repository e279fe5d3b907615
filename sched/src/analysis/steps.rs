// SPDX-License-Identifier: Apache-2.0
//! A limit to the work of an analysis, for those who search by trying and have to end in time.
//!
//! The analysis draws a step for each task or vCPU that it looks at in each round of its iterations. The
//! number of steps does not depend on the machine that executes the analysis. When all steps are used, each
//! supply takes for ever, so the analysis ends soon, and refuses. A bound that it still gives is safe.

use core::cell::Cell;

use super::{Shared, Supply, fixed_point};
use crate::Ticks;

/// A limit to the steps of analyses, with a count of the steps.
#[derive(Debug, PartialEq, Eq)]
pub struct Steps {
    limit: u64,
    drawn: Cell<u64>,
}

impl Steps {
    /// Returns a limit of this many steps.
    #[must_use]
    pub const fn new(limit: u64) -> Self {
        Self {
            limit,
            drawn: Cell::new(0),
        }
    }

    /// Returns the steps that were asked for. Those beyond the limit were not taken.
    #[must_use]
    pub const fn drawn(&self) -> u64 {
        self.drawn.get()
    }

    /// Returns the steps that are left; 0: a result may be a refusal only because the work was given up.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.drawn())
    }

    /// Draws steps. Returns false if fewer are left.
    pub fn draw(&self, steps: u64) -> bool {
        self.drawn.set(self.drawn().saturating_add(steps));
        self.drawn() <= self.limit
    }
}

impl Shared<'_> {
    /// Draws `steps`; always succeeds if there is no limit.
    pub(super) fn draw(&self, steps: u64) -> bool {
        self.steps.is_none_or(|limit| limit.draw(steps))
    }

    /// Draws a step for each vCPU and each task.
    pub(super) fn draw_all(&self) -> bool {
        let all = || {
            self.vcpus.iter().fold(0, |sum: u64, vcpu| {
                let tasks = vcpu.demand.map_or(0, |demand| demand.tasks.len());
                sum.saturating_add(1).saturating_add(tasks as u64)
            })
        };
        self.steps.is_none_or(|limit| limit.draw(all()))
    }

    /// Returns what [`fixed_point`] does for a `step` that looks at all vCPUs; `None` too if all steps are
    /// used.
    pub(super) fn fixed_point(
        &self,
        from: Ticks,
        limit: Ticks,
        step: impl Fn(Ticks) -> Ticks,
    ) -> Option<Ticks> {
        let counted = |time| if self.draw_all() { step(time) } else { Ticks::MAX };
        let time = fixed_point(from, limit, counted)?;
        self.steps.is_none_or(|limit| limit.left() > 0).then_some(time)
    }
}

/// A supply whose answers are counted: `each` steps for each of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted<'a, S> {
    pub supply: S,
    pub shared: Shared<'a>,
    pub each: u64,
}

impl<S: Supply> Supply for Counted<'_, S> {
    fn time_for(&self, work: Ticks) -> Ticks {
        if self.shared.draw(self.each) {
            self.supply.time_for(work)
        } else {
            Ticks::MAX
        }
    }

    fn stolen(&self, interval: Ticks) -> Ticks {
        self.supply.stolen(interval)
    }
}
