// SPDX-License-Identifier: Apache-2.0
//! Calls of a debugger or an emulator that a VM takes for granted: its console, its name, its end.
//!
//! A vCPU whose console has no room, or no input, is idle. The idle time ends when that may have changed, or
//! with an interrupt of the vCPU. Then the vCPU makes its call again: nothing is remembered here. If an
//! interrupt is pending that the guest masks, the vCPU asks again at once, in its own time, as a driver does
//! that polls a register.

use crate::console::DRAIN_PERIOD_NS;
use crate::dispatch::Pcpu;
use crate::dispatch::device::Change;
use crate::local::Activity;
use crate::parts::{PartOf, SEMIHOSTING};
use bulkhead_abi::log::entry::Failure;
use bulkhead_arch_api::{Arch, Drivers, HOST_BYTES, HostCall, Reply, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

/// The calls of a debugger, on a pCPU.
pub(crate) struct Hosting<'p, 's, 'i, A: Arch, D, P> {
    pub(super) pcpu: &'p mut Pcpu<'s, 'i, A, D, P>,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the part with its pCPU.
    #[inline(always)]
    pub(crate) const fn semihosting(&mut self) -> Hosting<'_, 's, 'i, A, D, P> {
        Hosting { pcpu: self }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> PartOf for Hosting<'_, '_, '_, A, D, P> {
    const IS_THERE: bool = A::CAPS.semihosting && SEMIHOSTING;
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Hosting<'_, '_, '_, A, D, P> {
    #[inline(never)]
    pub(crate) fn host_call(&mut self, slot: Slot, vcpu: VcpuId, call: &HostCall) {
        let partition = self.pcpu.system.binding(vcpu).partition;
        let mut bytes = [0; HOST_BYTES];
        let part = |most: u8| usize::from(most).min(HOST_BYTES);
        let (to, length) = match *call {
            HostCall::Write(from, length) => {
                let (bytes, _) = bytes.split_at_mut(part(length));
                // The backend has made sure that this memory can be read.
                let _ = self.pcpu.machine.copy_in(partition, from, bytes);
                // A program that prints by its debugger reads by it, too. From its first line on, typed bytes
                // are kept for it.
                self.pcpu.change_uart(partition, Change::Take(&mut []));
                (None, self.pcpu.write_console(partition, bytes))
            }
            HostCall::Read(to, most) => {
                let (into, _) = bytes.split_at_mut(part(most));
                (Some(to), self.pcpu.change_uart(partition, Change::Take(into)))
            }
            HostCall::ReadByte => {
                let (into, _) = bytes.split_at_mut(1);
                (None, self.pcpu.change_uart(partition, Change::Take(into)))
            }
            HostCall::Name(to, most) => {
                let name = self.pcpu.system.name(partition).as_bytes();
                let length = name.len().saturating_add(1).min(part(most));
                let places = bytes.iter_mut().take(length.saturating_sub(1));
                for (place, byte) in places.zip(name) {
                    *place = *byte;
                }
                (Some(to), length)
            }
            HostCall::Failed(code) => return self.pcpu.faults().fail(slot, vcpu, Failure::Exit, code.into()),
        };
        if length == 0 {
            return self.wait_for_console(slot, vcpu);
        }
        if let Some(to) = to {
            // The backend has made sure that this memory can be written.
            let _ = self
                .pcpu
                .machine
                .copy_out(partition, to, bytes.get(..length).unwrap_or(&[]));
        }
        let [first, ..] = bytes;
        let is_byte = matches!(call, HostCall::ReadByte);
        let answer = if is_byte { first } else { length as u8 };
        self.pcpu.machine.reply(vcpu, Reply::Host(answer));
    }

    /// Blocks the vCPU until its console may be ready. Input wakes the vCPU. Room for output does not.
    fn wait_for_console(&mut self, slot: Slot, vcpu: VcpuId) {
        let drained = self
            .pcpu
            .machine
            .now()
            .plus(self.pcpu.system.time.duration(DRAIN_PERIOD_NS));
        // The time is in the past if the vCPU has an interrupt to look at.
        let until = self.pcpu.machine.pause(vcpu).min(drained);
        self.pcpu.local.block(slot, Activity::Idle(until));
    }
}
