// SPDX-License-Identifier: Apache-2.0
//! Carries out hypercalls that [`crate::hypercall`] has checked.

use super::Pcpu;
use crate::cap::Named;
use crate::channel::command::ChannelCommand;
use crate::command::{Command, CoreCommand, WaitCommand};
use crate::event::EventWait;
use crate::hypercall::{READ_LEN, decode, is_malformed, read_results};
use crate::lent::command::LentCommand;
use crate::local::Activity;
use crate::lock::command::LockCommand;
use crate::partition::{Launch, Request};
use crate::parts::{CHANNELS, LENT, LOCKS, PORTS, PartOf, SECRETS, SERVICES, UPCALLS, each_part, of};
use crate::port::command::PortCommand;
use crate::secret::command::SecretCommand;
use crate::service::command::Service;
use crate::upcall::command::UpcallWish;
use bulkhead_abi::hypercall::ABI_VERSION;
use bulkhead_abi::status::StartOptions;
use bulkhead_abi::{Error, HealthClass, StartCause};
use bulkhead_arch_api::{Arch, Drivers, GuestPhys, Hypercall, PartitionId, Reply, Ticks, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

/// No index: nothing is left to revoke but holds. By now the slot may have another capability.
const REVOKED: u64 = u64::MAX;

type Answer = Result<[u64; 4], Error>;

const fn one(result: u64) -> Answer {
    Ok([result, 0, 0, 0])
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Checks a hypercall, carries it out, and answers it unless it blocks.
    #[inline(never)]
    pub(crate) fn call(&mut self, slot: Slot, vcpu: VcpuId, call: &Hypercall) {
        let caller = self.system.binding(vcpu).partition;
        // The slot that the call names, if the call names an object: the check has found the slot.
        let [first, ..] = call.arguments;
        let named = first as u8;
        let answer = match decode(call, caller, &self.shared.capabilities) {
            Ok(command) => self.carry_out(slot, vcpu, caller, named, &command),
            Err(error) => Some(Err(error)),
        };
        let Some(result) = answer else { return };
        self.machine.reply(vcpu, Reply::Hypercall(result));
        if let Err(error) = result
            && is_malformed(error)
        {
            self.faults().malformed_call(slot, vcpu, call, error);
        }
    }

    /// Carries out a command. Returns the answer, or `None` if the vCPU gets it later or goes on elsewhere.
    #[inline(always)]
    fn carry_out(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        caller: PartitionId,
        named: u8,
        command: &Command,
    ) -> Option<Answer> {
        match *command {
            Command::Core(CoreCommand::Null) => Some(Ok([0; 4])),
            Command::Core(ref command) => Some(self.carry_out_core(caller, command)),
            Command::Wait(ref command) => self.wait_or_work(slot, vcpu, caller, named, command),
            Command::Upcall(gate, wish) => {
                let at = Named {
                    it: gate,
                    index: named,
                };
                self.upcalls()
                    .want_upcall(slot, vcpu, at, &of::<UPCALLS, UpcallWish>(wish))
            }
            Command::Port(command) => {
                self.ports()
                    .call_at_port(slot, vcpu, named, &of::<PORTS, PortCommand>(command))
            }
            Command::Lock(lock, command) => {
                let at = Named {
                    it: lock,
                    index: named,
                };
                self.locks()
                    .call_at_lock(slot, vcpu, at, of::<LOCKS, LockCommand>(command))
            }
            Command::Channel(channel, command) => {
                let command = of::<CHANNELS, ChannelCommand>(command);
                Some(self.channels().call_at_channel(caller, channel, command))
            }
            Command::Lent(device, command) => Some(match of::<LENT, LentCommand>(command) {
                LentCommand::Hold(index) => self.lent().change_hold(caller, device, index),
                LentCommand::Line(index, step) => self.lent().change_line(caller, device, index, step),
            }),
            Command::Serve(server, step) => Some(self.services().serve(
                caller,
                server,
                &of::<SERVICES, Service>(step),
            )),
            Command::Secret(object, command) => {
                Some(self.secret(caller, object, of::<SECRETS, SecretCommand>(command)))
            }
        }
    }

    /// Carries out a command of the core that may block the vCPU, or take several steps.
    #[inline(always)]
    fn wait_or_work(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        caller: PartitionId,
        named: u8,
        command: &WaitCommand,
    ) -> Option<Answer> {
        match *command {
            WaitCommand::Events(gate, until) => {
                let wait = EventWait { gate, index: named };
                self.wait_for_events(slot, vcpu, wait, until)
            }
            WaitCommand::Sleep(until) => self.sleep(slot, vcpu, named, until),
            WaitCommand::Revoke(index, own) => {
                if own {
                    each_part!(self, part => if let Some(answer) = part.gives_up_reply(caller, index) {
                        return Some(answer);
                    });
                }
                match self.revoke_part(caller, index, own) {
                    Ok(None) => Some(Ok([0; 4])),
                    Ok(Some((index, own))) => {
                        self.local.slot_mut(slot).activity = Activity::Revoking(index, own);
                        None
                    }
                    Err(error) => Some(Err(error)),
                }
            }
        }
    }

    /// Does one part of a revocation. Returns the next part, `None` if nothing is left: then nothing is held,
    /// and nothing is waited for, by a capability that was taken away.
    fn revoke_part(
        &mut self,
        caller: PartitionId,
        index: u64,
        own: bool,
    ) -> Result<Option<(u64, bool)>, Error> {
        if index != REVOKED {
            let (done, lost) = self.shared.capabilities.revoke(caller, index, own)?;
            self.review(lost);
            if !done {
                return Ok(Some((index, own)));
            }
        }
        let is_right = !self.ends_one_hold(None) && self.are_waits_right();
        Ok((!is_right).then_some((REVOKED, false)))
    }

    /// Does the next part of a revocation, then looks at interrupts that came meanwhile. The capability
    /// itself may be gone by now, with everything that was derived from it.
    pub(crate) fn revoke_chunk(&mut self, slot: Slot, vcpu: VcpuId, index: u64, own: bool) {
        let caller = self.system.binding(vcpu).partition;
        match self.revoke_part(caller, index, own) {
            Ok(None) => {
                self.machine.reply(vcpu, Reply::Hypercall(Ok([0; 4])));
                self.local.slot_mut(slot).activity = Activity::Ready;
                self.vcpu_goes_on(slot);
            }
            Ok(Some((index, own))) => {
                self.local.slot_mut(slot).activity = Activity::Revoking(index, own);
            }
            Err(_) => self.local.slot_mut(slot).activity = Activity::Revoking(REVOKED, false),
        }
        self.look();
    }

    /// Ends one thing that a partition has only while it holds a capability ([`PartOf::ends_one_hold`]).
    pub(crate) fn ends_one_hold(&mut self, loaded: Option<PartitionId>) -> bool {
        each_part!(self, part => if part.ends_one_hold(loaded) {
            return true;
        });
        false
    }

    /// Tells whether a stretch of memory may be taken away later ([`PartOf::may_take`]).
    #[inline(always)]
    pub(crate) fn may_take(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> bool {
        each_part!(self, part => if part.may_take(partition, guest, length) {
            return true;
        });
        false
    }

    /// Sees to a slot whose vCPU goes on ([`PartOf::vcpu_goes_on`]).
    #[inline]
    pub(crate) fn vcpu_goes_on(&mut self, slot: Slot) {
        each_part!(self, part => part.vcpu_goes_on(slot));
    }

    #[inline(never)]
    fn carry_out_core(&mut self, caller: PartitionId, command: &CoreCommand) -> Answer {
        match *command {
            CoreCommand::Null => Ok([0; 4]),
            CoreCommand::Version => one(u64::from(ABI_VERSION)),
            CoreCommand::Status(partition) => Ok(self.shared.partition(partition).words()),
            CoreCommand::Start(partition, options) => self.launch(caller, partition, options, Request::Start),
            CoreCommand::Stop(partition) => {
                let request = if partition == caller {
                    Request::Off
                } else {
                    Request::Stop
                };
                self.request(partition, request).map(|()| [0; 4])
            }
            CoreCommand::Restart(partition, options) => {
                self.launch(caller, partition, options, Request::Restart)
            }
            CoreCommand::Kick(partition) => {
                let now = self.machine.now();
                self.shared.partition(partition).kick(now);
                Ok([0; 4])
            }
            CoreCommand::Poll(gate) => {
                let events = self.shared.partition(gate).gate.take();
                self.events_taken(gate);
                one(events)
            }
            CoreCommand::Signal(gate, events) => {
                self.raise(gate, events);
                Ok([0; 4])
            }
            CoreCommand::Now => one(self.system.time.nanoseconds(self.machine.now())),
            CoreCommand::Write(console, length, ref bytes) => {
                let taken = self.write_console(console, bytes.get(..length).unwrap_or(&[]));
                one(taken as u64)
            }
            CoreCommand::Read(console) => {
                let mut bytes = [0; READ_LEN];
                let mut reader = self.shared.partition(console).reader.lock();
                let length = reader.input().map_or(0, |input| input.take(&mut bytes));
                Ok(read_results(length, &bytes))
            }
            CoreCommand::Derive(index, rights) => self
                .shared
                .capabilities
                .derive(caller, index, caller, rights)
                .and_then(|index| one(u64::from(index))),
            CoreCommand::Grant(receiver, index, rights) => self
                .shared
                .capabilities
                .derive(caller, index, receiver, rights)
                .and_then(|index| one(u64::from(index))),
            CoreCommand::Find(ref name) => self.find(caller, name),
            CoreCommand::ScheduleStatus(pcpu) => Ok(self.schedule_status(pcpu)),
            CoreCommand::ScheduleChange(pcpu, schedule) => {
                self.wish_schedule(pcpu, schedule).map(|()| [0; 4])
            }
            CoreCommand::Inspect(capability) => {
                one((capability.kind as u64).rotate_left(32) | u64::from(capability.rights.0))
            }
        }
    }

    /// Starts or restarts a partition for the holder of a capability. Such a start from outside shows that
    /// the holder knows of the failures so far. So the count for the restart limit begins anew.
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
                cause: match (own, options.is_health) {
                    (true, false) => StartCause::Own,
                    (true, true) => StartCause::Health(HealthClass::Task),
                    (false, _) => StartCause::Supervisor,
                },
            }),
        )?;
        if !own {
            self.shared.partition(partition).health.forgive();
        }
        Ok([0; 4])
    }

    /// Returns the time of the next timer interrupt of a vCPU that is about to block in a call. Returns
    /// `None` if an interrupt is pending already. An interrupt that comes later finds the vCPU blocked, as it
    /// finds an idle vCPU.
    pub(crate) fn interruption(&mut self, vcpu: VcpuId) -> Option<Ticks> {
        let own = self.machine.pause(vcpu);
        (own > self.machine.now()).then_some(own)
    }
}
