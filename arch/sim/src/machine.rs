// SPDX-License-Identifier: Apache-2.0
//! One pCPU's handle on a simulated board.

use crate::classes::{Sim, SimClass};
use crate::guest::Outcome;
use crate::memory::View;
use crate::uplink::NETWORK_LINE;
use crate::world::{CONSOLE_LINE, What, World};
use bulkhead_abi::Operation;
use bulkhead_abi::hypercall::UPCALL_WORDS;
use bulkhead_abi::log::RegisterFile;
use bulkhead_abi::log::registers;
use bulkhead_abi::log::{AREA_SIZE, Area, Exits, count};
use bulkhead_abi::trace::Entry;
use bulkhead_arch_api::{
    AccessKind, Arch, BuildError, CLEAR_AT_ONCE, ClassFacts, Clock, Console, CopyError, Cpus, DUMP_REGISTERS,
    Dump, Exit, FaultReport, GuestPhys, HostPhys, Hypercall, Irqs, Line, LineRoute, PartitionId,
    PartitionKind, PcpuId, Permissions, Reply, ShortCalls, SpacePlan, Spaces, StartError, Ticks, Traces,
    VcpuId, VcpuPlan, VcpuReset, VcpuSet, Vcpus, VirtualDevice, VirtualLine,
};
use std::cell::{RefCell, RefMut};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;

/// Parts in which the state that vCPUs share is reset.
pub const RESET_PARTS: u32 = 3;

/// Ticks that copying or clearing 16 bytes takes.
const TICKS_PER_16_BYTES: u64 = 1;

/// The value that [`Cpus::stop`] unwinds with, since it cannot return: a driver catches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halted(pub PcpuId);

/// One pCPU of a [`World`], as one of class `C`.
#[derive(Clone, Debug)]
pub struct SimMachine<C = Sim> {
    world: Rc<RefCell<World>>,
    pub(crate) pcpu: PcpuId,
    class: PhantomData<C>,
}

impl<C: SimClass> SimMachine<C> {
    /// Returns the handle of `pcpu`.
    #[must_use]
    pub const fn new(world: Rc<RefCell<World>>, pcpu: PcpuId) -> Self {
        Self {
            world,
            pcpu,
            class: PhantomData,
        }
    }

    pub(crate) fn world(&self) -> RefMut<'_, World> {
        self.world.borrow_mut()
    }

    fn leave(&self, vcpu: Option<VcpuId>) -> Exit {
        let mut world = self.world();
        world.advance(self.pcpu, vcpu, u64::MAX);
        let exit = world.pcpu(self.pcpu).exit.take().unwrap_or(Exit::Signal);
        if let Some(vcpu) = vcpu {
            count(counter(&world.log_area.vcpus[usize::from(vcpu.0)].exits, &exit));
        }
        exit
    }

    /// Lets another pCPU do now what a test wants in the midst of a hypercall of `partition`, if anything.
    fn meet(&self, partition: PartitionId) {
        let meeting = self.world().meeting.take_if(|(of, passing, _)| {
            let is_here = *of == partition && *passing == 0;
            *passing -= u32::from(*of == partition && !is_here);
            is_here
        });
        if let Some((.., act)) = meeting {
            act();
        }
    }

    pub(crate) fn spend(&self, bytes: u64) {
        self.world().pcpu(self.pcpu).now += 1 + bytes / 16 * TICKS_PER_16_BYTES;
    }
}

/// Returns the counter of an exit's cause.
const fn counter<'a>(exits: &'a Exits, exit: &Exit) -> &'a AtomicU32 {
    match exit {
        Exit::Interrupt(_) | Exit::Deadline | Exit::Signal | Exit::Wake(_) | Exit::Device(..) => {
            &exits.interrupts
        }
        Exit::Hypercall(_)
        | Exit::Host(_)
        | Exit::CpuOn { .. }
        | Exit::CpuPower { .. }
        | Exit::CpuOff
        | Exit::Reset(_) => &exits.calls,
        Exit::Access(_) | Exit::Register(_) => &exits.accesses,
        Exit::Idle { .. } => &exits.idle,
        Exit::Fault(_) | Exit::Failed { .. } => &exits.other,
    }
}

impl<C: SimClass> Arch for SimMachine<C> {
    type Relax = spin::Spin;
    const CAPS: ClassFacts = *C::FACTS;
    const FILES: &'static [&'static RegisterFile] = &[&registers::SIMULATED];
}

impl<C: SimClass> Cpus for SimMachine<C> {
    fn current(&self) -> PcpuId {
        self.pcpu
    }

    fn start(&mut self, pcpu: PcpuId) -> Result<(), StartError> {
        let mut world = self.world();
        if world.start_error == Some(pcpu) {
            return Err(StartError { code: -2 });
        }
        let now = world.now(self.pcpu);
        let target = world.pcpu(pcpu);
        assert!(!target.started, "{pcpu:?} started twice");
        target.started = true;
        target.now = now;
        world.record(self.pcpu, What::Start(pcpu));
        Ok(())
    }

    fn signal(&mut self, pcpu: PcpuId) {
        let mut world = self.world();
        world.pcpu(pcpu).signalled = true;
        world.record(self.pcpu, What::Signal(pcpu));
    }

    fn wait(&mut self) -> Exit {
        self.leave(None)
    }

    fn poll(&mut self) -> Option<Exit> {
        let mut world = self.world();
        let now = world.now(self.pcpu);
        world.advance(self.pcpu, None, now);
        world.pcpu(self.pcpu).exit.take()
    }

    fn stop(&mut self) -> ! {
        self.world().halted.insert(self.pcpu.0);
        std::panic::resume_unwind(Box::new(Halted(self.pcpu)))
    }

    fn power_off(&mut self) {
        let mut world = self.world();
        world.powered_off = true;
        world.record(self.pcpu, What::PowerOff);
    }
}

impl<C: SimClass> Vcpus for SimMachine<C> {
    const HAS_UPCALLS: bool = C::FACTS.upcalls;

    fn adopt(&mut self, vcpu: VcpuId, plan: &VcpuPlan) {
        let mut world = self.world();
        let state = world.vcpus.entry(vcpu.0).or_default();
        assert_eq!(state.plan, None, "{vcpu:?} adopted twice");
        state.plan = Some(*plan);
        state.home = Some(self.pcpu);
        world.partitions.entry(plan.partition.0).or_default().first = Some(plan.first);
    }

    fn reset(&mut self, vcpu: VcpuId, reset: &VcpuReset) {
        let states = C::FACTS.entry_states.len();
        assert!(usize::from(reset.state.0) < states, "{vcpu:?}: {:?}", reset.state);
        let mut world = self.world();
        let guest = world.start_guest(vcpu, reset);
        let state = world.vcpu(vcpu, self.pcpu);
        assert!(
            state.guest.is_none(),
            "{vcpu:?} reset without having been detached"
        );
        state.guest = Some(guest);
        state.outcome = Some(Outcome::Started(*reset));
        state.action = None;
        state.awaits_reply = false;
        state.timer = None;
        state.sent = false;
        state.interrupted.clear();
        world.record(self.pcpu, What::Reset(vcpu));
    }

    fn run(&mut self, vcpu: VcpuId) -> Exit {
        self.leave(Some(vcpu))
    }

    /// Comes back after each call that was answered, as if an interrupt had come that belongs to no
    /// partition: tests go from exit to exit.
    fn run_answering(&mut self, vcpu: VcpuId, calls: &impl ShortCalls<Self>) -> Exit {
        let exit = self.leave(Some(vcpu));
        let Exit::Hypercall(Hypercall { operation, arguments }) = exit else {
            return exit;
        };
        let [x1, x2, x3, x4, x5, x6] = arguments;
        let mut registers = [operation.into(), x1, x2, x3, x4, x5, x6];
        let woken = if operation == Operation::ChannelDoorbell as u16 {
            let plan = self.world().vcpu(vcpu, self.pcpu).plan;
            let rung = plan.and_then(|plan| calls.bell(plan.partition, &registers));
            registers = [0; 7];
            rung.map(|(partition, line)| self.pulse(partition, line))
        } else {
            calls.answer(self, vcpu, &mut registers)
        };
        let Some(woken) = woken else { return exit };
        let [status, first, second, third, fourth, ..] = registers;
        assert_eq!(status, 0, "{vcpu:?}: a short call has no error");
        self.reply(vcpu, Reply::Hypercall(Ok([first, second, third, fourth])));
        Exit::Wake(woken)
    }

    fn reply(&mut self, vcpu: VcpuId, reply: Reply) {
        self.world().reply(vcpu, self.pcpu, reply);
    }

    fn inject(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        let mut world = self.world();
        assert!(
            line.as_vector().is_none() || C::FACTS.vectors,
            "{line:?} is a vector"
        );
        world.record(self.pcpu, What::Inject(partition, line));
        let state = world.partitions.entry(partition.0).or_default();
        state.asserted.insert(line.0);
        state.first.map_or(VcpuSet::EMPTY, VcpuSet::of)
    }

    fn pulse(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        let mut world = self.world();
        world.record(self.pcpu, What::Pulse(partition, line));
        let state = world.partitions.entry(partition.0).or_default();
        state.asserted.insert(line.0);
        state.pulsed.insert(line.0);
        state.first.map_or(VcpuSet::EMPTY, VcpuSet::of)
    }

    fn withdraw(&mut self, partition: PartitionId, line: VirtualLine) {
        let mut world = self.world();
        world.record(self.pcpu, What::Withdraw(partition, line));
        // A vector has no level.
        if line.as_vector().is_some() {
            return;
        }
        world
            .partitions
            .entry(partition.0)
            .or_default()
            .asserted
            .remove(&line.0);
    }

    fn has_work(&mut self, vcpu: VcpuId) -> bool {
        self.world().has_interrupt(vcpu).is_some()
    }

    fn pause(&mut self, vcpu: VcpuId) -> Ticks {
        if self.has_work(vcpu) {
            return Ticks(0);
        }
        let mut world = self.world();
        world.vcpu(vcpu, self.pcpu).timer.map_or(Ticks::NEVER, Ticks)
    }

    fn fault(&mut self, vcpu: VcpuId, report: &FaultReport) -> bool {
        let mut world = self.world();
        if world
            .vcpu(vcpu, self.pcpu)
            .plan
            .is_some_and(|plan| plan.kind == PartitionKind::Task)
        {
            return false;
        }
        world.answer(vcpu, self.pcpu, Outcome::Faulted(*report));
        world.record(self.pcpu, What::Fault(vcpu, *report));
        true
    }

    fn skip(&mut self, _vcpu: VcpuId) -> bool {
        // A scripted fault has no operation that could be completed.
        false
    }

    fn divert(&mut self, vcpu: VcpuId, entry: GuestPhys, argument: u64) -> Option<[u64; UPCALL_WORDS]> {
        let mut world = self.world();
        let state = world.vcpu(vcpu, self.pcpu);
        assert!(!state.awaits_reply, "{vcpu:?} is interrupted in a call");
        let saved = (state.action.take(), state.outcome.take());
        state.interrupted.push(saved);
        state.outcome = Some(Outcome::Upcall(argument));
        let mut place = [0; UPCALL_WORDS];
        (place[0], place[1]) = (state.interrupted.len() as u64, entry.0);
        Some(place)
    }

    fn go_on(&mut self, vcpu: VcpuId, [depth, ..]: [u64; UPCALL_WORDS]) -> bool {
        let mut world = self.world();
        let state = world.vcpu(vcpu, self.pcpu);
        assert!(state.awaits_reply, "{vcpu:?} goes on without a question");
        // A place that the guest has made up is the present one.
        state
            .interrupted
            .truncate(usize::try_from(depth).unwrap_or(usize::MAX));
        let saved = state.interrupted.pop().unwrap_or((None, Some(Outcome::Done)));
        (state.action, state.outcome) = saved;
        state.awaits_reply = false;
        true
    }

    fn dump(&mut self, vcpu: VcpuId) -> Dump {
        self.world().vcpu(vcpu, self.pcpu);
        Dump {
            general: [0; DUMP_REGISTERS],
            file: &registers::SIMULATED,
            sp: 0,
            pc: 0,
            state: 0,
        }
    }

    fn detach(&mut self, vcpu: VcpuId) {
        let mut world = self.world();
        let state = world.vcpu(vcpu, self.pcpu);
        state.guest = None;
        state.awaits_reply = false;
        if world.pcpu(self.pcpu).last == Some(vcpu) {
            world.pcpu(self.pcpu).last = None;
        }
        world.record(self.pcpu, What::Detach(vcpu));
    }
}

impl<C: SimClass> Spaces for SimMachine<C> {
    fn build(
        &mut self,
        partition: PartitionId,
        plan: &SpacePlan<'_>,
        _devices: impl Iterator<Item = VirtualDevice>,
    ) -> Result<(), BuildError> {
        let mut world = self.world();
        if world.build_error == Some(partition) {
            return Err(BuildError::TablesExhausted);
        }
        world.partitions.entry(partition.0).or_default().view = View::build(plan.regions)?;
        Ok(())
    }

    fn protect(&mut self, partition: PartitionId, guest: GuestPhys, size: u64, permissions: Permissions) {
        let mut world = self.world();
        let own = world.partitions.entry(partition.0).or_default();
        own.view.protect(guest.0, size, permissions);
        own.loaded.clear();
    }

    fn copy_in(&self, partition: PartitionId, guest: GuestPhys, bytes: &mut [u8]) -> Result<(), CopyError> {
        let mut rest = bytes;
        let length = rest.len() as u64;
        self.world().each_stretch(partition, guest, length, |memory| {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(memory.len());
            part.copy_from_slice(memory);
            rest = behind;
        })
    }

    fn copy_out(&mut self, partition: PartitionId, guest: GuestPhys, bytes: &[u8]) -> Result<(), CopyError> {
        self.spend(bytes.len() as u64);
        let mut rest = bytes;
        self.world()
            .each_stretch(partition, guest, bytes.len() as u64, |memory| {
                let (part, behind) = rest.split_at(memory.len());
                memory.copy_from_slice(part);
                rest = behind;
            })
    }

    fn may_access(&self, partition: PartitionId, guest: GuestPhys, length: u64, is_store: bool) -> bool {
        self.meet(partition);
        let world = self.world();
        let own = world.partitions.get(&partition.0);
        own.is_some_and(|own| own.view.may_access(guest.0, length, is_store))
    }

    fn clear(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<u64, CopyError> {
        let behind = (guest.0 / CLEAR_AT_ONCE).saturating_add(1) * CLEAR_AT_ONCE;
        let length = length.min(behind - guest.0);
        self.spend(length);
        self.world()
            .each_stretch(partition, guest, length, |memory| memory.fill(0))
            .map(|()| length)
    }

    fn clean(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError> {
        self.spend(length);
        self.world().each_stretch(partition, guest, length, |_| {})
    }

    fn forward(&mut self, register: HostPhys, size: u8, kind: AccessKind) -> u64 {
        self.world().forward(register, size, kind)
    }

    fn reset_shared(&mut self, partition: PartitionId, part: u32) -> Option<u32> {
        let mut world = self.world();
        let on: Vec<u8> = world
            .vcpus
            .iter()
            .filter(|(_, vcpu)| {
                vcpu.plan.is_some_and(|plan| plan.partition == partition) && vcpu.guest.is_some()
            })
            .map(|(number, _)| *number)
            .collect();
        assert!(
            on.is_empty(),
            "{partition:?} reset while vCPUs {on:?} are attached"
        );
        let own = world.partitions.entry(partition.0).or_default();
        own.asserted.clear();
        own.pulsed.clear();
        // As many parts as to show that the kernel asks for them all.
        let next = part + 1;
        world.record(self.pcpu, What::ResetShared(partition, part));
        (next < RESET_PARTS).then_some(next)
    }
}

impl<C: SimClass> Irqs for SimMachine<C> {
    fn route(&mut self, line: Line, partition: PartitionId, route: LineRoute) {
        self.world()
            .routes
            .insert(line.0, (partition, route.virtual_line));
    }

    fn enable(&mut self, line: Line, _edge: bool) {
        self.world().enable(self.pcpu, line);
    }

    fn disable(&mut self, line: Line) {
        self.world().disable(line);
    }

    fn admit(&mut self, vcpus: VcpuSet) {
        assert!(C::FACTS.masks_lines, "lines are not masked on this class");
        self.world().pcpu(self.pcpu).admitted = Some(vcpus);
    }

    fn complete(&mut self, line: Line) {
        let pcpu = self.pcpu;
        let mut world = self.world();
        // It is a level: it asks again as long as something waits.
        if line == NETWORK_LINE {
            world.uplink.has_asked = !world.uplink.arrived.is_empty();
            if world.uplink.has_asked {
                world.pcpu(pcpu).lines.push_back(line);
            }
        }
    }
}

impl<C: SimClass> Clock for SimMachine<C> {
    fn now(&self) -> Ticks {
        Ticks(self.world().now(self.pcpu))
    }

    fn hertz(&self) -> u64 {
        self.world().hertz
    }

    fn arm(&mut self, deadline: Ticks) {
        let mut world = self.world();
        world.pcpu(self.pcpu).armed = Some(deadline.0);
        world.record(self.pcpu, What::Arm(deadline));
    }

    fn disarm(&mut self) {
        self.world().pcpu(self.pcpu).armed = None;
    }
}

impl<C: SimClass> Console for SimMachine<C> {
    fn send(&mut self, bytes: &[u8]) -> usize {
        let mut world = self.world();
        let taken = bytes.len().min(world.transmitter_room);
        world.output.extend_from_slice(&bytes[..taken]);
        if world.transmitter_depth != usize::MAX {
            world.transmitter_room -= taken;
        }
        taken
    }

    fn receive(&mut self) -> Option<u8> {
        self.world().received.pop_front()
    }

    fn receive_line(&self) -> Option<Line> {
        Some(CONSOLE_LINE)
    }

    fn flush(&mut self) {
        let mut world = self.world();
        world.transmitter_room = world.transmitter_depth;
    }
}

impl<C: SimClass> Traces for SimMachine<C> {
    fn log_area(&self) -> &'static Area {
        self.world().log_area
    }

    fn keep(&mut self, offset: usize, length: usize) {
        assert!(offset + length <= AREA_SIZE, "{length} bytes from {offset} on");
    }

    fn trace_ring(&self) -> &'static [Entry] {
        let world = self.world();
        world.trace.get(usize::from(self.pcpu.0)).copied().unwrap_or(&[])
    }
}
