// SPDX-License-Identifier: Apache-2.0
//! Oracle of `domains`. The oracle recounts turns and budgets tick by tick, and checks the guarantee that
//! follows.
//!
//! A vCPU that always wants to run, and is alone in its domain, has a whole budget in any stretch of two
//! times the sum of all budgets. The behaviour of domain 0, critical interrupts, donations and the other
//! domains does not matter: a cycle is no longer than the sum.

use crate::model::{Freedom, Oracle, Pcpu, Verdict, World, check};
use bulkhead_sched::{AnyPolicy, Domain, DomainsParameters, Signals, Ticks, VcpuParameters};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Domains {
    /// Domain and priority of each vCPU.
    places: Vec<(u8, u8)>,
    budgets: Vec<Ticks>,
    left: Vec<Ticks>,
    turn: usize,
    always_ready: u32,
    /// By vCPU. Bit n means that it was run n + 1 ticks ago.
    history: Vec<u64>,
    has_lent: bool,
    has_preempted: bool,
}

impl Domains {
    fn priority(&self, slot: u8) -> u8 {
        self.places[usize::from(slot)].1
    }

    /// Returns the ready places of a domain. In domain 0 these include the critical ones.
    fn ready_in(&self, domain: usize, world: &World) -> Vec<u8> {
        let is_in = |slot: u8| {
            usize::from(self.places[usize::from(slot)].0) == domain
                || domain == 0 && world.critical >> slot & 1 == 1
        };
        (0..self.places.len() as u8)
            .filter(|slot| is_in(*slot) && world.is_runnable(*slot))
            .collect()
    }

    /// Returns the highest priority among the slots.
    fn top(&self, slots: &[u8]) -> Option<u8> {
        slots.iter().map(|slot| self.priority(*slot)).max()
    }

    fn find_turn(&mut self, world: &World) {
        let zero_is_empty = self.ready_in(0, world).is_empty();
        while self.left[self.turn] == 0 || self.turn == 0 && zero_is_empty {
            self.turn = (self.turn + 1) % self.budgets.len();
            if self.turn == 0 {
                self.left.clone_from(&self.budgets);
            }
        }
    }
}

impl Oracle for Domains {
    fn decided(&mut self, world: &World, _signals: Signals) -> Verdict {
        // If no vCPU is ready, the turns go by in `tick`.
        if (0..self.places.len() as u8).any(|slot| world.is_runnable(slot)) {
            self.find_turn(world);
        }
        Ok(())
    }

    fn tick(&mut self, world: &World) -> Verdict {
        self.find_turn(world);
        let (zero, own) = (self.ready_in(0, world), self.ready_in(self.turn, world));
        let own_top = self.top(&own);
        let is_other = |slot: &u8| usize::from(self.places[usize::from(*slot)].0) != self.turn;
        let is_urgent = zero
            .iter()
            .any(|slot| world.critical >> slot & 1 == 1 && is_other(slot));
        let goes_before = is_urgent || self.top(&zero) > own_top;
        let preempts = self.turn != 0 && self.left[0] > 0 && own_top.is_some() && goes_before;
        let lends = self.turn != 0 && own.is_empty();
        let charged = if preempts { 0 } else { self.turn };
        let from = if preempts || lends { zero } else { own };
        self.left[charged] -= 1;
        self.has_lent |= lends && !from.is_empty();
        self.has_preempted |= preempts;
        let top = self.top(&from);
        let mut best = from.iter().filter(|slot| Some(self.priority(**slot)) == top);
        let is_right = match world.running {
            None => from.is_empty(),
            Some(_) => best.any(|slot| world.end(*slot) == world.running),
        };
        if !is_right {
            return Err("another runs than the turns, budgets and priorities say");
        }
        for (slot, history) in (0..).zip(&mut self.history) {
            if self.always_ready >> slot & 1 == 1 {
                *history = *history << 1 | u64::from(world.running == Some(slot));
            }
        }
        self.guarantee(world.now + 1)
    }

    fn has_seen_all(&self) -> bool {
        self.has_lent && self.has_preempted
    }
}

impl Domains {
    fn guarantee(&self, now: Ticks) -> Verdict {
        let stretch = 2 * self.budgets.iter().sum::<Ticks>();
        for (slot, (domain, _)) in (0_u8..).zip(&self.places) {
            let got = (self.history[usize::from(slot)] & ((1 << stretch) - 1)).count_ones();
            let budget = self.budgets[usize::from(*domain)];
            if self.always_ready >> slot & 1 == 1 && now >= stretch && Ticks::from(got) < budget {
                return Err("a domain has lost its budget");
            }
        }
        Ok(())
    }
}

pub fn model(
    places: &[(u8, u8)],
    budgets: &[Ticks],
    freedom: Freedom,
    horizon: Ticks,
) -> Pcpu<AnyPolicy, Domains> {
    let vcpus: Vec<_> = places
        .iter()
        .map(|(domain, priority)| VcpuParameters {
            priority: *priority,
            domain: *domain,
            ..VcpuParameters::default()
        })
        .collect();
    let domains: Vec<_> = budgets.iter().map(|budget| Domain { budget: *budget }).collect();
    let parameters = DomainsParameters {
        domains: &domains,
        quantum: 2,
    };
    let oracle = Domains {
        places: places.to_vec(),
        budgets: budgets.to_vec(),
        left: budgets.to_vec(),
        turn: 0,
        always_ready: freedom.always_ready,
        history: vec![0; places.len()],
        has_lent: false,
        has_preempted: false,
    };
    Pcpu {
        policy: AnyPolicy::domains(&vcpus, parameters).unwrap(),
        slots: places.len() as u8,
        freedom,
        oracle,
        horizon,
    }
}

fn search(name: &str, places: &[(u8, u8)], budgets: &[Ticks], freedom: Freedom, horizon: Ticks) {
    check(name, model(places, budgets, freedom, horizon));
}

#[test]
fn turns_budgets_and_priorities_are_as_documented() {
    let freedom = Freedom {
        unnoticed: 0b101,
        yields: true,
        withdraws: true,
        ..Freedom::default()
    };
    search("domains", &[(0, 5), (1, 3), (2, 7)], &[2, 2, 3], freedom, 12);
}

#[test]
fn no_domain_loses_its_budget_to_domain_0_or_to_critical_interrupts() {
    let freedom = Freedom {
        critical: 0b100,
        always_ready: 0b010,
        ..Freedom::default()
    };
    search(
        "domains critical",
        &[(0, 9), (1, 3), (2, 7)],
        &[1, 2, 2],
        freedom,
        16,
    );
}

/// Searches with a critical vCPU that is less important than the vCPU of another domain. The second search
/// has such a vCPU of domain 0 too.
#[test]
fn a_critical_interrupt_is_served_at_once_whatever_the_priorities() {
    for critical in [0b100, 0b101] {
        let freedom = Freedom {
            critical,
            always_ready: 0b010,
            yields: true,
            ..Freedom::default()
        };
        let places = [(0, 3), (1, 7), (2, 3)];
        search("domains urgent", &places, &[2, 2, 2], freedom, 12);
    }
    let freedom = Freedom {
        critical: 0b010,
        withdraws: true,
        ..Freedom::default()
    };
    // Here the critical vCPU has a more important one in its domain, for which it waits in that turn.
    let places = [(0, 5), (1, 3), (1, 7)];
    search("domains urgent at home", &places, &[2, 2], freedom, 12);
}

#[test]
fn donations_run_on_the_donor_s_domain() {
    let freedom = Freedom {
        donates: true,
        ..Freedom::default()
    };
    search(
        "domains donation",
        &[(0, 5), (1, 3), (2, 7)],
        &[2, 2, 2],
        freedom,
        7,
    );
}

#[test]
fn critical_interrupts_and_donations_go_together() {
    let freedom = Freedom {
        donates: true,
        critical: 0b110,
        ..Freedom::default()
    };
    for places in [[(0, 5), (1, 3), (2, 7)], [(0, 5), (1, 7), (2, 3)]] {
        search(
            "domains critical donation",
            &places,
            &[1, 2, 2],
            freedom.clone(),
            5,
        );
    }
}

#[test]
fn a_domain_s_budget_is_not_lost_while_others_donate() {
    let freedom = Freedom {
        donates: true,
        critical: 0b100,
        always_ready: 0b010,
        ..Freedom::default()
    };
    let places = [(0, 9), (1, 3), (2, 7)];
    search("domains donation around", &places, &[1, 1, 1], freedom, 7);
}
