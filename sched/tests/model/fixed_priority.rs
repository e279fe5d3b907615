// SPDX-License-Identifier: Apache-2.0
//! Oracle of `fixed-priority` with budgets and donation.
//!
//! The oracle recounts a deferrable budget tick by tick. For a sporadic budget, the oracle only keeps the
//! places that ran in the last ticks. The budget must be there again when less than the budget was used in
//! the last period. For the most important vCPU, which no other delays, the budget must not be there
//! otherwise.

use crate::model::{Freedom, Oracle, Pcpu, Verdict, World, check};
use bulkhead_sched::{
    AnyPolicy, FixedPriorityParameters, Server, ServerKind, Signals, Ticks, VcpuParameters,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    priority: u8,
    server: Option<Server>,
    /// Bit n means that the place was run n ticks ago.
    history: u64,
    /// Of a deferrable server: the rest of the budget, and the start of the next period.
    left: Ticks,
    boundary: Option<Ticks>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FixedPriority {
    places: Vec<Place>,
    has_exhausted: bool,
    has_replenished: bool,
    /// True if pieces of sporadic budgets may be joined, and so come late.
    may_be_late: bool,
}

impl Place {
    /// Returns how many of the last `ticks` ticks ran the place. The tick being judged is among them and not
    /// counted yet.
    fn used_within(&self, ticks: Ticks) -> Ticks {
        Ticks::from((self.history & ((1 << ticks) - 1)).count_ones())
    }

    /// Tells whether the place must have budget, and whether it may have budget.
    fn budget(&self, is_top: bool, may_be_late: bool) -> (bool, bool) {
        match self.server {
            None => (true, true),
            Some(Server {
                kind: ServerKind::Deferrable,
                ..
            }) => (self.left > 0, self.left > 0),
            Some(Server { budget, period, .. }) => {
                let is_certain = self.used_within(period) < budget;
                (is_certain && !may_be_late, is_certain || !is_top)
            }
        }
    }
}

impl Oracle for FixedPriority {
    fn woke(&mut self, slot: u8, world: &World) {
        let is_run = |place: u8| world.end(place) == Some(slot);
        for number in 0..self.places.len() {
            let place = &mut self.places[number];
            if let (true, None, Some(server)) = (is_run(number as u8), place.boundary, place.server) {
                place.boundary = Some(world.now + server.period);
                place.left = server.budget;
            }
        }
    }

    fn decided(&mut self, _world: &World, signals: Signals) -> Verdict {
        self.has_exhausted |= signals.exhausted.0 != 0;
        self.has_replenished |= signals.replenished.0 != 0;
        Ok(())
    }

    fn tick(&mut self, world: &World) -> Verdict {
        for place in &mut self.places {
            if let (Some(server), Some(boundary)) = (place.server, place.boundary)
                && boundary == world.now
            {
                place.left = server.budget;
                place.boundary = Some(boundary + server.period);
            }
            // Ticks longer ago than a period do not count.
            let kept = place.server.map_or(0, |server| server.period);
            place.history = place.history << 1 & ((1 << kept) - 1);
        }
        let top = self.places.iter().map(|place| place.priority).max();
        let mut must = None;
        let mut runs = None;
        for (slot, place) in (0..).zip(&self.places) {
            if !world.is_runnable(slot) {
                continue;
            }
            let (certain, possible) = place.budget(Some(place.priority) == top, self.may_be_late);
            if certain {
                must = must.max(Some(place.priority));
            }
            if possible && world.running.is_some() && world.end(slot) == world.running {
                runs = runs.max(Some((place.priority, slot)));
            }
        }
        if must > runs.map(|(priority, _)| priority) {
            return Err("one with budget waits for a less important one, or for nobody");
        }
        match (world.running, runs) {
            (Some(_), None) => return Err("one runs beyond its budget"),
            (_, Some((_, slot))) => {
                let place = &mut self.places[usize::from(slot)];
                place.history |= 1;
                place.left = place.left.saturating_sub(1);
                if place.server.is_none() {
                    place.history = 0;
                }
            }
            (None, None) => {}
        }
        Ok(())
    }

    fn has_seen_all(&self) -> bool {
        let has_servers = self.places.iter().any(|place| place.server.is_some());
        !has_servers || self.has_exhausted && self.has_replenished
    }
}

pub fn model(
    vcpus: &[(u8, Option<Server>)],
    freedom: Freedom,
    horizon: Ticks,
) -> Pcpu<AnyPolicy, FixedPriority> {
    let parameters: Vec<_> = vcpus
        .iter()
        .map(|(priority, server)| VcpuParameters {
            priority: *priority,
            server: *server,
            ..VcpuParameters::default()
        })
        .collect();
    let places = vcpus.iter().map(|(priority, server)| Place {
        priority: *priority,
        server: *server,
        history: 0,
        left: 0,
        boundary: None,
    });
    let is_divisible = |server: &Server| server.kind == ServerKind::Sporadic && server.budget > 4;
    let oracle = FixedPriority {
        places: places.collect(),
        has_exhausted: false,
        has_replenished: false,
        may_be_late: vcpus
            .iter()
            .any(|(_, server)| server.as_ref().is_some_and(is_divisible)),
    };
    Pcpu {
        policy: AnyPolicy::fixed_priority(&parameters, FixedPriorityParameters { quantum: 2 }).unwrap(),
        slots: vcpus.len() as u8,
        freedom,
        oracle,
        horizon,
    }
}

fn search(name: &str, vcpus: &[(u8, Option<Server>)], freedom: Freedom, horizon: Ticks) {
    check(name, model(vcpus, freedom, horizon));
}

fn server(kind: ServerKind, budget: Ticks, period: Ticks) -> Option<Server> {
    Some(Server { budget, period, kind })
}

/// Slot 2 is there all the time. So the oracle also judges the case in which a vCPU waits for nothing.
const CALM: Freedom = Freedom {
    yields: false,
    donates: false,
    withdraws: false,
    critical: 0,
    schedules: 0,
    unnoticed: 0,
    always_ready: 0b100,
};

#[test]
fn deferrable_budgets_are_delivered_and_not_exceeded() {
    let vcpus = [
        (9, server(ServerKind::Deferrable, 2, 4)),
        (5, server(ServerKind::Deferrable, 1, 3)),
        (1, None),
    ];
    search("deferrable", &vcpus, CALM, 9);
}

#[test]
fn sporadic_budgets_are_delivered_and_not_exceeded() {
    let vcpus = [
        (9, server(ServerKind::Sporadic, 2, 4)),
        (5, server(ServerKind::Sporadic, 1, 3)),
        (1, None),
    ];
    search("sporadic", &vcpus, CALM, 9);
}

#[test]
fn a_sporadic_budget_in_more_pieces_than_the_queue_has_is_never_early() {
    let vcpus = [(9, server(ServerKind::Sporadic, 5, 9))];
    search("pieces", &vcpus, Freedom::default(), 15);
}

#[test]
fn budgets_are_kept_when_partitions_are_stopped_and_vcpus_yield() {
    let vcpus = [
        (9, server(ServerKind::Sporadic, 1, 3)),
        (5, server(ServerKind::Deferrable, 1, 3)),
    ];
    let freedom = Freedom {
        withdraws: true,
        yields: true,
        ..Freedom::default()
    };
    search("stopping", &vcpus, freedom, 8);
}

#[test]
fn donations_inherit_priority_and_never_go_in_a_circle() {
    let vcpus = [(3, None), (2, server(ServerKind::Deferrable, 1, 2)), (1, None)];
    let freedom = Freedom {
        donates: true,
        withdraws: true,
        ..Freedom::default()
    };
    search("donation", &vcpus, freedom, 4);
}

#[test]
fn donation_chains_of_four_never_go_in_a_circle() {
    let vcpus = [(3, None), (2, None), (1, None), (0, None)];
    let freedom = Freedom {
        donates: true,
        ..Freedom::default()
    };
    search("chains", &vcpus, freedom, 2);
}
