// SPDX-License-Identifier: Apache-2.0
//! Each register of a GICv2's distributor as IHI 0048B describes it, `GICC_DIR`, and the list registers in
//! their 32-bit form.

mod sim;

use bulkhead_arch_vgic::{Frame, ListRegister};
use proptest::prelude::*;
use sim::{SPURIOUS, World};

const DISTRIBUTOR: Frame = Frame::Version2;
const TYPER: u32 = 0x004;
const PENDING: u32 = 0x200;
const ACTIVE: u32 = 0x300;
const TARGETS: u32 = 0x800;
const CLEAR_SENT: u32 = 0xF10;
const SET_SENT: u32 = 0xF20;

/// Returns a world of two vCPUs. Software-generated interrupts 0..16 and the shared lines 64..67 are enabled.
fn world(slots: usize) -> World {
    let mut world = World::new_version2(2, slots, &[]);
    world.write(0, DISTRIBUTOR, 0, 4, 3);
    for cpu in 0..2 {
        world.write(cpu, DISTRIBUTOR, 0x100, 4, 0xFFFF);
    }
    world.write(0, DISTRIBUTOR, 0x108, 4, 7);
    world
}

fn read(world: &mut World, cpu: usize, offset: u32) -> u64 {
    world.read(cpu, DISTRIBUTOR, offset, 4)
}

/// Acknowledges an interrupt, and returns it and its sender.
fn take(world: &mut World, cpu: usize) -> (u32, u8) {
    let line = world.acknowledge(cpu);
    let sender = world.cpus[cpu].sender;
    world.end(cpu, line);
    (line, sender)
}

#[test]
fn identification_is_that_of_a_gic_400() {
    let mut world = world(4);
    for offset in [TYPER, 0x008, 0xFE8] {
        let before = read(&mut world, 0, offset);
        world.write(0, DISTRIBUTOR, offset, 4, !before);
        assert_eq!(read(&mut world, 0, offset), before);
    }
    assert_eq!(
        read(&mut world, 0, TYPER) & 0xFF,
        8 | 1 << 5,
        "288 lines, two CPUs"
    );
    assert_eq!(read(&mut world, 0, 0xFE8) >> 4 & 0xF, 2, "GICv2");
    assert_eq!(read(&mut world, 0, 0xFFE8), 0, "not there");
}

#[test]
fn targets_have_bytes_and_words() {
    let mut world = world(4);
    world.write(0, DISTRIBUTOR, TARGETS + 64, 4, 0x0301_0200);
    assert_eq!(read(&mut world, 0, TARGETS + 64), 0x0301_0200);
    world.write(0, DISTRIBUTOR, TARGETS + 65, 1, 0xFF);
    assert_eq!(
        world.read(1, DISTRIBUTOR, TARGETS + 65, 1),
        3,
        "there are two CPUs"
    );
    for cpu in 0..2 {
        let own = 0x0101_0101 << cpu;
        assert_eq!(
            read(&mut world, cpu, TARGETS),
            own,
            "private ones are whose they are"
        );
        world.write(cpu, DISTRIBUTOR, TARGETS, 4, 0);
        assert_eq!(read(&mut world, cpu, TARGETS), own);
    }
}

#[test]
fn sgis_are_enabled_for_good() {
    let mut world = World::new_version2(2, 4, &[]);
    for cpu in 0..2 {
        assert_eq!(read(&mut world, cpu, 0x100), 0xFFFF, "at reset");
        world.write(cpu, DISTRIBUTOR, 0x180, 4, u64::MAX);
        assert_eq!(read(&mut world, cpu, 0x180), 0xFFFF);
    }
    world.write(0, DISTRIBUTOR, 0, 4, 3);
    world.send_version2(0, 3, 2);
    assert_eq!(take(&mut world, 1), (3, 0));
    // A private line that is no SGI is off, and can be switched off.
    world.write(0, DISTRIBUTOR, 0x100, 4, 1 << 27);
    world.write(0, DISTRIBUTOR, 0x180, 4, 1 << 27);
    assert_eq!(read(&mut world, 0, 0x100), 0xFFFF);
    // A new life begins like the first one.
    world.with(1, |vgic, bank, hardware| vgic.detach(1, bank, hardware));
    world.reset(1);
    world.with(1, |vgic, bank, hardware| vgic.load(1, bank, hardware));
    assert_eq!(read(&mut world, 1, 0x100), 0xFFFF);
}

#[test]
fn a_line_has_no_target_until_it_gets_one_and_is_not_lost_meanwhile() {
    let mut world = World::new_version2(2, 4, &[(40, 100, false)]);
    for line in [40, 64, 65] {
        assert_eq!(world.read(0, DISTRIBUTOR, TARGETS + line, 1), 0);
    }
    world.write(0, DISTRIBUTOR, 0, 4, 3);
    for line in [40, 64, 65] {
        world.set_bit(0, 0x100, line);
    }
    // A device of the hypervisor's, one of the board's, and a gate.
    world.raise(64);
    world.physical(0, 100, |line| line.level = true);
    world.settle();
    assert!(
        !world.physical(0, 100, |line| line.active),
        "it interrupts nobody"
    );
    world.pulse(65);
    assert_eq!([take(&mut world, 0).0, take(&mut world, 1).0], [SPURIOUS; 2]);
    for line in [40, 64, 65] {
        assert!(world.bit(0, PENDING, line), "{line}");
        world.write(0, DISTRIBUTOR, TARGETS + line, 1, 2);
    }
    world.physical(0, 100, |line| line.level = false);
    let mut taken = [take(&mut world, 1).0, take(&mut world, 1).0];
    taken.sort_unstable();
    world.lower(64);
    assert_eq!(taken, [40, 64]);
    assert_eq!(take(&mut world, 1).0, 65);
    assert_eq!([take(&mut world, 0).0, take(&mut world, 1).0], [SPURIOUS; 2]);
}

#[test]
fn one_cpu_has_no_targets() {
    let mut world = World::new_version2(1, 4, &[]);
    world.write(0, DISTRIBUTOR, TARGETS + 64, 4, u64::MAX);
    assert_eq!(read(&mut world, 0, TARGETS + 64), 0);
    assert_eq!(read(&mut world, 0, TARGETS), 0);
}

#[test]
fn a_line_goes_to_its_target_or_nowhere() {
    let mut world = world(4);
    for (targets, takers) in [(1, [64, SPURIOUS]), (2, [SPURIOUS, 64])] {
        world.write(0, DISTRIBUTOR, TARGETS + 64, 1, targets);
        world.set_bit(0, PENDING, 64);
        assert_eq!([take(&mut world, 0).0, take(&mut world, 1).0], takers);
    }
    world.write(0, DISTRIBUTOR, TARGETS + 64, 1, 0);
    world.set_bit(0, PENDING, 64);
    assert_eq!([take(&mut world, 0).0, take(&mut world, 1).0], [SPURIOUS; 2]);
    world.write(1, DISTRIBUTOR, TARGETS + 64, 1, 3);
    let taken = [take(&mut world, 0).0, take(&mut world, 1).0];
    assert!(
        taken.contains(&64) && taken.contains(&SPURIOUS),
        "one of both: {taken:?}"
    );
}

#[test]
fn sgis_go_to_a_list_to_the_others_or_to_oneself() {
    let mut world = world(4);
    for (value, takers) in [
        (2 << 16 | 3, [SPURIOUS, 3]),
        (3 << 16 | 4, [4, 4]),
        (1 << 24 | 5, [SPURIOUS, 5]),
        (2 << 24 | 6, [6, SPURIOUS]),
        (3 << 24 | 3 << 16 | 7, [SPURIOUS; 2]),
        (0xFC << 16 | 8, [SPURIOUS; 2]),
    ] {
        world.write(0, DISTRIBUTOR, 0xF00, 4, value);
        assert_eq!(
            [take(&mut world, 0).0, take(&mut world, 1).0],
            takers,
            "{value:#x}"
        );
    }
}

#[test]
fn each_sender_is_an_interrupt_of_its_own() {
    for slots in [1, 4] {
        let mut world = world(slots);
        world.send_version2(0, 3, 2);
        world.send_version2(1, 3, 2);
        world.send_version2(1, 3, 2);
        assert_eq!(read(&mut world, 1, CLEAR_SENT), 0x0300_0000);
        assert!(world.bit(1, PENDING, 3));
        assert_eq!([take(&mut world, 1), take(&mut world, 1)], [(3, 0), (3, 1)]);
        assert_eq!(take(&mut world, 1).0, SPURIOUS, "sent twice by the same is once");
        assert!(!world.bit(1, PENDING, 3));
    }
}

#[test]
fn a_second_sender_is_not_lost_when_levels_change_meanwhile() {
    let mut world = world(3);
    world.write(0, DISTRIBUTOR, TARGETS + 64, 1, 2);
    world.send_version2(1, 15, 2);
    world.raise(64);
    world.send_version2(0, 15, 2);
    world.lower(64);
    let taken = [take(&mut world, 1), take(&mut world, 1), take(&mut world, 1)];
    assert!(taken.contains(&(15, 0)) && taken.contains(&(15, 1)), "{taken:?}");
}

#[test]
fn pending_by_sender_is_set_and_cleared_by_bytes() {
    let mut world = world(4);
    world.write(0, DISTRIBUTOR, SET_SENT + 5, 1, 0b11);
    assert_eq!(world.read(0, DISTRIBUTOR, SET_SENT + 5, 1), 0b11);
    assert_eq!(read(&mut world, 1, SET_SENT + 4), 0, "banked");
    world.write(0, DISTRIBUTOR, CLEAR_SENT + 5, 1, 0b01);
    assert_eq!(take(&mut world, 0), (5, 1));
    world.write(0, DISTRIBUTOR, SET_SENT + 5, 1, 0xFC);
    assert_eq!(take(&mut world, 0).0, SPURIOUS, "there are two CPUs");
    // The common registers do not do it (IHI 0048B, 4.3.7).
    world.write(0, DISTRIBUTOR, PENDING, 4, 0xFFFF);
    assert_eq!(take(&mut world, 0).0, SPURIOUS);
    world.send_version2(0, 5, 1);
    world.write(0, DISTRIBUTOR, 0x280, 4, 0xFFFF);
    assert_eq!(take(&mut world, 0).0, 5);
}

#[test]
fn deactivation_names_an_interrupt_that_is_in_no_list_register() {
    let mut world = world(1);
    world.cpus[0].machine_control |= 1 << 9;
    for line in 64..67 {
        world.set_priority(0, line, 0x80);
        world.write(0, DISTRIBUTOR, TARGETS + line, 1, 1);
        world.set_bit(0, PENDING, line);
        assert_eq!(world.acknowledge(0), line);
        world.end(0, line);
    }
    for line in [65, 64, 66] {
        assert!(world.bit(0, ACTIVE, line));
        world.deactivate(0, line);
        assert!(!world.bit(0, ACTIVE, line));
    }
    assert_eq!(world.read(0, Frame::Deactivate, 0, 4), 0);
}

#[test]
fn an_interrupt_routed_away_while_its_active_one_waits_for_its_end_is_not_lost() {
    for split in [false, true] {
        let mut world = world(1);
        for cpu in 0..2 {
            world.cpus[cpu].machine_control |= u64::from(split) << 9;
        }
        for (line, priority) in [(64, 0x80), (65, 0x40)] {
            world.set_priority(0, line, priority);
            world.write(0, DISTRIBUTOR, TARGETS + line, 1, 1);
        }
        world.set_bit(0, PENDING, 64);
        assert_eq!(world.acknowledge(0), 64);
        world.set_bit(0, PENDING, 64);
        world.set_bit(0, PENDING, 65);
        world.write(0, DISTRIBUTOR, TARGETS + 64, 1, 2);
        assert_eq!(world.acknowledge(0), 65);
        for line in [65, 64] {
            world.end(0, line);
            if split {
                world.deactivate(0, line);
            }
        }
        assert_eq!(world.acknowledge(1), 64, "EOImode {split}");
    }
}

#[test]
fn other_widths_and_places_read_as_zero() {
    let mut world = world(4);
    world.write(0, DISTRIBUTOR, TARGETS + 64, 4, 0x0303_0303);
    for (offset, size) in [
        (TARGETS + 64, 2),
        (TARGETS + 64, 8),
        (0x100, 1),
        (TYPER, 1),
        (0xF00, 4),
        (0xD00, 4),
    ] {
        assert_eq!(world.read(0, DISTRIBUTOR, offset, size), 0, "{offset:#x} {size}");
        world.write(0, DISTRIBUTOR, offset, size, 0);
    }
    assert_eq!(read(&mut world, 0, TARGETS + 64), 0x0303_0303);
    assert_eq!(read(&mut world, 0, 0x100), 0xFFFF);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(5), ..ProptestConfig::default() })]

    /// Checks that all contents of a list register of ours fit into one of a GICv2, and come back.
    #[test]
    fn list_registers_are_the_same_in_32_bits(
        line in 0..1020u32,
        level in 0..32u8,
        [group1, pending, active, notice] in any::<[bool; 4]>(),
        physical in prop::option::of(16..1020u32),
        sender in 0..8u32,
    ) {
        let value = ListRegister::pending(line, level << 3, group1).with_pending(pending).with_active(active);
        let value = match physical {
            Some(physical) => value.linked_to(physical),
            None if line < 16 => value.sent_by(1 << sender).with_end_notice(notice),
            None => value.with_end_notice(notice),
        };
        let word = value.version2();
        prop_assert_eq!(ListRegister::from_version2(word), value);
        // By the fields of IHI 0048B, 5.3.10.
        prop_assert_eq!(word & 0x3FF, line);
        prop_assert_eq!(word >> 23 & 0x1F, u32::from(level));
        prop_assert_eq!(word >> 28, u32::from(pending) | u32::from(active) << 1 | u32::from(group1) << 2 | u32::from(physical.is_some()) << 3);
        match physical {
            Some(physical) => prop_assert_eq!(word >> 10 & 0x3FF, physical),
            None => {
                prop_assert_eq!(word >> 19 & 1, u32::from(notice));
                prop_assert_eq!(word >> 10 & 7, if line < 16 { sender } else { 0 });
            }
        }
    }

    /// Checks that all that a guest made of the hardware's list registers is read without loss.
    #[test]
    fn any_32_bits_stay_what_they_mean(word in any::<u32>()) {
        let value = ListRegister::from_version2(word);
        prop_assert_eq!(value.line(), word & 0x3FF);
        prop_assert_eq!(value.is_pending(), word >> 28 & 1 != 0);
        prop_assert_eq!(value.is_active(), word >> 29 & 1 != 0);
        prop_assert_eq!(ListRegister::from_version2(value.version2()), value);
    }
}

/// Checks that an interrupt that the same vCPU sends again goes into the list register where it was, without
/// a look at anything else. One that another vCPU sends does not.
#[test]
fn what_the_same_sends_again_has_a_short_way() {
    let mut world = world(4);
    let again = |world: &mut World, line, sender| {
        world.redistributors[0].deliver_sent(&mut world.banks[0], &mut world.cpus[0], line, sender)
    };
    assert!(!again(&mut world, 3, 1), "never sent");
    world.send_version2(0, 3, 1);
    assert!(!again(&mut world, 3, 1), "not ended");
    assert_eq!(take(&mut world, 0), (3, 0));
    assert!(!again(&mut world, 3, 2), "another sender");
    assert!(!again(&mut world, 4, 1), "another interrupt");
    assert!(again(&mut world, 3, 1));
    assert_eq!(take(&mut world, 0), (3, 0));
    // From another vCPU: the first one goes the long way, the next the short one, and not once more by the
    // first's sender.
    world.send_version2(1, 3, 1);
    assert_eq!(take(&mut world, 0), (3, 1));
    assert!(!again(&mut world, 3, 1));
    for (senders, short) in [
        (&[1][..], true),
        (&[0], false),
        (&[0], true),
        (&[0, 1], false),
        (&[1, 0], false),
    ] {
        for sender in senders {
            world.with(*sender, |vgic, _, cpu| {
                vgic.send_single_version2(*sender, 0, 3, cpu)
            });
        }
        let done = world.redistributors[0].deliver_again(&mut world.banks[0], &mut world.cpus[0]);
        assert_eq!(done, short, "{senders:?}");
        world.settle();
        let mut taken: Vec<_> = senders.iter().map(|_| take(&mut world, 0)).collect();
        taken.sort_unstable();
        let mut sent: Vec<_> = senders.iter().map(|sender| (3, *sender as u8)).collect();
        sent.sort_unstable();
        assert_eq!(taken, sent);
        assert_eq!(take(&mut world, 0).0, SPURIOUS);
    }
}
