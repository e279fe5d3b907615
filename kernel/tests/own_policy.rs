// SPDX-License-Identifier: Apache-2.0
//! A policy of one's own under the kernel: the crate of an example as it is, and policies that break every
//! rule.

use crate::support::{self, Bench, tables, vm};
use bulkhead_abi::own_policy;
use bulkhead_abi::parts::{Part, Parts};
use bulkhead_arch_api::VcpuId;
use bulkhead_arch_sim::{Action, Outcome, What};
use bulkhead_image::ImageBuilder;
use bulkhead_image::layout::POLICY_EDF;
use bulkhead_sched::{
    AnyOwnPolicy, Decision, OwnPolicy, Policy, PolicyError, Signals, Slot, SlotSet, StopReason, Ticks,
    VcpuParameters,
};
use proptest::prelude::*;
use weighted_turns::WeightedTurns;

/// The quantum of the test bench, which is the slice.
const SLICE: u64 = 10_000;
/// The duration of a step of a computing guest. The next constant adds the kernel's work at a switch.
const GRAIN: u64 = 500;
const SLACK: u64 = GRAIN + 200;

/// Gives pCPU 0 the policy of the user's own.
fn own(mut image: ImageBuilder) -> ImageBuilder {
    image.pcpus[0].policy = own_policy::number("weighted-turns").into();
    image.board.parts = (image.board.parts.get() | Parts::of(&[Part::OwnPolicy]).0).into();
    image
}

/// Computes without end, and marks each step.
fn busy() -> impl FnMut(Outcome, u64) -> Action {
    let mut step = 0;
    move |_, now| {
        step += 1;
        if step % 2 == 0 {
            Action::Mark(now)
        } else {
            Action::Compute(GRAIN)
        }
    }
}

/// Returns the turns in their order: the vCPU that ran, and for how long.
fn turns(bench: &Bench<AnyOwnPolicy<WeightedTurns>>, until: u64) -> Vec<(u8, u64)> {
    let switches = bench.records(|what| matches!(what, What::Switch(_)));
    let starts: Vec<(u8, u64)> = switches
        .iter()
        .filter_map(|record| match record.what {
            What::Switch(vcpu) => Some((vcpu.0, record.time)),
            _ => None,
        })
        .collect();
    let ends = starts.iter().skip(1).map(|(_, time)| *time).chain([until]);
    starts
        .iter()
        .zip(ends)
        .map(|((vcpu, start), end)| (*vcpu, end - start))
        .collect()
}

// ANCHOR: kernel
#[test]
fn a_policy_of_ones_own_runs_a_system() {
    let parts = [vm("one", &[(0, 0)]), vm("three", &[(0, 2)]), vm("two", &[(0, 1)])];
    let mut bench =
        Bench::<AnyOwnPolicy<WeightedTurns>>::with_policies(1, own(tables(1, &parts)).build().unwrap());
    (0..3).for_each(|vcpu| bench.program(vcpu, |_| busy()));
    bench.run(1_000_000);
    let turns = turns(&bench, 1_000_000);
    // All are loaded first, each in its own turn; the last turn is cut off.
    let whole = &turns[3..turns.len() - 1];
    assert!(whole.len() > 30, "{turns:?}");
    for (index, (vcpu, length)) in whole.iter().enumerate() {
        assert_eq!((*vcpu + 1) % 3, turns[index + 4].0, "in turn");
        let weight = [1, 3, 2][usize::from(*vcpu)];
        assert!(length.abs_diff(weight * SLICE) <= SLACK, "{vcpu} had {length}");
    }
}
// ANCHOR_END: kernel

#[test]
fn the_turn_of_who_waits_passes_on_at_once() {
    let parts = [vm("waits", &[(0, 3)]), vm("computes", &[(0, 0)])];
    let mut bench =
        Bench::<AnyOwnPolicy<WeightedTurns>>::with_policies(1, own(tables(1, &parts)).build().unwrap());
    bench.program(0, |_| support::periodic(50_000, Action::Mark));
    bench.program(1, |_| busy());
    bench.run(1_000_000);
    // A release waits for the end of one slice of the other VM, and for no other VM.
    let late = bench.marks(0);
    assert!(late.len() >= 18, "{late:?}");
    assert!(late.iter().all(|late| *late <= SLICE + SLACK), "{late:?}");
    // The first VM takes next to nothing of its turn of four slices. So the other VM has nearly all the time.
    assert!(bench.marks(1).len() as u64 * GRAIN > 900_000);
}

#[test]
fn what_it_has_no_use_for_ends_in_lockdown() {
    let mut image = own(tables(1, &[vm("a", &[(0, 0)])]));
    image.pcpus[0].quantum_us = 1_000_000.into();
    let mut bench = Bench::<AnyOwnPolicy<Mad>>::with_policies(1, image.build().unwrap());
    bench.run(100_000);
    assert!(
        bench.logged("LOCKDOWN: policy of pCPU 0: not supported"),
        "{:?}",
        bench.log()
    );
}

/// A policy that answers at random, on from its quantum. It refuses a quantum of a second and more.
#[derive(Clone, Debug)]
struct Mad(u64);

impl Mad {
    fn random(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 20
    }
}

impl Policy for Mad {
    fn ready(&mut self, _slot: Slot, _now: Ticks) {}

    fn stopped(&mut self, _slot: Slot, _why: StopReason, _ran: Ticks, _now: Ticks) {}

    fn withdraw(&mut self, _slot: Slot, _now: Ticks) {}

    fn next(&mut self, now: Ticks) -> Decision {
        let until = match self.random() % 4 {
            0 => Ticks::MAX,
            1 => now.saturating_sub(self.random() % 1000),
            2 => now,
            _ => now + self.random() % 5000,
        };
        match self.random() % 4 {
            0 => Decision::Idle(until),
            1 => Decision::Run(Slot(self.random() as u8), until),
            _ => Decision::Run(Slot((self.random() % 4) as u8), until),
        }
    }

    fn ready_slots(&self) -> SlotSet {
        SlotSet(self.0 as u32)
    }

    fn interested(&self) -> SlotSet {
        SlotSet((self.0 >> 32) as u32)
    }

    fn signals(&mut self) -> Signals {
        let mut slots = || SlotSet(self.random() as u32);
        Signals {
            window_start: slots(),
            period_start: slots(),
            exhausted: slots(),
            replenished: slots(),
            schedule_changed: slots().0 & 1 != 0,
        }
    }
}

impl OwnPolicy for Mad {
    fn new(_vcpus: &[VcpuParameters], quantum: Ticks) -> Result<Self, PolicyError> {
        if quantum < 1_000_000_000 {
            Ok(Self(quantum))
        } else {
            Err(PolicyError::NotSupported)
        }
    }
}

const END: u64 = 300_000;
const PERIOD: u64 = 5_000;

/// Waits, and switches off after some rounds. Anything that the guest does afterwards leaves a mark.
fn leaver(rounds: u32) -> impl FnMut(Outcome, u64) -> Action {
    let mut step = 0;
    move |_, now| {
        step += 1;
        match step {
            _ if step < rounds && step % 3 == 0 => Action::SetTimer(Some(now + 700)),
            _ if step < rounds && step % 3 == 1 => Action::Idle,
            _ if step < rounds => Action::Acknowledge,
            _ if step == rounds => Action::CpuOff,
            _ => Action::Mark(now),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, rng_seed: proptest::test_runner::RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    /// Runs a system under a mad policy. The mock is strict: it panics if a vCPU runs that was not reset, or
    /// that is on a foreign pCPU, or that has an exit unanswered.
    #[test]
    fn a_mad_policy_takes_time_and_nothing_else(
        seed in 10..60_000_u32,
        rounds in 1..60_u32,
        order in 0..2_u64,
    ) {
        let mut image = own(tables(2, &[
            vm("busy", &[(0, 1)]),
            vm("leaver", &[(0, 2), (0, 2)]),
            vm("late", &[(0, 3)]).with(|part| part.autostart = false),
            vm("control", &[(1, 30)]),
        ]));
        image.pcpus[0].quantum_us = seed.into();
        image.pcpus[1].policy = POLICY_EDF.into();
        let mut bench = Bench::<AnyOwnPolicy<Mad>>::with_policies(2, image.build().unwrap());
        bench.seed(order);
        bench.program(0, |_| busy());
        bench.program(1, move |_| leaver(rounds));
        // Neither vCPU is ever switched on.
        bench.program(2, |_| busy());
        bench.program(3, |_| busy());
        bench.program(4, |_| support::periodic(PERIOD, Action::Mark));
        bench.run(END);
        prop_assert!(bench.look().halted.is_empty(), "{:?}", bench.log());
        prop_assert!([1, 2, 3].iter().all(|vcpu| bench.marks(*vcpu).is_empty()), "ran while it was off");
        let resets = bench.records(|what| matches!(what, What::Reset(VcpuId(2 | 3))));
        prop_assert!(resets.is_empty());
        let late = bench.marks(4);
        prop_assert!(late.len() as u64 >= END / PERIOD - 2, "missed a release: {}", late.len());
        prop_assert!(late.iter().all(|late| *late < 1_000), "{:?}", late);
    }
}
