// SPDX-License-Identifier: Apache-2.0
//! Handling of exits, and waking of vCPUs.

use super::{Pcpu, SEVERAL_VCPUS};
use crate::local::Activity;
use crate::parts::{PartOf, Rest, each_part};
use crate::wait::{Outcome, Pause, Wait};
use bulkhead_abi::{Error, StartCause, StartMode};
use bulkhead_arch_api::{
    Access, Arch, CpuOnResult, Drivers, Exit, GuestPhys, MAX_PCPUS, Reply, ResetKind, Ticks, VcpuId, VcpuSet,
};
use bulkhead_sched::{PcpuPolicy, Slot};

use crate::partition::{Launch, Request};

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Handles an exit other than [`Exit::Idle`], and records the exit if the pCPU is traced.
    #[inline(always)]
    pub(crate) fn handle(&mut self, slot: Slot, vcpu: VcpuId, exit: &Exit) {
        if self.local.tracer.is_on() {
            self.handle_traced(slot, vcpu, exit);
        } else {
            self.handle_other(slot, vcpu, exit);
        }
    }

    /// Handles an [`Exit::Idle`], and leaves the choice of another vCPU to the next decision.
    #[inline(always)]
    pub(crate) fn handle_idle(&mut self, slot: Slot, vcpu: VcpuId, until: Ticks) {
        if self.local.tracer.is_on() {
            self.handle_traced(slot, vcpu, &Exit::Idle { until });
        } else {
            self.idle(slot, until);
            self.local.reschedule = true;
        }
    }

    /// Handles an exit, and records it.
    #[inline(never)]
    pub(crate) fn handle_traced(&mut self, slot: Slot, vcpu: VcpuId, exit: &Exit) {
        self.trace_exit(Some(vcpu), exit);
        if let Exit::Idle { until } = exit {
            self.idle(slot, *until);
            self.local.reschedule = true;
        } else {
            self.handle_other(slot, vcpu, exit);
        }
        self.trace_block(slot, vcpu);
    }

    /// Handles an exit other than [`Exit::Idle`]. All calls are in tail position, so each frequent one has a
    /// frame of its own size.
    #[inline(never)]
    pub(crate) fn handle_other(&mut self, slot: Slot, vcpu: VcpuId, exit: &Exit) {
        match *exit {
            Exit::Hypercall(ref call) => self.call(slot, vcpu, call),
            Exit::CpuOn {
                target,
                entry,
                argument,
            } if SEVERAL_VCPUS => self.cpu_on(vcpu, target, entry, argument),
            _ => self.handle_rest(slot, vcpu, exit),
        }
    }

    #[inline(never)]
    fn handle_rest(&mut self, slot: Slot, vcpu: VcpuId, exit: &Exit) {
        match *exit {
            Exit::Access(ref access) => self.handle_accesses(slot, vcpu, access),
            Exit::Register(ref access) if A::SHORTENS => self.touch_uart(vcpu, access),
            Exit::Fault(ref report) => self.faults().fault(slot, vcpu, report),
            Exit::CpuPower { .. } | Exit::CpuOff if SEVERAL_VCPUS => match *exit {
                Exit::CpuPower { target } => self.cpu_power(vcpu, target),
                _ => self.cpu_off(slot, vcpu),
            },
            Exit::Reset(kind) => {
                self.end_own(slot, own_wish(kind));
                // The stop that follows is long. A guest can ask for one without end.
                self.look();
            }
            Exit::Host(ref call) if self.semihosting().is_there() => {
                self.semihosting().host_call(slot, vcpu, call)
            }
            Exit::Failed { code } => self.faults().backend_failed(slot, vcpu, code),
            // Interrupts: the vCPU has done nothing.
            _ => self.handle_common(exit),
        }
    }

    /// Handles an access, and the second one of its instruction.
    fn handle_accesses(&mut self, slot: Slot, vcpu: VcpuId, access: &Access) {
        if self.handle_access(slot, vcpu, access) {
            self.handle_second(slot, vcpu, access);
        }
    }

    /// Handles the second access of an instruction whose first one was answered.
    pub(crate) fn handle_second(&mut self, slot: Slot, vcpu: VcpuId, first: &Access) {
        if let Some(second) = self.machine.second_access(vcpu, first) {
            self.handle_access(slot, vcpu, &second);
        }
    }

    /// Handles one access of an instruction. Returns whether it was answered.
    #[inline(never)]
    fn handle_access(&mut self, slot: Slot, vcpu: VcpuId, access: &Access) -> bool {
        if self.access(vcpu, access) {
            return true;
        }
        each_part!(self, part => if let Some(is_answered) = part.answer(slot, vcpu, access) {
            return is_answered;
        });
        self.faults().no_such_address(slot, vcpu, access);
        false
    }

    /// Handles an exit that has nothing to do with the vCPU that happened to run.
    #[inline(never)]
    pub(crate) fn handle_common(&mut self, exit: &Exit) {
        match *exit {
            Exit::Interrupt(line) => {
                let mut rest = Rest::Others;
                if self.drivers.receive_line() == Some(line) {
                    self.take_input();
                } else {
                    each_part!(self, part => if rest == Rest::Others { rest = part.take_interrupt(line) });
                }
                if rest != Rest::Masked {
                    self.machine.complete(line);
                }
            }
            Exit::Deadline => self.time_has_come(),
            Exit::Signal => self.local.reschedule = true,
            Exit::Wake(vcpus) => self.wake_all(vcpus),
            Exit::Device(vcpus, line) => {
                self.wake_all(vcpus);
                if self.system.is_critical(line) {
                    self.urge_all(vcpus);
                }
            }
            // The other exits cannot come from `wait` and `poll`.
            _ => {}
        }
    }

    /// Handles an [`Exit::Deadline`].
    #[inline(always)]
    pub(crate) fn time_has_come(&mut self) {
        if MAX_PCPUS > 1 {
            let now = self.machine.now();
            self.local.note_delay(now);
        }
        // The clock has fired: the next decision arms it anew, even for the same time.
        self.local.armed = Ticks(0);
        self.local.reschedule = true;
    }

    /// Marks a vCPU as idle. The caller sees to the decision that has to follow. An interrupt that comes now
    /// finds the vCPU idle, on this pCPU or through the mailbox.
    #[inline(always)]
    pub(crate) fn idle(&mut self, slot: Slot, until: Ticks) {
        self.local.idle(slot, until);
    }

    fn cpu_power(&mut self, vcpu: VcpuId, target: u8) {
        let partition = self.system.binding(vcpu).partition;
        let power = self
            .shared
            .partition(partition)
            .control(|control| control.power(target));
        self.machine.reply(vcpu, Reply::CpuPower(power));
    }

    #[inline(never)]
    fn cpu_on(&mut self, vcpu: VcpuId, target: u8, entry: GuestPhys, argument: u64) {
        let own = self.system.binding(vcpu);
        let result = self
            .shared
            .partition(own.partition)
            .with_control(|control| control.switch_on(target, entry, argument));
        if result != CpuOnResult::Started {
            self.machine.reply(vcpu, Reply::CpuOn(result));
        } else {
            // A constant answer costs less.
            self.machine.reply(vcpu, Reply::CpuOn(CpuOnResult::Started));
            // The vCPUs of a partition have consecutive numbers.
            let target = vcpu.0.wrapping_sub(own.index).wrapping_add(target);
            let binding = self.system.binding(VcpuId(target));
            let wanted = self.shared.mailboxes.of(binding.pcpu).post_start(binding.slot);
            self.notify(binding.pcpu, wanted);
        }
    }

    /// Wakes vCPUs, on whichever pCPUs they are.
    pub(crate) fn wake_all(&mut self, vcpus: VcpuSet) {
        for vcpu in vcpus.iter() {
            let binding = self.system.binding(vcpu);
            if self.is_here(binding.pcpu) {
                self.look_at(binding.slot);
            } else if self.shared.mailboxes.of(binding.pcpu).post_wake(binding.slot) {
                self.machine.signal(binding.pcpu);
            }
        }
    }

    /// Tells the policies of a critical interrupt for vCPUs, on whichever pCPUs they are.
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

    /// Looks at a slot that may have something to do.
    pub(crate) fn look_at(&mut self, slot: Slot) {
        let state = self.local.slot(slot);
        let vcpu = state.vcpu;
        match state.activity {
            Activity::Idle(_) => {
                let now = self.machine.now();
                self.local.make_ready(slot, now);
            }
            // A vCPU can be woken without end. The budget of this vCPU pays for each wake.
            Activity::Blocked(pause) if pause.wait.takes_turn() => {
                if pause.wait.outcome(self, vcpu).is_some() {
                    let now = self.machine.now();
                    self.local.make_looking(slot, pause, now);
                }
            }
            Activity::Blocked(pause) => {
                if !self.end_pause(slot, vcpu, pause) {
                    // A vCPU that lends its place does not run in it.
                    if self.local.loans.is_lending(slot) {
                        pause.wait.lend(self, slot);
                    } else if SEVERAL_VCPUS {
                        let now = self.machine.now();
                        self.local.make_looking(slot, pause, now);
                    }
                }
            }
            Activity::Ready => self.vcpu_goes_on(slot),
            Activity::Off
            | Activity::Loading(_)
            | Activity::Revoking(..)
            | Activity::Calling
            | Activity::Looking(_)
            | Activity::Ending => {}
        }
    }

    /// Ends a blocking hypercall if there is a reason to. Returns whether there was one.
    fn end_pause(&mut self, slot: Slot, vcpu: VcpuId, pause: Pause) -> bool {
        if let Some(outcome) = pause.wait.outcome(self, vcpu) {
            self.end_wait(slot, pause.wait, outcome);
            return true;
        }
        let interrupted = self.machine.has_work(vcpu);
        if interrupted {
            self.give_up(slot, pause.wait, Error::Interrupted);
        }
        interrupted
    }

    /// Looks for the reason why a vCPU was woken, in the time of that vCPU. Blocks the vCPU as before if
    /// there is none.
    #[inline(never)]
    pub(crate) fn look_in_turn(&mut self, slot: Slot, vcpu: VcpuId, pause: Pause) {
        let is_ended = if pause.wait.takes_turn() {
            pause.wait.take_turn(self, slot, pause.until)
        } else {
            self.end_pause(slot, vcpu, pause)
        };
        if !is_ended {
            self.local.block(slot, Activity::Blocked(pause));
            pause.wait.lend(self, slot);
        }
    }

    /// Handles the end of the slot's own timer.
    pub(crate) fn timer_due(&mut self, slot: Slot, now: Ticks) {
        match self.local.slot(slot).activity {
            Activity::Idle(_) => self.local.make_ready(slot, now),
            Activity::Blocked(pause) if pause.wait.takes_turn() => self.local.make_looking(slot, pause, now),
            Activity::Blocked(pause) => self.give_up(slot, pause.wait, pause.late_error(now)),
            Activity::Ready => self.vcpu_goes_on(slot),
            Activity::Off
            | Activity::Loading(_)
            | Activity::Revoking(..)
            | Activity::Calling
            | Activity::Looking(_)
            | Activity::Ending => {}
        }
    }

    /// Ends a blocking hypercall with `error`, unless the wait has an outcome by now.
    #[inline(never)]
    fn give_up(&mut self, slot: Slot, wait: Wait, error: Error) {
        let vcpu = self.local.slot(slot).vcpu;
        let outcome = wait.give_up(self, vcpu, error);
        self.end_wait(slot, wait, outcome);
    }

    /// Ends a blocking hypercall with the outcome of its wait.
    fn end_wait(&mut self, slot: Slot, wait: Wait, outcome: Outcome) {
        self.release(slot, outcome);
        wait.ended(self, outcome);
    }

    /// Ends a blocking hypercall.
    pub(crate) fn release(&mut self, slot: Slot, result: Result<[u64; 4], Error>) {
        let vcpu = self.local.slot(slot).vcpu;
        self.end_loan(slot);
        self.machine.reply(vcpu, Reply::Hypercall(result));
        if self.local.slot(slot).activity.is_ready() {
            // The vCPU has looked in its own time, and goes on.
            self.local.slot_mut(slot).activity = Activity::Ready;
        } else {
            let now = self.machine.now();
            self.local.make_ready(slot, now);
        }
        self.vcpu_goes_on(slot);
    }
}

/// Returns the request of a partition about itself. A restart keeps the payloads that the partition has.
const fn own_wish(kind: ResetKind) -> Request {
    let mode = match kind {
        ResetKind::Off => return Request::Off,
        ResetKind::Cold => StartMode::Cold,
        ResetKind::Warm => StartMode::Warm,
    };
    Request::Restart(Launch::again(mode, StartCause::Own))
}
