// SPDX-License-Identifier: Apache-2.0
//! A vCPU makes a physical line of its VM interrupt another pCPU again and again, where a vCPU of another VM
//! runs. Each line costs that pCPU one interrupt (the simulated board panics at the second), and none is
//! lost.

mod sim;

use bulkhead_arch_vgic::Frame;
use sim::{SPURIOUS, World};

const LINE: u32 = 40;
const PHYSICAL: u32 = 100;
const SET_ENABLE: u32 = 0x100;
const CLEAR_ENABLE: u32 = 0x180;
const SET_PENDING: u32 = 0x200;
const CLEAR_PENDING: u32 = 0x280;
const SET_ACTIVE: u32 = 0x300;
const CLEAR_ACTIVE: u32 = 0x380;
const ROUNDS: usize = 20;

/// Returns a VM whose line goes to vCPU 0, which is not loaded.
fn world(version2: bool, edge: bool) -> World {
    let links = [(LINE, PHYSICAL, edge)];
    let mut world = if version2 {
        World::new_version2(2, 4, &links)
    } else {
        World::new(2, 4, &links)
    };
    let (distributor, _) = world.place(1, 0, LINE);
    world.write(1, distributor, 0, 4, 3);
    world.set_priority(1, LINE, 0x80);
    route(&mut world, 0);
    world.set_bit(1, SET_ENABLE, LINE);
    world.with(0, |vgic, bank, hardware| vgic.unload(0, bank, hardware));
    world
}

fn route(world: &mut World, index: u64) {
    if world.version2 {
        world.write(1, Frame::Version2, 0x800 + LINE, 1, 1 << index);
    } else {
        world.write(1, Frame::Distributor, 0x6000 + 8 * LINE, 8, index);
    }
}

fn input(world: &mut World, level: bool) {
    world.physical(0, PHYSICAL, |line| {
        line.latch |= line.edge && level && !line.level;
        line.level = level;
    });
    world.settle();
}

fn come(world: &mut World) {
    assert!(
        world.with(0, |vgic, bank, hardware| vgic.has_work(0, bank, hardware)),
        "vCPU 0 is not wanted"
    );
    world.with(0, |vgic, bank, hardware| vgic.load(0, bank, hardware));
    world.settle();
}

/// Makes every attack, on a VM of either version.
fn each(edge: bool, attack: impl Fn(&mut World)) {
    for version2 in [false, true] {
        let mut world = world(version2, edge);
        attack(&mut world);
        assert_eq!(world.intrusions.get(&(0, LINE)), Some(&1), "it has interrupted");
    }
}

#[test]
fn by_the_pending_state() {
    each(false, |world| {
        for _ in 0..ROUNDS {
            world.set_bit(1, SET_PENDING, LINE);
            world.set_bit(1, CLEAR_PENDING, LINE);
        }
        input(world, true);
        for _ in 0..ROUNDS {
            world.set_bit(1, CLEAR_PENDING, LINE);
        }
    });
}

#[test]
fn by_the_active_state() {
    each(false, |world| {
        input(world, true);
        for _ in 0..ROUNDS {
            world.set_bit(1, SET_ACTIVE, LINE);
            world.set_bit(1, CLEAR_ACTIVE, LINE);
        }
    });
}

#[test]
fn by_an_end_from_elsewhere() {
    each(false, |world| {
        input(world, true);
        for _ in 0..ROUNDS {
            world.set_bit(1, SET_ACTIVE, LINE);
            world.deactivate(1, LINE);
        }
    });
}

#[test]
fn by_enabling() {
    each(false, |world| {
        input(world, true);
        for _ in 0..ROUNDS {
            world.set_bit(1, CLEAR_ENABLE, LINE);
            world.set_bit(1, SET_ENABLE, LINE);
        }
    });
}

#[test]
fn by_taking_it_and_sending_it_back() {
    each(false, |world| {
        input(world, true);
        for _ in 0..ROUNDS {
            route(world, 1);
            assert_eq!(
                world.acknowledge(1),
                LINE,
                "a line that goes elsewhere arrives there"
            );
            world.end(1, LINE);
            route(world, 0);
        }
    });
}

#[test]
fn by_sending_it_nowhere() {
    each(false, |world| {
        for _ in 0..ROUNDS {
            input(world, true);
            route(world, 7);
            world.set_bit(1, CLEAR_PENDING, LINE);
            route(world, 0);
            input(world, false);
        }
    });
}

#[test]
fn a_new_edge_waits_for_the_vcpu() {
    for version2 in [false, true] {
        let mut world = world(version2, true);
        input(&mut world, true);
        world.set_bit(1, CLEAR_PENDING, LINE);
        input(&mut world, false);
        input(&mut world, true);
        assert_eq!(world.intrusions.get(&(0, LINE)), Some(&1));
        come(&mut world);
        assert_eq!(world.acknowledge(0), LINE);
        world.end(0, LINE);
        assert_eq!(world.acknowledge(0), SPURIOUS);
    }
}

#[test]
fn a_level_is_there_when_the_vcpu_comes_and_again_when_it_has_gone() {
    for version2 in [false, true] {
        let mut world = world(version2, false);
        input(&mut world, true);
        world.set_bit(1, CLEAR_PENDING, LINE);
        come(&mut world);
        assert_eq!(world.acknowledge(0), LINE);
        input(&mut world, false);
        world.end(0, LINE);
        assert_eq!(world.acknowledge(0), SPURIOUS);
        world.with(0, |vgic, bank, hardware| vgic.unload(0, bank, hardware));
        input(&mut world, true);
        assert_eq!(world.intrusions.get(&(0, LINE)), Some(&1), "once more");
        come(&mut world);
        assert_eq!(world.acknowledge(0), LINE);
    }
}

#[test]
fn a_line_for_anybody_goes_to_who_is_left() {
    let mut world = world(false, false);
    world.write(1, Frame::Distributor, 0x6000 + 8 * LINE, 8, 1 << 31);
    input(&mut world, true);
    assert_eq!(world.intrusions.get(&(0, LINE)), Some(&1), "it goes to the first");
    world.set_bit(1, CLEAR_PENDING, LINE);
    world.with(0, |vgic, bank, hardware| vgic.detach(0, bank, hardware));
    world.settle();
    assert_eq!(world.acknowledge(1), LINE);
}

#[test]
fn what_the_guest_has_disabled_meanwhile_stays_off() {
    let mut world = world(false, false);
    input(&mut world, true);
    world.set_bit(1, CLEAR_ENABLE, LINE);
    come(&mut world);
    assert!(!world.physical(0, PHYSICAL, |line| line.enabled));
    assert_eq!(world.acknowledge(0), SPURIOUS);
    world.set_bit(1, SET_ENABLE, LINE);
    assert_eq!(world.acknowledge(0), LINE);
}
