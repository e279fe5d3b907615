// SPDX-License-Identifier: Apache-2.0
//! Spaces of partitions as the kernel asks for them: built, copied in and out of, cleared.

use crate::attribution::VM_REGIONS;
use crate::lines;
use crate::machine::Machine;
use crate::protection::{Open, Space};
use bulkhead_arch_api::{
    AccessKind, BuildError, CopyError, GuestPhys, HostPhys, MemoryKind, PartitionId, Region, SpacePlan,
    Spaces, VirtualDevice,
};
use bulkhead_arch_armv8m_core::{Refusal, Stretch, Stretches};
use bulkhead_arch_one_pcpu::clear;
use bulkhead_arch_regions::Rights;
use bulkhead_arch_support::{Mmio, physical};

fn stretch(region: &Region) -> Option<Stretch> {
    let rights = Rights {
        read: region.permissions.read,
        write: region.permissions.write,
        execute: region.permissions.execute,
    };
    let is_device = region.kind == MemoryKind::Device;
    let stretch = Stretch::new(region.guest.0, region.size, rights, is_device)?;
    (region.guest.0 == region.host.0).then_some(stretch)
}

impl Machine {
    fn checked(
        &self,
        partition: PartitionId,
        guest: GuestPhys,
        length: u64,
        enough: fn(Rights) -> bool,
    ) -> Result<usize, CopyError> {
        let refused = match self.spaces.get(partition) {
            Some(space) => space.first_refused(guest.0, length, enough),
            None => Some(guest.0),
        };
        match refused {
            Some(address) => Err(CopyError {
                address: GuestPhys(address),
            }),
            None => Ok(guest.0 as usize),
        }
    }
}

impl Spaces for Machine {
    fn build(
        &mut self,
        partition: PartitionId,
        plan: &SpacePlan<'_>,
        _devices: impl Iterator<Item = VirtualDevice>,
    ) -> Result<(), BuildError> {
        let mut stretches = Stretches::EMPTY;
        for region in plan.regions {
            let bad = BuildError::BadRegion(region.guest);
            let stretch = stretch(region).ok_or(bad)?;
            stretches.add(stretch).map_err(|refusal| match refusal {
                Refusal::Overlap(_) => BuildError::Overlap(region.guest),
                Refusal::TooMany => BuildError::TablesExhausted,
            })?;
        }
        // A VM has a virtual interrupt controller: its lines are counted.
        let is_vm = plan.lines != 0;
        if is_vm && stretches.as_slice().len() > VM_REGIONS {
            return Err(BuildError::TablesExhausted);
        }
        if self.spaces.set(partition, Space { stretches }, &mut self.pool) {
            Ok(())
        } else {
            Err(BuildError::TablesExhausted)
        }
    }

    fn copy_in(&self, partition: PartitionId, guest: GuestPhys, bytes: &mut [u8]) -> Result<(), CopyError> {
        let from = self.checked(partition, guest, bytes.len() as u64, |rights| rights.read)?;
        // SAFETY: memory of the partition, which is readable by privileged code, and to which no Rust
        // reference exists.
        unsafe { physical::read(from, bytes) }
        Ok(())
    }

    fn copy_out(&mut self, partition: PartitionId, guest: GuestPhys, bytes: &[u8]) -> Result<(), CopyError> {
        let to = self.checked(partition, guest, bytes.len() as u64, |rights| !rights.is_none())?;
        let _open = Open::new();
        // SAFETY: memory of the partition, to which no Rust reference exists; the protection unit is off, so
        // privileged code may write all RAM.
        unsafe { physical::write(to, bytes) }
        Ok(())
    }

    fn may_access(&self, partition: PartitionId, guest: GuestPhys, length: u64, is_store: bool) -> bool {
        // Registers of devices have no rights here.
        let enough: fn(Rights) -> bool = if is_store {
            |rights| rights.read && rights.write
        } else {
            |rights| rights.read
        };
        self.checked(partition, guest, length, enough).is_ok()
    }

    fn clear(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<u64, CopyError> {
        let to = self.checked(partition, guest, length, |rights| !rights.is_none())?;
        let _open = Open::new();
        // SAFETY: as for `copy_out`.
        Ok(unsafe { clear(to, length as usize, lines::is_pending) } as u64)
    }

    fn clean(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError> {
        // A Cortex-M33 has no cache of its own, and the hypervisor switches none of the board's on.
        self.checked(partition, guest, length, |rights| !rights.is_none())?;
        Ok(())
    }

    fn forward(&mut self, register: HostPhys, size: u8, kind: AccessKind) -> u64 {
        let is_open = self.tenant.is_some_and(|tenant| {
            self.trapped(tenant)
                .is_some_and(|trapped| trapped.space.has(register.0 as u32))
        });
        let _reach = (!is_open).then(|| self.attribution.reach(register.0 as u32)).flatten();
        // SAFETY: the system image's table of registers says that this is a register of a device.
        unsafe { Mmio::new(register.0 as usize, usize::from(size)) }.forward(size, kind)
    }

    fn reset_shared(&mut self, partition: PartitionId, _part: u32) -> Option<u32> {
        self.irq.forget(partition);
        None
    }
}
