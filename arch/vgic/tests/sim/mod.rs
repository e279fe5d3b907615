// SPDX-License-Identifier: Apache-2.0
//! A board with a virtual CPU interface per pCPU (list registers by IHI 0069, 4.8 and 12.4) and physical
//! interrupts. The virtual GIC is tested on it. There is one VM, and vCPU n is always on pCPU n.
//!
//! The CPU interface has 32 priority levels, EOImode 0 or 1, binary points at their smallest values, and a
//! number of list registers to choose. `settle` plays the hypervisor: it takes kicks, maintenance interrupts
//! and physical interrupts until nothing is left to do. While a vCPU is not loaded, its pCPU runs another
//! vCPU instead. Each line may interrupt that one once (`World::intrusions`).

#![allow(dead_code, reason = "each test binary uses its part of the board")]

pub mod steps;

use bulkhead_arch_vgic::{
    Bank, Control, CpuInterface, Distributor, Frame, Hardware, ListRegister, PhysicalLines, Redistributor,
    RegisterAccess, Sgi, Vgic, steps as counter,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

pub const SPURIOUS: u32 = 1023;
/// Virtual and physical numbers differ so that a mix-up shows.
pub const TIMER: u32 = 27;
pub const PHYSICAL_TIMER: u32 = 26;

/// A physical interrupt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Physical {
    pub enabled: bool,
    pub edge: bool,
    pub latch: bool,
    pub level: bool,
    pub active: bool,
    pub target: usize,
    pub priority: u8,
}

impl Physical {
    pub fn fires(&self) -> bool {
        self.enabled && !self.active && self.pending()
    }
    pub fn pending(&self) -> bool {
        self.latch || self.level && !self.edge
    }
}

/// Everything physical that the pCPUs share.
#[derive(Debug)]
pub struct Board {
    /// Indexed by `[cpu][line]` below 32, `[0][line]` above.
    pub lines: Vec<Vec<Physical>>,
    pub kicked: BTreeSet<usize>,
    /// Kicked since it was unloaded last: the kernel was told to make it ready.
    pub woken: BTreeSet<usize>,
    /// An interrupt waited when a pCPU looked last.
    pub interrupted: bool,
    /// Steps of the longest piece of an operation that looked.
    pub longest: u64,
}

/// One pCPU.
pub struct Cpu {
    pub id: usize,
    pub slots: Vec<ListRegister>,
    pub control: Control,
    pub end_count: u32,
    pub machine_control: u64,
    pub active_priorities: [[u32; 4]; 2],
    /// True for a GICv2: list registers have 32 bits.
    pub version2: bool,
    /// The sender of the software-generated interrupt that was acknowledged last (GICv2).
    pub sender: u8,
    /// The list registers that were written since the guest was left, or since the registers were settled, as
    /// they were before: so ELRSR and EISR may still see them.
    pub unsettled: BTreeMap<usize, ListRegister>,
    pub board: Rc<RefCell<Board>>,
}

impl Cpu {
    fn line<R>(&self, physical: u32, action: impl FnOnce(&mut Physical) -> R) -> R {
        counter::count();
        let bank = if physical < 32 { self.id } else { 0 };
        action(&mut self.board.borrow_mut().lines[bank][physical as usize])
    }

    /// Tells whether this pCPU, or another one of the board, was told to look.
    pub fn is_kicked(&self, vcpu: usize) -> bool {
        self.board.borrow().kicked.contains(&vcpu)
    }

    /// Tells whether the kernel was told that a vCPU that is not loaded has something to do.
    pub fn was_woken(&self, vcpu: usize) -> bool {
        self.board.borrow().woken.contains(&vcpu)
    }

    /// Returns a list register as ELRSR and EISR show it.
    fn shown(&self, slot: usize) -> ListRegister {
        self.unsettled.get(&slot).copied().unwrap_or(self.slots[slot])
    }

    /// Other vCPUs have been here: what is left in empty slots is not what was there.
    pub fn leave_traces(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.is_empty()) {
            *slot = ListRegister::pending(9, 0x80, true).with_pending(false);
        }
    }

    /// Returns the slot that the interface would signal now: pending, group on, above mask and running
    /// priority.
    pub fn best(&self) -> Option<usize> {
        let mask = (self.machine_control >> 24) as u8;
        let running = self.running();
        (0..self.slots.len())
            .filter(|n| {
                let lr = self.slots[*n];
                let on = self.machine_control & if lr.is_group1() { 2 } else { 1 } != 0;
                // Pending and active is not pending: it comes after its deactivation (IHI 0069, 4.1.2).
                on && lr.is_pending()
                    && !lr.is_active()
                    && lr.priority() < mask
                    && u32::from(lr.priority()) < running
            })
            .min_by_key(|n| (self.slots[*n].priority(), self.slots[*n].line()))
    }

    pub fn running(&self) -> u32 {
        let active = self.active_priorities[0][0] | self.active_priorities[1][0];
        if active == 0 {
            0x100
        } else {
            active.trailing_zeros() << 3
        }
    }

    /// Reads the acknowledge register of the signalled interrupt's group.
    pub fn acknowledge(&mut self) -> u32 {
        let Some(n) = self.best() else { return SPURIOUS };
        let lr = self.slots[n];
        self.active_priorities[usize::from(lr.is_group1())][0] |= 1 << (lr.priority() >> 3);
        // Level-triggered linked lines cannot be pending and active: the state is simply active.
        self.slots[n] = lr.with_pending(false).with_active(true);
        self.sender = lr.sender().trailing_zeros() as u8;
        lr.line()
    }

    /// Writes the end-of-interrupt register.
    pub fn end(&mut self, line: u32) {
        let [group0, group1] = &mut self.active_priorities;
        let active = group0[0] | group1[0];
        if active == 0 {
            return;
        }
        let lowest = 1 << active.trailing_zeros();
        let group = if group0[0] & lowest != 0 { group0 } else { group1 };
        group[0] &= !lowest;
        if self.machine_control & 1 << 9 == 0 {
            self.deactivate(line);
        }
    }

    /// Writes the deactivate register (or ends with EOImode 0).
    pub fn deactivate(&mut self, line: u32) {
        match (0..self.slots.len()).find(|n| self.slots[*n].is_active() && self.slots[*n].line() == line) {
            Some(n) => {
                let lr = self.slots[n];
                self.slots[n] = lr.with_active(false);
                if let Some(physical) = lr.physical() {
                    assert!(!lr.is_pending(), "linked and pending and active");
                    self.line(physical, |line| line.active = false);
                }
            }
            None => self.end_count = (self.end_count + 1) & 31,
        }
    }

    /// Tells whether the maintenance interrupt is up.
    pub fn maintenance(&self) -> bool {
        let no_pending = self.slots.iter().all(|lr| !lr.is_pending() || lr.is_active());
        let ended = self.slots.iter().any(|lr| lr.is_empty() && lr.notices_end());
        self.control.refill && no_pending || ended || self.end_count != 0
    }
}

impl CpuInterface for Cpu {
    fn slots(&self) -> u32 {
        self.slots.len() as u32
    }
    fn settle(&mut self) {
        self.unsettled.clear();
    }
    fn empty_slots(&self) -> u32 {
        (0..self.slots.len())
            .filter(|n| {
                let lr = self.shown(*n);
                lr.is_empty() && !lr.notices_end()
            })
            .fold(0, |mask, n| mask | 1 << n)
    }
    fn ended_slots(&self) -> u32 {
        (0..self.slots.len())
            .filter(|n| self.shown(*n).is_empty() && self.shown(*n).notices_end())
            .fold(0, |mask, n| mask | 1 << n)
    }
    fn list_register(&self, slot: u32) -> ListRegister {
        counter::count();
        self.slots[slot as usize]
    }
    fn set_list_register(&mut self, slot: u32, value: ListRegister) {
        counter::count();
        // The list registers of a GICv2 belong to one device, whose accesses stay in order.
        if !self.version2 {
            let before = self.slots[slot as usize];
            self.unsettled.entry(slot as usize).or_insert(before);
        }
        assert!(value.physical().is_none() || !(value.is_pending() && value.is_active()));
        let twice = (0..self.slots.len())
            .any(|n| n != slot as usize && !self.slots[n].is_empty() && self.slots[n].line() == value.line());
        assert!(
            value.is_empty() || !twice,
            "line {} in two list registers",
            value.line()
        );
        self.slots[slot as usize] = if self.version2 {
            ListRegister::from_version2(value.version2())
        } else {
            value
        };
    }
    fn set_control(&mut self, control: Control) {
        self.control = control;
    }
    fn take_end_count(&mut self) -> u32 {
        std::mem::take(&mut self.end_count)
    }
    fn machine_control(&self) -> u64 {
        self.machine_control
    }
    fn set_machine_control(&mut self, value: u64) {
        self.machine_control = value;
    }
    fn active_priorities(&self) -> [[u32; 4]; 2] {
        self.active_priorities
    }
    fn set_active_priorities(&mut self, value: &[[u32; 4]; 2]) {
        self.active_priorities = *value;
    }
    fn preemption_shift(&self) -> u32 {
        3
    }
    fn set_near_register(&mut self, slot: u32, value: ListRegister) {
        self.set_list_register(slot, value);
    }
    fn has_active_priorities(&self) -> bool {
        self.active_priorities != [[0; 4]; 2]
    }
    fn open(&mut self) {
        self.set_control(Control::default());
    }
    fn names_senders(&self) -> bool {
        self.version2
    }
}

impl PhysicalLines for Cpu {
    fn set_enabled(&mut self, physical: u32, on: bool) {
        self.line(physical, |line| line.enabled = on);
    }
    fn set_priority(&mut self, physical: u32, priority: u8) {
        self.line(physical, |line| line.priority = priority);
    }
    fn set_target(&mut self, physical: u32, index: usize) {
        self.line(physical, |line| line.target = index);
    }
    fn is_edge(&self, physical: u32) -> bool {
        self.line(physical, |line| line.edge)
    }
    fn is_pending(&self, physical: u32) -> bool {
        self.line(physical, |line| line.pending())
    }
    fn set_pending(&mut self, physical: u32, on: bool) {
        self.line(physical, |line| line.latch = on);
    }
    fn set_active(&mut self, physical: u32, on: bool) {
        self.line(physical, |line| line.active = on);
    }
}

impl Hardware for Cpu {
    fn enable_private(&mut self, physical: u32) {
        counter::count();
        for (line, state) in self.board.borrow_mut().lines[self.id]
            .iter_mut()
            .enumerate()
            .take(32)
        {
            state.enabled = physical & 1 << line != 0;
        }
    }
    fn kick(&mut self, index: usize, present: bool) {
        counter::count();
        let mut board = self.board.borrow_mut();
        board.kicked.insert(index);
        if !present {
            board.woken.insert(index);
        }
    }
    fn look_again(&mut self, me: usize) {
        self.board.borrow_mut().kicked.insert(me);
    }
    /// Ends a piece of the operation, as each look does. At every second look an interrupt waits.
    fn is_interrupted(&self) -> bool {
        let mut board = self.board.borrow_mut();
        board.longest = board.longest.max(counter::take());
        board.interrupted = !board.interrupted;
        board.interrupted
    }
    fn relax(&self) {}
}

/// The VM and its pCPUs.
pub struct World {
    pub distributor: Distributor,
    pub redistributors: Vec<Redistributor>,
    pub cpus: Vec<Cpu>,
    pub banks: Vec<Bank>,
    pub links: Vec<(u32, u32)>,
    pub version2: bool,
    /// The number of times each line (by pCPU and virtual line) has interrupted another vCPU since the vCPU
    /// of that pCPU was loaded last.
    pub intrusions: BTreeMap<(usize, u32), u32>,
    /// Steps of the longest operation so far; a call of the hardware is one as well. This is of use where
    /// nothing else runs.
    pub longest: u64,
}

impl World {
    /// Returns a VM with this many vCPUs, list registers each, and shared `(virtual, physical, edge)` links.
    pub fn new(vcpus: usize, slots: usize, links: &[(u32, u32, bool)]) -> Self {
        Self::of_version(false, vcpus, slots, links)
    }

    /// Returns the same with a GICv2.
    pub fn new_version2(vcpus: usize, slots: usize, links: &[(u32, u32, bool)]) -> Self {
        Self::of_version(true, vcpus, slots, links)
    }

    fn of_version(version2: bool, vcpus: usize, slots: usize, links: &[(u32, u32, bool)]) -> Self {
        let mut lines = vec![vec![Physical::default(); 1020]; vcpus];
        for (_, physical, edge) in links {
            lines[0][*physical as usize].edge = *edge;
        }
        let board = Rc::new(RefCell::new(Board {
            lines,
            kicked: BTreeSet::new(),
            woken: BTreeSet::new(),
            interrupted: false,
            longest: 0,
        }));
        let cpus = (0..vcpus)
            .map(|id| Cpu {
                id,
                slots: vec![ListRegister::EMPTY; slots],
                control: Control::default(),
                end_count: 0,
                machine_control: 0,
                active_priorities: [[0; 4]; 2],
                version2,
                sender: 0,
                unsettled: BTreeMap::new(),
                board: board.clone(),
            })
            .collect();
        let mut world = Self {
            distributor: Distributor::new(),
            redistributors: (0..vcpus).map(|_| Redistributor::new()).collect(),
            cpus,
            banks: vec![Bank::new(); vcpus],
            links: links
                .iter()
                .map(|(line, physical, _)| (*line, *physical))
                .collect(),
            version2,
            intrusions: BTreeMap::new(),
            longest: 0,
        };
        world.distributor.set_lines(288);
        for (line, physical, _) in links {
            world.distributor.link(*line, *physical);
        }
        for redistributor in &world.redistributors {
            redistributor.link(TIMER, PHYSICAL_TIMER);
        }
        world.reset_shared();
        for cpu in 0..vcpus {
            world.reset(cpu);
            world.with(cpu, |vgic, bank, hardware| vgic.load(cpu, bank, hardware));
            world.cpus[cpu].machine_control = 0xF8 << 24 | 3;
        }
        world.settle();
        world
    }

    /// Starts a vCPU anew, by the short way if there is one.
    pub fn reset(&mut self, cpu: usize) {
        let vgic = Vgic::new(&self.distributor, &self.redistributors);
        if !vgic.reset_quietly(cpu, &self.redistributors[cpu], &mut self.banks[cpu]) {
            self.with(cpu, |vgic, bank, hardware| vgic.reset(cpu, bank, hardware));
        }
    }

    /// Resets what the vCPUs share, part by part.
    pub fn reset_shared(&mut self) {
        let mut part = Some(0);
        while let Some(first) = part {
            let version2 = self.version2;
            part = self.with(0, |vgic, _, cpu| vgic.reset_shared(first, version2, cpu));
        }
    }

    pub fn with<R>(&mut self, cpu: usize, action: impl FnOnce(&Vgic<'_>, &mut Bank, &mut Cpu) -> R) -> R {
        let vgic = Vgic::new(&self.distributor, &self.redistributors);
        counter::take();
        // The guest is left by an exception, which makes the registers settle.
        self.cpus[cpu].unsettled.clear();
        let result = action(&vgic, &mut self.banks[cpu], &mut self.cpus[cpu]);
        let mut board = self.cpus[cpu].board.borrow_mut();
        self.longest = self.longest.max(counter::take()).max(board.longest);
        board.longest = 0;
        drop(board);
        result
    }

    pub fn physical<R>(&mut self, cpu: usize, line: u32, action: impl FnOnce(&mut Physical) -> R) -> R {
        self.cpus[cpu].line(line, action)
    }

    pub fn read(&mut self, cpu: usize, frame: Frame, offset: u32, size: u8) -> u64 {
        // Others cannot answer in the middle of the first read here, but have by the second.
        self.with(cpu, |vgic, bank, hardware| {
            vgic.read(cpu, bank, hardware, RegisterAccess { frame, offset, size })
        });
        self.settle();
        let value = self.with(cpu, |vgic, bank, hardware| {
            vgic.read(cpu, bank, hardware, RegisterAccess { frame, offset, size })
        });
        self.settle();
        if (frame, size) == (Frame::Redistributor(cpu), 4) {
            let own = &self.redistributors[cpu];
            let short =
                Vgic::new(&self.distributor, &self.redistributors).read_own_word(cpu, Some(own), offset);
            assert!(short.is_none_or(|short| u64::from(short) == value), "{offset:#x}");
        }
        value
    }

    pub fn write(&mut self, cpu: usize, frame: Frame, offset: u32, size: u8, value: u64) {
        let own = &self.redistributors[cpu];
        let is_own = frame == Frame::Redistributor(cpu) && size == 4;
        let changed = is_own.then(|| own.write_word(offset, value as u32)).flatten();
        self.with(cpu, |vgic, bank, hardware| {
            let changed = match (frame, size) {
                (Frame::Distributor | Frame::Version2, 4) => vgic.write_word(offset, value as u32),
                _ => changed,
            };
            match changed {
                Some(0) => {}
                Some(changed) => vgic.written_word(cpu, offset, changed, hardware),
                None => vgic.write(cpu, bank, hardware, RegisterAccess { frame, offset, size }, value),
            }
        });
        self.settle();
    }

    /// Returns the word of the register array at `base` that holds `line`, as vCPU `cpu` reaches it.
    pub fn place(&self, cpu: usize, base: u32, line: u32) -> (Frame, u32) {
        if self.version2 {
            (Frame::Version2, base + line / 32 * 4)
        } else if line < 32 {
            (Frame::Redistributor(cpu), 0x1_0000 + base)
        } else {
            (Frame::Distributor, base + line / 32 * 4)
        }
    }

    pub fn set_bit(&mut self, cpu: usize, base: u32, line: u32) {
        let (frame, offset) = self.place(cpu, base, line);
        self.write(cpu, frame, offset, 4, 1 << (line % 32));
    }

    pub fn bit(&mut self, cpu: usize, base: u32, line: u32) -> bool {
        let (frame, offset) = self.place(cpu, base, line);
        self.read(cpu, frame, offset, 4) & 1 << (line % 32) != 0
    }

    pub fn set_priority(&mut self, cpu: usize, line: u32, priority: u8) {
        let (frame, offset) = if self.version2 {
            (Frame::Version2, 0x400 + line)
        } else if line < 32 {
            (Frame::Redistributor(cpu), 0x1_0400 + line)
        } else {
            (Frame::Distributor, 0x400 + line)
        };
        self.write(cpu, frame, offset, 1, priority.into());
    }

    pub fn raise(&mut self, line: u32) {
        self.with(0, |vgic, _, cpu| {
            vgic.raise(bulkhead_arch_vgic::NO_VCPU, line, cpu)
        });
        self.settle();
    }

    pub fn pulse(&mut self, line: u32) {
        self.with(0, |vgic, _, cpu| {
            vgic.pulse(bulkhead_arch_vgic::NO_VCPU, line, cpu)
        });
        self.settle();
    }

    pub fn lower(&mut self, line: u32) {
        self.with(0, |vgic, _, _| vgic.lower(line));
        // The next exit of everybody.
        for cpu in 0..self.cpus.len() {
            self.service(cpu);
        }
        self.settle();
    }

    pub fn send(&mut self, cpu: usize, register: Sgi, value: u64) {
        // As the backend does: the short way first.
        let own = register == Sgi::Group1
            && Vgic::single_target(value).is_some_and(|(target, line)| {
                target == cpu
                    && self.redistributors[cpu].deliver_now(&mut self.banks[cpu], &mut self.cpus[cpu], line)
            });
        if !own {
            self.with(cpu, |vgic, _, hardware| vgic.send(cpu, register, value, hardware));
        }
        self.settle();
    }

    pub fn acknowledge(&mut self, cpu: usize) -> u32 {
        let line = self.cpus[cpu].acknowledge();
        self.settle();
        line
    }

    pub fn end(&mut self, cpu: usize, line: u32) {
        self.cpus[cpu].end(line);
        self.settle();
    }

    /// Sends `line` to the vCPUs of `targets` by `GICD_SGIR` (GICv2).
    pub fn send_version2(&mut self, cpu: usize, line: u32, targets: u8) {
        let value = u64::from(targets) << 16 | u64::from(line);
        // As the backend does: the short ways first.
        if let Some((target, line)) = Vgic::single_target_version2(0xF00, value as u32) {
            let own = target == cpu
                && self.redistributors[cpu].deliver_sent(
                    &mut self.banks[cpu],
                    &mut self.cpus[cpu],
                    line,
                    1 << cpu,
                );
            if !own {
                self.with(cpu, |vgic, _, hardware| {
                    vgic.send_single_version2(cpu, target, line, hardware);
                });
            }
            return self.settle();
        }
        self.write(cpu, Frame::Version2, 0xF00, 4, value);
    }

    pub fn deactivate(&mut self, cpu: usize, line: u32) {
        if self.version2 {
            self.write(cpu, Frame::Deactivate, 0, 4, line.into());
        } else if self.cpus[cpu].control.trap_deactivate {
            self.with(cpu, |vgic, bank, hardware| {
                vgic.deactivate(cpu, bank, hardware, line)
            });
        } else {
            self.cpus[cpu].deactivate(line);
        }
        self.settle();
    }

    pub fn service(&mut self, cpu: usize) {
        if self.redistributors[cpu].is_present() && !self.deliver(cpu) {
            self.with(cpu, |vgic, bank, hardware| vgic.service(cpu, bank, hardware));
        }
    }

    /// Takes the short ways, as the backend does.
    fn deliver(&mut self, cpu: usize) -> bool {
        let own = &self.redistributors[cpu];
        if own.has_private_mark() {
            return own.deliver_again(&mut self.banks[cpu], &mut self.cpus[cpu]);
        }
        let vgic = Vgic::new(&self.distributor, &self.redistributors);
        vgic.deliver_shared(own, &self.banks[cpu], &mut self.cpus[cpu])
    }

    /// Plays the hypervisor until nothing is left to do.
    pub fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 1000, "an interrupt storm");
            let mut quiet = true;
            for cpu in 0..self.cpus.len() {
                quiet &= self.settle_cpu(cpu);
            }
            if quiet {
                break;
            }
        }
    }

    /// Acknowledges a shared physical interrupt, if it is there for this pCPU.
    fn take_physical(&mut self, cpu: usize, physical: u32) -> bool {
        self.physical(cpu, physical, |line| {
            let mine = line.fires() && line.target == cpu;
            if mine {
                (line.active, line.latch) = (true, false);
            }
            mine
        })
    }

    /// Takes the interrupts of a pCPU on which the VM's vCPU is not loaded.
    fn take_for_nobody(&mut self, cpu: usize) -> bool {
        let mut quiet = true;
        for (line, physical) in self.links.clone() {
            if self.take_physical(cpu, physical) {
                let count = self.intrusions.entry((cpu, line)).or_default();
                *count += 1;
                assert!(*count == 1, "line {line} interrupts pCPU {cpu} again");
                self.with(cpu, |vgic, _, hardware| {
                    vgic.raise_linked(bulkhead_arch_vgic::NO_VCPU, line, hardware);
                });
                quiet = false;
            }
        }
        quiet
    }

    fn settle_cpu(&mut self, cpu: usize) -> bool {
        let mut quiet = true;
        self.cpus[cpu].board.borrow_mut().kicked.remove(&cpu);
        if !self.redistributors[cpu].is_present() {
            return self.take_for_nobody(cpu);
        }
        self.intrusions.retain(|(pcpu, _), _| *pcpu != cpu);
        self.cpus[cpu].board.borrow_mut().woken.remove(&cpu);
        if self.physical(cpu, PHYSICAL_TIMER, |line| line.fires()) {
            self.physical(cpu, PHYSICAL_TIMER, |line| {
                (line.active, line.latch) = (true, false)
            });
            if !self.redistributors[cpu].deliver_now(&mut self.banks[cpu], &mut self.cpus[cpu], TIMER) {
                self.redistributors[cpu].raise(TIMER);
            }
            quiet = false;
        }
        for (line, physical) in self.links.clone() {
            if self.take_physical(cpu, physical) {
                self.with(cpu, |vgic, _, hardware| vgic.raise_linked(cpu, line, hardware));
                quiet = false;
            }
        }
        if self.cpus[cpu].maintenance() {
            self.with(cpu, |vgic, bank, hardware| vgic.maintain(cpu, bank, hardware));
            quiet = false;
        }
        if self.redistributors[cpu].is_dirty() {
            self.service(cpu);
            quiet = false;
        }
        quiet
    }
}
