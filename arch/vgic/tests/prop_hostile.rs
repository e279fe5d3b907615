// SPDX-License-Identifier: Apache-2.0
//! Whatever a guest writes wherever, however wide: nothing panics, nothing storms, and the board stays consistent
//! (a line in two list registers, or a linked one pending and active, fails in the simulated board).

mod sim;

use bulkhead_arch_vgic::{Access, Frame, Sgi};
use proptest::prelude::*;
use sim::World;

#[derive(Clone, Debug)]
enum Step {
    Read(usize, Access),
    Write(usize, Access, u64),
    Send(usize, u8, u64),
    Acknowledge(usize),
    End(usize, u32),
    Deactivate(usize, u32),
    Control(usize, u64),
    Switch(usize),
    Reset(usize),
    Raise(u32),
    Lower(u32),
}

fn access() -> impl Strategy<Value = Access> {
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
            Access { frame, offset, size }
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

fn step() -> impl Strategy<Value = Step> {
    let line = prop_oneof![0..300u32, any::<u32>()];
    prop_oneof![
        2 => (0..3usize, access()).prop_map(|(c, a)| Step::Read(c, a)),
        10 => (0..3usize, access(), value()).prop_map(|(c, a, v)| Step::Write(c, a, v)),
        1 => (0..3usize, any::<u8>(), value()).prop_map(|(c, r, v)| Step::Send(c, r, v)),
        3 => (0..3usize).prop_map(Step::Acknowledge),
        2 => (0..3usize, line.clone()).prop_map(|(c, l)| Step::End(c, l)),
        2 => (0..3usize, line.clone()).prop_map(|(c, l)| Step::Deactivate(c, l)),
        1 => (0..3usize, value()).prop_map(|(c, v)| Step::Control(c, v)),
        2 => (0..3usize).prop_map(Step::Switch),
        1 => (0..3usize).prop_map(Step::Reset),
        1 => line.clone().prop_map(Step::Raise),
        1 => line.prop_map(Step::Lower),
    ]
}

fn apply(world: &mut World, step: &Step) {
    let loaded = |world: &World, cpu: usize| world.redistributors[cpu].is_present();
    match *step {
        Step::Read(cpu, access) if loaded(world, cpu) => {
            world.read(cpu, access.frame, access.offset, access.size);
        }
        Step::Write(cpu, access, value) if loaded(world, cpu) => {
            world.write(cpu, access.frame, access.offset, access.size, value);
        }
        Step::Send(cpu, register, value) if loaded(world, cpu) => {
            let register = [Sgi::Group0, Sgi::Group1, Sgi::OtherGroup1][usize::from(register % 3)];
            world.send(cpu, register, value);
        }
        Step::Acknowledge(cpu) if loaded(world, cpu) => {
            world.acknowledge(cpu);
        }
        Step::End(cpu, line) if loaded(world, cpu) => world.end(cpu, line),
        Step::Deactivate(cpu, line) if loaded(world, cpu) => world.deactivate(cpu, line),
        Step::Control(cpu, value) if loaded(world, cpu) => {
            world.cpus[cpu].machine_control = value & 0xFF00_0203;
        }
        Step::Switch(cpu) => {
            let present = loaded(world, cpu);
            world.with(cpu, |vgic, bank, hardware| {
                if present {
                    vgic.unload(cpu, bank, hardware);
                    hardware.leave_traces();
                } else {
                    vgic.load(cpu, bank, hardware)
                }
            });
            world.settle();
        }
        Step::Reset(cpu) => {
            world.with(cpu, |vgic, bank, hardware| vgic.reset(cpu, bank, hardware));
            world.settle();
        }
        Step::Raise(line) => world.raise(line),
        Step::Lower(line) => world.lower(line),
        _ => {}
    }
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
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut world = World::new(3, slots, &[(40, 100, false), (41, 101, true)]);
        for step in &steps {
            apply(&mut world, step);
        }
        // After a new start everything works again.
        for cpu in 0..3 {
            world.with(cpu, |vgic, bank, hardware| vgic.detach(cpu, bank, hardware));
        }
        world.reset_shared();
        for line in [100, 101] {
            prop_assert!(!world.physical(0, line, |state| state.active || state.enabled));
        }
        for cpu in 0..3 {
            prop_assert!(!world.physical(cpu, sim::PHYSICAL_TIMER, |state| state.active));
            world.with(cpu, |vgic, bank, hardware| {
                vgic.reset(cpu, bank, hardware);
                vgic.load(cpu, bank, hardware);
            });
            world.cpus[cpu].machine_control = 0xF8 << 24 | 3;
            prop_assert_eq!(world.acknowledge(cpu), sim::SPURIOUS);
            world.write(cpu, Frame::Distributor, 0, 4, 3);
            world.set_bit(cpu, 0x100, 3);
            world.send(cpu, Sgi::Group1, 3 << 24 | 1 << cpu);
            prop_assert_eq!(world.acknowledge(cpu), 3);
        }
    }
}
