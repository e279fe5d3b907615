// SPDX-License-Identifier: Apache-2.0
//! Virtual devices and consoles: this file carries out the decisions of `bulkhead-devices` and of the
//! terminal.

use super::Pcpu;
use super::regions::Place;
use crate::mailbox::bits;
use crate::shared::Shared;
use bulkhead_abi::PartitionState;
use bulkhead_arch_api::{
    Access, AccessKind, AddressSpace, Arch, Drivers, PartitionId, RegisterAccess, Reply, VcpuId, VcpuSet,
    VirtualDevice, VirtualLine,
};
use bulkhead_devices::pl011::FIFO_DEPTH;
use bulkhead_devices::uart::Uart;
use bulkhead_sched::PcpuPolicy;

/// Bytes of a register that stops a device.
const QUIESCE_SIZE: u8 = 4;
/// Received bytes handled per interrupt. The number is larger than the FIFO of any UART, so no byte stays in
/// the FIFO.
const INPUT_BATCH: usize = 64;

/// The steps of output that an exit which leaves output pays for, besides the first one. A line of a person's
/// length leaves in the time of the partition that prints.
const PAID_STEPS: u8 = 7;

/// A change of a virtual UART beside accesses to its registers.
pub(crate) enum Change<'b> {
    /// Output has room for this many bytes.
    Room(usize),
    /// A byte arrives. The result is 1 if a reader may wait for the byte beside the interrupt lines, else 0.
    Byte(u8),
    /// A cold reset.
    Reset,
    /// A reader takes received bytes. The result is their number.
    Take(&'b mut [u8]),
}

impl<'s, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, '_, A, D, P> {
    /// Carries out an access to an address without memory. Returns false, and has done nothing, if the
    /// partition has no device there either.
    #[inline(never)]
    pub(crate) fn access(&mut self, vcpu: VcpuId, access: &Access) -> bool {
        let partition = self.system.binding(vcpu).partition;
        if let Some(place) = self.region_at(partition, access) {
            match self.answer_in_region(&place, access) {
                Some(Some(reply)) => self.machine.reply(vcpu, reply),
                Some(None) => {}
                None => return false,
            }
        } else if access.space == AddressSpace::Memory
            && let Some(register) = self.system.register_at(partition, access.address, access.size)
        {
            let value = self.machine.forward(register, access.size, access.kind);
            let reply = match access.kind {
                AccessKind::Read => Reply::Read(value),
                AccessKind::Write(_) => Reply::Written,
            };
            self.machine.reply(vcpu, reply);
        } else {
            return false;
        }
        true
    }

    /// Returns the place of an access in a region, if the address is in one.
    #[inline]
    fn region_at(&self, partition: PartitionId, access: &Access) -> Option<Place<'s>> {
        let mut devices = self.system.devices_of(partition).iter();
        devices.find_map(|device| {
            let is_there = !A::CAPS.has_other_spaces() || device.is_in(access.space);
            let offset = device.offset_of(access.address.0).filter(|_| is_there)?;
            Some(Place {
                partition,
                device,
                offset,
            })
        })
    }

    /// Carries out an access to a register of the partition's console.
    pub(crate) fn access_console(&mut self, place: &Place<'_>, access: &Access) -> Option<Reply> {
        let value = self.access_uart(place.partition, place.offset, access.size, access.kind)?;
        Some(match access.kind {
            AccessKind::Read => Reply::Read(value),
            AccessKind::Write(_) => Reply::Written,
        })
    }

    /// Stops the devices of a partition that has ended or is about to be loaded: they must leave memory
    /// alone.
    pub(crate) fn quiesce(&mut self, partition: PartitionId) {
        for (register, value) in self.system.quiescing(partition) {
            let write = AccessKind::Write(value.into());
            self.machine.forward(register, QUIESCE_SIZE, write);
        }
    }

    /// Carries out an access to a register of the virtual UART that [`super::short`] has not answered.
    #[inline(never)]
    pub(crate) fn touch_uart(&mut self, vcpu: VcpuId, access: &RegisterAccess) {
        let partition = self.system.binding(vcpu).partition;
        let value = self.access_uart(partition, access.offset(), access.size, access.kind);
        self.machine.answer(vcpu, value.unwrap_or(0));
    }

    /// Carries out an access of `size` bytes to the partition's virtual UART. A byte that the UART sends goes
    /// to the terminal before the vCPU goes on. Returns the value of a load.
    #[inline(never)]
    fn access_uart(
        &mut self,
        partition: PartitionId,
        offset: u64,
        size: u8,
        kind: AccessKind,
    ) -> Option<u64> {
        let output = &self.shared.terminal.output;
        // Then nothing is sent, and the driver waits for nothing.
        let is_quiet = kind == AccessKind::Read && output.room(partition) >= FIFO_DEPTH;
        let now = if is_quiet { 0 } else { self.now_ns() };
        let reply = self.with_uart(partition, |uart| {
            uart.set_room(output.room(partition));
            match kind {
                AccessKind::Read => uart.read(offset, size),
                AccessKind::Write(value) => {
                    if let Some(byte) = uart.write(offset, size, value) {
                        output.put(partition, &[byte], now);
                    }
                    0
                }
            }
        });
        if is_quiet {
            return reply;
        }
        self.send_for(partition, now);
        if output.room(partition) < FIFO_DEPTH {
            self.starve(partition);
        }
        reply
    }

    /// Marks the partition, so that its virtual UART is told when there is room for a whole FIFO again. The
    /// driver of the UART waits for the transmit interrupt. The mark comes first and the second look at the
    /// room comes after the mark. So if a pump on another pCPU makes room in between, either the pump or this
    /// function notices the room.
    fn starve(&mut self, partition: PartitionId) {
        self.shared.mark_starved(partition);
        let room = self.shared.terminal.output.room(partition);
        if room >= FIFO_DEPTH {
            self.change_uart(partition, Change::Room(room));
        }
    }

    /// Changes the virtual UART of a partition that has one. The lock of the UART is kept while the interrupt
    /// line follows the registers. Without the lock, one pCPU could change the registers last and another one
    /// the line.
    fn with_uart<T>(&mut self, partition: PartitionId, change: impl FnOnce(&mut Uart) -> T) -> Option<T> {
        let mut reader = self.shared.partition(partition).reader.lock();
        let uart = reader.uart()?;
        let before = uart.levels();
        let result = change(uart);
        let after = uart.levels();
        if before == after {
            return Some(result);
        }
        let console = self.system.console_of(partition);
        let line = console.and_then(VirtualDevice::interrupt);
        let woken = line.map(|line| self.set_lines(partition, line, before, after));
        drop(reader);
        self.wake_all(woken.unwrap_or(VcpuSet::EMPTY));
        Some(result)
    }

    /// Changes the virtual UART beside accesses to its registers. Returns the result of the change. There is
    /// one copy for all changes, because none of them is frequent.
    #[inline(never)]
    pub(crate) fn change_uart(&mut self, partition: PartitionId, change: Change<'_>) -> usize {
        let result = self.with_uart(partition, |uart| match change {
            Change::Byte(byte) => usize::from(uart.receive(byte)),
            Change::Room(room) => {
                uart.set_room(room);
                0
            }
            Change::Reset => {
                uart.reset();
                0
            }
            Change::Take(into) => uart.take(into),
        });
        result.unwrap_or(0)
    }

    /// Gives the lines of a virtual device, from this one on, their new levels. Returns the vCPUs to wake.
    #[inline(never)]
    pub(crate) fn set_lines(
        &mut self,
        partition: PartitionId,
        VirtualLine(first): VirtualLine,
        before: [bool; 2],
        after: [bool; 2],
    ) -> VcpuSet {
        let mut woken = VcpuSet::EMPTY;
        for ((number, before), after) in (first..).zip(before).zip(after) {
            match (before, after) {
                (false, true) => woken.insert_all(self.machine.inject(partition, VirtualLine(number))),
                (true, false) => self.machine.withdraw(partition, VirtualLine(number)),
                _ => {}
            }
        }
        woken
    }

    /// Takes the bytes that the board's UART has received.
    pub(crate) fn take_input(&mut self) {
        for _ in 0..INPUT_BATCH {
            let Some(byte) = self.drivers.receive() else { break };
            if let Some((partition, byte)) = self.shared.terminal.receive(byte) {
                self.deliver(partition, byte);
            }
        }
    }

    /// Delivers a byte to a partition's console. A partition that does not run, or does not read, loses the
    /// byte, as with a UART.
    fn deliver(&mut self, partition: PartitionId, byte: u8) {
        let shared = self.shared.partition(partition);
        if shared.state() != PartitionState::Running {
            return;
        }
        let facts = self.system.facts_of(partition);
        if self.system.console_of(partition).is_none() {
            if let Some(input) = shared.reader.lock().input() {
                input.put(byte);
            }
            return;
        }
        let awaited = self.change_uart(partition, Change::Byte(byte));
        if awaited != 0 {
            self.wake_all(VcpuSet::of(facts.first));
        }
    }

    /// Writes bytes of a partition to its console. Returns the number of bytes that were taken.
    pub(crate) fn write_console(&mut self, partition: PartitionId, bytes: &[u8]) -> usize {
        let now = self.now_ns();
        let taken = self.shared.terminal.output.put(partition, bytes, now);
        self.send_for(partition, now);
        taken
    }

    /// Sends output for a partition that has printed or waits for room. The partition pays for a bounded part
    /// of the output that can be sent now.
    fn send_for(&mut self, partition: PartitionId, now: u64) {
        if self.shared.terminal.output.is_urgent(partition) {
            self.local.output.charge(self.local.running(), PAID_STEPS);
            self.pump_at(now);
            self.go_on_with_output();
        } else {
            self.mind_output(now);
        }
    }

    /// Hands output that waits to the transmitter, and comes back for the rest.
    pub(crate) fn pump(&mut self) {
        let now = self.now_ns();
        self.pump_at(now);
    }

    /// Plans another step of output at once, if the vCPU that runs pays for one more.
    pub(crate) fn go_on_with_output(&mut self) {
        let running = self.local.running();
        if self.local.output.take_paid_step(running) {
            self.come_at_once();
        }
    }

    fn pump_at(&mut self, now: u64) {
        let Shared {
            terminal, recorder, ..
        } = self.shared;
        self.local.output.may_pump = terminal.output.pump(recorder, &mut self.drivers, now);
        self.mind_output(now);
        for partition in bits(self.shared.take_starved()).map(PartitionId) {
            let room = self.shared.terminal.output.room(partition);
            if room < FIFO_DEPTH {
                self.starve(partition);
            } else {
                self.change_uart(partition, Change::Room(room));
            }
        }
    }

    /// Makes this pCPU look after output that its partition left unsent: at a low rate, by its own clock.
    fn mind_output(&mut self, now: u64) {
        if !self.local.output.is_planned()
            && let Some(delay) = self.shared.terminal.output.due(&self.shared.recorder, now)
        {
            let due = self.machine.now().plus(self.system.time.duration(delay));
            self.local.drain_by(due);
            self.local.reschedule = true;
        }
    }

    /// Returns the nanoseconds since boot.
    pub(crate) fn now_ns(&self) -> u64 {
        self.system.time.nanoseconds(self.machine.now())
    }
}
