// SPDX-License-Identifier: Apache-2.0
//! Each register as IHI 0069 describes it, and one test per rule of delivery.

mod sim;

use bulkhead_arch_vgic::{Frame, NO_VCPU, RegisterAccess, Sgi};
use sim::{PHYSICAL_TIMER, SPURIOUS, TIMER, World};

const DISTRIBUTOR: Frame = Frame::Distributor;

fn world() -> World {
    let mut world = World::new(2, 4, &[(40, 100, false), (41, 101, true)]);
    world.write(0, DISTRIBUTOR, 0, 4, 3);
    world
}

/// Enables `line` in group 1 with priority 0x80.
fn prepare(world: &mut World, cpu: usize, line: u32) {
    let (frame, offset) = world.place(cpu, 0x80, line);
    let groups = world.read(cpu, frame, offset, 4);
    world.write(cpu, frame, offset, 4, groups | 1 << (line % 32));
    world.set_priority(cpu, line, 0x80);
    world.set_bit(cpu, 0x100, line);
}

#[test]
fn control_has_fixed_bits() {
    let mut world = world();
    assert_eq!(world.read(0, DISTRIBUTOR, 0, 4), 0x53);
    world.write(0, DISTRIBUTOR, 0, 4, 0xFFFF_FFFF);
    assert_eq!(world.read(0, DISTRIBUTOR, 0, 4), 0x53);
    world.write(0, DISTRIBUTOR, 0, 4, 0);
    assert_eq!(world.read(0, DISTRIBUTOR, 0, 4), 0x50);
}

#[test]
fn a_vcpu_that_does_not_run_says_what_its_list_registers_hold() {
    let mut world = world();
    prepare(&mut world, 1, 3);
    world.send(0, Sgi::Group1, 3 << 24 | 1 << 1);
    assert_eq!(world.cpus[1].acknowledge(), 3, "and nobody has looked since");
    let active = |world: &mut World| {
        let access = RegisterAccess {
            frame: Frame::Redistributor(1),
            offset: 0x1_0300,
            size: 4,
        };
        world.with(0, |vgic, bank, cpu| vgic.read(0, bank, cpu, access))
    };
    assert_eq!(active(&mut world), 0, "no answer in time");
    world.with(1, |vgic, bank, cpu| vgic.answer(1, bank, cpu));
    assert_eq!(active(&mut world), 1 << 3);
}

#[test]
fn identification_is_read_only() {
    let mut world = world();
    for offset in [0x4, 0x8, 0xFFE8] {
        let before = world.read(0, DISTRIBUTOR, offset, 4);
        assert_ne!(before, 0);
        world.write(0, DISTRIBUTOR, offset, 4, !before);
        assert_eq!(world.read(0, DISTRIBUTOR, offset, 4), before);
    }
    assert_eq!(world.read(0, DISTRIBUTOR, 4, 4) & 0x1F, 8, "288 lines");
    assert_eq!(world.read(0, DISTRIBUTOR, 0xFFE8, 4) & 0xF0, 0x30, "GICv3");
    assert_eq!(world.read(0, Frame::Redistributor(1), 0xFFE8, 4) & 0xF0, 0x30);
}

#[test]
fn redistributors_say_whose_they_are() {
    let mut world = world();
    assert_eq!(world.read(0, Frame::Redistributor(0), 8, 8), 0);
    assert_eq!(
        world.read(0, Frame::Redistributor(1), 8, 8),
        1 << 32 | 1 << 8 | 1 << 4
    );
    assert_eq!(world.read(0, Frame::Redistributor(1), 8, 4), 1 << 8 | 1 << 4);
    assert_eq!(world.read(0, Frame::Redistributor(1), 12, 4), 1);
    assert_eq!(world.read(0, Frame::Redistributor(2), 8, 8), 0, "no such vCPU");
}

#[test]
fn waker_follows() {
    let mut world = world();
    let frame = Frame::Redistributor(1);
    assert_eq!(world.read(0, frame, 0x14, 4), 6);
    world.write(0, frame, 0x14, 4, 0);
    assert_eq!(world.read(0, frame, 0x14, 4), 0);
    world.write(0, frame, 0x14, 4, 2);
    assert_eq!(world.read(0, frame, 0x14, 4), 6);
}

#[test]
fn priorities_have_five_bits_and_bytes() {
    let mut world = world();
    world.write(0, DISTRIBUTOR, 0x420, 4, 0xFFFF_FFFF);
    assert_eq!(world.read(0, DISTRIBUTOR, 0x420, 4), 0xF8F8_F8F8);
    world.write(0, DISTRIBUTOR, 0x421, 1, 0x47);
    assert_eq!(world.read(0, DISTRIBUTOR, 0x420, 4), 0xF8F8_40F8);
    assert_eq!(world.read(0, DISTRIBUTOR, 0x421, 1), 0x40);
    world.write(0, DISTRIBUTOR, 0x420, 2, 0);
    world.write(0, DISTRIBUTOR, 0x421, 4, 0);
    assert_eq!(
        world.read(0, DISTRIBUTOR, 0x420, 4),
        0xF8F8_40F8,
        "widths and alignments there are not"
    );
    world.write(0, DISTRIBUTOR, 0x400, 4, 0xFFFF_FFFF);
    assert_eq!(
        world.read(0, DISTRIBUTOR, 0x400, 4),
        0,
        "private lines are in the redistributor"
    );
    world.write(0, DISTRIBUTOR, 0x400 + 288, 4, 0xFFFF_FFFF);
    assert_eq!(
        world.read(0, DISTRIBUTOR, 0x400 + 288, 4),
        0,
        "behind the last line"
    );
}

#[test]
fn configuration_has_one_bit_of_two() {
    let mut world = world();
    world.write(0, DISTRIBUTOR, 0xC08, 4, 0xFFFF_FFFF);
    assert_eq!(world.read(0, DISTRIBUTOR, 0xC08, 4), 0xAAAA_AAAA);
    world.write(0, DISTRIBUTOR, 0xC0C, 4, 0x8000_0002);
    assert_eq!(world.read(0, DISTRIBUTOR, 0xC0C, 4), 0x8000_0002);
    assert_eq!(
        world.read(0, DISTRIBUTOR, 0xC08, 4),
        0xAAAA_AAAA,
        "the other half"
    );
    let frame = Frame::Redistributor(0);
    world.write(0, frame, 0x1_0C00, 4, 0);
    assert_eq!(
        world.read(0, frame, 0x1_0C00, 4),
        0xAAAA_AAAA,
        "SGIs are edge-triggered"
    );
}

#[test]
fn routes_in_both_widths() {
    let mut world = world();
    let route = 0x6000 + 8 * 64;
    world.write(0, DISTRIBUTOR, route, 8, 0x12_8034_5678);
    assert_eq!(world.read(0, DISTRIBUTOR, route, 8), 0x12_8034_5678);
    assert_eq!(world.read(0, DISTRIBUTOR, route, 4), 0x8034_5678);
    assert_eq!(world.read(0, DISTRIBUTOR, route + 4, 4), 0x12);
    world.write(0, DISTRIBUTOR, route, 4, 1);
    world.write(0, DISTRIBUTOR, route + 4, 4, 0);
    assert_eq!(world.read(0, DISTRIBUTOR, route, 8), 1);
    world.write(0, DISTRIBUTOR, 0x6000, 8, 1);
    assert_eq!(
        world.read(0, DISTRIBUTOR, 0x6000, 8),
        0,
        "private lines have no route"
    );
}

#[test]
fn registers_of_gicv2_are_not_there() {
    let mut world = world();
    for offset in [0x820, 0xF00, 0xF10, 0xF20, 0xD04, 0xE08] {
        world.write(0, DISTRIBUTOR, offset, 4, 0xFFFF_FFFF);
        assert_eq!(world.read(0, DISTRIBUTOR, offset, 4), 0, "{offset:#x}");
    }
}

#[test]
fn a_level_comes_as_long_as_it_is_high() {
    let mut world = world();
    prepare(&mut world, 0, 33);
    world.raise(33);
    assert!(world.bit(0, 0x200, 33));
    assert_eq!(world.acknowledge(0), 33);
    assert!(world.bit(0, 0x300, 33));
    world.end(0, 33);
    assert_eq!(world.acknowledge(0), 33, "still high");
    world.lower(33);
    world.end(0, 33);
    assert_eq!(world.acknowledge(0), SPURIOUS);
    world.raise(33);
    world.lower(33);
    assert_eq!(
        world.acknowledge(0),
        SPURIOUS,
        "taken back before it was acknowledged"
    );
    world.raise(33);
    world.set_bit(0, 0x280, 33);
    assert!(world.bit(0, 0x200, 33), "a level cannot be cleared");
}

#[test]
fn an_edge_comes_once() {
    let mut world = world();
    prepare(&mut world, 0, 34);
    world.write(0, DISTRIBUTOR, 0xC08, 4, 2 << 4);
    world.raise(34);
    world.raise(34);
    assert_eq!(world.acknowledge(0), 34);
    world.lower(34);
    world.raise(34);
    assert!(
        world.bit(0, 0x200, 34) && world.bit(0, 0x300, 34),
        "pending and active"
    );
    world.end(0, 34);
    assert_eq!(world.acknowledge(0), 34);
    world.end(0, 34);
    assert_eq!(world.acknowledge(0), SPURIOUS);
}

#[test]
fn more_than_fits_comes_by_priority() {
    let mut world = World::new(1, 1, &[]);
    world.write(0, DISTRIBUTOR, 0, 4, 3);
    for line in 64..96 {
        prepare(&mut world, 0, line);
        world.set_priority(0, line, (95 - line as u8) * 8);
        world.set_bit(0, 0x200, line);
    }
    // Priority 0xF8 never comes: no mask lets it through.
    for line in (65..96).rev() {
        assert_eq!(world.acknowledge(0), line);
        world.end(0, line);
    }
    assert_eq!(world.acknowledge(0), SPURIOUS);
}

#[test]
fn nested_deeper_than_list_registers() {
    let mut world = World::new(1, 1, &[]);
    world.write(0, DISTRIBUTOR, 0, 4, 3);
    let order = [64u32, 65, 66, 67, 68];
    for line in order {
        prepare(&mut world, 0, line);
        world.set_priority(0, line, 0x80 - (line as u8 - 64) * 16);
        world.set_bit(0, 0x200, line);
        assert_eq!(world.acknowledge(0), line);
    }
    for line in order.into_iter().rev() {
        assert!(world.bit(0, 0x300, line));
        world.end(0, line);
        assert!(!world.bit(0, 0x300, line), "{line}");
    }
}

#[test]
fn split_end_in_any_order() {
    let mut world = World::new(1, 1, &[]);
    world.write(0, DISTRIBUTOR, 0, 4, 3);
    world.cpus[0].machine_control |= 1 << 9;
    for line in 64..67 {
        prepare(&mut world, 0, line);
        world.set_bit(0, 0x200, line);
        assert_eq!(world.acknowledge(0), line);
        world.end(0, line);
    }
    for line in [65, 64, 66] {
        assert!(world.bit(0, 0x300, line));
        world.deactivate(0, line);
        assert!(!world.bit(0, 0x300, line));
    }
}

#[test]
fn the_timer_ends_physically() {
    let mut world = world();
    prepare(&mut world, 0, TIMER);
    let timer = |world: &mut World, level| {
        world.physical(0, PHYSICAL_TIMER, |line| line.level = level);
        world.settle();
    };
    timer(&mut world, true);
    assert_eq!(world.acknowledge(0), TIMER);
    assert!(world.bit(0, 0x200, TIMER), "pending reflects the line");
    timer(&mut world, false);
    assert!(!world.bit(0, 0x200, TIMER));
    world.end(0, TIMER);
    assert!(!world.physical(0, PHYSICAL_TIMER, |line| line.active));
    timer(&mut world, true);
    world.set_bit(0, 0x180, TIMER);
    assert!(
        !world.physical(0, PHYSICAL_TIMER, |line| line.active || line.enabled),
        "given back"
    );
    assert!(world.bit(0, 0x200, TIMER), "pending while disabled");
    world.set_bit(0, 0x100, TIMER);
    assert_eq!(world.acknowledge(0), TIMER);
}

#[test]
fn the_timer_moves_with_its_vcpu() {
    let mut world = world();
    prepare(&mut world, 0, TIMER);
    world.physical(0, PHYSICAL_TIMER, |line| line.level = true);
    world.settle();
    assert_eq!(world.acknowledge(0), TIMER);
    world.with(0, |vgic, bank, cpu| vgic.unload(0, bank, cpu));
    assert!(
        !world.physical(0, PHYSICAL_TIMER, |line| line.active),
        "free for the next vCPU"
    );
    world.with(0, |vgic, bank, cpu| vgic.load(0, bank, cpu));
    assert!(world.physical(0, PHYSICAL_TIMER, |line| line.active));
    world.end(0, TIMER);
    assert!(!world.physical(0, PHYSICAL_TIMER, |line| line.active) || world.cpus[0].best().is_some());
}

#[test]
fn sgis_reach_whom_they_name() {
    let mut world = World::new(3, 4, &[]);
    world.write(0, DISTRIBUTOR, 0, 4, 3);
    for cpu in 0..3 {
        prepare(&mut world, cpu, 5);
    }
    world.send(0, Sgi::Group1, 5 << 24 | 0b101);
    assert_eq!([0, 1, 2].map(|cpu| world.acknowledge(cpu)), [5, SPURIOUS, 5]);
    world.end(0, 5);
    world.end(2, 5);
    world.send(1, Sgi::Group1, 5 << 24 | 1 << 40);
    assert_eq!(
        [0, 1, 2].map(|cpu| world.acknowledge(cpu)),
        [5, SPURIOUS, 5],
        "all but self"
    );
    world.end(0, 5);
    world.end(2, 5);
    for elsewhere in [1 << 16, 1 << 32, 1 << 44, 1 << 48] {
        world.send(0, Sgi::Group1, 5 << 24 | 0b111 | elsewhere & !0xFFFF);
    }
    world.send(0, Sgi::Group0, 5 << 24 | 0b111);
    world.send(0, Sgi::OtherGroup1, 5 << 24 | 0b111);
    assert_eq!([0, 1, 2].map(|cpu| world.acknowledge(cpu)), [SPURIOUS; 3]);
}

#[test]
fn a_linked_line_goes_where_the_guest_routes_it() {
    let mut world = world();
    prepare(&mut world, 0, 40);
    assert!(world.physical(0, 100, |line| line.enabled));
    world.write(0, DISTRIBUTOR, 0x6000 + 8 * 40, 8, 1);
    assert_eq!(world.physical(0, 100, |line| line.target), 1);
    world.physical(0, 100, |line| line.level = true);
    world.settle();
    assert_eq!(world.acknowledge(1), 40);
    world.physical(0, 100, |line| line.level = false);
    world.end(1, 40);
    assert!(!world.physical(0, 100, |line| line.active));
    world.set_bit(0, 0x180, 40);
    assert!(!world.physical(0, 100, |line| line.enabled));
}

/// Returns a world in which any vCPU takes line 40.
fn open_world() -> World {
    let mut world = world();
    prepare(&mut world, 0, 40);
    world.write(0, DISTRIBUTOR, 0x6000 + 8 * 40, 8, 1 << 31);
    world
}

#[test]
fn a_line_for_anybody_does_not_go_with_a_vcpu_that_leaves() {
    let mut world = open_world();
    // Marked for vCPU 0, which has not looked yet.
    world.with(0, |vgic, _, hardware| vgic.raise_linked(NO_VCPU, 40, hardware));
    world.with(0, |vgic, bank, hardware| vgic.detach(0, bank, hardware));
    assert!(world.cpus[0].is_kicked(1));
    world.settle();
    assert_eq!(world.acknowledge(1), 40);
}

#[test]
fn a_line_for_anybody_finds_a_vcpu_that_comes() {
    let mut world = open_world();
    world.with(0, |vgic, bank, hardware| vgic.detach(0, bank, hardware));
    // Marked for vCPU 1, which has not looked yet, and is not the first any more when it does.
    world.with(1, |vgic, _, hardware| vgic.raise_linked(NO_VCPU, 40, hardware));
    world.with(0, |vgic, bank, hardware| {
        vgic.reset(0, bank, hardware);
        vgic.load(0, bank, hardware);
    });
    world.cpus[0].machine_control = 0xF8 << 24 | 3;
    world.settle();
    assert_eq!(world.acknowledge(0), 40);
    assert_eq!(world.acknowledge(1), SPURIOUS);
}

#[test]
fn whom_a_line_concerns() {
    let mut world = world();
    let takers = |world: &mut World| world.with(0, |vgic, _, _| vgic.takers(40));
    assert_eq!(takers(&mut world), 0);
    prepare(&mut world, 0, 40);
    assert_eq!(takers(&mut world), 0b01);
    world.physical(0, 100, |line| line.level = true);
    world.settle();
    assert_eq!(world.acknowledge(0), 40);
    // Routed away while vCPU 0 handles it.
    world.write(0, DISTRIBUTOR, 0x6000 + 8 * 40, 8, 1);
    assert_eq!(takers(&mut world), 0b11);
    world.set_bit(0, 0x180, 40);
    assert_eq!(takers(&mut world), 0b01);
    for line in [0, 31, 1020, 1023, 5000] {
        assert_eq!(world.with(0, |vgic, _, _| vgic.takers(line)), 0);
    }
}

#[test]
fn work_is_seen_before_ended_interrupts_are_looked_at() {
    let mut world = world();
    for line in [3, 64] {
        prepare(&mut world, 0, line);
        world.set_bit(0, 0x200, line);
        assert_eq!(world.acknowledge(0), line);
        // Ended without an exit; again pending before the next.
        world.cpus[0].end(line);
        let (frame, offset) = world.place(0, 0x200, line);
        world.with(1, |vgic, bank, cpu| {
            let access = bulkhead_arch_vgic::RegisterAccess {
                frame,
                offset,
                size: 4,
            };
            vgic.write(1, bank, cpu, access, 1 << (line % 32));
        });
        assert!(
            world.with(0, |vgic, bank, cpu| vgic.has_work(0, bank, cpu)),
            "{line}"
        );
        world.settle();
        assert_eq!(world.acknowledge(0), line);
        world.end(0, line);
    }
}

#[test]
fn work_is_what_the_masks_let_through() {
    let mut world = world();
    let has_work = |world: &mut World| world.with(0, |vgic, bank, cpu| vgic.has_work(0, bank, cpu));
    prepare(&mut world, 0, 64);
    assert!(!has_work(&mut world));
    world.set_bit(0, 0x200, 64);
    assert!(has_work(&mut world));
    world.cpus[0].machine_control = 0x80 << 24 | 3;
    assert!(!has_work(&mut world), "masked");
    world.cpus[0].machine_control = 0xF8 << 24 | 1;
    assert!(!has_work(&mut world), "group off");
    world.cpus[0].machine_control = 0xF8 << 24 | 3;
    world.with(0, |vgic, bank, cpu| vgic.unload(0, bank, cpu));
    assert!(has_work(&mut world), "not loaded");
}

/// Ends an interrupt by the distributor and not by the CPU interface. The interrupt is active and latched
/// once more, and cannot be delivered as it was loaded, so its end is to be noticed.
#[test]
fn an_end_to_be_noticed_that_is_taken_away_does_not_storm() {
    for line in [5, 64] {
        let mut world = world();
        prepare(&mut world, 0, line);
        world.set_bit(0, 0x200, line);
        assert_eq!(world.acknowledge(0), line);
        world.set_bit(0, 0x180, line);
        world.set_bit(0, 0x200, line);
        assert!(
            world.cpus[0].slots.iter().any(|slot| slot.notices_end()),
            "{line}"
        );
        world.set_bit(0, 0x380, line);
        assert!(!world.cpus[0].maintenance(), "{line}");
        world.cpus[0].active_priorities = [[0; 4]; 2];
        assert_eq!(world.acknowledge(0), SPURIOUS);
        world.set_bit(0, 0x100, line);
        assert_eq!(world.acknowledge(0), line, "what was latched comes");
        world.end(0, line);
        assert_eq!(world.acknowledge(0), SPURIOUS);
    }
}

/// Checks that a timer's active state does not stay. The timer's physical line is one for all vCPUs of a
/// pCPU, and one vCPU makes it active there.
#[test]
fn what_is_done_to_a_timers_line_does_not_stay_for_the_next_vcpu() {
    let mut world = world();
    let active = |world: &mut World| world.physical(0, PHYSICAL_TIMER, |line| line.active);
    world.set_bit(0, 0x300, TIMER);
    assert!(active(&mut world));
    world.with(0, |vgic, bank, cpu| vgic.unload(0, bank, cpu));
    assert!(!active(&mut world), "another vCPU has the line now");
    world.with(0, |vgic, bank, cpu| vgic.load(0, bank, cpu));
    assert!(active(&mut world), "it is still this one's");
    world.set_bit(0, 0x380, TIMER);
    assert!(!active(&mut world));
    // Another vCPU takes it back; it cannot reach the line.
    world.set_bit(0, 0x300, TIMER);
    world.write(1, Frame::Redistributor(0), 0x1_0380, 4, 1 << TIMER);
    world.with(0, |vgic, bank, cpu| vgic.unload(0, bank, cpu));
    assert!(!active(&mut world));
    world.with(0, |vgic, bank, cpu| vgic.load(0, bank, cpu));
    assert!(!active(&mut world));
    // The same for a pending state made by software while the line is off.
    world.set_bit(0, 0x200, TIMER);
    assert!(world.physical(0, PHYSICAL_TIMER, |line| line.latch));
    world.with(0, |vgic, bank, cpu| vgic.unload(0, bank, cpu));
    assert!(!world.physical(0, PHYSICAL_TIMER, |line| line.latch));
}
