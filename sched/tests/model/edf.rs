// SPDX-License-Identifier: Apache-2.0
//! Oracle of `edf`: the promise to every server at a density of at most 1, with any behaviour of the others.
//!
//! The first promise is about a vCPU that wakes up after a whole period in which it wanted nothing, and wants
//! all it can get from then on. This vCPU has n + 1 budgets by its deadline in period n. The second promise
//! is about a vCPU that is passed over for the background, or for an idle pCPU. This vCPU has used its budget
//! in the last period.

use crate::model::{Freedom, Oracle, Pcpu, Verdict, World, check};
use bulkhead_sched::{AnyPolicy, EdfParameters, Server, ServerKind, Signals, Ticks, VcpuParameters};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    /// Budget, period, relative deadline. `None` is the background.
    server: Option<(Ticks, Ticks, Ticks)>,
    /// Bit n means that the place was run n + 1 ticks ago.
    history: u64,
    /// The time for which the place has wanted nothing, up to a period.
    quiet: Ticks,
    /// The time since the place has wanted all it can get after a quiet period, and the time it got.
    served: Option<(Ticks, Ticks)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edf {
    places: Vec<Place>,
    has_exhausted: bool,
    has_replenished: bool,
}

impl Place {
    /// Judges the promise at the end of a tick.
    fn judge(&self) -> Verdict {
        let (Some((budget, period, deadline)), Some((since, got))) = (self.server, self.served) else {
            return Ok(());
        };
        let due = since.checked_sub(deadline).map_or(0, |late| late / period + 1);
        if got < due * budget {
            return Err("a server has not had its budget by its deadline");
        }
        Ok(())
    }

    fn has_used_its_budget(&self) -> bool {
        self.server.is_none_or(|(budget, period, deadline)| {
            let recent = (self.history & ((1 << (period - 1)) - 1)).count_ones();
            // With a deadline below the period, budget may also be forfeited.
            Ticks::from(recent) >= budget || deadline < period
        })
    }

    fn tick(&mut self, is_ready: bool, is_run: bool) -> Verdict {
        self.history = self.history << 1 | u64::from(is_run);
        let Some((_, period, _)) = self.server else {
            self.history = 0;
            return Ok(());
        };
        self.history &= (1 << period) - 1;
        if is_ready {
            if self.quiet >= period {
                self.served = Some((0, 0));
            }
            self.quiet = 0;
            if let Some((since, got)) = &mut self.served {
                *since += 1;
                *got += Ticks::from(is_run);
            }
        } else {
            self.quiet = period.min(self.quiet + 1);
            self.served = None;
        }
        self.judge()
    }
}

impl Oracle for Edf {
    fn blocked(&mut self, slot: u8, world: &World) {
        // Even if it was for no time, the place has wanted something, and no longer wants all it can get.
        let runs = |place: u8| place == slot || world.end(place) == Some(slot);
        for (number, place) in (0..).zip(&mut self.places) {
            if runs(number) {
                place.served = None;
                place.quiet = 0;
            }
        }
    }

    fn decided(&mut self, _world: &World, signals: Signals) -> Verdict {
        self.has_exhausted |= signals.exhausted.0 != 0;
        self.has_replenished |= signals.replenished.0 != 0;
        Ok(())
    }

    fn tick(&mut self, world: &World) -> Verdict {
        // With donations, several places may be the one that is run. The oracle takes each of them to be run,
        // to its disadvantage.
        let is_run = |slot: u8| world.running.is_some() && world.end(slot) == world.running;
        let mut servers = (0_u8..)
            .zip(&self.places)
            .filter(|(_, place)| place.server.is_some());
        let runs_server = servers.any(|(slot, _)| is_run(slot));
        for (slot, place) in (0..).zip(&mut self.places) {
            let is_passed_over = world.is_runnable(slot) && !runs_server;
            if is_passed_over && !place.has_used_its_budget() {
                return Err("a server with budget waits for the background, or for nobody");
            }
            if world.is_runnable(slot) && world.running.is_none() && place.server.is_none() {
                return Err("one in the background waits for nobody");
            }
            place.tick(world.is_runnable(slot), is_run(slot))?;
        }
        Ok(())
    }

    fn has_seen_all(&self) -> bool {
        self.has_exhausted && self.has_replenished
    }
}

pub fn model(
    servers: &[Option<(Ticks, Ticks, Ticks)>],
    freedom: Freedom,
    horizon: Ticks,
) -> Pcpu<AnyPolicy, Edf> {
    let parameters: Vec<_> = servers
        .iter()
        .map(|server| VcpuParameters {
            server: server.map(|(budget, period, _)| Server {
                budget,
                period,
                kind: ServerKind::ConstantBandwidth,
            }),
            deadline: server.map_or(0, |(_, _, deadline)| deadline),
            ..VcpuParameters::default()
        })
        .collect();
    let places = servers.iter().map(|server| Place {
        server: *server,
        history: 0,
        quiet: server.map_or(0, |(_, period, _)| period),
        served: None,
    });
    let oracle = Edf {
        places: places.collect(),
        has_exhausted: false,
        has_replenished: false,
    };
    Pcpu {
        policy: AnyPolicy::edf(&parameters, EdfParameters { quantum: 2 }).unwrap(),
        slots: servers.len() as u8,
        freedom,
        oracle,
        horizon,
    }
}

fn search(name: &str, servers: &[Option<(Ticks, Ticks, Ticks)>], freedom: Freedom, horizon: Ticks) {
    check(name, model(servers, freedom, horizon));
}

#[test]
fn servers_at_full_density_keep_their_deadlines() {
    let servers = [Some((1, 2, 2)), Some((1, 4, 4)), Some((1, 4, 4))];
    search("edf", &servers, Freedom::default(), 7);
}

#[test]
fn servers_with_deadlines_below_their_periods_keep_them() {
    let servers = [Some((1, 5, 3)), Some((2, 4, 3)), None];
    let freedom = Freedom {
        unnoticed: 0b11,
        always_ready: 0b100,
        ..Freedom::default()
    };
    search("edf constrained", &servers, freedom, 11);
}

#[test]
fn deadlines_are_kept_when_partitions_are_stopped_and_vcpus_yield() {
    let servers = [Some((1, 2, 2)), Some((2, 4, 4))];
    let freedom = Freedom {
        withdraws: true,
        yields: true,
        ..Freedom::default()
    };
    search("edf stopping", &servers, freedom, 9);
}

/// Wakes the second server up unnoticed. If its deadline counted from the moment of notice, 14 ticks would be
/// too late.
#[test]
fn a_deadline_counts_from_the_wake_up() {
    let servers = [Some((4, 8, 8)), Some((6, 13, 13))];
    let freedom = Freedom {
        unnoticed: 0b10,
        always_ready: 0b01,
        ..Freedom::default()
    };
    search("edf unnoticed", &servers, freedom, 15);
}

#[test]
fn donations_run_on_the_donor_s_budget() {
    let servers = [Some((1, 2, 2)), Some((1, 4, 4)), None];
    let freedom = Freedom {
        donates: true,
        ..Freedom::default()
    };
    search("edf donation", &servers, freedom, 4);
}
