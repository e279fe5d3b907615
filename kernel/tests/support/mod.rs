// SPDX-License-Identifier: Apache-2.0
//! A test bench: a system image from a few lines, the mock board, and a driver that keeps its pCPUs together.
#![allow(dead_code, reason = "each test file uses its own part of the bench")]

use bulkhead_abi::framing::{RS, US};
use bulkhead_abi::log::line::{STAMP_LEN, stamp};
use bulkhead_abi::log::registers::ALL;
use bulkhead_abi::log::{AREA_SIZE, Area, AreaNames, ENTRIES, ENTRY_SIZE, Entry, PieceLine, RING_SIZE};
use bulkhead_abi::parts::Parts;
use bulkhead_abi::{ObjectKind, Rights};
use bulkhead_arch_api::{PartitionId, PcpuId, Reply, VcpuId, VcpuReset};
use bulkhead_arch_sim::{
    Action, External, Guest, Halted, Outcome, Record, Sim, SimClass, SimMachine, What, World,
};
use bulkhead_image::layout::{
    AlternativeRecord, BoardRecord, CapabilityRecord, ChannelRecord, FLAG_AUTOSTART, HealthAction,
    LoadRecord, MAP_RAM, MEMORY_CLEAR, MEMORY_EXECUTE, MEMORY_READ, MEMORY_SHARED, MEMORY_WRITE, MapRecord,
    MemoryRecord, NONE, Name, PARTITION_TASK, PARTITION_VM, POLICY_FIXED_PRIORITY, PartitionRecord,
    PcpuRecord, PortRecord, SIDE_HELD, SIDE_WRITES, SideRecord, VcpuRecord, VirtualDeviceRecord, WatchRecord,
};
use bulkhead_image::{Image, ImageBuilder, Payload, Portable};
use bulkhead_kernel::cap::ReplyIndex;
use bulkhead_kernel::dispatch::{Next, Pcpu};
use bulkhead_kernel::{AnyPolicy, Hooks, Shared, boot};
use bulkhead_sched::PcpuPolicy;
use std::cell::{Ref, RefCell, RefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
// This file is also used inside the crate, which has no prelude of `std`.
use std::format;
use std::prelude::rust_2024::*;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

/// The address at which RAM of every partition starts.
pub const RAM: u64 = 0x4000_0000;
/// The address of the virtual UART of every VM.
pub const UART: u64 = 0x0900_0000;
/// The line of the virtual UART.
pub const UART_LINE: u32 = 33;
/// An address at which nothing is.
pub const NOWHERE: u64 = 0x8000_0000;

/// The ticks that a pCPU may be ahead of another. A signal can seem to arrive that late.
const LOOKAHEAD: u64 = 50;
const BOARD_RAM: u64 = 0x4000_0000;
const BOARD_SIZE: u64 = 1 << 30;
const HYPERVISOR: u64 = 1 << 24;

/// A partition that the system is to have.
#[derive(Clone)]
pub struct Part {
    pub name: &'static str,
    pub task: bool,
    pub vcpus: Vec<(u32, u32)>,
    pub memory: u64,
    pub autostart: bool,
    pub watchdog_ns: u64,
    pub restart_limit: u32,
    pub health: [u8; 8],
    pub payload: Vec<u8>,
    pub alternatives: Vec<Vec<u8>>,
    pub capabilities: Vec<(u32, ObjectKind, u32, Rights)>,
    pub watches: Vec<u32>,
}

/// Returns a VM with these vCPUs (pCPU, priority).
pub fn vm(name: &'static str, vcpus: &[(u32, u32)]) -> Part {
    Part {
        name,
        task: false,
        vcpus: vcpus.to_vec(),
        memory: 0x4000,
        autostart: true,
        watchdog_ns: 0,
        restart_limit: NONE,
        health: [
            0,
            HealthAction::Stop as u8,
            HealthAction::Stop as u8,
            HealthAction::Log as u8,
            HealthAction::Restart as u8,
            HealthAction::Stop as u8,
            0,
            0,
        ],
        payload: Vec::new(),
        alternatives: Vec::new(),
        capabilities: Vec::new(),
        watches: Vec::new(),
    }
}

/// Returns a task.
pub fn task(name: &'static str, pcpu: u32, priority: u32) -> Part {
    Part {
        task: true,
        ..vm(name, &[(pcpu, priority)])
    }
}

impl Part {
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub fn cap(mut self, index: u32, kind: ObjectKind, object: u32, rights: Rights) -> Self {
        self.capabilities.push((index, kind, object, rights));
        self
    }

    pub fn action(mut self, class: bulkhead_abi::HealthClass, action: HealthAction) -> Self {
        self.health[class as usize] = action as u8;
        self
    }
}

/// Returns a guest that wakes every `period` ticks by its own timer. Then the guest does the action that
/// `work` returns for its lateness.
pub fn periodic(period: u64, mut work: impl FnMut(u64) -> Action) -> impl FnMut(Outcome, u64) -> Action {
    let mut due = 0;
    let mut phase = 0;
    move |last, now| {
        phase += 1;
        match phase % 4 {
            1 => {
                due = if due == 0 { now + period } else { due + period };
                Action::SetTimer(Some(due))
            }
            2 => Action::Idle,
            3 => Action::Acknowledge,
            _ if last == Outcome::Interrupt(Some(27)) => work(now - due),
            _ => {
                // The guest was woken for nothing, and sleeps on.
                phase = 1;
                Action::Compute(1)
            }
        }
    }
}

/// Returns a port for messages of at most `size` bytes, of which `depth` can wait.
pub fn port(size: u32, depth: u32) -> PortRecord {
    PortRecord {
        name: Name::new("port").expect("a short name"),
        message_size: size.into(),
        depth: depth.into(),
        flags: 0.into(),
        reserved: 0.into(),
    }
}

/// Returns the tables of a system of these partitions.
pub fn tables(pcpus: u32, parts: &[Part]) -> ImageBuilder {
    tables_of::<Sim>(pcpus, parts)
}

/// Returns the tables of a system of these partitions, for a board of a class.
pub fn tables_of<C: SimClass>(pcpus: u32, parts: &[Part]) -> ImageBuilder {
    let mut image = ImageBuilder::new(C::FACTS, "sim").unwrap();
    image.board = BoardRecord {
        load_address: BOARD_RAM.into(),
        hypervisor_size: HYPERVISOR.into(),
        pool_base: (BOARD_RAM + HYPERVISOR / 2).into(),
        pool_size: 0x1000.into(),
        image_base: BOARD_RAM.into(),
        log_base: (BOARD_RAM + BOARD_SIZE - AREA_SIZE as u64).into(),
        stop_after_ms: NONE.into(),
        trace_records: 0.into(),
        trace_base: 0.into(),
        trace_short_exits: 0.into(),
        parts: Parts::ALL.0.into(),
        network_budget_us: 0.into(),
        network_period_us: 0.into(),
    };
    image.map.push(MapRecord {
        base: BOARD_RAM.into(),
        size: BOARD_SIZE.into(),
        kind: MAP_RAM.into(),
        reserved: 0.into(),
    });
    for id in 0..pcpus {
        image.pcpus.push(PcpuRecord {
            hardware_id: u64::from(id).into(),
            policy: POLICY_FIXED_PRIORITY.into(),
            quantum_us: 10.into(),
        });
    }
    let mut host = BOARD_RAM + HYPERVISOR;
    for (part, number) in parts.iter().zip(0_u32..) {
        add_partition::<C>(&mut image, part, number, host);
        host += part.memory;
    }
    image
}

fn add_partition<C: SimClass>(image: &mut ImageBuilder, part: &Part, number: u32, host: u64) {
    let first_vcpu = image.vcpus.len() as u32;
    for (pcpu, priority) in &part.vcpus {
        image.vcpus.push(VcpuRecord::plain(number, *pcpu, *priority));
    }
    image.partitions.push(PartitionRecord {
        name: Name::new(part.name).unwrap(),
        uuid: [number as u8; 16],
        entry: (RAM | C::FACTS.entry_bits).into(),
        argument: RAM.into(),
        stack: if part.task { RAM + part.memory } else { 0 }.into(),
        watchdog_ns: part.watchdog_ns.into(),
        kind: if part.task { PARTITION_TASK } else { PARTITION_VM }.into(),
        flags: if part.autostart { FLAG_AUTOSTART } else { 0 }.into(),
        first_vcpu: first_vcpu.into(),
        vcpu_count: (part.vcpus.len() as u32).into(),
        manifest_line: (10 * number + 10).into(),
        restart_limit: part.restart_limit.into(),
        virtual_lines: if part.task { 0 } else { 64 }.into(),
        entry_state: 0.into(),
        health: part.health,
    });
    image.memory.push(MemoryRecord {
        partition: number.into(),
        flags: (MEMORY_READ | MEMORY_WRITE | MEMORY_EXECUTE | MEMORY_CLEAR).into(),
        guest: RAM.into(),
        host: host.into(),
        size: part.memory.into(),
        manifest_line: (10 * number + 11).into(),
        reserved: 0.into(),
    });
    for (payload, alternative) in std::iter::once(&part.payload)
        .chain(&part.alternatives)
        .zip(0_u32..)
    {
        add_payload(image, part, number, (alternative, payload));
    }
    if !part.task {
        image.virtual_devices.push(VirtualDeviceRecord {
            partition: number.into(),
            kind: C::FACTS.console().unwrap().0.number.into(),
            base: [UART.into(), 0.into()],
            size: [0x1000.into(), 0.into()],
            virtual_line: UART_LINE.into(),
            reserved: 0.into(),
        });
    }
    for (index, kind, object, rights) in &part.capabilities {
        image.capabilities.push(CapabilityRecord {
            partition: number.into(),
            index: (*index).into(),
            kind: (*kind as u32).into(),
            object: (*object).into(),
            rights: u32::from(rights.0).into(),
            detail: 0.into(),
            name: Name::new(&format!("c{index}")).unwrap(),
        });
    }
    for watched in &part.watches {
        image.watches.push(WatchRecord {
            watcher: number.into(),
            watched: (*watched).into(),
        });
    }
}

/// A side that a channel is to have: the partition, the address, and how the doorbell reaches it.
pub struct At {
    pub partition: u32,
    pub guest: u64,
    pub writes: bool,
    pub held: bool,
    pub line: u32,
    pub event: u32,
}

/// Adds a channel of `size` bytes with these sides, in RAM that no partition has.
pub fn add_channel(image: &mut ImageBuilder, name: &str, size: u64, sides: &[At]) {
    let number = image.channels.len() as u32;
    let host = BOARD_RAM + BOARD_SIZE / 2 + u64::from(number) * 0x10_0000;
    image.channels.push(ChannelRecord {
        name: Name::new(name).unwrap(),
        host: host.into(),
        size: size.into(),
        first_side: (image.sides.len() as u32).into(),
        side_count: (sides.len() as u32).into(),
    });
    for side in sides {
        let (right, flag) = if side.writes {
            (MEMORY_WRITE, SIDE_WRITES)
        } else {
            (0, 0)
        };
        let (rights, flag) = if side.held {
            (0, flag | SIDE_HELD)
        } else {
            (MEMORY_READ | right, flag)
        };
        image.sides.push(SideRecord {
            channel: number.into(),
            partition: side.partition.into(),
            guest: side.guest.into(),
            virtual_line: side.line.into(),
            event: side.event.into(),
            flags: flag.into(),
            line: 0.into(),
        });
        image.memory.push(MemoryRecord {
            partition: side.partition.into(),
            flags: (MEMORY_SHARED | rights).into(),
            guest: side.guest.into(),
            host: host.into(),
            size: size.into(),
            manifest_line: 0.into(),
            reserved: 0.into(),
        });
    }
}

/// Adds a payload at the start of RAM, and the alternative it makes, if the payload is not the partition's
/// own.
fn add_payload(image: &mut ImageBuilder, part: &Part, number: u32, (alternative, bytes): (u32, &[u8])) {
    if alternative != 0 {
        image.alternatives.push(AlternativeRecord {
            name: Name::new(&format!("other-{alternative}")).unwrap(),
            partition: number.into(),
            manifest_line: 0.into(),
            entry: (RAM + 16 * u64::from(alternative)).into(),
            argument: 0.into(),
            stack: if part.task { RAM + part.memory } else { 0 }.into(),
        });
    }
    if bytes.is_empty() {
        return;
    }
    image.loads.push(LoadRecord {
        partition: number.into(),
        payload: (image.payloads.len() as u32).into(),
        guest: RAM.into(),
        offset: 0.into(),
        size: (bytes.len() as u64).into(),
        alternative: alternative.into(),
        reserved: 0.into(),
    });
    image.payloads.push(Payload {
        name: Name::new(part.name).unwrap(),
        bytes: bytes.to_vec(),
    });
}

type SimPcpu<P, C> = Pcpu<'static, 'static, SimMachine<C>, SimMachine<C>, P>;

/// A pCPU that is on, and its next step if that step has not come to its end.
type Driven<P, C> = Option<(SimPcpu<P, C>, Option<Next>)>;

/// Tells, for a step that was decided, whether a key is pressed before the step is done.
type Disturbs = Box<dyn FnMut(Next) -> bool>;

/// A mock board of a class with the kernel on it, and with these policies.
pub struct Bench<P = AnyPolicy, C: SimClass = Sim> {
    world: Rc<RefCell<World>>,
    shared: &'static Shared<'static, spin::Spin>,
    image: &'static [u8],
    pcpus: Vec<Rc<RefCell<Driven<P, C>>>>,
    seed: u64,
    /// Tells whether a key is pressed between a decision and its step.
    disturbs: Disturbs,
}

impl Bench {
    /// Returns a board with this system, not yet booted.
    pub fn new(pcpus: u32, parts: &[Part]) -> Self {
        Self::with_image(pcpus, tables(pcpus, parts).build().unwrap())
    }

    /// Returns a board with these bytes as its image.
    pub fn with_image(pcpus: u32, image: Vec<u8>) -> Self {
        Self::with_policies(pcpus, image)
    }
}

impl<P: PcpuPolicy, C: SimClass> Bench<P, C> {
    /// Returns a board with these bytes as its image, and a class binary with policies of one's own.
    pub fn with_policies(pcpus: u32, image: Vec<u8>) -> Self {
        Self {
            world: Rc::new(RefCell::new(World::of::<C>(pcpus as u8))),
            shared: Box::leak(Box::new(Shared::new())),
            image: image.leak(),
            pcpus: (0..pcpus).map(|_| Rc::default()).collect(),
            seed: 0,
            disturbs: Box::new(|_| false),
        }
    }

    /// Presses a key between a decision and its step whenever `disturbs` says so.
    pub fn disturb(&mut self, disturbs: impl FnMut(Next) -> bool + 'static) {
        self.disturbs = Box::new(disturbs);
    }

    /// Breaks ties between pCPUs in another order.
    pub fn seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Returns the state that the pCPUs share.
    pub fn shared(&self) -> &'static Shared<'static, spin::Spin> {
        self.shared
    }

    pub fn world(&self) -> RefMut<'_, World> {
        self.world.borrow_mut()
    }

    pub fn look(&self) -> Ref<'_, World> {
        self.world.borrow()
    }

    /// Sets the program that vCPU `vcpu` runs each time it starts.
    pub fn program<G: Guest + 'static>(&self, vcpu: u8, make: impl Fn(&VcpuReset) -> G + 'static) {
        self.world().program(VcpuId(vcpu), make);
    }

    /// Returns another handle of a pCPU's machine, for work of the kernel between two steps.
    pub fn machine(&self, pcpu: u8) -> SimMachine<C> {
        SimMachine::new(Rc::clone(&self.world), PcpuId(pcpu))
    }

    /// Boots and runs until `until` ticks, or until the board is off or all pCPUs have stopped.
    pub fn run(&mut self, until: u64) {
        self.power_on();
        loop {
            let Some((index, horizon)) = self.next_pcpu() else {
                return;
            };
            if self.look().powered_off || self.look().now(PcpuId(index)) >= until {
                return;
            }
            self.advance(index, horizon.min(until));
        }
    }

    /// Does [`Bench::run`], but asks before each step, with the time of the pCPU whose clock is the earliest,
    /// whether the other one goes first. That one may be ahead by `ahead` ticks then.
    pub fn run_deviating(&mut self, until: u64, ahead: u64, mut deviates: impl FnMut(u64) -> bool) {
        self.power_on();
        loop {
            let Some((index, horizon)) = self.next_pcpu() else {
                return;
            };
            let now = self.look().now(PcpuId(index));
            if self.look().powered_off || now >= until {
                return;
            }
            let other = (self.pcpus.len() == 2).then_some(1 - index);
            let other = other.filter(|other| self.is_driven(*other));
            match other {
                Some(other) if deviates(now) => self.advance(other, (now + ahead).min(until)),
                _ => self.advance(index, horizon.min(until)),
            }
        }
    }

    fn power_on(&mut self) {
        if !self.is_driven(0) && self.look().halted.is_empty() {
            let machine = SimMachine::new(Rc::clone(&self.world), PcpuId(0));
            let (shared, image) = (self.shared, self.image);
            let hooks = Hooks {
                digest: Portable,
                version: "test",
            };
            let image = Image::check(image, C::FACTS, &Portable);
            let booted = guarded(|| boot::boot(machine.clone(), machine, shared, image, &hooks));
            self.pcpus[0].replace(booted.map(|pcpu| (pcpu, None)));
        }
        self.join_secondaries();
    }

    fn join_secondaries(&mut self) {
        for index in 1..self.pcpus.len() {
            let id = PcpuId(index as u8);
            let waits = !self.is_driven(id.0) && !self.look().halted.contains(&id.0);
            if waits && self.look().is_started(id) {
                let machine = SimMachine::new(Rc::clone(&self.world), id);
                let shared = self.shared;
                let joined = guarded(|| boot::join(machine.clone(), machine, shared));
                self.pcpus[index].replace(joined.map(|pcpu| (pcpu, None)));
            }
        }
    }

    /// Returns the pCPU whose clock is the earliest, and the time to which it may go.
    fn next_pcpu(&self) -> Option<(u8, u64)> {
        let world = self.look();
        let count = self.pcpus.len() as u64;
        let mut live: Vec<(u64, u64, u8)> = (0..self.pcpus.len() as u8)
            .filter(|index| self.is_driven(*index))
            .map(|index| {
                (
                    world.now(PcpuId(index)),
                    (u64::from(index) + self.seed) % count,
                    index,
                )
            })
            .collect();
        live.sort_unstable();
        let (_, _, index) = *live.first()?;
        let horizon = live.get(1).map_or(u64::MAX, |(now, ..)| now + LOOKAHEAD);
        Some((index, horizon))
    }

    fn advance(&mut self, index: u8, horizon: u64) {
        let pcpu = &self.pcpus[usize::from(index)];
        drive(&self.world, pcpu, (index, horizon), &mut self.disturbs);
    }

    fn is_driven(&self, index: u8) -> bool {
        self.pcpus[usize::from(index)].borrow().is_some()
    }

    /// Lets pCPU `other` go on in the midst of a hypercall of partition `of`, when the kernel checks an
    /// address after `passing` checks that pass by, until `is_done`. The one who is in the hypercall does not
    /// go on before.
    pub fn meet(&self, (of, passing): (u8, u32), other: u8, is_done: impl Fn(&World) -> bool + 'static)
    where
        P: 'static,
    {
        let world = Rc::clone(&self.world);
        let pcpu = Rc::clone(&self.pcpus[usize::from(other)]);
        self.world().meet(PartitionId(of), passing, move || {
            while !is_done(&world.borrow()) {
                drive(&world, &pcpu, (other, u64::MAX), &mut |_| false);
            }
        });
    }

    /// Returns the lines of the hypervisor's own log in its last life, without their times. The console may
    /// not have shown all of them yet.
    pub fn log(&self) -> Vec<String> {
        let text = log_text(self.look().log_area);
        let lines = text
            .lines()
            .map(|line| line.split_once("] ").map_or(line, |(_, text)| text));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        let begin = lines.iter().rposition(|line| line.starts_with("Bulkhead test"));
        lines[begin.unwrap_or(0)..].to_vec()
    }

    /// Returns everything that a console has shown.
    pub fn console(&self, name: &str) -> String {
        let output = self.look().output.clone();
        let mut text = Vec::new();
        let mut rest = &output[..];
        while let Some(start) = rest.iter().position(|byte| *byte == RS) {
            let Some(end) = rest[start..]
                .iter()
                .position(|byte| *byte == US)
                .map(|end| start + end)
            else {
                break;
            };
            let tag = String::from_utf8_lossy(&rest[start + 1..end]).into_owned();
            let body = &rest[end + 1..];
            let next = body.iter().position(|byte| *byte == RS).unwrap_or(body.len());
            if tag.contains(&format!("] {name}: ")) {
                text.extend_from_slice(&body[..next]);
            }
            rest = &body[next..];
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Tells whether some line of the log contains `text`.
    pub fn logged(&self, text: &str) -> bool {
        self.log().iter().any(|line| line.contains(text))
    }

    /// Returns the marks of a vCPU, without their times.
    pub fn marks(&self, vcpu: u8) -> Vec<u64> {
        self.look().marks(VcpuId(vcpu)).map(|(_, mark)| mark).collect()
    }

    /// Returns the records that fit.
    pub fn records(&self, fits: impl Fn(&What) -> bool) -> Vec<Record> {
        self.look()
            .records
            .iter()
            .filter(|record| fits(&record.what))
            .copied()
            .collect()
    }
}

/// Returns the text of a ring, as a reader finds it: a line for each entry, or for those that belong
/// together.
pub fn log_text(area: &Area) -> String {
    let names = AreaNames(area, &ALL);
    let (written, reserved) = (
        area.header.written.load(Relaxed),
        area.header.reserved.load(Relaxed),
    );
    let first = reserved.saturating_sub(RING_SIZE as u64) / ENTRY_SIZE as u64;
    let mut text = String::new();
    let mut begins = true;
    for number in first..written / ENTRY_SIZE as u64 {
        let words = area.ring[number as usize % ENTRIES]
            .each_ref()
            .map(|word| word.load(Relaxed));
        let Some(entry) = Entry::decode(words) else {
            continue;
        };
        if begins {
            let time = stamp(entry.time, &mut [0; STAMP_LEN]).to_vec();
            text += &format!("[{}] ", String::from_utf8(time).unwrap());
        }
        let (mut next, mut piece) = (0, PieceLine::new());
        while entry.piece(&names, &mut next, &mut piece) {
            text += core::str::from_utf8(piece.as_bytes()).unwrap();
        }
        begins = !entry.has_more();
        text += if begins { "\n" } else { "" };
    }
    text
}

/// Takes a step of a pCPU, or a part of one that ends at `horizon`.
fn drive<P: PcpuPolicy, C: SimClass>(
    world: &Rc<RefCell<World>>,
    driven: &RefCell<Driven<P, C>>,
    (index, horizon): (u8, u64),
    disturbs: &mut dyn FnMut(Next) -> bool,
) {
    let mut driven = driven.borrow_mut();
    let Some((pcpu, pending)) = &mut *driven else {
        return;
    };
    let result = guarded(|| {
        let next = pending.take().unwrap_or_else(|| {
            let next = pcpu.decide();
            assert!(pcpu.local().leaves_nothing_behind(), "before {next:?}");
            if disturbs(next) {
                let now = world.borrow().now(PcpuId(index));
                world.borrow_mut().schedule(now, External::Input(b'k'));
            }
            next
        });
        let vcpu = match next {
            Next::Run(_, vcpu) => Some(Some(vcpu)),
            Next::Idle => Some(None),
            Next::Load(..) | Next::Chore | Next::Again => None,
        };
        if vcpu.is_none_or(|vcpu| world.borrow_mut().advance(PcpuId(index), vcpu, horizon)) {
            pcpu.perform(next);
        } else {
            *pending = Some(next);
        }
    });
    if result.is_none() {
        *driven = None;
    }
}

/// Runs a function that may end in `Cpus::stop`. Then the result is `None`.
fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<Halted>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Returns the index by which a call of a vCPU with this number is answered.
pub fn reply_to(slot: u32, caller: u8, number: u32) -> u64 {
    ReplyIndex::new(slot, VcpuId(caller), number).0.into()
}

/// Returns a guest that does `actions` in turn. Each reply to a hypercall leaves a mark: its first result, or
/// [`error_mark`] of its error.
pub fn caller(actions: Vec<Action>) -> impl Guest {
    let mut rest = actions.into_iter();
    move |last: Outcome, _: u64| match last {
        Outcome::Replied(Reply::Hypercall(Ok([first, ..]))) => Action::Mark(first),
        Outcome::Replied(Reply::Hypercall(Err(error))) => Action::Mark(error_mark(error)),
        _ => rest.next().unwrap_or(Action::Idle),
    }
}

/// Returns a guest that does `actions` in turn. Each answer leaves marks: all four results, or an error.
pub fn marking(actions: Vec<Action>) -> impl Guest {
    let mut rest = actions.into_iter();
    let mut marks = Vec::new();
    move |last: Outcome, _: u64| {
        match last {
            Outcome::Replied(Reply::Hypercall(Ok(results))) => marks.extend(results.into_iter().rev()),
            Outcome::Replied(Reply::Hypercall(Err(error))) => marks.push(error_mark(error)),
            Outcome::Value(value) => marks.push(value),
            _ => {}
        }
        match marks.pop() {
            Some(mark) => Action::Mark(mark),
            None => rest.next().unwrap_or(Action::Idle),
        }
    }
}

/// Returns the mark that stands for an error.
pub fn error_mark(error: bulkhead_abi::Error) -> u64 {
    error as i64 as u64
}

/// Returns a hypercall with up to six arguments.
pub fn call(operation: bulkhead_abi::Operation, arguments: &[u64]) -> Action {
    let mut registers = [0; 6];
    registers[..arguments.len()].copy_from_slice(arguments);
    Action::Hypercall(operation as u16, registers)
}

/// Returns a store of a word.
pub fn store(address: u64, value: u64) -> Action {
    Action::Write {
        address,
        size: 8,
        value,
    }
}

/// Returns a load of a word.
pub fn load(address: u64) -> Action {
    Action::Read { address, size: 8 }
}

/// Returns a sleep, by the capability `clock`, until a time.
pub fn sleep(clock: u64, until: u64) -> Action {
    call(bulkhead_abi::Operation::TimerSleep, &[clock, until])
}
