// SPDX-License-Identifier: Apache-2.0
//! A guest writes anything anywhere, with any width: nothing panics, nothing storms, and the board stays
//! consistent. (A line in two list registers, or a linked one pending and active, fails in the simulated
//! board.) No physical line interrupts a pCPU twice while the VM's vCPU there is not loaded.

mod sim;

use bulkhead_arch_vgic::{Frame, RegisterAccess};
use proptest::prelude::*;
use sim::steps::{Step, run, run_version2};

fn access() -> impl Strategy<Value = RegisterAccess> + Clone {
    let offset = prop_oneof![
        3 => 0..0x1000u32,
        1 => 0x6000..0x8000u32,
        1 => 0x1_0000..0x1_1000u32,
        1 => any::<u32>(),
    ];
    let size = prop_oneof![6 => Just(4u8), 2 => Just(1), 1 => Just(8), 1 => any::<u8>()];
    (any::<bool>(), 0..5usize, offset, size, any::<bool>()).prop_map(
        |(private, index, offset, size, align)| {
            let frame = if private {
                Frame::Redistributor(index)
            } else {
                Frame::Distributor
            };
            let offset = if align { offset & !3 } else { offset };
            RegisterAccess { frame, offset, size }
        },
    )
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(u64::MAX),
        Just(0),
        any::<u64>(),
        (0..64u32).prop_map(|n| 1 << n)
    ]
}

/// Registers of a GICv2: the distributor's page, and the page with `GICC_DIR`.
fn access_version2() -> impl Strategy<Value = RegisterAccess> + Clone {
    let offset =
        prop_oneof![4 => 0..0x1000u32, 2 => 0xF00..0xF30u32, 1 => 0x800..0x920u32, 1 => any::<u32>()];
    let size = prop_oneof![6 => Just(4u8), 3 => Just(1), 1 => Just(8), 1 => any::<u8>()];
    (prop::bool::weighted(0.1), offset, size, any::<bool>()).prop_map(|(deactivate, offset, size, align)| {
        let frame = if deactivate {
            Frame::Deactivate
        } else {
            Frame::Version2
        };
        let offset = if align { offset & !3 } else { offset };
        RegisterAccess { frame, offset, size }
    })
}

fn step(access: impl Strategy<Value = RegisterAccess> + Clone + 'static) -> impl Strategy<Value = Step> {
    let line = prop_oneof![0..300u32, any::<u32>()];
    prop_oneof![
        2 => (0..3usize, access.clone()).prop_map(|(c, a)| Step::Read(c, a)),
        10 => (0..3usize, access, value()).prop_map(|(c, a, v)| Step::Write(c, a, v)),
        1 => (0..3usize, any::<u8>(), value()).prop_map(|(c, r, v)| Step::Send(c, r, v)),
        3 => (0..3usize).prop_map(Step::Acknowledge),
        2 => (0..3usize, line.clone()).prop_map(|(c, l)| Step::End(c, l)),
        2 => (0..3usize, line.clone()).prop_map(|(c, l)| Step::Deactivate(c, l)),
        1 => (0..3usize, value()).prop_map(|(c, v)| Step::Control(c, v)),
        2 => (0..3usize).prop_map(Step::Switch),
        1 => (0..3usize).prop_map(Step::Reset),
        1 => line.clone().prop_map(Step::Raise),
        1 => line.clone().prop_map(Step::Lower),
        2 => line.prop_map(Step::Pulse),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(second, level)| Step::Input(second, level)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(11),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_hostile_guest_only_confuses_itself(
        slots in 1..5usize,
        steps in prop::collection::vec(step(access()), 1..200),
    ) {
        run(slots, &steps);
    }

    #[test]
    fn a_hostile_guest_with_a_gicv2_only_confuses_itself(
        slots in 1..5usize,
        steps in prop::collection::vec(step(access_version2()), 1..200),
    ) {
        run_version2(slots, &steps);
    }
}
