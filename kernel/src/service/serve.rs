// SPDX-License-Identifier: Apache-2.0
//! Accesses that another partition answers: the server's side ([`crate::service`]).

use crate::dispatch::Pcpu;
use crate::mailbox::{bit, bits};
use crate::parts::{PartOf, Rest, SERVICES};
use crate::service::command::{Service, Transfer};
use crate::service::{Services, WindowId};
use bulkhead_abi::Error;
use bulkhead_arch_api::{
    Access, AccessKind, Arch, Drivers, GuestPhys, Line, PartitionId, PartitionKind, Reply, VcpuId, VcpuSet,
    VirtualLine,
};
use bulkhead_devices::virtio_mmio::{INTERRUPT_ACKNOWLEDGE, INTERRUPT_STATUS, Interrupt, QUEUE_NOTIFY};
use bulkhead_image::layout::{MEMORY_DEVICE, MEMORY_WRITE, NONE, SERVED_WRITES, ServedRecord};
use bulkhead_sched::{PcpuPolicy, Slot};

type Answer = Result<[u64; 4], Error>;

/// Bytes that are copied at a time.
const PIECE: usize = 64;
/// Bytes of the registers that the kernel answers.
const WORD: u8 = 4;

/// The accesses and the servers of a pCPU.
pub(crate) struct Serving<'p, 's, 'i, A: Arch, D, P> {
    pub(super) pcpu: &'p mut Pcpu<'s, 'i, A, D, P>,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the part with its pCPU.
    #[inline(always)]
    pub(crate) const fn services(&mut self) -> Serving<'_, 's, 'i, A, D, P> {
        Serving { pcpu: self }
    }
}

impl<'i, A: Arch, D: Drivers, P: PcpuPolicy> Serving<'_, '_, 'i, A, D, P> {
    /// Answers the registers of a virtio device that need nothing of its server.
    pub(super) fn answer_virtio(
        &mut self,
        window: WindowId,
        record: &ServedRecord,
        offset: u64,
        access: &Access,
    ) -> Option<Reply> {
        if access.size != WORD {
            return None;
        }
        match (offset, access.kind) {
            (QUEUE_NOTIFY, AccessKind::Write(_)) => {
                let server = server_of(record);
                self.pcpu.shared.services.server(server).lock().rung |= bit(window.0);
                self.call_server(record);
                Some(Reply::Written)
            }
            (INTERRUPT_STATUS, AccessKind::Read) => {
                let window = self.pcpu.shared.services.window(window).lock();
                Some(Reply::Read(window.interrupt.causes().into()))
            }
            (INTERRUPT_ACKNOWLEDGE, AccessKind::Write(causes)) => {
                self.change_interrupt(window, record, |interrupt| interrupt.acknowledge(causes as u32));
                Some(Reply::Written)
            }
            _ => None,
        }
    }

    /// Raises the event of a window at the gate of its server.
    pub(super) fn call_server(&mut self, record: &ServedRecord) {
        self.pcpu
            .raise(server_of(record), 1_u64.wrapping_shl(record.event.get()));
    }

    /// Changes the interrupt of a window. The line of the client follows under the lock of the window.
    fn change_interrupt(
        &mut self,
        window: WindowId,
        record: &ServedRecord,
        change: impl FnOnce(&mut Interrupt),
    ) {
        let mut state = self.pcpu.shared.services.window(window).lock();
        let before = state.interrupt.level();
        change(&mut state.interrupt);
        let after = state.interrupt.level();
        let mut woken = VcpuSet::EMPTY;
        if before != after && record.virtual_line.get() != NONE {
            let line = VirtualLine(record.virtual_line.get());
            woken = self
                .pcpu
                .set_lines(client_of(record), line, [before, false], [after, false]);
        }
        drop(state);
        self.pcpu.wake_all(woken);
    }

    /// Prepares the new life of a partition: a client's new life closes its windows, a server's new life lets
    /// its clients wait again. The work is bounded by the number of windows. No vCPU of the partition runs.
    fn begin_service(&mut self, partition: PartitionId) {
        let system = self.pcpu.system;
        for (record, number) in system.image.served().iter().zip(0_u8..) {
            let (server, window) = (server_of(record), WindowId(number));
            if server != partition && client_of(record) != partition {
                continue;
            }
            self.change_interrupt(window, record, |interrupt| *interrupt = Interrupt::QUIET);
            {
                let mut state = self.pcpu.shared.services.window(window).lock();
                state.is_closed = true;
                if server != partition {
                    state.kept = Default::default();
                }
            }
            {
                let mut state = self.pcpu.shared.services.server(server).lock();
                state.anew |= bit(number);
                if server != partition {
                    state.clients |= bit(number);
                }
                state.rung &= !bit(number);
                if server == partition {
                    let taken = state.taken;
                    state.posted.insert_all(taken);
                    state.taken = VcpuSet::EMPTY;
                }
            }
            self.call_server(record);
            if server != partition {
                self.stop_devices(server);
            }
        }
    }

    /// Stops the devices of a server whose client starts anew: they may be writing the client's memory. The
    /// window is closed, so the server learns no address of this memory any more. The server is told by the
    /// count of stops, and begins anew with its devices.
    fn stop_devices(&mut self, server: PartitionId) {
        if !self.owns_device(server) {
            return;
        }
        let count = |services: &Services<_>| {
            let mut state = services.server(server).lock();
            state.stops = state.stops.wrapping_add(1);
        };
        count(&self.pcpu.shared.services);
        self.pcpu.quiesce(server);
        count(&self.pcpu.shared.services);
    }

    /// Tells whether the partition has registers of a device of the board.
    fn owns_device(&self, partition: PartitionId) -> bool {
        let mut registers = self.pcpu.system.image.registers().iter();
        registers.any(|window| window.partition.get() == u32::from(partition.0))
    }

    /// Lets the devices of a task interrupt this pCPU, which is the pCPU of the task's vCPU.
    fn enable_task_lines(&mut self, partition: PartitionId) {
        if self.pcpu.system.facts_of(partition).kind != PartitionKind::Task {
            return;
        }
        let interrupts = self.pcpu.system.image.interrupts().iter();
        for record in interrupts.filter(|record| record.partition.get() == u32::from(partition.0)) {
            self.pcpu.machine.enable(Line(record.line.get()), true);
        }
    }

    /// Raises the event of an interrupt of a task's device. The work grows with the interrupts of the image.
    fn tell_task(&mut self, line: Line) {
        let mut interrupts = self.pcpu.system.image.interrupts().iter();
        if let Some(record) = interrupts.find(|record| record.line.get() == line.0) {
            let owner = PartitionId(record.partition.get() as u8);
            self.pcpu
                .raise(owner, 1_u64.wrapping_shl(record.virtual_line.get()));
        }
    }

    /// Carries out a step of a server. `holder` is the partition that calls, and `server` the one whose
    /// clients the capability is for.
    #[inline(never)]
    pub(crate) fn serve(&mut self, holder: PartitionId, server: PartitionId, step: &Service) -> Answer {
        match *step {
            Service::Take => self.take_access(server),
            Service::Answer(number, value) => self.answer(server, number, value),
            Service::News => Ok(self.news(server)),
            Service::Interrupt(window, add, remove) => {
                let (window, record) = self.window_of(server, window)?;
                if self.pcpu.shared.services.window(window).lock().is_closed {
                    return Err(Error::WrongState);
                }
                self.change_interrupt(window, record, |interrupt| {
                    interrupt.acknowledge(remove);
                    interrupt.raise(add);
                });
                Ok([0; 4])
            }
            Service::Copy(ref transfer) => self.copy(holder, server, transfer).map(|()| [0; 4]),
            Service::Reach(window, address) => {
                if holder != server || !self.owns_device(server) {
                    return Err(Error::NotSupported);
                }
                self.reach(server, window, address)
            }
            Service::Keep(window, group, words) => {
                let (window, _) = self.window_of(server, window)?;
                let mut state = self.pcpu.shared.services.window(window).lock();
                if state.is_closed {
                    return Err(Error::WrongState);
                }
                if let Some(place) = state.kept.get_mut(group) {
                    *place = words;
                }
                Ok([0; 4])
            }
            Service::Kept(window, group) => {
                let (window, _) = self.window_of(server, window)?;
                let state = self.pcpu.shared.services.window(window).lock();
                let [a, b, c] = state.kept.get(group).copied().unwrap_or_default();
                Ok([a, b, c, 0])
            }
        }
    }

    /// Returns a window of this server.
    fn window_of(&self, server: PartitionId, number: u8) -> Result<(WindowId, &'i ServedRecord), Error> {
        let record = self.pcpu.system.image.served().get(usize::from(number));
        let record = record.filter(|record| server_of(record) == server);
        Ok((WindowId(number), record.ok_or(Error::InvalidArgument)?))
    }

    fn take_access(&mut self, server: PartitionId) -> Answer {
        let services = &self.pcpu.shared.services;
        let mut state = services.server(server).lock();
        let priority = |vcpu: VcpuId| {
            let record = self.pcpu.system.image.vcpus().get(usize::from(vcpu.0));
            record.map_or(0, |record| record.priority.get())
        };
        let vcpu = state.take(priority).ok_or(Error::TimedOut)?;
        let request = services.request(vcpu).lock();
        let (access, window) = request.access.ok_or(Error::TimedOut)?;
        let record = self.pcpu.system.image.served().get(usize::from(window.0));
        let base = record.map_or(0, |record| record.guest.get());
        let (stores, value) = match access.kind {
            AccessKind::Read => (0, 0),
            AccessKind::Write(value) => (1_u64 << 16, value),
        };
        let number = u64::from(vcpu.0) | u64::from(request.number) << 8;
        let shape = u64::from(window.0) | u64::from(access.size) << 8 | stores;
        Ok([number, shape, access.address.0.wrapping_sub(base), value])
    }

    fn answer(&mut self, server: PartitionId, number: u64, value: u64) -> Answer {
        let vcpu = VcpuId((number & 63) as u8);
        {
            let services = &self.pcpu.shared.services;
            let mut state = services.server(server).lock();
            let mut request = services.request(vcpu).lock();
            let is_it = number == u64::from(vcpu.0) | u64::from(request.number) << 8;
            if !is_it || !state.taken.contains(vcpu) {
                return Err(Error::WrongState);
            }
            state.forget(vcpu);
            request.answer = Some(value);
        }
        self.pcpu.wake_all(VcpuSet::of(vcpu));
        Ok([0; 4])
    }

    /// Returns and takes the news of a server's windows. A window whose client has started anew is open
    /// again.
    fn news(&mut self, server: PartitionId) -> [u64; 4] {
        let services = &self.pcpu.shared.services;
        let (rung, anew, clients) = {
            let mut state = services.server(server).lock();
            let state = &mut *state;
            let [rung, anew, clients] = [&mut state.rung, &mut state.anew, &mut state.clients];
            let take = core::mem::take::<u32>;
            (take(rung), take(anew), take(clients))
        };
        for number in bits(anew) {
            services.window(WindowId(number)).lock().is_closed = false;
        }
        [rung.into(), anew.into(), clients.into(), 0]
    }

    /// Returns where a device of the server finds the memory that a client grants, or the server's own.
    fn reach(&self, server: PartitionId, window: Option<u8>, address: GuestPhys) -> Answer {
        let Some(window) = window else {
            let (_, bytes, bus) = self.mapping(server, address.0).ok_or(Error::InvalidArgument)?;
            return Ok([address.0, bytes, bus, self.stops_of(server)]);
        };
        let (window, record) = self.window_of(server, window)?;
        let (first, bytes) = (record.grant.get(), record.grant_size.get());
        let found = self.mapping(client_of(record), first);
        let (_, _, bus) = found.ok_or(Error::OutOfReach)?;
        let may_write = record.flags.get() & SERVED_WRITES != 0;
        let is_open = !self.pcpu.shared.services.window(window).lock().is_closed;
        let bytes = if is_open && may_write { bytes } else { 0 };
        Ok([first, bytes, bus, self.stops_of(server)])
    }

    fn stops_of(&self, server: PartitionId) -> u64 {
        self.pcpu.shared.services.server(server).lock().stops
    }

    /// Returns the mapping of a partition with this address that can be written, from the address on: first
    /// address, bytes, bus address.
    fn mapping(&self, partition: PartitionId, address: u64) -> Option<(u64, u64, u64)> {
        let mut memory = self.pcpu.system.image.memory_of(u32::from(partition.0));
        memory.find_map(|record| {
            let offset = address.checked_sub(record.guest.get())?;
            let bytes = record.size.get().checked_sub(offset).filter(|left| *left != 0)?;
            let is_ram = record.flags.get() & (MEMORY_WRITE | MEMORY_DEVICE) == MEMORY_WRITE;
            is_ram.then_some((address, bytes, record.host.get().checked_add(offset)?))
        })
    }

    /// Copies between the memory of a client and the memory of the server. The lock of the window is kept:
    /// when a client has closed the window, no copy is on its way.
    fn copy(&mut self, holder: PartitionId, server: PartitionId, transfer: &Transfer) -> Result<(), Error> {
        let (window, record) = self.window_of(server, transfer.window)?;
        let (length, client) = (u64::from(transfer.length), client_of(record));
        if length == 0 {
            return Ok(());
        }
        // The server's own memory is written when the client's is read.
        if !self
            .pcpu
            .machine
            .may_access(holder, transfer.here, length, !transfer.is_write)
        {
            return Err(Error::InvalidArgument);
        }
        let window = self.pcpu.shared.services.window(window).lock();
        if window.is_closed {
            return Err(Error::WrongState);
        }
        let is_granted = grants(record, transfer)
            && self
                .pcpu
                .machine
                .may_access(client, transfer.there, length, transfer.is_write);
        if !is_granted {
            return Err(Error::OutOfReach);
        }
        let (from, to) = if transfer.is_write {
            ((holder, transfer.here), (client, transfer.there))
        } else {
            ((client, transfer.there), (holder, transfer.here))
        };
        // Most of the bytes are copied at once, as a message is: the contents of whole buffers.
        if (transfer.here.0 | transfer.there.0).is_multiple_of(8) {
            let passed = self
                .pcpu
                .machine
                .pass_message(from, to, usize::from(transfer.length));
            return passed.map_err(|_| Error::OutOfReach);
        }
        let ((from, source), (to, target)) = (from, to);
        self.copy_pieces(from, source, to, target, usize::from(transfer.length))
    }

    fn copy_pieces(
        &mut self,
        from: PartitionId,
        source: GuestPhys,
        to: PartitionId,
        target: GuestPhys,
        length: usize,
    ) -> Result<(), Error> {
        for at in (0..length).step_by(PIECE) {
            let mut bytes = [0; PIECE];
            let (now, _) = bytes.split_at_mut(length.saturating_sub(at).min(PIECE));
            let place = |start: GuestPhys| start.offset(at as u64).map_err(|_| Error::OutOfReach);
            let copied = self.pcpu.machine.copy_in(from, place(source)?, now);
            copied.map_err(|_| Error::OutOfReach)?;
            let copied = self.pcpu.machine.copy_out(to, place(target)?, now);
            copied.map_err(|_| Error::OutOfReach)?;
        }
        Ok(())
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> PartOf for Serving<'_, '_, '_, A, D, P> {
    // Elsewhere the lines of tasks are the matter of `task_lines`.
    const IS_THERE: bool = SERVICES && !A::CAPS.guards_memory();

    #[inline(always)]
    fn life_begins(&mut self, partition: PartitionId) {
        self.begin_service(partition);
        self.enable_task_lines(partition);
    }

    #[inline(always)]
    fn take_interrupt(&mut self, line: Line) -> Rest {
        self.tell_task(line);
        Rest::Others
    }

    #[inline(always)]
    fn answer(&mut self, slot: Slot, vcpu: VcpuId, access: &Access) -> Option<bool> {
        self.ask(slot, vcpu, access)
    }
}

pub(super) const fn server_of(record: &ServedRecord) -> PartitionId {
    PartitionId(record.server.get() as u8)
}

pub(super) const fn client_of(record: &ServedRecord) -> PartitionId {
    PartitionId(record.client.get() as u8)
}

/// Tells whether the client of a window grants the range of a copy.
fn grants(record: &ServedRecord, transfer: &Transfer) -> bool {
    let may_write = record.flags.get() & SERVED_WRITES != 0;
    let offset = transfer.there.0.checked_sub(record.grant.get());
    let end = offset.and_then(|offset| offset.checked_add(transfer.length.into()));
    (may_write || !transfer.is_write) && end.is_some_and(|end| end <= record.grant_size.get())
}
