// SPDX-License-Identifier: Apache-2.0
//! Actions of a hostile guest and its devices, as data, for the property test and the fuzz target.

use super::{PHYSICAL_TIMER, SPURIOUS, World};
use bulkhead_arch_vgic::{RegisterAccess, Sgi};

/// One step of a CPU. CPUs are 0..3.
#[derive(Clone, Debug)]
pub enum Step {
    Read(usize, RegisterAccess),
    Write(usize, RegisterAccess, u64),
    Send(usize, u8, u64),
    Acknowledge(usize),
    End(usize, u32),
    Deactivate(usize, u32),
    Control(usize, u64),
    Switch(usize),
    Reset(usize),
    Raise(u32),
    Lower(u32),
    Pulse(u32),
    /// The input of a linked line.
    Input(bool, bool),
}

/// Does all steps on three vCPUs with this many list registers, then starts anew: everything works again.
pub fn run(slots: usize, steps: &[Step]) {
    go(World::new(3, slots, LINKS), steps);
}

/// Runs the steps with a GICv2.
pub fn run_version2(slots: usize, steps: &[Step]) {
    go(World::new_version2(3, slots, LINKS), steps);
}

const LINKS: &[(u32, u32, bool)] = &[(40, 100, false), (41, 101, true)];

fn go(mut world: World, steps: &[Step]) {
    for step in steps {
        apply(&mut world, step);
    }
    restart(&mut world);
}

/// Does one step; one of a vCPU that is not loaded does nothing.
pub fn apply(world: &mut World, step: &Step) {
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
            world.reset(cpu);
            world.settle();
        }
        Step::Raise(line) => world.raise(line),
        Step::Lower(line) => world.lower(line),
        Step::Pulse(line) => world.pulse(line),
        Step::Input(second, level) => {
            let (_, physical, edge) = LINKS[usize::from(second)];
            world.physical(0, physical, |state| {
                state.latch |= edge && level && !state.level;
                state.level = level;
            });
            world.settle();
        }
        _ => {}
    }
}

fn restart(world: &mut World) {
    // After a new start everything works again.
    for cpu in 0..3 {
        world.with(cpu, |vgic, bank, hardware| vgic.detach(cpu, bank, hardware));
    }
    // The devices are quiet, too.
    for line in [100, 101] {
        world.physical(0, line, |state| state.level = false);
    }
    world.reset_shared();
    for line in [100, 101] {
        assert!(!world.physical(0, line, |state| state.active || state.enabled));
    }
    for cpu in 0..3 {
        assert!(!world.physical(cpu, PHYSICAL_TIMER, |state| state.active || state.latch));
        world.reset(cpu);
        world.with(cpu, |vgic, bank, hardware| vgic.load(cpu, bank, hardware));
        world.cpus[cpu].machine_control = 0xF8 << 24 | 3;
        assert_eq!(world.acknowledge(cpu), SPURIOUS);
        let (distributor, _) = world.place(cpu, 0, 32);
        world.write(cpu, distributor, 0, 4, 3);
        world.set_bit(cpu, 0x100, 3);
        if world.version2 {
            world.send_version2(cpu, 3, 1 << cpu);
        } else {
            world.send(cpu, Sgi::Group1, 3 << 24 | 1 << cpu);
        }
        assert_eq!(world.acknowledge(cpu), 3);
    }
}
