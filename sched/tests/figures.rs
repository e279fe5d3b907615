// SPDX-License-Identifier: Apache-2.0
//! The promises of the policies in numbers, over long stretches of simulated time: a full pCPU under `edf`,
//! exact shares of time domains, the starts of windows. The figures are also in docs/scheduling.md. Every
//! run covers a tenth of them, and the long tests cover all.

use bulkhead_sched::analysis::{Orders, Output, Overheads, Task};
use bulkhead_sched::simulate::{Event, Observer, Pattern, Simulator, Source, SourceState};
use bulkhead_sched::{
    AnyPolicy, Arinc653Parameters, Domain, DomainsParameters, EdfParameters, Schedule, Server, ServerKind,
    Slot, SlotSet, Ticks, VcpuParameters, Window,
};

const NEVER: u64 = u64::MAX;

/// Returns `count` in the long tests, else a tenth of it.
fn many(count: u64) -> u64 {
    if std::env::var_os("BULKHEAD_LONG_TESTS").is_some() {
        count
    } else {
        count / 10
    }
}

fn source(slot: u8, pattern: Pattern, period: Ticks, wcet: Ticks) -> Source {
    Source::new(Slot(slot), Task::new(period, wcet), pattern)
}

/// Budget and period of each vCPU. Together the budgets take all of the pCPU.
const FULL: [(Ticks, Ticks); 4] = [(10, 20), (10, 50), (20, 100), (20, 200)];

fn full_edf() -> AnyPolicy {
    let vcpus = FULL.map(|(budget, period)| VcpuParameters {
        server: Some(Server {
            budget,
            period,
            kind: ServerKind::ConstantBandwidth,
        }),
        ..VcpuParameters::default()
    });
    AnyPolicy::edf(&vcpus, EdfParameters { quantum: 10 }).unwrap()
}

#[test]
fn a_full_pcpu_misses_nothing_under_edf_in_a_million_periods() {
    assert_eq!(
        FULL.iter()
            .map(|(budget, period)| budget * 200 / period)
            .sum::<u64>(),
        200
    );
    let mut slot = 0..;
    let sources =
        FULL.map(|(budget, period)| source(slot.next().unwrap(), Pattern::Periodic, period, budget));
    let mut states = [SourceState::default(); 4];
    let mut simulator = Simulator::new(full_edf(), &sources, &mut states, Overheads::default(), 1);
    let periods = many(1_000_000);
    assert!(simulator.run(20 * periods, NEVER, &mut ()));
    assert_eq!(simulator.idle(), 0);
    assert!(states[0].statistics.completed >= periods - 1);
    for (state, (_, period)) in states.iter().zip(FULL) {
        assert_eq!(state.statistics.missed, 0);
        assert!(state.statistics.longest <= period);
    }
}

/// Lets each vCPU in turn want three times its budget, or all there is.
#[test]
fn an_overrun_never_eats_a_neighbours_budget() {
    for greedy in 0..4_u8 {
        for pattern in [Pattern::Periodic, Pattern::AlwaysReady] {
            let mut slot = 0_u8..;
            let sources = FULL.map(|(budget, period)| {
                let slot = slot.next().unwrap();
                if slot == greedy {
                    source(slot, pattern, period, 3 * budget)
                } else {
                    source(slot, Pattern::Periodic, period, budget)
                }
            });
            let mut states = [SourceState::default(); 4];
            let mut simulator = Simulator::new(full_edf(), &sources, &mut states, Overheads::default(), 1);
            let end = 200 * many(10_000);
            assert!(simulator.run(end, NEVER, &mut ()));
            for (slot, (budget, period)) in (0_u8..).zip(FULL) {
                assert_eq!(
                    simulator.ran(Slot(slot)),
                    end / period * budget,
                    "vCPU {slot} beside {greedy}"
                );
                if slot != greedy {
                    assert_eq!(simulator.states()[usize::from(slot)].statistics.missed, 0);
                }
            }
        }
    }
}

#[test]
fn time_domains_have_exactly_their_budgets_in_a_thousand_cycles() {
    let budgets: [Ticks; 3] = [2000, 5000, 3000];
    let vcpu = |domain| VcpuParameters {
        domain,
        priority: 5,
        ..VcpuParameters::default()
    };
    let domains = budgets.map(|budget| Domain { budget });
    let parameters = DomainsParameters {
        domains: &domains,
        quantum: 700,
    };
    let vcpus = [0, 1, 1, 2].map(vcpu);
    let policy = AnyPolicy::domains(&vcpus, parameters).unwrap();
    let sources = [0, 1, 2, 3].map(|slot| source(slot, Pattern::AlwaysReady, 1, 1));
    let mut states = [SourceState::default(); 4];
    let overheads = Overheads {
        switch: 30,
        interrupt: 10,
        decision: 20,
        longest: 0,
        orders: Orders::NONE,
        output: Output::NONE,
    };
    let mut simulator = Simulator::new(policy, &sources, &mut states, overheads, 1);
    let end = 1000 * budgets.iter().sum::<Ticks>();
    assert!(simulator.run(end, NEVER, &mut ()));
    let ran = |slots: &[u8]| slots.iter().map(|slot| simulator.ran(Slot(*slot))).sum::<Ticks>();
    // Lateness at the end of a turn is taken from the next turn, so nothing adds up. At the end one event is
    // open.
    for (slots, budget) in [(&[0][..], 2000), (&[1, 2][..], 5000), (&[3][..], 3000)] {
        let got = ran(slots);
        assert!(
            got.abs_diff(1000 * budget) <= overheads.event(),
            "{slots:?} ran {got}"
        );
    }
}

/// The lateness with which windows start.
struct Starts {
    frame: Ticks,
    offsets: [Ticks; 2],
    seen: u64,
    latest: Ticks,
}

impl Observer for Starts {
    fn event(&mut self, now: Ticks, event: Event) {
        if let Event::WindowStarted(Slot(slot)) = event {
            let into = now % self.frame;
            let late = into
                .checked_sub(self.offsets[usize::from(slot)])
                .expect("never early");
            self.latest = self.latest.max(late);
            self.seen += 1;
        }
    }
}

/// Starts windows beside a neighbour that comes and goes as fast as it can. The calls of the hypervisor take
/// as long as can be.
#[test]
fn windows_start_late_by_what_is_under_way_in_a_hundred_thousand_frames() {
    let overheads = Overheads {
        switch: 30,
        interrupt: 10,
        decision: 20,
        longest: 200,
        orders: Orders::NONE,
        output: Output::NONE,
    };
    let window = |slot: u32, offset, duration| Window {
        slots: SlotSet(1 << slot),
        offset,
        duration,
        period_start: true,
    };
    let windows = [window(0, 0, 4000), window(1, 4000, 5000)];
    let schedules = [Schedule {
        frame: 10_000,
        first_window: 0,
        window_count: 2,
    }];
    let parameters = Arinc653Parameters {
        windows: &windows,
        schedules: &schedules,
        initial: 0,
        start: 0,
        quantum: 1000,
    };
    let policy = AnyPolicy::arinc653(&[VcpuParameters::default(); 2], parameters).unwrap();
    let sources = [
        source(0, Pattern::Periodic, 10_000, 500),
        Source {
            call: overheads.longest,
            ..source(1, Pattern::Periodic, 37, 11)
        },
    ];
    let mut states = [SourceState::default(); 2];
    let mut simulator = Simulator::new(policy, &sources, &mut states, overheads, 1);
    let mut starts = Starts {
        frame: 10_000,
        offsets: [0, 4000],
        seen: 0,
        latest: 0,
    };
    let frames = many(100_000);
    assert!(simulator.run(frames * 10_000, NEVER, &mut starts));
    assert!(starts.seen >= 2 * frames - 2);
    assert!(
        starts.latest <= overheads.under_way() + overheads.event(),
        "a window starts {} late",
        starts.latest
    );
    assert_eq!(states[0].statistics.missed, 0);
    assert!(states[0].statistics.longest <= 500 + overheads.under_way() + overheads.per_job());
}
