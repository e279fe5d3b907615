// SPDX-License-Identifier: Apache-2.0
//! Donation and the analysis: the declaration that a client needs so that everybody's bounds hold.
//!
//! **Model.** A client's job computes, asks a server, and computes again. The server takes the most important
//! request first, and the client lends the server its place meanwhile. The analysis knows nothing of servers.
//! The analysis is right if the `wcet` of a client holds two more times: the time that the server works for
//! the client, and one request of a less important client, the longest. That request may be under way, and is
//! completed in the place of the client that waits. The random systems of this file that the analysis accepts
//! so miss nothing and keep to their bounds. This includes the clients that use no server. Without the charge
//! for that one request, some systems do not.
//!
//! **In order.** A port's server takes the oldest request first. Then a client's `wcet` holds a stretch of
//! the server for each client that asks, and one more. **A lock** goes to the most important waiter. Then a
//! client's `wcet` holds the longest stretch of a less important owner besides its own. These are the terms
//! of `check` (`manifest/src/timing/waits.rs`).
//!
//! `BULKHEAD_SYSTEMS=n` tries that many systems.

use bulkhead_sched::analysis::{
    Bound, Demand, Miss, Overheads, PolicyModel, Shared, Task, TaskScheduler, Vcpu, slot_bounds,
};
use bulkhead_sched::{
    AnyPolicy, Decision, FixedPriorityParameters, Policy, Slot, StopReason, Ticks, VcpuParameters,
};

/// Running time of each system.
const HORIZON: Ticks = 3000;
const PARAMETERS: FixedPriorityParameters = FixedPriorityParameters { quantum: 1000 };

/// A client. Its priority is its place among the clients. The last client has the highest priority.
#[derive(Clone, Copy, Debug)]
struct Client {
    period: Ticks,
    first: Ticks,
    before: Ticks,
    /// The time that the server works for the client. 0 means that the client does not ask.
    service: Ticks,
    after: Ticks,
}

/// The one who does the requests of the clients, and the order of them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// A server, the most important request first.
    MostImportant,
    /// A server, the oldest request first.
    Oldest,
    /// Each client does its own request, as the owner of a lock. The most important waiter is the next owner.
    Lock,
}

/// The phase of a client's job.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Waiting,
    Before(Ticks),
    Asking,
    After(Ticks),
}

struct Run<'a> {
    clients: &'a [Client],
    order: Order,
    /// The clients that wait, the oldest request first.
    queue: Vec<usize>,
    policy: AnyPolicy,
    phases: Vec<Phase>,
    released: Vec<Ticks>,
    next: Vec<Ticks>,
    /// The client whose request is served, and the rest of the request.
    served: Option<(usize, Ticks)>,
    /// The longest response of each client. `None` means that a job was not done when the next came.
    longest: Vec<Option<Ticks>>,
}

/// Numbers that are the same each time (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn within(&mut self, from: u64, to: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        from + (mixed ^ mixed >> 31) % (to - from + 1)
    }
}

fn random_clients(numbers: &mut Numbers) -> Vec<Client> {
    let count = numbers.within(2, 5);
    let client = |_| {
        let period = numbers.within(20, 200);
        let share = period / count;
        Client {
            period,
            first: numbers.within(0, period),
            before: numbers.within(1, 1 + share / 3),
            service: numbers.within(0, 3).min(1) * numbers.within(1, 1 + share / 2),
            after: numbers.within(1, 1 + share / 4),
        }
    };
    (0..count).map(client).collect()
}

/// Returns the longest request of the clients that are less important than a client that asks.
fn blocking(clients: &[Client], of: usize) -> Ticks {
    let less = clients.iter().take(of).map(|client| client.service);
    less.max().filter(|_| clients[of].service > 0).unwrap_or(0)
}

/// Returns what a client is charged for the requests of others.
fn charge(clients: &[Client], of: usize, order: Order) -> Ticks {
    if order != Order::Oldest || clients[of].service == 0 {
        return blocking(clients, of);
    }
    // A stretch for each of those that ask, and one more: one of these stretches is the client's own.
    let asking = clients.iter().filter(|client| client.service > 0);
    let longest = asking.clone().map(|client| client.service).max().unwrap_or(0);
    (asking.count() as Ticks + 1) * longest - clients[of].service
}

/// Returns the bounds of all clients. `charge` says what a client is charged for others.
fn bounds(clients: &[Client], charge: impl Fn(usize) -> Ticks) -> Vec<Bound> {
    let task = |(number, client): (usize, &Client)| {
        let own = client.before + client.service + client.after;
        [Task::new(client.period, own + charge(number))]
    };
    let tasks: Vec<[Task; 1]> = clients.iter().enumerate().map(task).collect();
    let vcpus: Vec<Vcpu> = parameters(clients.len())
        .into_iter()
        .zip(&tasks)
        .map(|(parameters, tasks)| Vcpu {
            parameters,
            demand: Some(Demand {
                scheduler: TaskScheduler::FixedPriority,
                tasks,
            }),
            critical: 0,
        })
        .collect();
    let shared = Shared::new(&vcpus, Overheads::default());
    let bound = |slot| {
        let mut result = [Err(Miss::NotConverged)];
        slot_bounds(&PolicyModel::FixedPriority(PARAMETERS), shared, slot, &mut result);
        result[0]
    };
    (0..clients.len()).map(bound).collect()
}

/// Returns the parameters of the clients, in their order. Other vCPUs may come after them.
fn parameters(count: usize) -> Vec<VcpuParameters> {
    let vcpu = |number| VcpuParameters {
        priority: number as u8 + 1,
        ..VcpuParameters::default()
    };
    (0..count).map(vcpu).collect()
}

impl<'a> Run<'a> {
    fn new(clients: &'a [Client], order: Order) -> Self {
        let mut vcpus = parameters(clients.len());
        // This is the server. By itself, the server is the least important.
        vcpus.push(VcpuParameters::default());
        Self {
            clients,
            order,
            queue: Vec::new(),
            policy: AnyPolicy::fixed_priority(&vcpus, PARAMETERS).unwrap(),
            phases: vec![Phase::Waiting; clients.len()],
            released: vec![0; clients.len()],
            next: clients.iter().map(|client| client.first).collect(),
            served: None,
            longest: vec![Some(0); clients.len()],
        }
    }

    const fn server(&self) -> Slot {
        Slot(self.clients.len() as u8)
    }

    fn run(mut self) -> Vec<Option<Ticks>> {
        for now in 0..HORIZON {
            self.release(now);
            if let Decision::Run(slot, until) = self.policy.next(now) {
                assert!(until > now);
                if slot == self.server() {
                    self.serve(slot, now + 1);
                } else {
                    self.advance(slot, now + 1);
                }
            }
        }
        self.longest
    }

    fn release(&mut self, now: Ticks) {
        for number in 0..self.clients.len() {
            if self.next[number] > now {
                continue;
            }
            self.next[number] += self.clients[number].period;
            if self.phases[number] == Phase::Waiting {
                self.phases[number] = Phase::Before(self.clients[number].before);
                self.released[number] = now;
                self.policy.ready(Slot(number as u8), now);
            } else {
                self.longest[number] = None;
            }
        }
    }

    /// Takes note that a client has run for a tick, up to `now`.
    fn advance(&mut self, slot: Slot, now: Ticks) {
        let number = usize::from(slot.0);
        let client = self.clients[number];
        let (phase, why) = match self.phases[number] {
            Phase::Before(1) if client.service > 0 && self.takes_lock() => {
                self.served = Some((number, client.service));
                (Phase::Asking, StopReason::Preempted)
            }
            Phase::Before(1) if client.service > 0 => (Phase::Asking, StopReason::Blocked),
            Phase::Before(1) => (Phase::After(client.after), StopReason::Preempted),
            Phase::Before(left) => (Phase::Before(left - 1), StopReason::Preempted),
            Phase::After(1) => (Phase::Waiting, StopReason::Blocked),
            Phase::After(left) => (Phase::After(left - 1), StopReason::Preempted),
            // Only the owner of a lock runs while it has asked.
            Phase::Asking if self.order == Order::Lock => return self.serve(slot, now),
            phase @ (Phase::Waiting | Phase::Asking) => panic!("{slot:?} runs in {phase:?}"),
        };
        self.phases[number] = phase;
        self.policy.stopped(slot, why, 1, now);
        if phase == Phase::Asking && why == StopReason::Blocked {
            self.queue.push(number);
            self.policy.donate(slot, self.doer(), now).unwrap();
            if self.served.is_none() {
                self.serve_next();
                self.policy.ready(self.server(), now);
            }
        } else if phase == Phase::Waiting {
            let response = now - self.released[number];
            self.longest[number] = self.longest[number].map(|longest| longest.max(response));
        }
    }

    /// Tells whether a client that asks is the owner of the lock at once.
    fn takes_lock(&self) -> bool {
        self.order == Order::Lock && self.served.is_none()
    }

    /// Returns the one who does the request under way, or the next one.
    fn doer(&self) -> Slot {
        match (self.order, self.served) {
            (Order::Lock, Some((owner, _))) => Slot(owner as u8),
            _ => self.server(),
        }
    }

    /// Begins the next request.
    fn serve_next(&mut self) {
        let next = match self.order {
            Order::Oldest => 0,
            Order::MostImportant | Order::Lock => {
                let first = self.queue.iter().enumerate().max_by_key(|(_, number)| **number);
                first.map_or(0, |(place, _)| place)
            }
        };
        let next = (next < self.queue.len()).then(|| self.queue.remove(next));
        self.served = next.map(|next| (next, self.clients[next].service));
    }

    /// Takes note that the one who does a request has run for a tick, up to `now`.
    fn serve(&mut self, doer: Slot, now: Ticks) {
        let (number, left) = self.served.expect("it runs for somebody");
        if left > 1 {
            self.served = Some((number, left - 1));
            return self.policy.stopped(doer, StopReason::Preempted, 1, now);
        }
        self.phases[number] = Phase::After(self.clients[number].after);
        if self.order == Order::Lock {
            return self.hand_on(doer, now);
        }
        self.policy.return_donation(Slot(number as u8), now).unwrap();
        self.serve_next();
        let why = match self.served {
            Some(_) => StopReason::Preempted,
            None => StopReason::Blocked,
        };
        self.policy.stopped(doer, why, 1, now);
    }

    /// Gives the lock to the next owner, and that one the places of those who wait on.
    fn hand_on(&mut self, owner: Slot, now: Ticks) {
        self.policy.stopped(owner, StopReason::Preempted, 1, now);
        for waiter in &self.queue {
            self.policy.return_donation(Slot(*waiter as u8), now).unwrap();
        }
        self.serve_next();
        for waiter in &self.queue {
            self.policy.donate(Slot(*waiter as u8), self.doer(), now).unwrap();
        }
    }
}

/// Compares random systems with their bounds. Without the charge some of them must be late.
fn who_charges_is_in_time(order: Order) {
    let count = std::env::var("BULKHEAD_SYSTEMS").ok();
    let count = count.and_then(|text| text.parse().ok()).unwrap_or(500);
    let (mut accepted, mut late_without) = (0_u64, 0_u64);
    for seed in 0..count {
        let clients = random_clients(&mut Numbers(seed));
        let observed = Run::new(&clients, order).run();
        let keeps = |bound: &Bound, longest: &Option<Ticks>| {
            bound.is_ok_and(|bound| longest.is_some_and(|longest| longest <= bound))
        };
        let with = bounds(&clients, |of| charge(&clients, of, order));
        if with.iter().all(Result::is_ok) {
            accepted += 1;
            for (bound, longest) in with.iter().zip(&observed) {
                assert!(
                    keeps(bound, longest),
                    "{seed}: {bound:?} {longest:?}\n{clients:#?}"
                );
            }
        }
        let without = bounds(&clients, |_| 0);
        if without.iter().all(Result::is_ok) {
            let pairs = without.iter().zip(&observed);
            late_without += pairs.filter(|(bound, longest)| !keeps(bound, longest)).count() as u64;
        }
    }
    println!(
        "{order:?}: {count} systems, {accepted} accepted; without the charge {late_without} clients beyond their bound"
    );
    assert!(accepted * 6 > count, "{accepted}");
    assert!(late_without > 0, "nothing need be charged");
}

#[test]
fn who_charges_one_request_of_the_less_important_is_in_time() {
    who_charges_is_in_time(Order::MostImportant);
}

#[test]
fn who_charges_a_stretch_for_each_that_asks_is_in_time_at_a_port() {
    who_charges_is_in_time(Order::Oldest);
}

#[test]
fn who_charges_one_less_important_owner_is_in_time_at_a_lock() {
    who_charges_is_in_time(Order::Lock);
}
