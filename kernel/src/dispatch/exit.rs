// SPDX-License-Identifier: Apache-2.0
//! What an exit leads to, and who is woken by what.

use super::{Pcpu, SEVERAL_VCPUS};
use crate::local::Activity;
use crate::record::add;
use bulkhead_abi::log::Vcpu;
use bulkhead_abi::{Error, StartCause, StartMode};
use bulkhead_arch_api::{
    Arch, CpuOnResult, Exit, GuestPhys, Hypercall, Reply, ResetKind, Ticks, VcpuId, VcpuSet,
};
use bulkhead_sched::{PcpuPolicy, Slot};
use core::sync::atomic::AtomicU32;

use crate::partition::{Launch, Request};

impl<A: Arch, P: PcpuPolicy> Pcpu<'_, '_, A, P> {
    /// Handles an exit of the running vCPU.
    #[inline(always)]
    pub(super) fn handle(&mut self, slot: Slot, vcpu: VcpuId, exit: &Exit) {
        if let Exit::Idle { until } = exit {
            self.count(slot, |counters| &counters.idle);
            self.idle(slot, vcpu, *until);
        } else {
            self.handle_other(slot, vcpu, exit);
        }
    }

    /// The vCPU has nothing to do: [`Pcpu::handle`], and who runs next, if that is clear at once.
    #[inline(always)]
    pub(super) fn pass(&mut self, slot: Slot, vcpu: VcpuId, until: Ticks) -> Option<Slot> {
        self.count(slot, |counters| &counters.idle);
        if !self.machine.may_wait(vcpu) {
            return None;
        }
        let next = self.local.pass(slot, until, self.mailbox, || self.machine.now());
        if next.is_some() {
            self.admit();
        } else if !self.local.reschedule {
            self.follow_up();
        }
        next
    }

    /// A device asks for one vCPU of this pCPU. Whether the decision that follows stands and is in force: the shortest way from an
    /// interrupt to its owner. If not, nothing has been done.
    #[inline(never)]
    pub(super) fn rise(&mut self, vcpus: VcpuSet) -> bool {
        let Some(vcpu) = vcpus.iter().next() else {
            return false;
        };
        let binding = self.system.binding(vcpu);
        if vcpus != VcpuSet::of(vcpu) || !self.is_here(binding.pcpu) {
            return false;
        }
        let now = self.machine.now();
        let stands = self.local.rise(binding.slot, self.mailbox, now);
        if stands {
            self.follow_up();
        }
        stands
    }

    /// Any other exit. No call but in tail position: each that is frequent has a frame of its own size.
    #[inline(never)]
    pub(super) fn handle_other(&mut self, slot: Slot, vcpu: VcpuId, exit: &Exit) {
        match *exit {
            Exit::Hypercall(ref call) => self.handle_call(slot, vcpu, call),
            Exit::CpuOn {
                target,
                entry,
                argument,
            } => self.handle_cpu_on((slot, vcpu), target, entry, argument),
            _ => self.handle_rest(slot, vcpu, exit),
        }
    }

    #[inline(never)]
    fn handle_call(&mut self, slot: Slot, vcpu: VcpuId, call: &Hypercall) {
        self.count(slot, |counters| &counters.hypercalls);
        self.call(slot, vcpu, call);
    }

    #[inline(never)]
    fn handle_cpu_on(&mut self, (slot, vcpu): (Slot, VcpuId), target: u8, entry: GuestPhys, argument: u64) {
        self.count(slot, |counters| &counters.power);
        self.cpu_on(vcpu, target, entry, argument);
    }

    #[inline(never)]
    fn handle_rest(&mut self, slot: Slot, vcpu: VcpuId, exit: &Exit) {
        match *exit {
            Exit::Access(ref access) => {
                self.count(slot, |counters| &counters.accesses);
                if !self.access(vcpu, access) {
                    self.no_such_address(slot, vcpu, access);
                }
            }
            Exit::Fault(ref report) => {
                self.count(slot, |counters| &counters.faults);
                self.fault(slot, vcpu, report);
            }
            Exit::CpuPower { target } => {
                self.count(slot, |counters| &counters.power);
                self.cpu_power(vcpu, target);
            }
            Exit::CpuOff => {
                self.count(slot, |counters| &counters.power);
                self.cpu_off(slot, vcpu);
            }
            Exit::Reset(kind) => {
                self.count(slot, |counters| &counters.power);
                self.end_own(slot, own_wish(kind));
            }
            Exit::Host(ref call) if A::CAPS.semihosting => {
                self.count(slot, |counters| &counters.hypercalls);
                self.host_call(slot, vcpu, call);
            }
            Exit::Failed { code } => self.backend_failed(slot, vcpu, code),
            // Interrupts: nothing that the vCPU has done.
            _ => {
                self.count(slot, |counters| &counters.interrupts);
                self.handle_common(exit);
            }
        }
    }

    /// Handles an exit that has nothing to do with the vCPU that happened to run.
    #[inline(never)]
    pub(super) fn handle_common(&mut self, exit: &Exit) {
        match *exit {
            Exit::Interrupt(line) => {
                if self.machine.receive_line() == Some(line) {
                    self.take_input();
                } else if A::HAS_NETWORK && self.machine.network_line() == Some(line) && !self.take_frame() {
                    // The line stays masked until there is time for it.
                    return;
                }
                self.machine.complete(line);
            }
            Exit::Deadline => {
                // What was armed has fired: the next decision arms anew even for the same time.
                self.local.armed = Ticks(0);
                self.local.reschedule = true;
            }
            Exit::Signal => self.local.reschedule = true,
            Exit::Wake(vcpus) => self.wake_all(vcpus),
            Exit::Device(vcpus, line) => {
                self.wake_all(vcpus);
                if self.system.is_critical(line) {
                    self.urge_all(vcpus);
                }
            }
            // The others cannot come from `wait` and `poll`.
            _ => {}
        }
    }

    #[inline]
    pub(super) fn count(&self, slot: Slot, which: impl FnOnce(&Vcpu) -> &AtomicU32) {
        add(which(self.local.slot(slot).counters));
    }

    /// The vCPU has nothing to do. An interrupt that came just before is found by `may_wait`; one that
    /// comes later finds the vCPU idle, here or through the mailbox.
    #[inline(always)]
    fn idle(&mut self, slot: Slot, vcpu: VcpuId, until: Ticks) {
        if self.machine.may_wait(vcpu) {
            self.local.idle(slot, until);
        }
    }

    fn cpu_power(&mut self, vcpu: VcpuId, target: u8) {
        if !SEVERAL_VCPUS {
            return;
        }
        let partition = self.system.binding(vcpu).partition;
        let power = self
            .shared
            .partition(partition)
            .control(|control| control.power(target));
        self.machine.reply(vcpu, Reply::CpuPower(power));
    }

    fn cpu_on(&mut self, vcpu: VcpuId, target: u8, entry: GuestPhys, argument: u64) {
        if !SEVERAL_VCPUS {
            return;
        }
        let own = self.system.binding(vcpu);
        let result = self
            .shared
            .partition(own.partition)
            .with_control(|control| control.switch_on(target, entry, argument));
        self.machine.reply(vcpu, Reply::CpuOn(result));
        if result == CpuOnResult::Started {
            // Those of a partition have consecutive numbers.
            let target = vcpu.0.wrapping_sub(own.index).wrapping_add(target);
            let binding = self.system.binding(VcpuId(target));
            let wanted = self.shared.mailboxes.of(binding.pcpu).post_start(binding.slot);
            self.notify(binding.pcpu, wanted);
        }
    }

    /// Wakes vCPUs wherever they are.
    pub(super) fn wake_all(&mut self, vcpus: VcpuSet) {
        for vcpu in vcpus.iter() {
            let binding = self.system.binding(vcpu);
            if self.is_here(binding.pcpu) {
                self.look_at(binding.slot);
            } else if self.shared.mailboxes.of(binding.pcpu).post_wake(binding.slot) {
                self.machine.signal(binding.pcpu);
            }
        }
    }

    /// A critical interrupt came for vCPUs, wherever they are.
    #[inline(never)]
    fn urge_all(&mut self, vcpus: VcpuSet) {
        for vcpu in vcpus.iter() {
            let binding = self.system.binding(vcpu);
            if self.is_here(binding.pcpu) {
                let now = self.machine.now();
                self.local.urge(binding.slot, now);
            } else {
                self.shared.mailboxes.of(binding.pcpu).post_critical(binding.slot);
                self.machine.signal(binding.pcpu);
            }
        }
    }

    /// Somebody says that the slot may have something to do.
    pub(super) fn look_at(&mut self, slot: Slot) {
        let state = self.local.slot(slot);
        let vcpu = state.vcpu;
        match state.activity {
            Activity::Idle(_) => {
                let now = self.machine.now();
                self.local.make_ready(slot, now);
            }
            Activity::Waiting(gate, ..) => {
                let shared = &self.shared.partition(gate).gate;
                let events = shared.take();
                if events != 0 {
                    shared.leave(vcpu);
                    self.events_taken(gate);
                    self.release(slot, Ok([events, 0, 0, 0]));
                } else if self.machine.has_work(vcpu) {
                    self.give_up(slot, Error::Interrupted);
                }
            }
            Activity::Sleeping(..) => {
                if self.machine.has_work(vcpu) {
                    self.release(slot, Err(Error::Interrupted));
                }
            }
            Activity::Off
            | Activity::Ready
            | Activity::Loading(_)
            | Activity::Reporting
            | Activity::Ending => {}
        }
    }

    /// The slot's own timer has come.
    pub(super) fn timer_due(&mut self, slot: Slot, now: Ticks) {
        match self.local.slot(slot).activity {
            Activity::Idle(_) => self.local.make_ready(slot, now),
            Activity::Sleeping(until, _) if until <= now => self.release(slot, Ok([0; 4])),
            Activity::Sleeping(..) => self.release(slot, Err(Error::Interrupted)),
            Activity::Waiting(_, until, _) if until <= now => self.give_up(slot, Error::TimedOut),
            Activity::Waiting(..) => self.give_up(slot, Error::Interrupted),
            Activity::Off
            | Activity::Ready
            | Activity::Loading(_)
            | Activity::Reporting
            | Activity::Ending => {}
        }
    }

    /// Ends the waiting for events; `error` if none has come.
    fn give_up(&mut self, slot: Slot, error: Error) {
        let state = self.local.slot(slot);
        let Activity::Waiting(gate, ..) = state.activity else {
            return;
        };
        let events = self.shared.partition(gate).gate.give_up(state.vcpu);
        self.events_taken(gate);
        self.release(slot, events.map(|events| [events, 0, 0, 0]).ok_or(error));
    }

    /// Ends a blocking hypercall.
    fn release(&mut self, slot: Slot, result: Result<[u64; 4], Error>) {
        let vcpu = self.local.slot(slot).vcpu;
        self.machine.reply(vcpu, Reply::Hypercall(result));
        let now = self.machine.now();
        self.local.make_ready(slot, now);
    }
}

/// What a partition wants of itself; a restart keeps the payloads it has.
const fn own_wish(kind: ResetKind) -> Request {
    let mode = match kind {
        ResetKind::Off => return Request::Off,
        ResetKind::Cold => StartMode::Cold,
        ResetKind::Warm => StartMode::Warm,
    };
    Request::Restart(Launch::again(mode, StartCause::Own))
}
