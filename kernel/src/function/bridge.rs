// SPDX-License-Identifier: Apache-2.0
//! The virtual PCI host bridge of a VM: its configuration space (ECAM, PCI Express 3.0, 7.2.2) and the
//! registers of its functions, which are the sides of channels.

use crate::channel::command::ChannelId;
use crate::dispatch::Pcpu;
use crate::dispatch::regions::Place;
use crate::function::{FunctionFacts, FunctionId};
use crate::mailbox::bit;
use crate::parts::{FUNCTIONS, PartOf};
use bulkhead_arch_api::{Access, AccessKind, Arch, Drivers, PartitionId, Reply, VcpuSet};
use bulkhead_devices::ivshmem::{CONFIG_SIZE, Function, REGISTERS_SIZE, nobody};
use bulkhead_sched::PcpuPolicy;

/// The window of the bridge with the configuration space; the other one has the registers.
const ECAM: u8 = 0;
/// Functions that a device can have.
const FUNCTIONS_PER_DEVICE: u64 = 8;

/// The PCI functions of VMs, on a pCPU.
pub(crate) struct Bridges<'p, 's, 'i, A: Arch, D, P> {
    pub(super) pcpu: &'p mut Pcpu<'s, 'i, A, D, P>,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the part with its pCPU.
    #[inline(always)]
    pub(crate) const fn functions(&mut self) -> Bridges<'_, 's, 'i, A, D, P> {
        Bridges { pcpu: self }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Bridges<'_, '_, '_, A, D, P> {
    /// Carries out an access to a window of the bridge. Where no function is, a load gives all ones.
    #[inline(never)]
    pub(crate) fn access_bridge(&mut self, place: &Place<'_>, access: &Access) -> Option<Reply> {
        let (partition, window, offset) = (place.partition, place.device.window(), place.offset);
        let size = access.size.min(4);
        let (device, offset) = if window == ECAM {
            let function = offset / CONFIG_SIZE;
            let is_first = function.is_multiple_of(FUNCTIONS_PER_DEVICE);
            let device = is_first.then_some(function / FUNCTIONS_PER_DEVICE);
            (device, offset % CONFIG_SIZE)
        } else {
            (Some(offset / REGISTERS_SIZE), offset % REGISTERS_SIZE)
        };
        let system = self.pcpu.system;
        let found = device.and_then(|device| system.function_at(partition, device));
        let Some((id, facts)) = found else {
            return Some(match access.kind {
                AccessKind::Read => Reply::Read(nobody(size).into()),
                AccessKind::Write(_) => Reply::Written,
            });
        };
        let reply = self.with_function(id, facts, |function| {
            let place = &facts.place;
            match (access.kind, window == ECAM) {
                (AccessKind::Read, true) => {
                    let value = function.read_config(place, offset as u16, size);
                    (Reply::Read(value.into()), None)
                }
                (AccessKind::Write(value), true) => {
                    function.write_config(offset as u16, size, value as u32);
                    (Reply::Written, None)
                }
                (AccessKind::Read, false) => {
                    let value = function.read_register(place, offset, size);
                    (Reply::Read(value.into()), None)
                }
                (AccessKind::Write(value), false) => {
                    let ring = function.write_register(offset, size, value as u32);
                    (Reply::Written, ring)
                }
            }
        });
        let Some((reply, ring)) = reply else {
            return Some(Reply::Written);
        };
        if let Some(side @ 0..32) = ring {
            self.pcpu
                .channels()
                .ring(partition, facts.channel, bit(side as u8).into());
        }
        Some(reply)
    }

    /// Changes a function. Its lock is kept while the interrupt line follows, so that the last change
    /// decides.
    pub(crate) fn with_function<T>(
        &mut self,
        id: FunctionId,
        facts: &FunctionFacts,
        change: impl FnOnce(&mut Function) -> T,
    ) -> Option<T> {
        let mut function = self.pcpu.shared.functions.get(usize::from(id.0))?.lock();
        let before = function.level();
        let result = change(&mut function);
        let after = function.level();
        let woken = if before == after {
            VcpuSet::EMPTY
        } else {
            self.pcpu
                .set_lines(facts.partition, facts.line, [before, false], [after, false])
        };
        drop(function);
        self.pcpu.wake_all(woken);
        Some(result)
    }

    /// Puts the functions of a VM into their first state.
    fn reset_functions(&mut self, partition: PartitionId) {
        let system = self.pcpu.system;
        for (id, facts) in system
            .functions()
            .filter(|(_, facts)| facts.partition == partition)
        {
            self.with_function(id, facts, |function| *function = Function::new());
        }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> PartOf for Bridges<'_, '_, '_, A, D, P> {
    const IS_THERE: bool = FUNCTIONS;

    #[inline(always)]
    fn reset(&mut self, partition: PartitionId) {
        self.reset_functions(partition);
    }

    #[inline(always)]
    fn rings(&mut self, partition: PartitionId, channel: ChannelId) -> bool {
        let is_it =
            |(_, facts): &(_, &FunctionFacts)| facts.partition == partition && facts.channel == channel;
        let found = self.pcpu.system.functions().find(is_it);
        if let Some((id, facts)) = found {
            self.with_function(id, facts, Function::ring);
        }
        found.is_some()
    }
}
