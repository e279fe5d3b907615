// SPDX-License-Identifier: Apache-2.0
//! Health events: the way from a fault to the action that the manifest demands.
//!
//! | class | `log` | `inject` | `stop`, `restart`, `restart-warm` |
//! |---|---|---|---|
//! | memory | a load reads 0, a store is ignored; see below | external abort | the partition ends |
//! | system | a register reads 0, a write is ignored; see below | undefined instruction | the partition ends |
//! | hypercall | the error is the answer | - | the partition ends |
//! | watchdog | a new period begins | - | the partition ends |
//! | task | - | - | the partition ends |
//!
//! *Below*: the backend cannot complete some operations on the vCPU's behalf (an instruction fetch, a load of
//! several registers, an unknown instruction). Such an operation is reflected even if the action is `log`: to
//! go on as if the operation had happened would be worse than to report it. Where there is a `-`, the action
//! is `stop`. The host tool refuses a manifest that demands another action there.

use super::Pcpu;
use crate::health::Verdict;
use crate::partition::{Launch, Request};
use bulkhead_abi::log::entry::{Failure, HAS_ADDRESS, HAS_VIRTUAL, LIMIT_REACHED};
use bulkhead_abi::log::text::EVENT;
use bulkhead_abi::log::{Entry, Kind};
use bulkhead_abi::trace::Event;
use bulkhead_abi::{Error, HealthClass, PartitionState, StartCause, StartMode};
use bulkhead_arch_api::{
    Access, AccessKind, Arch, Drivers, FaultReport, GuestPhys, Hypercall, PartitionId, Reply, Ticks, VcpuId,
};
use bulkhead_image::layout::HealthAction;
use bulkhead_sched::{PcpuPolicy, Slot};

/// The flags that say which facts of a fault are known.
const FLAGS: [u8; 4] = [HAS_ADDRESS, HAS_VIRTUAL, 0, 0];

/// The health events, on a pCPU.
pub(crate) struct Faults<'p, 's, 'i, A: Arch, D, P> {
    pub(super) pcpu: &'p mut Pcpu<'s, 'i, A, D, P>,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the health events with their pCPU.
    #[inline(always)]
    pub(crate) const fn faults(&mut self) -> Faults<'_, 's, 'i, A, D, P> {
        Faults { pcpu: self }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Faults<'_, '_, '_, A, D, P> {
    /// Handles an operation of the vCPU that cannot be completed.
    #[inline(never)]
    pub(crate) fn fault(&mut self, slot: Slot, vcpu: VcpuId, report: &FaultReport) {
        let verdict = self.judge(vcpu, report);
        let action = verdict.action;
        match action {
            HealthAction::Log => {
                if !self.pcpu.machine.skip(vcpu) {
                    self.reflect(slot, vcpu, report, verdict);
                }
            }
            HealthAction::Inject => self.reflect(slot, vcpu, report, verdict),
            HealthAction::Stop => self.pcpu.end_own(slot, Request::Fail),
            HealthAction::Restart | HealthAction::RestartWarm => self.restart_own(slot, action, report.class),
        }
        self.look_behind_line();
    }

    /// Handles an access to an address where nothing is.
    #[inline(never)]
    pub(crate) fn no_such_address(&mut self, slot: Slot, vcpu: VcpuId, access: &Access) {
        let verdict = self.judge(vcpu, &access.report);
        let action = verdict.action;
        match action {
            HealthAction::Log => {
                let reply = match access.kind {
                    AccessKind::Read => Reply::Read(0),
                    AccessKind::Write(_) => Reply::Written,
                };
                self.pcpu.machine.reply(vcpu, reply);
            }
            HealthAction::Inject => self.reflect(slot, vcpu, &access.report, verdict),
            HealthAction::Stop => self.pcpu.end_own(slot, Request::Fail),
            HealthAction::Restart | HealthAction::RestartWarm => {
                self.restart_own(slot, action, access.report.class)
            }
        }
        self.look_behind_line();
    }

    /// Handles a hypercall that was refused for a reason that is the caller's fault. The hypercall has been
    /// answered.
    #[inline(never)]
    pub(crate) fn malformed_call(&mut self, slot: Slot, vcpu: VcpuId, call: &Hypercall, error: Error) {
        let partition = self.pcpu.system.binding(vcpu).partition;
        let verdict = self.decide_action(partition, HealthClass::Hypercall);
        if verdict.logged {
            self.tell_malformed(vcpu, call, error, verdict);
        }
        match verdict.action {
            HealthAction::Log => {}
            HealthAction::Inject | HealthAction::Stop => self.pcpu.end_own(slot, Request::Fail),
            HealthAction::Restart | HealthAction::RestartWarm => {
                self.restart_own(slot, verdict.action, HealthClass::Hypercall);
            }
        }
        self.look_behind_line();
    }

    /// Ends an exit. If the exit has written a line, interrupts are looked at before the decision: the
    /// decision does not wait for the line as well.
    fn look_behind_line(&mut self) {
        if self.pcpu.local.output.has_line {
            self.pcpu.look();
        }
    }

    #[inline(never)]
    fn tell_malformed(&mut self, vcpu: VcpuId, call: &Hypercall, error: Error, verdict: Verdict) {
        let [x1, ..] = call.arguments;
        let mut entry = self.pcpu.entry(Kind::Refused, vcpu);
        entry.facts = [call.operation.into(), x1, error as i64 as u64, 0, 0, 0];
        self.log_event(&mut entry, HealthClass::Hypercall, verdict, None);
    }

    /// Handles the deadline of a watchdog. A kick on another pCPU only writes down its time, so the period
    /// may have begun anew meanwhile. Returns whether the watchdog has ended.
    pub(crate) fn watchdog_due(&mut self, slot: Slot, now: Ticks) -> bool {
        let vcpu = self.pcpu.local.slot(slot).vcpu;
        let partition = self.pcpu.system.binding(vcpu).partition;
        let shared = self.pcpu.shared.partition(partition);
        if shared.state() != PartitionState::Running {
            self.pcpu.local.set_watchdog(slot, Ticks::NEVER);
            return false;
        }
        let period = self.pcpu.system.facts_of(partition).watchdog;
        let due = shared.kicked().plus(period);
        if due > now {
            self.pcpu.local.set_watchdog(slot, due);
            return false;
        }
        shared.kick(now);
        self.pcpu.local.set_watchdog(slot, now.plus(period));
        let verdict = self.decide_action(partition, HealthClass::Watchdog);
        if verdict.logged {
            self.tell_watchdog(vcpu, period, verdict);
        }
        let request = match verdict.action {
            HealthAction::Log => return true,
            HealthAction::Inject | HealthAction::Stop => Request::Fail,
            HealthAction::Restart | HealthAction::RestartWarm => {
                health_restart(verdict.action, HealthClass::Watchdog)
            }
        };
        // Another pCPU may be ending the partition at this very moment. Then that end stands.
        let _already_ending = self.pcpu.request(partition, request);
        true
    }

    /// Handles a server that has not answered a client in time: that is what its watchdog is about, too.
    #[inline(never)]
    pub(crate) fn service_late(&mut self, server: PartitionId, client: PartitionId) {
        let verdict = self.decide_action(server, HealthClass::Watchdog);
        if verdict.logged {
            let first = self.pcpu.system.facts_of(server).first;
            let mut entry = self.pcpu.entry(Kind::Unanswered, first);
            entry.facts = [client.0.into(), 0, 0, 0, 0, 0];
            self.log_event(&mut entry, HealthClass::Watchdog, verdict, None);
        }
        let request = match verdict.action {
            HealthAction::Log => return,
            HealthAction::Inject | HealthAction::Stop => Request::Fail,
            HealthAction::Restart | HealthAction::RestartWarm => {
                health_restart(verdict.action, HealthClass::Watchdog)
            }
        };
        // The server may have stopped: then it stays as it is.
        let _not_running = self.pcpu.request(server, request);
    }

    #[inline(never)]
    fn tell_watchdog(&mut self, vcpu: VcpuId, period: Ticks, verdict: Verdict) {
        let period = self
            .pcpu
            .system
            .time
            .nanoseconds(self.pcpu.system.time.boot().plus(period));
        let mut entry = self.pcpu.entry(Kind::Watchdog, vcpu);
        entry.facts = [period, 0, 0, 0, 0, 0];
        self.log_event(&mut entry, HealthClass::Watchdog, verdict, None);
    }

    /// Handles a vCPU that the backend gives up. The partition of the vCPU cannot go on. The others can.
    #[inline(never)]
    pub(crate) fn backend_failed(&mut self, slot: Slot, vcpu: VcpuId, code: u64) {
        self.fail(slot, vcpu, Failure::Backend, code);
    }

    /// Ends the vCPU's partition, which has failed. The number `code` belongs to the reason.
    #[inline(never)]
    pub(crate) fn fail(&mut self, slot: Slot, vcpu: VcpuId, reason: Failure, code: u64) {
        let mut entry = self.pcpu.entry(Kind::Failed, vcpu);
        entry.detail = reason as u8;
        entry.facts = [code, 0, 0, 0, 0, 0];
        self.pcpu.log(&entry);
        self.pcpu.end_own(slot, Request::Fail);
    }

    fn restart_own(&mut self, slot: Slot, action: HealthAction, class: HealthClass) {
        self.pcpu.end_own(slot, health_restart(action, class));
    }

    /// Lets the fault arrive in the partition. Stops a partition that has no way to take the fault.
    fn reflect(&mut self, slot: Slot, vcpu: VcpuId, report: &FaultReport, verdict: Verdict) {
        if !self.pcpu.machine.fault(vcpu, report) {
            // The report of an end is never left out.
            if !verdict.logged {
                self.tell_fault(vcpu, report, verdict);
            }
            self.pcpu.end_own(slot, Request::Fail);
        }
    }

    /// Counts a fault, decides the action, and reports both.
    fn judge(&mut self, vcpu: VcpuId, report: &FaultReport) -> Verdict {
        let partition = self.pcpu.system.binding(vcpu).partition;
        let verdict = self.decide_action(partition, report.class);
        if verdict.logged {
            self.tell_fault(vcpu, report, verdict);
        }
        verdict
    }

    #[inline(never)]
    fn tell_fault(&mut self, vcpu: VcpuId, report: &FaultReport, verdict: Verdict) {
        let mut entry = self.pcpu.entry(Kind::Fault, vcpu);
        let address = report.address.map(|GuestPhys(address)| address);
        let facts = [
            address,
            report.virtual_address,
            Some(report.pc),
            Some(report.syndrome),
        ];
        for ((place, fact), flag) in entry.facts.iter_mut().zip(facts).zip(FLAGS) {
            *place = fact.unwrap_or(0);
            entry.flags |= if fact.is_some() { flag } else { 0 };
        }
        // The address of an event of class `system` is the number of a register.
        let address = report.address.filter(|_| report.class != HealthClass::System);
        self.log_event(&mut entry, report.class, verdict, address);
        self.pcpu.log_registers(vcpu);
    }

    fn decide_action(&self, partition: PartitionId, class: HealthClass) -> Verdict {
        let facts = self.pcpu.system.facts_of(partition);
        self.pcpu.shared.recorder.event(partition, class);
        self.pcpu.trace(Event::Health {
            partition: partition.0,
            class,
        });
        self.pcpu
            .shared
            .partition(partition)
            .health
            .event(class, facts.action(class), facts.restart_limit)
    }

    /// Logs an event with the verdict on it. An address says which line of the manifest to look at.
    fn log_event(
        &mut self,
        entry: &mut Entry,
        class: HealthClass,
        verdict: Verdict,
        address: Option<GuestPhys>,
    ) {
        entry.detail = class as u8;
        entry.line = self.manifest_line(PartitionId(entry.partition), address);
        if verdict.limit_reached {
            entry.flags |= LIMIT_REACHED;
        }
        if let Some(place) = entry.facts.get_mut(usize::from(EVENT)) {
            *place = u64::from(verdict.number) | (verdict.action as u64) << 32;
        }
        self.pcpu.log(entry);
    }

    /// Returns the line of the manifest that a user should look at. If the address is in a mapping, a
    /// permission is missing, and the mapping's line is returned. Else the mapping is missing, and the
    /// partition's line is returned.
    fn manifest_line(&self, partition: PartitionId, address: Option<GuestPhys>) -> u32 {
        let image = &self.pcpu.system.image;
        let of_mapping = address.and_then(|GuestPhys(address)| {
            image
                .memory_of(u32::from(partition.0))
                .find(|record| {
                    address
                        .checked_sub(record.guest.get())
                        .is_some_and(|offset| offset < record.size.get())
                })
                .map(|record| record.manifest_line.get())
                .filter(|line| *line != 0)
        });
        let of_partition = || {
            image
                .partitions()
                .get(usize::from(partition.0))
                .map(|record| record.manifest_line.get())
        };
        of_mapping.or_else(of_partition).unwrap_or(0)
    }
}

/// Returns the restart that a health action demands, with the payloads that the partition has.
const fn health_restart(action: HealthAction, class: HealthClass) -> Request {
    let mode = match action {
        HealthAction::RestartWarm => StartMode::Warm,
        _ => StartMode::Cold,
    };
    Request::Restart(Launch::again(mode, StartCause::Health(class)))
}
