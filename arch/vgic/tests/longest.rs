// SPDX-License-Identifier: Apache-2.0
//! A search for the longest operation of the virtual GIC. While one is under way its pCPU takes no interrupt,
//! so the operation must not take longer because of what a guest did before, or because the guest has more
//! lines.
//!
//! The search climbs: it keeps the sequence of steps whose longest single call of `Vgic` took the most turns
//! of loops, looks at words and accesses to hardware, and changes that sequence at random. Nothing here knows
//! how the virtual GIC works inside, but for the values that are likely to make it busy.

mod sim;

use bulkhead_arch_vgic::{Frame, RegisterAccess};
use sim::World;
use sim::steps::{Step, apply};

/// Changes to the best sequence of each board.
const CHANGES: usize = 500;
/// The longest sequence.
const LONGEST: usize = 160;
/// Steps that no operation exceeds, for any number of lines: 4 list registers.
const BOUND: u64 = 210;

/// A board and a VM.
#[derive(Clone, Copy, Debug)]
struct Shape {
    version2: bool,
    lines: u32,
    vcpus: usize,
    slots: usize,
}

/// Random numbers, the same in each run (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }
}

impl Shape {
    fn world(&self) -> World {
        // 16 lines of a word have physical lines, as the devices of a board have.
        let links: Vec<(u32, u32, bool)> = (0..16).map(|n| (40 + n, 100 + n, n % 2 != 0)).collect();
        let mut world = if self.version2 {
            World::new_version2(self.vcpus, self.slots, &links)
        } else {
            World::new(self.vcpus, self.slots, &links)
        };
        world.distributor.set_lines(self.lines);
        let (distributor, _) = world.place(0, 0, 32);
        world.write(0, distributor, 0, 4, 3);
        world
    }

    fn cpu(&self, random: &mut Random) -> usize {
        random.below(self.vcpus)
    }

    /// Draws a store to a register of the distributor or a redistributor.
    fn store(&self, random: &mut Random) -> Step {
        let cpu = self.cpu(random);
        let word = random.below(self.lines as usize / 32) as u32;
        let value = match random.below(4) {
            0 => random.next(),
            1 => 1 << random.below(32),
            _ => u64::MAX,
        };
        let shared = if self.version2 {
            Frame::Version2
        } else {
            Frame::Distributor
        };
        let (frame, base) = match word {
            0 if !self.version2 => (Frame::Redistributor(self.cpu(random)), 0x1_0000),
            _ => (shared, 0),
        };
        let access = |frame, offset| RegisterAccess {
            frame,
            offset,
            size: 4,
        };
        match random.below(12) {
            0 => Step::Write(cpu, access(shared, 0), random.next() & 3),
            1 => Step::Write(
                cpu,
                access(frame, base + 0x400 + 32 * word + 4 * random.below(8) as u32),
                random.next(),
            ),
            2 if self.version2 => {
                let line = 32 * word + 4 * random.below(8) as u32;
                Step::Write(cpu, access(shared, 0x800 + line), random.next())
            }
            2 => {
                let line = 32 * word + random.below(32) as u32;
                let any = (random.next() & 1) << 31;
                Step::Write(
                    cpu,
                    access(shared, 0x6000 + 8 * line),
                    any | self.cpu(random) as u64,
                )
            }
            3 => Step::Read(
                cpu,
                access(frame, base + 0x80 * (1 + random.below(7)) as u32 + 4 * word),
            ),
            n => {
                let fields = [1, 2, 2, 4, 4, 4, 5, 6, 7];
                let field = fields[(n + random.below(3)) % fields.len()];
                Step::Write(cpu, access(frame, base + 0x80 * field + 4 * word), value)
            }
        }
    }

    fn step(&self, random: &mut Random) -> Step {
        let cpu = self.cpu(random);
        let line = random.below(self.lines as usize) as u32;
        match random.below(20) {
            0 => Step::Acknowledge(cpu),
            1 => Step::End(cpu, line),
            2 => Step::Deactivate(cpu, line),
            3 => Step::Control(cpu, (0xF8 * (random.next() & 1)) << 24 | random.next() & 0x203),
            4 | 5 => Step::Switch(cpu),
            6 => Step::Reset(cpu),
            7 => Step::Send(cpu, 1, (random.next() & 15) << 24 | random.next() & 0xFF),
            8 if random.below(2) == 0 => Step::Pulse(line),
            8 => Step::Raise(line),
            9 => Step::Lower(line),
            _ => self.store(random),
        }
    }

    /// Steps of the longest call that this sequence makes.
    fn cost(&self, steps: &[Step]) -> u64 {
        let mut world = self.world();
        world.longest = 0;
        for step in steps {
            apply(&mut world, step);
        }
        world.longest
    }

    /// Enables all lines and makes them pending for everybody. An attacker begins with this.
    fn flood(&self) -> Vec<Step> {
        let frame = if self.version2 {
            Frame::Version2
        } else {
            Frame::Distributor
        };
        let words = 1..self.lines / 32;
        let all = |base: u32| {
            words.clone().map(move |word| {
                let access = RegisterAccess {
                    frame,
                    offset: base + 4 * word,
                    size: 4,
                };
                Step::Write(0, access, u64::MAX)
            })
        };
        all(0x100).chain(all(0x200)).collect()
    }

    fn change(&self, steps: &[Step], random: &mut Random) -> Vec<Step> {
        let mut changed = steps.to_vec();
        for _ in 0..=random.below(8) {
            let place = random.below(changed.len() + 1);
            match random.below(4) {
                0 if !changed.is_empty() => {
                    changed.remove(place.min(changed.len() - 1));
                }
                1 if !changed.is_empty() => {
                    let copied = changed[random.below(changed.len())].clone();
                    changed.insert(place, copied);
                }
                _ => changed.insert(place, self.step(random)),
            }
        }
        changed.truncate(LONGEST);
        changed
    }

    /// Returns the longest call that the search finds, and how it comes about.
    fn search(&self) -> (u64, Vec<Step>) {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut best = self.flood();
        let mut most = self.cost(&best);
        for _ in 0..CHANGES {
            let next = self.change(&best, &mut random);
            let cost = self.cost(&next);
            if cost >= most {
                (best, most) = (next, cost);
            }
        }
        (most, best)
    }
}

#[test]
fn no_operation_takes_longer_because_of_lines_or_of_what_a_guest_did() {
    for version2 in [false, true] {
        for vcpus in [1, 4, 8] {
            for lines in [64, 288, 992] {
                let shape = Shape {
                    version2,
                    lines,
                    vcpus,
                    slots: 4,
                };
                let (most, steps) = shape.search();
                println!("{shape:?}: {most} steps");
                assert!(most <= BOUND, "{shape:?}: {most} steps by {steps:?}");
            }
        }
    }
}
