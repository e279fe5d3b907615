// SPDX-License-Identifier: Apache-2.0
//! Carries out what holders of lines do, and delivers the interrupts of lines ([`crate::lent::line`]).

use crate::cap::Named;
use crate::channel::command::ChannelId;
use crate::dispatch::basis::{RECEIVES, Right};
use crate::lent::change_hold::Lending;
use crate::lent::command::LineStep;
use crate::lent::line::{Binding, Mark, Progress};
use crate::port::PortId;
use bulkhead_abi::atomic::AtomicU64;
use bulkhead_abi::hypercall::LINE_SENDER;
use bulkhead_abi::{Error, ObjectKind};
use bulkhead_arch_api::{Arch, Drivers, Line, PartitionId, VcpuId, VcpuSet};
use bulkhead_image::layout::{SIDE_EDGE, SideRecord};
use bulkhead_sched::PcpuPolicy;

/// Bytes of the message of a line.
const LENGTH: u16 = 8;
/// The results that a receiver of such a message finds besides the bytes.
pub(crate) const RESULTS: [u64; 4] = [LENGTH as u64, LINE_SENDER, 0, 0];

impl<A: Arch, D: Drivers, P: PcpuPolicy> Lending<'_, '_, '_, A, D, P> {
    /// Carries out a step of the holder of a line, by the capability at `index`.
    #[inline(never)]
    pub(crate) fn change_line(
        &mut self,
        caller: PartitionId,
        device: ChannelId,
        index: u8,
        step: LineStep,
    ) -> Result<[u64; 4], Error> {
        let mut woken = VcpuSet::EMPTY;
        let shared = self.pcpu.shared;
        let result = shared.lines.bindings.change(|table| {
            let entry = table.get_mut(usize::from(device.0)).ok_or(Error::NotSupported)?;
            if let LineStep::Bind(port, port_index) = step {
                let line = Named { it: device, index };
                let port = Named {
                    it: port,
                    index: port_index,
                };
                return self.bind(entry, caller, line, port);
            }
            let is_own = |binding: &&mut Binding| (binding.holder, binding.index) == (caller, index);
            let binding = entry.as_mut().filter(is_own).ok_or(Error::WrongState)?;
            if step == LineStep::Unbind {
                self.unbind(device.0, binding);
                *entry = None;
                return Ok(());
            }
            self.rearm(device.0, binding, &mut woken)
        });
        self.pcpu.wake_all(woken);
        result.map(|()| [0; 4])
    }

    fn bind(
        &mut self,
        entry: &mut Option<Binding>,
        holder: PartitionId,
        line: Named<ChannelId>,
        port: Named<PortId>,
    ) -> Result<(), Error> {
        let Named { it: device, index } = line;
        let Named {
            it: port,
            index: port_index,
        } = port;
        let (system, shared) = (self.pcpu.system, self.pcpu.shared);
        let mut sides = system.image.sides_of(device.0.into()).iter();
        let (line, edge) = sides.find_map(lent_line).ok_or(Error::WrongState)?;
        let capability = shared.capabilities.peek(holder, index.into())?;
        if (capability.kind, capability.object) != (ObjectKind::Interrupt, device.0) || entry.is_some() {
            return Err(Error::WrongState);
        }
        let facts = system.port(port);
        if facts.size < LENGTH {
            return Err(Error::InvalidArgument);
        }
        {
            let mut queue = shared.ports.of(port).lock();
            if !queue.keep(facts) {
                return Err(Error::NoSpace);
            }
            shared.lines.set_progress(device.0, Progress::Armed);
        }
        *entry = Some(Binding {
            holder,
            index,
            capability,
            port,
            port_index,
            line,
            edge,
            again: false,
        });
        self.pcpu.machine.enable(line, edge);
        Ok(())
    }

    /// Lets the line of a holder that is done interrupt again.
    fn rearm(&mut self, device: u8, binding: &mut Binding, woken: &mut VcpuSet) -> Result<(), Error> {
        let shared = self.pcpu.shared;
        {
            let _queue = shared.ports.of(binding.port).lock();
            if shared.lines.progress(device) != Progress::Received {
                return Err(Error::WrongState);
            }
            shared.lines.set_progress(device, Progress::Armed);
        }
        if core::mem::take(&mut binding.again) {
            self.deliver_line(device, binding, woken);
        } else {
            self.pcpu.machine.enable(binding.line, binding.edge);
        }
        Ok(())
    }

    /// Ends a binding: the line interrupts no more, and the port keeps no room for it.
    fn unbind(&mut self, device: u8, binding: &Binding) {
        self.pcpu.machine.disable(binding.line);
        let shared = self.pcpu.shared;
        let mut queue = shared.ports.of(binding.port).lock();
        // A message that waits takes its room until a receiver finds that it is nobody's.
        if shared.lines.progress(device) != Progress::Queued {
            queue.let_go();
        }
        shared.lines.set_progress(device, Progress::Armed);
    }

    /// Ends one binding that lacks its capability, or that belongs to this partition, which is about to be
    /// loaded. Returns true if there is none. The line of a binding that has ended is masked on every pCPU.
    #[inline]
    pub(super) fn are_lines_right(&mut self, loaded: Option<PartitionId>) -> bool {
        self.pcpu.shared.lines.bindings.is_empty() || !self.end_wrong_line(loaded)
    }

    #[inline(never)]
    fn end_wrong_line(&mut self, loaded: Option<PartitionId>) -> bool {
        let shared = self.pcpu.shared;
        shared.lines.bindings.change(|table| {
            let is_wrong = |entry: &Option<Binding>| {
                entry.is_some_and(|binding| {
                    let now = shared.capabilities.peek(binding.holder, binding.index.into());
                    let Right { kind, rights } = RECEIVES;
                    let spaces = &shared.capabilities;
                    let port = spaces.find_quickly(binding.holder, binding.port_index.into(), kind, rights);
                    loaded == Some(binding.holder)
                        || now != Ok(binding.capability)
                        || port != Some(binding.port.0)
                })
            };
            let mut all = (0_u8..).zip(table);
            let Some((device, entry)) = all.find(|(_, entry)| is_wrong(entry)) else {
                return false;
            };
            if let Some(binding) = entry.take() {
                self.unbind(device, &binding);
            }
            true
        })
    }

    /// Takes the interrupt of a line that is lent, ends the interrupt, and masks the line. Another line is
    /// left alone. Returns whether the line is lent.
    #[inline(never)]
    pub(super) fn take_line(&mut self, line: Line) -> bool {
        let mut sides = self.pcpu.system.image.sides().iter();
        let is_it = |side: &&SideRecord| lent_line(side).is_some_and(|(lent, _)| lent == line);
        let Some(side) = sides.find(is_it) else {
            return false;
        };
        let device = side.channel.get() as u8;
        self.pcpu.machine.disable(line);
        self.pcpu.machine.complete(line);
        // On some classes the end of an interrupt opens the line.
        self.pcpu.machine.disable(line);
        let mut woken = VcpuSet::EMPTY;
        self.pcpu.shared.lines.bindings.change(|table| {
            let entry = table.get_mut(usize::from(device));
            if let Some(binding) = entry.and_then(Option::as_mut) {
                self.deliver_line(device, binding, &mut woken);
            }
        });
        self.pcpu.wake_all(woken);
        true
    }

    /// Hands the message of a line to a vCPU that waits for one, or leaves it in the port. The vCPUs are
    /// woken later, with no lock held.
    fn deliver_line(&mut self, device: u8, binding: &mut Binding, woken: &mut VcpuSet) {
        let (shared, system) = (self.pcpu.shared, self.pcpu.system);
        let facts = system.port(binding.port);
        let mut queue = shared.ports.of(binding.port).lock();
        if shared.lines.progress(device) != Progress::Armed {
            binding.again = true;
            return;
        }
        let message = [AtomicU64::new(binding.index.into())];
        // Each of them is a waiter once.
        while let Some(waiter) = queue.waiter() {
            queue.leave(waiter);
            woken.insert_all(VcpuSet::of(waiter));
            let receiver = system.binding(waiter).partition;
            let to = shared.seats.of(waiter).lock().buffer;
            let passed = self
                .pcpu
                .machine
                .store_message((receiver, to), LENGTH.into(), &message);
            let outcome = passed.map(|()| RESULTS).map_err(|_| Error::InvalidArgument);
            shared.seats.of(waiter).lock().received = Some(outcome);
            if outcome.is_ok() {
                queue.server = Some(waiter);
                shared.lines.set_progress(device, Progress::Received);
                return;
            }
        }
        // The port has kept room for this message.
        let (header, body) = shared.messages.entry(facts, queue.end(facts));
        shared.lines.queue(device).write(header);
        if let Some(word) = body.first() {
            word.store(binding.index.into(), core::sync::atomic::Ordering::Relaxed);
        }
        queue.let_go();
        queue.push();
        drop(queue);
        if let Some((partition, events)) = facts.told {
            self.pcpu.raise(partition, events);
        }
    }

    /// Takes note that the message of a line was received. With the lock of its port held.
    pub(crate) fn line_received(
        &self,
        mark: Mark,
        receiver: VcpuId,
        queue: &mut crate::port::Queue,
    ) -> [u64; 4] {
        self.pcpu
            .shared
            .lines
            .set_progress(mark.device, Progress::Received);
        queue.keep_again();
        queue.server = Some(receiver);
        RESULTS
    }
}

/// Returns the physical line that a side can bind, and whether the line is edge-triggered.
fn lent_line(side: &SideRecord) -> Option<(Line, bool)> {
    let line = side.line.get().checked_sub(1)?;
    Some((Line(line), side.flags.get() & SIDE_EDGE != 0))
}
