// SPDX-License-Identifier: Apache-2.0
//! The analysis against the simulator, on random systems. A system that the analysis accepts never misses a
//! deadline, and no response is ever longer than its bound.
//!
//! `BULKHEAD_SYSTEMS=100000 cargo test --release -p bulkhead-sched --test prop_analysis -- --nocapture` runs
//! that many systems per policy and prints how tight the bounds are, as rows of the table in
//! docs/analysis.md. Systems are numbered. A failure names its number and shows the system.
//! `BULKHEAD_SYSTEM=n` runs that system alone.

mod corpus;
mod systems;

use systems::{Run, Tightness, count, grouped, only};

fn prove(policy: systems::Kind) {
    let mut tightness = Tightness::default();
    let numbers = only().map_or(0..count(), |number| number..number + 1);
    let mut accepted = 0;
    for number in numbers.clone() {
        let system = systems::System::random(policy, number);
        let bounds = system.analyse();
        if !bounds.iter().flatten().all(Result::is_ok) {
            continue;
        }
        accepted += 1;
        let bounds: Vec<_> = bounds.into_iter().flatten().map(Result::unwrap).collect();
        let mut longest = vec![0; bounds.len()];
        for run in Run::ALL {
            for (task, observed) in system.simulate(run).iter().enumerate() {
                let bound = bounds[task];
                assert!(
                    observed.missed == 0 && observed.longest <= bound,
                    "system {number} of {policy:?}, {run:?}, task {task}: bound {bound}, observed {observed:?}\n{system:#?}",
                );
                longest[task] = observed.longest.max(longest[task]);
            }
        }
        for (bound, longest) in bounds.into_iter().zip(longest) {
            tightness.add(bound, longest);
        }
    }
    println!("| {} | {} | {tightness} |", policy.name(), grouped(accepted));
    // A test that accepts nothing proves nothing.
    assert!(
        only().is_some() || accepted * 40 > count(),
        "only {accepted} accepted"
    );
}

#[test]
fn pinned() {
    prove(systems::Kind::Pinned);
}

#[test]
fn fixed_priority() {
    prove(systems::Kind::FixedPriority);
}

#[test]
fn fixed_priority_with_equals() {
    prove(systems::Kind::RoundRobin);
}

#[test]
fn fixed_priority_with_servers() {
    prove(systems::Kind::Servers);
}

#[test]
fn edf() {
    prove(systems::Kind::Edf);
}

#[test]
fn arinc653() {
    prove(systems::Kind::Arinc653);
}

#[test]
fn arinc653_with_a_change_of_the_schedule() {
    prove(systems::Kind::Schedules);
}

#[test]
fn domains() {
    prove(systems::Kind::Domains);
}

#[test]
fn domains_with_critical_interrupts() {
    prove(systems::Kind::Critical);
}
