// SPDX-License-Identifier: Apache-2.0
//! The board: pCPUs, vCPUs, memory, and everything that was recorded.

use crate::classes::{Sim, SimClass};
use crate::guest::{Action, Guest, Outcome};
use crate::memory::{Memory, View};
use crate::uplink::{NETWORK_LINE, Uplink};
use bulkhead_abi::HealthClass;
use bulkhead_abi::log::Area;
use bulkhead_abi::trace::Entry;
use bulkhead_arch_api::class::Endianness;
use bulkhead_arch_api::{
    Access, AccessKind, AddressSpace, ClassFacts, CopyError, Exit, FaultReport, GuestPhys, HostPhys,
    Hypercall, Line, PartitionId, PcpuId, Region, Reply, Ticks, Treatment, VcpuId, VcpuPlan, VcpuReset,
    VcpuSet, VirtualLine, treatment,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The line on which the serial line interrupts.
pub const CONSOLE_LINE: Line = Line(33);

/// Ticks that every action and every return from the hypervisor takes, so that nothing is for free.
const STEP: u64 = 10;
/// Number under which a guest sees its own timer's interrupt.
const TIMER: u32 = 27;
/// Number under which a guest sees an interrupt sent by a sibling.
const SENT: u32 = 0;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, on the clock of the pCPU.
    pub time: u64,
    /// Where.
    pub pcpu: PcpuId,
    /// The event.
    pub what: What,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Another vCPU than before runs.
    Switch(VcpuId),
    /// A guest left a mark.
    Mark(VcpuId, u64),
    /// A vCPU was reset.
    Reset(VcpuId),
    /// A part of what the vCPUs of a partition share was reset.
    ResetShared(PartitionId, u32),
    /// A vCPU was detached.
    Detach(VcpuId),
    /// A fault was reflected.
    Fault(VcpuId, FaultReport),
    /// A line was raised.
    Inject(PartitionId, VirtualLine),
    /// A line was lowered.
    Withdraw(PartitionId, VirtualLine),
    /// A line became pending once.
    Pulse(PartitionId, VirtualLine),
    /// Another pCPU was signalled.
    Signal(PcpuId),
    /// Another pCPU was started.
    Start(PcpuId),
    /// The clock was armed.
    Arm(Ticks),
    /// The board was switched off.
    PowerOff,
}

/// Something that comes from outside at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum External {
    /// A byte on the serial line.
    Input(u8),
    /// A physical interrupt.
    Line(Line),
    /// A frame at the board's network interface, which interrupts: so many bytes for this address, the last
    /// of them `0xEE`.
    Frame([u8; 6], usize),
}

#[derive(Debug, Default)]
pub(crate) struct PcpuState {
    pub(crate) now: u64,
    pub(crate) armed: Option<u64>,
    pub(crate) signalled: bool,
    pub(crate) started: bool,
    pub(crate) lines: VecDeque<Line>,
    pub(crate) enabled: BTreeSet<u32>,
    pub(crate) woken: VcpuSet,
    /// Physical lines of partitions that came, and for whom.
    pub(crate) devices: VecDeque<(VcpuSet, Line)>,
    /// The vCPUs whose lines may interrupt; none says that all may.
    pub(crate) admitted: Option<VcpuSet>,
    pub(crate) last: Option<VcpuId>,
    pub(crate) exit: Option<Exit>,
}

#[derive(Default)]
pub(crate) struct VcpuState {
    pub(crate) plan: Option<VcpuPlan>,
    pub(crate) home: Option<PcpuId>,
    pub(crate) guest: Option<Box<dyn Guest>>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) action: Option<Action>,
    pub(crate) awaits_reply: bool,
    pub(crate) timer: Option<u64>,
    pub(crate) sent: bool,
    /// Its doings when upcalls came, the last one at the end.
    pub(crate) interrupted: Vec<(Option<Action>, Option<Outcome>)>,
}

#[derive(Debug, Default)]
pub(crate) struct PartitionState {
    pub(crate) view: View,
    pub(crate) asserted: BTreeSet<u32>,
    /// The ones that are pending once.
    pub(crate) pulsed: BTreeSet<u32>,
    /// Translations of pages that are loaded, the newest first.
    pub(crate) loaded: VecDeque<Region>,
    /// Numbered registers that its vCPUs have to themselves.
    pub(crate) registers: BTreeMap<u64, u64>,
    pub(crate) first: Option<VcpuId>,
}

type Factory = Box<dyn Fn(&VcpuReset) -> Box<dyn Guest>>;

/// Something that another pCPU does while a hypercall is under way, once: when the kernel checks an address
/// of this partition, after so many checks that pass by.
pub(crate) type Meeting = (PartitionId, u32, Box<dyn FnOnce()>);

/// A simulated board.
pub struct World {
    pub(crate) facts: &'static ClassFacts,
    /// The speed of the counter, to be set before the boot.
    pub hertz: u64,
    /// The number of translations that software can load, if the hardware does not walk the tables.
    loadable: Option<usize>,
    /// Accesses to memory for which no translation was loaded.
    pub misses: u64,
    pub(crate) pcpus: Vec<PcpuState>,
    pub(crate) vcpus: BTreeMap<u8, VcpuState>,
    pub(crate) partitions: BTreeMap<u8, PartitionState>,
    pub(crate) routes: BTreeMap<u32, (PartitionId, VirtualLine)>,
    programs: BTreeMap<u8, Factory>,
    pub(crate) meeting: Option<Meeting>,
    externals: Vec<(u64, External)>,
    pub(crate) received: VecDeque<u8>,
    /// The board's memory.
    pub memory: Memory,
    /// Everything that was recorded, in order.
    pub records: Vec<Record>,
    /// RAM that a warm reset keeps; give another world the same to reset the board.
    pub log_area: &'static Area,
    /// Ring of the trace per pCPU; none: nothing is traced.
    pub trace: Vec<&'static [Entry]>,
    /// The board's network interface.
    pub uplink: Uplink,
    /// Bytes sent on the serial line.
    pub output: Vec<u8>,
    /// Bytes the transmitter takes before it is full; a flush empties it.
    pub transmitter_depth: usize,
    /// Bytes it takes now.
    pub transmitter_room: usize,
    /// The value last written to each device register.
    pub registers: BTreeMap<u64, u64>,
    /// The board is off.
    pub powered_off: bool,
    /// pCPUs that have stopped for good.
    pub halted: BTreeSet<u8>,
    /// Fault injection: this pCPU does not start.
    pub start_error: Option<PcpuId>,
    /// Fault injection: this partition's space cannot be built.
    pub build_error: Option<PartitionId>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("World")
            .field("pcpus", &self.pcpus)
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

impl World {
    /// Makes a board with so many pCPUs and a clock of 1 GHz; only pCPU 0 is on.
    #[must_use]
    pub fn new(pcpus: u8) -> Self {
        Self::of::<Sim>(pcpus)
    }

    /// Makes the same for a class.
    #[must_use]
    pub fn of<C: SimClass>(pcpus: u8) -> Self {
        let mut states: Vec<PcpuState> = (0..pcpus).map(|_| PcpuState::default()).collect();
        states[0].started = true;
        Self {
            facts: C::FACTS,
            loadable: C::LOADED_TRANSLATIONS,
            misses: 0,
            hertz: 1_000_000_000,
            pcpus: states,
            vcpus: BTreeMap::new(),
            partitions: BTreeMap::new(),
            routes: BTreeMap::new(),
            programs: BTreeMap::new(),
            meeting: None,
            externals: Vec::new(),
            received: VecDeque::new(),
            memory: Memory::default(),
            records: Vec::new(),
            log_area: Box::leak(Box::new(Area::new())),
            trace: Vec::new(),
            output: Vec::new(),
            transmitter_depth: usize::MAX,
            transmitter_room: usize::MAX,
            uplink: Uplink::default(),
            registers: BTreeMap::new(),
            powered_off: false,
            halted: BTreeSet::new(),
            start_error: None,
            build_error: None,
        }
    }

    /// Carries out an access to a register for a partition. A register reads as what was written to it, cut
    /// to its size.
    pub(crate) fn forward(&mut self, register: HostPhys, size: u8, kind: AccessKind) -> u64 {
        match kind {
            AccessKind::Read => {
                let value = self.registers.get(&register.0).copied().unwrap_or(0);
                value & u64::MAX >> (64 - 8 * u32::from(size))
            }
            AccessKind::Write(value) => {
                self.registers.insert(register.0, value);
                0
            }
        }
    }

    /// Says what a vCPU runs each time it is reset.
    pub fn program<G: Guest + 'static>(&mut self, vcpu: VcpuId, make: impl Fn(&VcpuReset) -> G + 'static) {
        self.programs
            .insert(vcpu.0, Box::new(move |reset| Box::new(make(reset))));
    }

    /// Lets another pCPU do something in the midst of a hypercall of `partition`: after a capability was
    /// found, and before a lock is taken. That is when the kernel checks an address of the partition, after
    /// `passing` checks that pass by. The world is not borrowed while `act` runs.
    pub fn meet(&mut self, partition: PartitionId, passing: u32, act: impl FnOnce() + 'static) {
        self.meeting = Some((partition, passing, Box::new(act)));
    }

    /// Lets something happen at a time.
    pub fn schedule(&mut self, time: u64, external: External) {
        self.externals.push((time, external));
        self.externals.sort_by_key(|(time, _)| *time);
    }

    /// Returns the clock of a pCPU.
    #[must_use]
    pub fn now(&self, pcpu: PcpuId) -> u64 {
        self.pcpus[usize::from(pcpu.0)].now
    }

    /// Tells whether a pCPU has been started (or was on from the beginning).
    #[must_use]
    pub fn is_started(&self, pcpu: PcpuId) -> bool {
        self.pcpus[usize::from(pcpu.0)].started
    }

    /// Returns the marks a vCPU has left, with their times.
    pub fn marks(&self, vcpu: VcpuId) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.records.iter().filter_map(move |record| match record.what {
            What::Mark(of, value) if of == vcpu => Some((record.time, value)),
            _ => None,
        })
    }

    pub(crate) fn record(&mut self, pcpu: PcpuId, what: What) {
        let time = self.now(pcpu);
        self.records.push(Record { time, pcpu, what });
    }

    pub(crate) fn pcpu(&mut self, pcpu: PcpuId) -> &mut PcpuState {
        &mut self.pcpus[usize::from(pcpu.0)]
    }

    pub(crate) fn vcpu(&mut self, vcpu: VcpuId, by: PcpuId) -> &mut VcpuState {
        let state = self
            .vcpus
            .get_mut(&vcpu.0)
            .unwrap_or_else(|| panic!("{vcpu:?} was never adopted"));
        assert_eq!(
            state.home,
            Some(by),
            "{vcpu:?} touched by a pCPU that is not its own"
        );
        state
    }

    pub(crate) fn start_guest(&mut self, vcpu: VcpuId, reset: &VcpuReset) -> Box<dyn Guest> {
        match self.programs.get(&vcpu.0) {
            Some(make) => make(reset),
            None => Box::new(|_: Outcome, _: u64| Action::Idle),
        }
    }

    /// Moves a pCPU on, with `vcpu` running or waiting if `None`, until the next `run` or `wait` has
    /// something to return (then true) or its clock has reached `horizon` (then false).
    pub fn advance(&mut self, pcpu: PcpuId, vcpu: Option<VcpuId>, horizon: u64) -> bool {
        if let Some(vcpu) = vcpu
            && self.pcpu(pcpu).last != Some(vcpu)
        {
            self.pcpu(pcpu).last = Some(vcpu);
            self.record(pcpu, What::Switch(vcpu));
        }
        loop {
            self.apply_externals(pcpu);
            let own = self.pcpu(pcpu);
            if own.exit.is_some() {
                return true;
            }
            if let Some(exit) = self.asynchronous(pcpu) {
                self.pcpu(pcpu).exit = Some(exit);
                return true;
            }
            if self.now(pcpu) >= horizon {
                return false;
            }
            let limit = self.next_asynchronous(pcpu).min(horizon);
            match vcpu {
                None => {
                    if limit == u64::MAX {
                        // Nothing will ever come: a spurious return instead of a hang.
                        self.pcpu(pcpu).exit = Some(Exit::Signal);
                        return true;
                    }
                    self.pcpu(pcpu).now = limit;
                }
                Some(vcpu) => {
                    if let Some(exit) = self.guest_step(pcpu, vcpu, limit) {
                        self.pcpu(pcpu).exit = Some(exit);
                        return true;
                    }
                }
            }
        }
    }

    fn apply_externals(&mut self, pcpu: PcpuId) {
        while let Some((time, external)) = self.externals.first().copied() {
            let target = self.target_of(external);
            if target != pcpu || time > self.now(pcpu) {
                return;
            }
            self.externals.remove(0);
            match external {
                External::Input(byte) => {
                    self.received.push_back(byte);
                    self.pcpu(pcpu).lines.push_back(CONSOLE_LINE);
                }
                External::Frame(to, bytes) => {
                    let mut frame = vec![0xEE; bytes];
                    frame[..14].copy_from_slice(&[to.as_slice(), &[0x52, 0, 0, 0, 0, 1, 8, 0]].concat());
                    if !std::mem::replace(&mut self.uplink.has_asked, true) {
                        self.pcpu(pcpu).lines.push_back(NETWORK_LINE);
                    }
                    self.uplink.arrived.push_back(frame);
                }
                External::Line(line) => match self.routes.get(&line.0).copied() {
                    Some((partition, virtual_line)) => {
                        let state = self.partitions.entry(partition.0).or_default();
                        state.asserted.insert(virtual_line.0);
                        if let Some(first) = state.first {
                            self.pcpu(pcpu).devices.push_back((VcpuSet::of(first), line));
                        }
                    }
                    None => self.pcpu(pcpu).lines.push_back(line),
                },
            }
        }
    }

    /// Lets a line interrupt this pCPU and no other one. An interrupt that waits goes with it.
    pub(crate) fn enable(&mut self, pcpu: PcpuId, line: Line) {
        self.disable(line);
        let mut waiting = 0_usize;
        for own in &mut self.pcpus {
            let before = own.lines.len();
            own.lines.retain(|other| *other != line);
            waiting += before - own.lines.len();
        }
        let own = self.pcpu(pcpu);
        own.enabled.insert(line.0);
        own.lines.extend(std::iter::repeat_n(line, waiting));
    }

    /// Returns the pCPU that a line of the hypervisor's own interrupts.
    fn enabled_on(&self, line: Line) -> Option<PcpuId> {
        let mut all = (0_u8..).zip(&self.pcpus);
        let found = all.find(|(_, own)| own.enabled.contains(&line.0))?;
        Some(PcpuId(found.0))
    }

    /// Masks a line on every pCPU.
    pub(crate) fn disable(&mut self, line: Line) {
        for own in &mut self.pcpus {
            own.enabled.remove(&line.0);
        }
    }

    fn target_of(&self, external: External) -> PcpuId {
        let route = match external {
            External::Input(_) | External::Frame(..) => None,
            External::Line(line) => self.routes.get(&line.0),
        };
        route
            .and_then(|(partition, _)| self.partitions.get(&partition.0)?.first)
            .and_then(|first| self.vcpus.get(&first.0)?.home)
            .or_else(|| match external {
                External::Line(line) => self.enabled_on(line),
                _ => None,
            })
            .unwrap_or(PcpuId(0))
    }

    /// Returns what interrupts the pCPU now.
    fn asynchronous(&mut self, pcpu: PcpuId) -> Option<Exit> {
        let own = self.pcpu(pcpu);
        if let Some(position) = own.lines.iter().position(|line| own.enabled.contains(&line.0)) {
            return own.lines.remove(position).map(Exit::Interrupt);
        }
        // Lines that are masked wait, and are not lost.
        let open = own.admitted.unwrap_or(VcpuSet(u64::MAX));
        let next = own.devices.iter().position(|(woken, _)| woken.0 & open.0 != 0);
        if let Some((woken, line)) = next.and_then(|position| own.devices.remove(position)) {
            return Some(Exit::Device(woken, line));
        }
        if !own.woken.is_empty() {
            return Some(Exit::Wake(std::mem::take(&mut own.woken)));
        }
        if std::mem::take(&mut own.signalled) {
            return Some(Exit::Signal);
        }
        // Stays pending, as the level of a timer does, until the clock is armed anew or disarmed.
        own.armed
            .is_some_and(|armed| armed <= own.now)
            .then_some(Exit::Deadline)
    }

    /// Returns when the next thing interrupts the pCPU, as far as that is known.
    fn next_asynchronous(&self, pcpu: PcpuId) -> u64 {
        let armed = self.pcpus[usize::from(pcpu.0)].armed.unwrap_or(u64::MAX);
        let external = self
            .externals
            .iter()
            .filter(|(_, external)| self.target_of(*external) == pcpu)
            .map(|(time, _)| *time)
            .next()
            .unwrap_or(u64::MAX);
        armed.min(external)
    }

    /// Returns the interrupt that waits for the vCPU, if there is one.
    pub(crate) fn has_interrupt(&self, vcpu: VcpuId) -> Option<u32> {
        let state = self.vcpus.get(&vcpu.0)?;
        let plan = state.plan?;
        let now = self.pcpus[usize::from(state.home?.0)].now;
        if state.sent {
            return Some(SENT);
        }
        if state.timer.is_some_and(|timer| timer <= now) {
            return Some(TIMER);
        }
        if plan.index == 0 {
            return self.partitions.get(&plan.partition.0)?.asserted.first().copied();
        }
        None
    }

    /// Takes one action of the running guest, or a part of one that ends at `limit`.
    fn guest_step(&mut self, pcpu: PcpuId, vcpu: VcpuId, limit: u64) -> Option<Exit> {
        let now = self.now(pcpu);
        let state = self.vcpu(vcpu, pcpu);
        assert!(!state.awaits_reply, "{vcpu:?} runs with its last exit unanswered");
        if state.action.is_none() {
            let guest = state
                .guest
                .as_mut()
                .unwrap_or_else(|| panic!("{vcpu:?} runs before it was reset"));
            state.action = Some(guest.next(state.outcome.take().unwrap_or(Outcome::Done), now));
        }
        let action = state.action?;
        if let Action::Compute(ticks) = action {
            let done = ticks.min(limit - now);
            self.pcpu(pcpu).now += done;
            self.finish(
                vcpu,
                pcpu,
                (done < ticks).then_some(Action::Compute(ticks - done)),
                Outcome::Done,
            );
            return None;
        }
        if action == Action::Idle {
            return self.guest_idles(pcpu, vcpu, limit);
        }
        self.pcpu(pcpu).now += STEP;
        self.guest_acts(pcpu, vcpu, action)
    }

    fn finish(&mut self, vcpu: VcpuId, by: PcpuId, rest: Option<Action>, outcome: Outcome) {
        let state = self.vcpu(vcpu, by);
        state.action = rest;
        if rest.is_none() {
            state.outcome = Some(outcome);
        }
    }

    fn guest_idles(&mut self, pcpu: PcpuId, vcpu: VcpuId, limit: u64) -> Option<Exit> {
        if self.has_interrupt(vcpu).is_some() {
            self.pcpu(pcpu).now += STEP;
            self.finish(vcpu, pcpu, None, Outcome::Done);
            return None;
        }
        let timer = self.vcpu(vcpu, pcpu).timer;
        if self.vcpu(vcpu, pcpu).plan.is_some_and(|plan| plan.idle_in_place) {
            let until = timer.unwrap_or(u64::MAX).min(limit);
            if until == u64::MAX {
                return Some(Exit::Signal);
            }
            self.pcpu(pcpu).now = until;
            return None;
        }
        self.pcpu(pcpu).now += STEP;
        self.finish(vcpu, pcpu, None, Outcome::Done);
        Some(Exit::Idle {
            until: timer.map_or(Ticks::NEVER, Ticks),
        })
    }

    fn guest_acts(&mut self, pcpu: PcpuId, vcpu: VcpuId, action: Action) -> Option<Exit> {
        let plan = self
            .vcpu(vcpu, pcpu)
            .plan
            .unwrap_or_else(|| panic!("{vcpu:?} was never adopted"));
        let (outcome, exit, asks) = match action {
            // Not done before `reply` says so.
            Action::Host(call) => return Some(Exit::Host(call)),
            Action::Compute(_) | Action::Idle => (Outcome::Done, None, false),
            Action::Mark(value) => {
                self.record(pcpu, What::Mark(vcpu, value));
                (Outcome::Done, None, false)
            }
            Action::SetTimer(timer) => {
                self.vcpu(vcpu, pcpu).timer = timer;
                (Outcome::Done, None, false)
            }
            Action::Acknowledge => (Outcome::Interrupt(self.acknowledge(vcpu, pcpu)), None, false),
            Action::Read { address, size } => {
                self.guest_accesses(&plan, AddressSpace::Memory, address, size, AccessKind::Read)
            }
            Action::Write { address, size, value } => {
                let store = AccessKind::Write(value);
                self.guest_accesses(&plan, AddressSpace::Memory, address, size, store)
            }
            Action::Reach {
                space,
                number,
                size,
                kind,
            } => self.guest_accesses(&plan, space, number, size, kind),
            Action::Send(index) => {
                let target = VcpuId(plan.first.0 + index % plan.count);
                self.vcpus.entry(target.0).or_default().sent = true;
                (Outcome::Done, Some(Exit::Wake(VcpuSet::of(target))), false)
            }
            Action::Hypercall(operation, arguments) => (
                Outcome::Done,
                Some(Exit::Hypercall(Hypercall { operation, arguments })),
                true,
            ),
            Action::CpuOn(target, entry, argument) => {
                let target = target % plan.count;
                (
                    Outcome::Done,
                    Some(Exit::CpuOn {
                        target,
                        entry: GuestPhys(entry),
                        argument,
                    }),
                    true,
                )
            }
            Action::CpuPower(target) => (
                Outcome::Done,
                Some(Exit::CpuPower {
                    target: target % plan.count,
                }),
                true,
            ),
            Action::CpuOff => (Outcome::Done, Some(Exit::CpuOff), true),
            Action::Reset(kind) => (Outcome::Done, Some(Exit::Reset(kind)), true),
            Action::Fault(report) => (Outcome::Done, Some(Exit::Fault(report)), true),
            Action::Fail(code) => (Outcome::Done, Some(Exit::Failed { code }), true),
        };
        self.finish(vcpu, pcpu, None, outcome);
        self.vcpu(vcpu, pcpu).awaits_reply = asks;
        exit
    }

    /// Carries out a load or store, or makes an exit of it.
    fn guest_accesses(
        &mut self,
        plan: &VcpuPlan,
        space: AddressSpace,
        address: u64,
        size: u8,
        kind: AccessKind,
    ) -> (Outcome, Option<Exit>, bool) {
        let outcome = match (space, kind) {
            (AddressSpace::Memory, AccessKind::Read) => self.load(plan, address, size).map(Outcome::Value),
            (AddressSpace::Memory, AccessKind::Write(value)) => {
                self.store(plan, address, size, value).then_some(Outcome::Done)
            }
            (AddressSpace::Ports | AddressSpace::Registers, _) => self.reach(plan, space, address, kind),
        };
        match outcome {
            Some(outcome) => (outcome, None, false),
            None => (Outcome::Done, Some(access(space, address, size, kind)), true),
        }
    }

    /// Answers an access to a port or a numbered register, if the filter says that it needs no exit.
    fn reach(
        &mut self,
        plan: &VcpuPlan,
        space: AddressSpace,
        number: u64,
        kind: AccessKind,
    ) -> Option<Outcome> {
        let facts = self.facts;
        if space != AddressSpace::Registers {
            assert!(facts.ports, "there are no ports on class {}", facts.name);
            return None;
        }
        let own = self.partitions.entry(plan.partition.0).or_default();
        let value = match treatment(facts.registers, number, kind) {
            Treatment::Exit => return None,
            Treatment::Constant(value) => value,
            Treatment::Own => own.registers.get(&number).copied().unwrap_or(0),
        };
        Some(match kind {
            AccessKind::Read => Outcome::Value(value),
            AccessKind::Write(value) => {
                own.registers.insert(number, value);
                Outcome::Done
            }
        })
    }

    fn acknowledge(&mut self, vcpu: VcpuId, pcpu: PcpuId) -> Option<u32> {
        let line = self.has_interrupt(vcpu)?;
        let state = self.vcpu(vcpu, pcpu);
        match line {
            SENT => state.sent = false,
            TIMER => state.timer = None,
            // A level stays until its device takes it back. A vector, a pulse, and an edge from a routed
            // line, is taken here.
            _ => {
                let partition = state.plan?.partition;
                let own = self.partitions.entry(partition.0).or_default();
                let is_once = VirtualLine(line).as_vector().is_some() || own.pulsed.remove(&line);
                if is_once
                    || self
                        .routes
                        .values()
                        .any(|route| *route == (partition, VirtualLine(line)))
                {
                    self.partitions
                        .entry(partition.0)
                        .or_default()
                        .asserted
                        .remove(&line);
                }
            }
        }
        Some(line)
    }

    /// Returns where a byte of a partition's memory is, if it may load from it or store to it. Where software
    /// loads translations, by one that is loaded; a miss loads one from the tables of the space.
    fn place_of(&mut self, partition: PartitionId, address: u64, is_store: bool) -> Option<u64> {
        let own = self.partitions.entry(partition.0).or_default();
        let region = match self.loadable {
            None => *own.view.region(address)?,
            Some(most) => {
                let of_page = |region: &Region| address.wrapping_sub(region.guest.0) < region.size;
                if let Some(loaded) = own.loaded.iter().copied().find(of_page) {
                    loaded
                } else {
                    self.misses += 1;
                    let page = own.view.page(address)?;
                    own.loaded.truncate(most - 1);
                    own.loaded.push_front(page);
                    page
                }
            }
        };
        let rights = region.permissions;
        let may = if is_store { rights.write } else { rights.read };
        may.then(|| region.host.0 + (address - region.guest.0))
    }

    fn load(&mut self, plan: &VcpuPlan, address: u64, size: u8) -> Option<u64> {
        let mut value = 0;
        for offset in 0..u64::from(size) {
            let place = self.place_of(plan.partition, address.checked_add(offset)?, false)?;
            let byte = u64::from(self.memory.byte(place));
            value |= byte << (8 * self.significance(size, offset));
        }
        Some(value)
    }

    fn store(&mut self, plan: &VcpuPlan, address: u64, size: u8, value: u64) -> bool {
        let places: Option<Vec<u64>> = (0..u64::from(size))
            .map(|offset| self.place_of(plan.partition, address.checked_add(offset)?, true))
            .collect();
        let Some(places) = places else { return false };
        for (place, offset) in places.into_iter().zip(0..) {
            let byte = value >> (8 * self.significance(size, offset));
            self.memory.set_byte(place, byte as u8);
        }
        true
    }

    /// Returns how many bytes of a number of `size` bytes are less significant than the one at `offset`.
    fn significance(&self, size: u8, offset: u64) -> u64 {
        match self.facts.endianness {
            Endianness::Little => offset,
            Endianness::Big => u64::from(size) - 1 - offset,
        }
    }

    /// Hands each stretch of a partition's memory to `act`; all of it must be mapped.
    pub(crate) fn each_stretch(
        &mut self,
        partition: PartitionId,
        guest: GuestPhys,
        length: u64,
        mut act: impl FnMut(&mut [u8]),
    ) -> Result<(), CopyError> {
        let stretches = self
            .partitions
            .entry(partition.0)
            .or_default()
            .view
            .stretches(guest, length)?;
        for (host, part) in stretches {
            act(&mut self.memory.rest_of_page(host)[..part]);
        }
        Ok(())
    }

    pub(crate) fn answer(&mut self, vcpu: VcpuId, by: PcpuId, outcome: Outcome) {
        let state = self.vcpu(vcpu, by);
        assert!(
            state.awaits_reply,
            "{vcpu:?} is answered without a question: {outcome:?}"
        );
        state.awaits_reply = false;
        state.outcome = Some(outcome);
    }

    pub(crate) fn reply(&mut self, vcpu: VcpuId, by: PcpuId, reply: Reply) {
        if matches!(reply, Reply::Host(_)) {
            self.finish(vcpu, by, None, Outcome::Replied(reply));
            return;
        }
        self.answer(vcpu, by, Outcome::Replied(reply));
    }
}

fn access(space: AddressSpace, address: u64, size: u8, kind: AccessKind) -> Exit {
    let report = FaultReport {
        class: HealthClass::Memory,
        syndrome: u64::from(size),
        pc: 0,
        address: Some(GuestPhys(address)),
        virtual_address: None,
    };
    Exit::Access(Access {
        space,
        address: GuestPhys(address),
        size,
        kind,
        report,
    })
}
