// SPDX-License-Identifier: Apache-2.0
//! Spaces of partitions as the kernel asks for them: built, copied in and out of, cleared.

use crate::machine::Machine;
use crate::protection::Space;
use crate::{lines, starts};
use bulkhead_arch_api::{
    AccessKind, BuildError, CopyError, GuestPhys, HostPhys, PartitionId, SpacePlan, Spaces, VirtualDevice,
};
use bulkhead_arch_one_pcpu::clear;
use bulkhead_arch_regions::{Refusal, Requests, Rights, plan};
use bulkhead_arch_support::{Mmio, physical};

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
        whole: &SpacePlan<'_>,
        _devices: impl Iterator<Item = VirtualDevice>,
    ) -> Result<(), BuildError> {
        let mut requests = Requests::new();
        requests.take(whole.regions)?;
        let plan = plan(requests.as_slice(), self.regions).map_err(|refusal| match refusal {
            Refusal::Unaligned { index, .. } | Refusal::Forbidden { index, .. } => {
                BuildError::BadRegion(requests.address(index))
            }
            Refusal::Overlap { index, .. } => BuildError::Overlap(requests.address(index)),
            Refusal::TooMany { .. } => BuildError::TablesExhausted,
        })?;
        let space = Space::new(&plan, self.lookalikes);
        if let Some(vcpu) = self.first_of(partition) {
            self.settle_early(vcpu);
        }
        if self.spaces.set(partition, space, &mut self.pool) {
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
        // SAFETY: memory of the partition, to which no Rust reference exists; privileged code may write all
        // RAM.
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
        let enough = || lines::is_pending() || starts::has_ended();
        // SAFETY: as for `copy_out`.
        Ok(unsafe { clear(to, length as usize, enough) } as u64)
    }

    fn clean(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError> {
        // Caches, if the CPU has any, are off: `bulkhead_start` sees to it.
        self.checked(partition, guest, length, |rights| !rights.is_none())?;
        Ok(())
    }

    fn forward(&mut self, register: HostPhys, size: u8, kind: AccessKind) -> u64 {
        // SAFETY: the system image's table of registers says that this is a register of a device.
        unsafe { Mmio::new(register.0 as usize, usize::from(size)) }.forward(size, kind)
    }

    fn reset_shared(&mut self, partition: PartitionId, _part: u32) -> Option<u32> {
        self.forget_lines(partition);
        None
    }
}
