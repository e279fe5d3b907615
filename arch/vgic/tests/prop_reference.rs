// SPDX-License-Identifier: Apache-2.0
//! Random sequences of everything a guest, its devices and the scheduler can do, against a model of a GIC
//! without list registers. After each step the board has settled. So each vCPU must acknowledge exactly what
//! the model's CPU would, and the pending and active registers must read alike. Nothing is lost, and nothing
//! comes twice.
//!
//! Wake-ups are compared, too. A vCPU may wait for an interrupt (`has_work`, `Bank::is_idle`) if, and only
//! if, the model's CPU would not be interrupted, with any mask of PSTATE. A vCPU that waits while it is not
//! loaded is kicked as soon as the model's CPU would be interrupted.

mod sim;

use bulkhead_arch_vgic::Sgi;
use proptest::prelude::*;
use sim::{PHYSICAL_TIMER, SPURIOUS, TIMER, World};

/// Lines the sequences use: SGIs, the timer, plain shared lines, linked ones (level, edge).
const SGIS: [u32; 3] = [0, 7, 15];
const PLAIN: [u32; 7] = [32, 33, 63, 64, 65, 200, 287];
const LINKED: [(u32, u32, bool); 3] = [(40, 100, false), (41, 101, true), (250, 500, false)];
const PRIORITIES: [u8; 5] = [0x00, 0x40, 0x80, 0x88, 0xF0];

#[derive(Clone, Debug)]
enum Step {
    Enable(usize, usize, bool),
    Pending(usize, usize, bool),
    Active(usize, usize, bool),
    Priority(usize, usize, usize),
    Group(usize, usize, bool),
    Route(usize, usize, usize),
    Level(usize, bool),
    Pulse(usize),
    Physical(usize, bool),
    Timer(usize, bool),
    Send(usize, usize, u8),
    Acknowledge(usize),
    End(usize),
    Deactivate(usize, usize),
    Groups(u8),
    Mask(usize, u8),
    Switch(usize, bool),
    /// A whole word of lines at once: what, of which word, for which lines.
    Flood(usize, Flood, usize, u32),
}

/// A change of a whole word of lines.
#[derive(Clone, Copy, Debug)]
enum Flood {
    Enable,
    Pend,
    Clear,
    Priorities,
    Route,
}

/// Words of lines that nothing else is done to: together more than there are looks in a step.
const FLOODED: [u32; 16] = [3, 4, 5, 9, 10, 11, 14, 15, 17, 18, 20, 22, 25, 27, 29, 30];

/// A line as the model's distributor knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Line {
    enabled: bool,
    group1: bool,
    edge: bool,
    latch: bool,
    level: bool,
    active: bool,
    priority: u8,
    target: usize,
    /// The senders of a software-generated interrupt of a GICv2, one bit each.
    senders: u8,
}

impl Line {
    fn pending(&self) -> bool {
        self.latch || self.senders != 0 || self.level && !self.edge
    }
}

/// A GIC without list registers.
struct Model {
    groups: u8,
    private: Vec<Vec<Line>>,
    shared: Vec<Line>,
    /// Acknowledged and not ended, innermost last.
    stack: Vec<Vec<u32>>,
    /// Ended and not deactivated (EOImode 1).
    dropped: Vec<Vec<u32>>,
    running: Vec<Vec<u8>>,
    mask: Vec<u8>,
}

impl Model {
    fn new(version2: bool, vcpus: usize) -> Self {
        let sgi = Line {
            edge: true,
            enabled: version2,
            ..Line::default()
        };
        let private = (0..32)
            .map(|n| if n < 16 { sgi } else { Line::default() })
            .collect::<Vec<_>>();
        // With a choice of targets, a line of a GICv2 has none at first.
        let target = if version2 && vcpus > 1 { usize::MAX } else { 0 };
        let line = Line {
            target,
            ..Line::default()
        };
        let mut shared = vec![line; 992];
        for (line, _, edge) in LINKED {
            shared[line as usize].edge = edge;
        }
        Self {
            groups: 0,
            private: vec![private; vcpus],
            shared,
            stack: vec![Vec::new(); vcpus],
            dropped: vec![Vec::new(); vcpus],
            running: vec![Vec::new(); vcpus],
            mask: vec![0xF8; vcpus],
        }
    }

    fn line(&mut self, cpu: usize, line: u32) -> &mut Line {
        if line < 32 {
            &mut self.private[cpu][line as usize]
        } else {
            &mut self.shared[line as usize]
        }
    }

    /// Urgency of what CPU `cpu` would acknowledge, and all lines it could be.
    fn best(&self, cpu: usize) -> (u8, Vec<u32>) {
        let running = self.running[cpu]
            .iter()
            .min()
            .map_or(0x100, |priority| u32::from(*priority));
        let deliverable = |line: &Line| {
            let group = if line.group1 { 2 } else { 1 };
            line.enabled
                && line.pending()
                && !line.active
                && self.groups & group != 0
                && line.priority < self.mask[cpu]
                && u32::from(line.priority) < running
        };
        let private = self.private[cpu]
            .iter()
            .zip(0..)
            .filter(|(line, _)| deliverable(line));
        let shared = self
            .shared
            .iter()
            .zip(0..)
            .filter(|(line, _)| line.target == cpu && deliverable(line));
        let all: Vec<(u8, u32)> = private
            .chain(shared)
            .map(|(line, number)| (line.priority, number))
            .collect();
        let best = all.iter().map(|(priority, _)| *priority).min().unwrap_or(0xFF);
        (
            best,
            all.into_iter()
                .filter(|(priority, _)| *priority == best)
                .map(|(_, line)| line)
                .collect(),
        )
    }
}

struct Pair {
    world: World,
    kind: Kind,
    model: Model,
    loaded: Vec<bool>,
    /// True if the vCPU had nothing to do when it was unloaded: the kernel lets it wait until it is kicked.
    waits: Vec<bool>,
}

/// Returns all lines that a vCPU can name in a sequence.
fn named(n: usize) -> u32 {
    let linked = LINKED.map(|(line, ..)| line);
    let all: Vec<u32> = SGIS
        .into_iter()
        .chain([TIMER])
        .chain(PLAIN)
        .chain(linked)
        .collect();
    all[n % all.len()]
}

fn is_linked(line: u32) -> bool {
    line == TIMER || LINKED.iter().any(|(linked, ..)| *linked == line)
}

/// The controllers that are compared: their version, and whether ends only drop the priority (EOImode 1).
#[derive(Clone, Copy, Debug)]
struct Kind {
    version2: bool,
    split: bool,
}

impl Pair {
    fn new(kind: Kind, vcpus: usize, slots: usize) -> Self {
        let mut world = if kind.version2 {
            World::new_version2(vcpus, slots, &LINKED)
        } else {
            World::new(vcpus, slots, &LINKED)
        };
        for cpu in &mut world.cpus {
            cpu.machine_control |= u64::from(kind.split) << 9;
        }
        world.distributor.set_lines(992);
        world.reset_shared();
        Self {
            world,
            kind,
            model: Model::new(kind.version2, vcpus),
            loaded: vec![true; vcpus],
            waits: vec![false; vcpus],
        }
    }

    fn step(&mut self, step: &Step) {
        let vcpus = self.loaded.len();
        match *step {
            Step::Enable(cpu, n, on) => self.if_loaded(cpu, |pair, cpu| {
                pair.world.set_bit(cpu, if on { 0x100 } else { 0x180 }, named(n));
                let always = pair.kind.version2 && named(n) < 16;
                pair.model.line(cpu, named(n)).enabled = on || always;
            }),
            // A pending state given to a linked level-triggered line by software ends when the line is
            // disabled or its vCPU leaves the pCPU: it looks like a level that has gone. The model leaves
            // this out.
            Step::Pending(_, n, true) if is_linked(named(n)) && named(n) != LINKED[1].0 => {}
            Step::Pending(cpu, n, on) if self.kind.version2 && named(n) < 16 => {
                self.if_loaded(cpu, |pair, cpu| pair.set_sent(cpu, named(n), on));
            }
            Step::Pending(cpu, n, on) => self.if_loaded(cpu, |pair, cpu| {
                pair.world.set_bit(cpu, if on { 0x200 } else { 0x280 }, named(n));
                pair.model.line(cpu, named(n)).latch = on;
            }),
            Step::Active(cpu, n, on) => self.if_loaded(cpu, |pair, cpu| pair.set_active(cpu, named(n), on)),
            Step::Priority(cpu, n, p) => self.if_loaded(cpu, |pair, cpu| {
                let priority = PRIORITIES[p % PRIORITIES.len()];
                // The priority of an active interrupt is the one it was acknowledged with, in both.
                pair.world.set_priority(cpu, named(n), priority);
                pair.model.line(cpu, named(n)).priority = priority;
            }),
            Step::Group(cpu, n, group1) => {
                self.if_loaded(cpu, |pair, cpu| pair.set_group(cpu, named(n), group1))
            }
            Step::Route(cpu, n, target) => {
                self.if_loaded(cpu, |pair, cpu| pair.route(cpu, named(n), target % vcpus));
            }
            Step::Level(n, on) => {
                let line = PLAIN[n % PLAIN.len()];
                if on {
                    self.world.raise(line)
                } else {
                    self.world.lower(line)
                }
                self.model.shared[line as usize].level = on;
            }
            Step::Pulse(n) => {
                let line = PLAIN[n % PLAIN.len()];
                self.world.pulse(line);
                self.model.shared[line as usize].latch = true;
            }
            Step::Physical(n, on) => self.physical(LINKED[n % LINKED.len()], on),
            Step::Timer(cpu, on) => self.if_loaded(cpu, |pair, cpu| {
                pair.world.physical(cpu, PHYSICAL_TIMER, |line| line.level = on);
                pair.model.private[cpu][TIMER as usize].level = on;
                pair.world.settle();
                if !on {
                    pair.drop_stale(cpu, TIMER);
                }
            }),
            Step::Send(cpu, n, targets) => {
                self.if_loaded(cpu, |pair, cpu| pair.send(cpu, SGIS[n % SGIS.len()], targets));
            }
            Step::Acknowledge(cpu) => self.if_loaded(cpu, Self::acknowledge),
            Step::End(cpu) => self.if_loaded(cpu, Self::end),
            Step::Deactivate(cpu, n) => self.if_loaded(cpu, |pair, cpu| pair.deactivate(cpu, n)),
            Step::Groups(groups) => self.if_loaded(0, |pair, cpu| {
                let value = u64::from(groups & 3);
                let (distributor, _) = pair.world.place(cpu, 0, 32);
                pair.world.write(cpu, distributor, 0, 4, value);
                pair.model.groups = groups & 3;
            }),
            Step::Mask(cpu, mask) => self.if_loaded(cpu, |pair, cpu| {
                let mask = mask & 0xF8;
                let control = pair.world.cpus[cpu].machine_control & !(0xFF << 24);
                pair.world.cpus[cpu].machine_control = control | u64::from(mask) << 24;
                pair.model.mask[cpu] = mask;
            }),
            Step::Switch(cpu, on) => self.switch(cpu % vcpus, on),
            Step::Flood(cpu, what, n, lines) => self.if_loaded(cpu, |pair, cpu| {
                pair.flood(cpu, what, FLOODED[n % FLOODED.len()], lines);
            }),
        }
    }

    fn flood(&mut self, cpu: usize, what: Flood, word: u32, lines: u32) {
        let base = match what {
            Flood::Enable => 0x100,
            Flood::Pend => 0x200,
            Flood::Clear => 0x280,
            Flood::Priorities | Flood::Route => 0,
        };
        let (distributor, offset) = self.world.place(cpu, base, 32 * word);
        if base != 0 {
            self.world.write(cpu, distributor, offset, 4, lines.into());
        }
        for line in (32 * word..).take(32) {
            let on = lines & 1 << (line % 32) != 0;
            match what {
                Flood::Enable => self.model.line(cpu, line).enabled |= on,
                Flood::Pend => self.model.line(cpu, line).latch |= on,
                Flood::Clear => self.model.line(cpu, line).latch &= !on,
                Flood::Priorities if on => {
                    let priority = PRIORITIES[(line ^ lines >> 7) as usize % PRIORITIES.len()];
                    self.world.set_priority(cpu, line, priority);
                    self.model.line(cpu, line).priority = priority;
                }
                Flood::Route if on => self.route(cpu, line, lines as usize % self.loaded.len()),
                Flood::Priorities | Flood::Route => {}
            }
        }
    }

    fn route(&mut self, cpu: usize, line: u32, target: usize) {
        if line < 32 {
            return;
        }
        let (distributor, _) = self.world.place(cpu, 0, line);
        if self.kind.version2 {
            let offset = 0x800 + line;
            self.world.write(cpu, distributor, offset, 1, 1 << target);
        } else {
            self.world
                .write(cpu, distributor, 0x6000 + 8 * line, 8, target as u64);
        }
        self.model.line(cpu, line).target = target;
    }

    fn send(&mut self, cpu: usize, line: u32, targets: u8) {
        if self.kind.version2 {
            self.world.send_version2(cpu, line, targets);
        } else {
            let value = u64::from(line) << 24 | u64::from(targets);
            self.world.send(cpu, Sgi::Group1, value);
        }
        for target in 0..self.loaded.len() {
            let hit = targets & 1 << target != 0;
            let model = &mut self.model.private[target][line as usize];
            if self.kind.version2 {
                model.senders |= u8::from(hit) << cpu;
            } else {
                model.latch |= hit;
            }
        }
    }

    /// `GICD_SPENDSGIR`, as if the vCPU had sent it itself; `GICD_CPENDSGIR`, for any sender.
    fn set_sent(&mut self, cpu: usize, line: u32, on: bool) {
        let (distributor, _) = self.world.place(cpu, 0, line);
        let (offset, value) = if on { (0xF20, 1 << cpu) } else { (0xF10, 0xFF) };
        self.world.write(cpu, distributor, offset + line, 1, value);
        let model = self.model.line(cpu, line);
        model.senders = if on { model.senders | 1 << cpu } else { 0 };
    }

    fn set_group(&mut self, cpu: usize, line: u32, group1: bool) {
        let (frame, offset) = self.world.place(cpu, 0x80, line);
        let (old, bit) = (self.world.read(cpu, frame, offset, 4), 1 << (line % 32));
        self.world
            .write(cpu, frame, offset, 4, if group1 { old | bit } else { old & !bit });
        self.model.line(cpu, line).group1 = group1;
    }

    fn if_loaded(&mut self, cpu: usize, action: impl FnOnce(&mut Self, usize)) {
        let cpu = cpu % self.loaded.len();
        if self.loaded[cpu] {
            action(self, cpu);
        }
    }

    /// Sets the active state of a line, but not of a line that a CPU is serving: its meaning would depend on
    /// where it is ended.
    fn set_active(&mut self, cpu: usize, line: u32, on: bool) {
        let Model { stack, dropped, .. } = &self.model;
        let served = stack
            .iter()
            .chain(dropped)
            .flatten()
            .any(|served| *served == line);
        let elsewhere = line < 32 && !stack[cpu].contains(&line) && !dropped[cpu].contains(&line) && served;
        if is_linked(line) || served && !elsewhere {
            return;
        }
        self.world.set_bit(cpu, if on { 0x300 } else { 0x380 }, line);
        self.model.line(cpu, line).active = on;
    }

    fn physical(&mut self, (line, physical, edge): (u32, u32, bool), on: bool) {
        if !on && !edge && !self.loaded.iter().all(|loaded| *loaded) {
            // Could not be taken back now, see `drop_stale`.
            return;
        }
        let before = self
            .world
            .physical(0, physical, |line| std::mem::replace(&mut line.level, on));
        if edge {
            // An edge while the line is already pending may come as a second interrupt: the first edge has
            // been taken from the physical line by then. Not modelled.
            if on && !before && !self.model.shared[line as usize].latch {
                self.world.physical(0, physical, |line| line.latch = true);
                self.model.shared[line as usize].latch = true;
            }
        } else {
            self.model.shared[line as usize].level = on;
        }
        self.world.settle();
        if !on && !edge {
            self.drop_stale(self.model.shared[line as usize].target, line);
        }
    }

    /// Takes back a linked level line that went low before it was acknowledged, as a guest can. The
    /// hardware's interrupt is already on its way, on a real GIC as well.
    fn drop_stale(&mut self, cpu: usize, line: u32) {
        let model = *self.model.line(cpu, line);
        if !model.latch && !model.active {
            let by = if line < 32 {
                cpu
            } else {
                self.loaded.iter().position(|loaded| *loaded).unwrap_or(0)
            };
            if self.loaded[by] {
                self.world.set_bit(by, 0x280, line);
            }
        }
    }

    fn acknowledge(&mut self, cpu: usize) {
        let (priority, candidates) = self.model.best(cpu);
        let line = self.world.acknowledge(cpu);
        if candidates.is_empty() {
            assert_eq!(line, SPURIOUS, "vCPU {cpu} took what is not deliverable");
            return;
        }
        assert!(
            candidates.contains(&line),
            "vCPU {cpu} took {line}, not one of {candidates:?}"
        );
        let (version2, sender) = (self.kind.version2, self.world.cpus[cpu].sender);
        let model = self.model.line(cpu, line);
        if version2 && line < 16 {
            assert!(
                model.senders & 1 << sender != 0,
                "vCPU {cpu} took {line} of {sender}, who sent none"
            );
            model.senders &= !(1 << sender);
        }
        model.latch = false;
        model.active = true;
        self.model.stack[cpu].push(line);
        self.model.running[cpu].push(priority);
    }

    fn end(&mut self, cpu: usize) {
        let Some(line) = self.model.stack[cpu].pop() else {
            return;
        };
        self.model.running[cpu].pop();
        if self.kind.split {
            self.model.dropped[cpu].push(line);
        } else {
            self.model.line(cpu, line).active = false;
        }
        self.world.end(cpu, line);
    }

    fn deactivate(&mut self, cpu: usize, n: usize) {
        let dropped = &mut self.model.dropped[cpu];
        if dropped.is_empty() {
            return;
        }
        let line = dropped.swap_remove(n % dropped.len());
        self.model.line(cpu, line).active = false;
        self.world.deactivate(cpu, line);
    }

    fn switch(&mut self, cpu: usize, on: bool) {
        if self.loaded[cpu] == on {
            return;
        }
        self.loaded[cpu] = on;
        self.waits[cpu] = !on && self.model.best(cpu).1.is_empty();
        self.world.with(cpu, |vgic, bank, hardware| {
            if on {
                vgic.load(cpu, bank, hardware)
            } else {
                vgic.unload(cpu, bank, hardware);
                hardware.leave_traces();
            }
        });
        // While it is away its timer is off.
        let level = on && self.model.private[cpu][TIMER as usize].level;
        self.world
            .physical(cpu, PHYSICAL_TIMER, |line| line.level = level);
        self.world.settle();
    }

    /// Compares the pending and active registers of both, as the first loaded vCPU reads them.
    fn compare(&mut self) {
        let Some(cpu) = self.loaded.iter().position(|loaded| *loaded) else {
            return;
        };
        for n in 0..14 {
            let line = named(n);
            let model = *self.model.line(cpu, line);
            assert_eq!(
                self.world.bit(cpu, 0x200, line),
                model.pending(),
                "pending {line}: {model:?}"
            );
            assert_eq!(
                self.world.bit(cpu, 0x300, line),
                model.active,
                "active {line}: {model:?}"
            );
        }
    }

    /// Checks which vCPUs may wait, and that no vCPU waits for what is there.
    fn check_waits(&mut self) {
        for cpu in 0..self.loaded.len() {
            let (_, mut candidates) = self.model.best(cpu);
            if !self.loaded[cpu] {
                // The timer of the vCPU is off, and the kernel knows when it fires.
                candidates.retain(|line| *line != TIMER);
            }
            let (has_work, is_idle) = self.world.with(cpu, |vgic, bank, hardware| {
                (vgic.has_work(cpu, bank, hardware), bank.is_idle(hardware))
            });
            assert!(
                has_work || candidates.is_empty(),
                "vCPU {cpu} sleeps over {candidates:?}"
            );
            if self.loaded[cpu] {
                assert!(
                    !has_work || !candidates.is_empty(),
                    "vCPU {cpu} has nothing to stay awake for"
                );
                assert!(
                    !is_idle || candidates.is_empty(),
                    "vCPU {cpu} is idle with {candidates:?}"
                );
            } else if self.waits[cpu] && !candidates.is_empty() {
                assert!(
                    self.world.cpus[cpu].was_woken(cpu),
                    "nobody wakes vCPU {cpu} for {candidates:?}"
                );
            }
        }
    }

    /// Serves everything that is left on all loaded vCPUs; what the model then still has deliverable is lost.
    fn drain(&mut self) {
        for cpu in 0..self.loaded.len() {
            self.switch(cpu, true);
        }
        for n in 0..14 {
            let line = named(n);
            for cpu in 0..self.loaded.len() {
                if line == TIMER {
                    self.step(&Step::Timer(cpu, false));
                }
            }
        }
        for cpu in 0..self.loaded.len() {
            for turn in 0..1000 {
                self.end(cpu);
                self.deactivate(cpu, 0);
                let (_, candidates) = self.model.best(cpu);
                self.acknowledge(cpu);
                if candidates.is_empty()
                    && self.model.stack[cpu].is_empty()
                    && self.model.dropped[cpu].is_empty()
                {
                    break;
                }
                if turn > 100 {
                    continue;
                }
                // A level that stays up would come for ever.
                for n in 0..PLAIN.len() {
                    self.step(&Step::Level(n, false));
                }
                for linked in LINKED {
                    self.physical(linked, false);
                }
            }
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let (cpu, line) = (0..4usize, 0..14usize);
    prop_oneof![
        3 => (cpu.clone(), line.clone(), any::<bool>()).prop_map(|(c, n, on)| Step::Enable(c, n, on)),
        4 => (cpu.clone(), line.clone(), prop::bool::weighted(0.8)).prop_map(|(c, n, on)| Step::Pending(c, n, on)),
        1 => (cpu.clone(), line.clone(), any::<bool>()).prop_map(|(c, n, on)| Step::Active(c, n, on)),
        2 => (cpu.clone(), line.clone(), 0..5usize).prop_map(|(c, n, p)| Step::Priority(c, n, p)),
        1 => (cpu.clone(), line.clone(), any::<bool>()).prop_map(|(c, n, g)| Step::Group(c, n, g)),
        2 => (cpu.clone(), line.clone(), cpu.clone()).prop_map(|(c, n, t)| Step::Route(c, n, t)),
        3 => (line.clone(), any::<bool>()).prop_map(|(n, on)| Step::Level(n, on)),
        3 => line.clone().prop_map(Step::Pulse),
        3 => (line.clone(), any::<bool>()).prop_map(|(n, on)| Step::Physical(n, on)),
        2 => (cpu.clone(), any::<bool>()).prop_map(|(c, on)| Step::Timer(c, on)),
        3 => (cpu.clone(), line.clone(), any::<u8>()).prop_map(|(c, n, t)| Step::Send(c, n, t)),
        8 => cpu.clone().prop_map(Step::Acknowledge),
        6 => cpu.clone().prop_map(Step::End),
        4 => (cpu.clone(), line).prop_map(|(c, n)| Step::Deactivate(c, n)),
        1 => any::<u8>().prop_map(|g| Step::Groups(g | 2)),
        1 => (cpu.clone(), any::<u8>()).prop_map(|(c, m)| Step::Mask(c, m | 0x80)),
        2 => (cpu, any::<bool>()).prop_map(|(c, on)| Step::Switch(c, on)),
    ]
}

/// Draws steps with floods, so that there is far more than list registers and looks of a step.
fn wide_step() -> impl Strategy<Value = Step> {
    let what = prop_oneof![
        4 => Just(Flood::Enable),
        4 => Just(Flood::Pend),
        1 => Just(Flood::Clear),
        1 => Just(Flood::Priorities),
        1 => Just(Flood::Route),
    ];
    let lines = prop_oneof![Just(u32::MAX), any::<u32>(), (0..32u32).prop_map(|n| 1 << n)];
    prop_oneof![
        1 => step(),
        1 => (0..4usize, what, 0..16usize, lines).prop_map(|(c, w, n, l)| Step::Flood(c, w, n, l)),
    ]
}

fn compare(kind: Kind, vcpus: usize, slots: usize, steps: &[Step]) {
    let mut pair = Pair::new(kind, vcpus, slots);
    pair.step(&Step::Groups(3));
    for line in 0..14 {
        for cpu in 0..vcpus {
            pair.step(&Step::Enable(cpu, line, true));
        }
    }
    for step in steps {
        pair.step(step);
        pair.check_waits();
        pair.compare();
    }
    pair.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_a_gic_without_list_registers(
        vcpus in 1..4usize,
        slots in 1..5usize,
        steps in prop::collection::vec(step(), 1..150),
    ) {
        compare(Kind { version2: false, split: false }, vcpus, slots, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_a_gicv2_without_list_registers(
        vcpus in 1..4usize,
        slots in 1..5usize,
        steps in prop::collection::vec(step(), 1..150),
    ) {
        compare(Kind { version2: true, split: false }, vcpus, slots, &steps);
    }

    #[test]
    fn ends_in_two_steps_like_a_gic_without_list_registers(
        version2: bool,
        vcpus in 1..4usize,
        slots in 1..5usize,
        steps in prop::collection::vec(step(), 1..150),
    ) {
        compare(Kind { version2, split: true }, vcpus, slots, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn floods_come_in_order_and_none_is_lost(
        version2: bool,
        split: bool,
        vcpus in 1..4usize,
        slots in 1..5usize,
        steps in prop::collection::vec(wide_step(), 1..120),
    ) {
        compare(Kind { version2, split }, vcpus, slots, &steps);
    }
}
