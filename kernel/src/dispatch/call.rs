// SPDX-License-Identifier: Apache-2.0
//! Carrying hypercalls out, once [`crate::hypercall`] has checked them.

use super::Pcpu;
use crate::hypercall::{Command, READ_LEN, decode, is_malformed, read_results};
use crate::local::Activity;
use crate::partition::{Launch, Request};
use bulkhead_abi::hypercall::ABI_VERSION;
use bulkhead_abi::status::StartOptions;
use bulkhead_abi::{Error, StartCause};
use bulkhead_arch_api::{Arch, Hypercall, PartitionId, Reply, Ticks, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

type Answer = Result<[u64; 4], Error>;

const fn one(result: u64) -> Answer {
    Ok([result, 0, 0, 0])
}

impl<A: Arch, P: PcpuPolicy> Pcpu<'_, '_, A, P> {
    /// A hypercall: checked, carried out, answered unless it blocks.
    #[inline]
    pub(super) fn call(&mut self, slot: Slot, vcpu: VcpuId, call: &Hypercall) {
        let caller = self.system.binding(vcpu).partition;
        let result = match decode(call, caller, &self.shared.capabilities) {
            Ok(Command::Null) => Ok([0; 4]),
            Ok(Command::Wait(gate, until)) => return self.wait_for_events(slot, vcpu, gate, until),
            Ok(Command::Sleep(until)) => return self.sleep(slot, vcpu, until),
            Ok(command) => self.carry_out(caller, command),
            Err(error) => Err(error),
        };
        self.machine.reply(vcpu, Reply::Hypercall(result));
        if let Err(error) = result
            && is_malformed(error)
        {
            self.malformed_call(slot, vcpu, call, error);
        }
    }

    #[inline(never)]
    fn carry_out(&mut self, caller: PartitionId, command: Command) -> Answer {
        match command {
            Command::Null | Command::Wait(..) | Command::Sleep(_) => Ok([0; 4]),
            Command::Version => one(u64::from(ABI_VERSION)),
            Command::Status(partition) => {
                let shared = self.shared.partition(partition);
                let start = shared.control(|control| control.start());
                Ok([shared.status().encode(), start.encode(), 0, 0])
            }
            Command::Start(partition, options) => self.launch(caller, partition, options, Request::Start),
            Command::Stop(partition) => {
                let request = if partition == caller {
                    Request::Off
                } else {
                    Request::Stop
                };
                self.request(partition, request).map(|()| [0; 4])
            }
            Command::Restart(partition, options) => self.launch(caller, partition, options, Request::Restart),
            Command::Kick(partition) => {
                let now = self.machine.now();
                self.shared.partition(partition).kick(now);
                Ok([0; 4])
            }
            Command::Poll(gate) => {
                let events = self.shared.partition(gate).gate.take();
                self.events_taken(gate);
                one(events)
            }
            Command::Signal(gate, events) => {
                self.raise(gate, events);
                Ok([0; 4])
            }
            Command::Now => one(self.system.time.nanoseconds(self.machine.now())),
            Command::Write(console, length, bytes) => {
                let taken = self.write_console(console, bytes.get(..length).unwrap_or(&[]));
                one(taken as u64)
            }
            Command::Read(console) => {
                let mut bytes = [0; READ_LEN];
                let mut reader = self.shared.partition(console).reader.lock();
                let length = reader.input().map_or(0, |input| input.take(&mut bytes));
                Ok(read_results(length, &bytes))
            }
            Command::Derive(index, rights) => self
                .shared
                .capabilities
                .derive(caller, index, caller, rights)
                .and_then(|index| one(u64::from(index))),
            Command::Grant(receiver, index, rights) => self
                .shared
                .capabilities
                .derive(caller, index, receiver, rights)
                .and_then(|index| one(u64::from(index))),
            Command::Revoke(index, own) => self
                .shared
                .capabilities
                .revoke(caller, index, own)
                .map(|()| [0; 4]),
            Command::ScheduleStatus(pcpu) => Ok(self.schedule_status(pcpu)),
            Command::ScheduleChange(pcpu, schedule) => self.wish_schedule(pcpu, schedule).map(|()| [0; 4]),
            Command::Inspect(capability) => {
                one((capability.kind as u64).rotate_left(32) | u64::from(capability.rights.0))
            }
        }
    }

    /// A capability holder starts or restarts a partition. Whoever does that from outside knows of the failures
    /// until now: the restart limit counts anew.
    fn launch(
        &mut self,
        caller: PartitionId,
        partition: PartitionId,
        options: StartOptions,
        request: fn(Launch) -> Request,
    ) -> Answer {
        let own = caller == partition;
        let known = self.system.facts_of(partition).alternatives;
        if options.alternative.is_some_and(|wanted| wanted > known) {
            return Err(Error::InvalidArgument);
        }
        self.request(
            partition,
            request(Launch {
                mode: options.mode,
                alternative: options.alternative,
                cause: if own {
                    StartCause::Own
                } else {
                    StartCause::Supervisor
                },
            }),
        )?;
        if !own {
            self.shared.partition(partition).health.forgive();
        }
        Ok([0; 4])
    }

    fn wait_for_events(&mut self, slot: Slot, vcpu: VcpuId, gate: PartitionId, until: Option<u64>) {
        let until = until.map_or(Ticks::NEVER, |nanoseconds| self.system.time.at(nanoseconds));
        let events = self.shared.partition(gate).gate.wait(vcpu);
        // Also if there are none: the level may have stayed behind, and would end this wait and the next.
        self.events_taken(gate);
        if events != 0 {
            self.machine.reply(vcpu, Reply::Hypercall(one(events)));
            return;
        }
        match self.interruption(vcpu) {
            Some(own) => self.local.block(slot, Activity::Waiting(gate, until, own)),
            None => {
                let events = self.shared.partition(gate).gate.give_up(vcpu);
                self.events_taken(gate);
                let answer = events.map_or(Err(Error::Interrupted), one);
                self.machine.reply(vcpu, Reply::Hypercall(answer));
            }
        }
    }

    /// When the timer of a vCPU that is about to block in a call will interrupt it; `None` if an interrupt is there
    /// already. One that comes later finds the vCPU blocked, as for one that is idle.
    fn interruption(&mut self, vcpu: VcpuId) -> Option<Ticks> {
        let own = self.machine.pause(vcpu);
        (own > self.machine.now() && !self.machine.has_work(vcpu)).then_some(own)
    }

    fn sleep(&mut self, slot: Slot, vcpu: VcpuId, until: u64) {
        let until = self.system.time.at(until);
        if until <= self.machine.now() {
            self.machine.reply(vcpu, Reply::Hypercall(Ok([0; 4])));
            return;
        }
        match self.interruption(vcpu) {
            Some(own) => self.local.block(slot, Activity::Sleeping(until, own)),
            None => self
                .machine
                .reply(vcpu, Reply::Hypercall(Err(Error::Interrupted))),
        }
    }
}
