// SPDX-License-Identifier: Apache-2.0
//! Virtual devices and consoles: what `bulkhead-devices` and the terminal decide, carried out.

use super::Pcpu;
use crate::log::Line;
use crate::mailbox::bits;
use bulkhead_abi::PartitionState;
use bulkhead_arch_api::{Access, AccessKind, Arch, PartitionId, Reply, Ticks, VcpuId, VcpuSet, VirtualLine};
use bulkhead_devices::pl011::FIFO_DEPTH;
use bulkhead_devices::uart::Uart;
use bulkhead_sched::PcpuPolicy;

/// Bytes of a register that stops a device.
const QUIESCE_SIZE: u8 = 4;
/// Received bytes handled per interrupt; more than any UART's FIFO, so that none is left behind.
const INPUT_BATCH: usize = 64;

/// What happens to a virtual UART beside accesses to its registers.
pub(super) enum Change<'b> {
    /// So many bytes of output find room.
    Room(usize),
    /// A byte arrives: whether somebody may be waiting for it besides the interrupt lines.
    Byte(u8),
    /// A cold reset.
    Reset,
    /// Received bytes are taken: how many there were.
    Take(&'b mut [u8]),
}

impl<A: Arch, P: PcpuPolicy> Pcpu<'_, '_, A, P> {
    /// An access to no memory. False, and nothing has been done, if there is no device of the partition either.
    #[inline(never)]
    pub(super) fn access(&mut self, vcpu: VcpuId, access: &Access) -> bool {
        let partition = self.system.binding(vcpu).partition;
        if let Some(uart) = self.system.facts_of(partition).uart
            && let Some(offset) = access
                .address
                .0
                .checked_sub(uart.base.0)
                .filter(|offset| *offset < uart.size)
        {
            if let Some(reply) = self.access_uart(partition, uart.line, offset, access) {
                self.machine.reply(vcpu, reply);
            }
        } else if A::HAS_NETWORK
            && let Some(nic) = self.system.facts_of(partition).nic
            && let Some(offset) = self.system.nic(nic).offset_of(access.address)
        {
            let reply = self.access_nic(nic, offset, access);
            self.machine.reply(vcpu, reply);
        } else if let Some(register) = self.system.register_at(partition, access.address, access.size) {
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

    /// The partition has ended, or is about to be loaded: its devices must leave memory alone.
    pub(super) fn quiesce(&mut self, partition: PartitionId) {
        for (register, value) in self.system.quiescing(partition) {
            let write = AccessKind::Write(value.into());
            self.machine.forward(register, QUIESCE_SIZE, write);
        }
    }

    /// An access to the partition's virtual UART. A byte it sends goes to the terminal before the vCPU goes on.
    fn access_uart(
        &mut self,
        partition: PartitionId,
        line: Option<VirtualLine>,
        offset: u64,
        access: &Access,
    ) -> Option<Reply> {
        let now = self.now_ns();
        let output = &self.shared.terminal.output;
        let reply = self.with_uart(partition, line, |uart| {
            uart.set_room(output.room(partition));
            match access.kind {
                AccessKind::Read => Reply::Read(uart.read(offset, access.size)),
                AccessKind::Write(value) => {
                    if let Some(byte) = uart.write(offset, access.size, value) {
                        output.put(partition, &[byte], now);
                    }
                    Reply::Written
                }
            }
        });
        self.send_for(partition, now);
        if output.room(partition) < FIFO_DEPTH {
            self.starve(partition);
        }
        reply
    }

    /// The virtual UART is told when there is room for a whole FIFO again: its driver waits for the transmit
    /// interrupt. The mark comes first and the second look behind it, so that a pump on another pCPU that makes room
    /// in between is noticed by one of both.
    fn starve(&mut self, partition: PartitionId) {
        self.shared.mark_starved(partition);
        let room = self.shared.terminal.output.room(partition);
        if room >= FIFO_DEPTH {
            self.change_uart(partition, Change::Room(room));
        }
    }

    /// Changes the virtual UART of a partition that has one. Its lock is kept while the interrupt line follows its state, so that two pCPUs
    /// cannot leave the line as the first wanted it after the registers as the second did.
    fn with_uart<T>(
        &mut self,
        partition: PartitionId,
        line: Option<VirtualLine>,
        change: impl FnOnce(&mut Uart) -> T,
    ) -> Option<T> {
        let mut reader = self.shared.partition(partition).reader.lock();
        let uart = reader.uart()?;
        let before = uart.levels();
        let result = change(uart);
        let after = uart.levels();
        let woken = line.map(|line| self.set_lines(partition, line, (before, after)));
        drop(reader);
        self.wake_all(woken.unwrap_or(VcpuSet::EMPTY));
        Some(result)
    }

    /// The same for what its guest does not do by registers; what that says. One place for all: nothing of it is frequent.
    #[inline(never)]
    pub(super) fn change_uart(&mut self, partition: PartitionId, change: Change<'_>) -> usize {
        let line = self.system.facts_of(partition).uart.and_then(|uart| uart.line);
        let result = self.with_uart(partition, line, |uart| match change {
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

    /// The lines of a virtual device, from this one on, take their new levels.
    #[inline(never)]
    pub(super) fn set_lines(
        &mut self,
        partition: PartitionId,
        VirtualLine(first): VirtualLine,
        (before, after): ([bool; 2], [bool; 2]),
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

    /// The board's UART has received something.
    pub(super) fn take_input(&mut self) {
        for _ in 0..INPUT_BATCH {
            let Some(byte) = self.machine.receive() else { break };
            if let Some((partition, byte)) = self.shared.terminal.receive(byte) {
                self.deliver(partition, byte);
            }
        }
    }

    /// A byte for a partition's console. A partition that does not run, or does not read, loses it, as a
    /// UART does.
    fn deliver(&mut self, partition: PartitionId, byte: u8) {
        let shared = self.shared.partition(partition);
        if shared.state() != PartitionState::Running {
            return;
        }
        let facts = self.system.facts_of(partition);
        if facts.uart.is_none() {
            if let Some(input) = shared.reader.lock().input() {
                input.put(byte);
            }
            return;
        }
        let awaited = self.change_uart(partition, Change::Byte(byte));
        if A::CAPS.semihosting && awaited != 0 {
            self.wake_all(VcpuSet::of(facts.first));
        }
    }

    /// Bytes of a partition for its console; returns how many were taken.
    pub(super) fn write_console(&mut self, partition: PartitionId, bytes: &[u8]) -> usize {
        let now = self.now_ns();
        let taken = self.shared.terminal.output.put(partition, bytes, now);
        self.send_for(partition, now);
        taken
    }

    /// The partition has printed, or waits for room: it pays for a bounded part of what can be sent now.
    fn send_for(&mut self, partition: PartitionId, now: u64) {
        if self.shared.terminal.output.is_urgent(partition) {
            self.pump_at(now);
        } else {
            self.mind_output(now);
        }
    }

    /// Hands output that waits to the transmitter, and comes back for the rest.
    pub(super) fn pump(&mut self) {
        let now = self.now_ns();
        self.pump_at(now);
    }

    fn pump_at(&mut self, now: u64) {
        self.shared.terminal.output.pump(&mut self.machine, now);
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

    /// The pCPU whose partition left output behind looks after it: at a low rate, by its own clock.
    fn mind_output(&mut self, now: u64) {
        if !self.local.has_output()
            && let Some(delay) = self.shared.terminal.output.due(now)
        {
            let due = self.machine.now().plus(self.system.time.duration(delay));
            self.local.drain_by(due);
            self.local.reschedule = true;
        }
    }

    /// Writes a line to the hypervisor's log, behind what it is still to be told.
    pub(super) fn log(&mut self, line: &Line) {
        self.tell_states();
        let now = self.machine.now();
        self.log_at(line, now);
    }

    /// Writes a line about what happened then.
    pub(super) fn log_at(&mut self, line: &Line, then: Ticks) {
        let then = self.system.time.nanoseconds(then);
        self.shared.recorder.line(&mut self.machine, line, then);
        self.shared.terminal.output.log(line);
        self.pump();
    }

    fn now_ns(&self) -> u64 {
        self.system.time.nanoseconds(self.machine.now())
    }
}
