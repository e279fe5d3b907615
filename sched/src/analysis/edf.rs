// SPDX-License-Identifier: Apache-2.0
//! The promise of policy `edf` to a vCPU with a server: its budget by each deadline, as long as the densities
//! of all servers add up to at most one.
//!
//! A vCPU may become ready when its budget has just been used up, as early as possible. It then waits for the
//! next period, and its budget may come as late as the deadline allows. Only a vCPU with a single task that
//! is done before the next release always finds its budget whole.
//!
//! If a vCPU asks for a part of its budget only, that part is delivered earlier, by the length of the rest:
//! the others ask for no more than their share of any stretch that ends at the deadline.

use super::{ONE, Shared, Supply, Vcpu, ratio};
use crate::{Server, Ticks};

/// The supply of one slot.
#[derive(Clone, Copy, Debug)]
pub struct EdfSupply<'a> {
    shared: Shared<'a>,
    slot: usize,
    server: Server,
    deadline: Ticks,
    /// The budget is whole whenever the vCPU becomes ready.
    is_whole: bool,
}

impl<'a> EdfSupply<'a> {
    /// Returns the supply of `slot`, or `None` if it has no server, or if the pCPU is overloaded.
    #[must_use]
    pub fn new(shared: Shared<'a>, slot: usize) -> Option<Self> {
        let own = shared.vcpus.get(slot)?;
        let server = own.parameters.server?;
        if density(&shared) > ONE {
            return None;
        }
        let mut supply = Self {
            shared,
            slot,
            server,
            deadline: relative_deadline(own)?,
            is_whole: false,
        };
        supply.is_whole = own.demand.is_some_and(|demand| match demand.tasks {
            [task] => {
                let work = task
                    .wcet
                    .saturating_add(shared.overheads.per_job())
                    .saturating_add(supply.stolen(task.period))
                    .saturating_add(shared.overheads.arrival());
                let budgets = work.div_ceil(supply.useful().max(1));
                budgets.saturating_mul(server.period) <= task.period
            }
            _ => false,
        });
        Some(supply)
    }

    /// Returns the useful part of each budget. The switch to the vCPU is lost, and so is the overrun of the
    /// one before.
    const fn useful(&self) -> Ticks {
        self.server.budget.saturating_sub(self.shared.overheads.at_ends())
    }
}

fn relative_deadline(vcpu: &Vcpu) -> Option<Ticks> {
    let server = vcpu.parameters.server?;
    Some(match vcpu.parameters.deadline {
        0 => server.period,
        deadline => deadline,
    })
}

/// Returns the sum of the servers' densities, with what their ends cost the others, in parts of [`ONE`].
#[must_use]
pub fn density(shared: &Shared) -> Ticks {
    let overdrawn = shared.overheads.at_ends();
    shared.vcpus.iter().fold(0, |sum: Ticks, vcpu| {
        let one = vcpu.parameters.server.zip(relative_deadline(vcpu));
        let density = one.map_or(0, |(server, deadline)| {
            ratio(server.budget.saturating_add(overdrawn), deadline)
        });
        sum.saturating_add(density)
    })
}

impl Supply for EdfSupply<'_> {
    fn time_for(&self, work: Ticks) -> Ticks {
        let useful = self.useful();
        let Some(whole) = work.saturating_sub(1).checked_div(useful) else {
            return Ticks::MAX;
        };
        let rest = work.saturating_sub(whole.saturating_mul(useful));
        let wait = if self.is_whole {
            0
        } else {
            self.server.period.saturating_sub(self.server.budget)
        };
        let late = self.deadline.saturating_sub(useful.saturating_sub(rest));
        whole
            .saturating_mul(self.server.period)
            .saturating_add(wait)
            .saturating_add(late)
            .saturating_add(self.shared.overheads.under_way())
    }

    fn stolen(&self, interval: Ticks) -> Ticks {
        self.shared.stolen(self.slot, |_| true, interval)
    }
}
