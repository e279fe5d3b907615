// SPDX-License-Identifier: Apache-2.0
//! Spaces of partitions as the kernel asks for them: built, copied in and out of, cleared.

use crate::attribution::Share;
use crate::lines;
use crate::machine::Machine;
use crate::pair::IS_PAIR;
use crate::protection::Space;
use crate::view::View;
use crate::windows::{self, Windows};
use bulkhead_arch_api::{
    AccessKind, BuildError, CopyError, GuestPhys, HostPhys, PartitionId, Permissions, SpacePlan, Spaces,
    VirtualDevice, class,
};
use bulkhead_arch_armv8m_core::Stretches;
use bulkhead_arch_one_pcpu::clear;
use bulkhead_arch_regions::{Requests, Rights, TASK_STRETCHES, Unfit, VM_STRETCHES, stretches};
use bulkhead_arch_support::{Mmio, physical};

impl Machine {
    /// Returns the way to a partition's memory.
    #[inline(always)]
    fn view(&self, partition: PartitionId) -> Option<View> {
        let space = self.spaces.get(partition).filter(|_| IS_PAIR)?;
        Some(View::of(&space.share, &self.attribution.shown))
    }

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

impl Machine {
    /// Returns where memory of a partition is, which may be in a window that is closed.
    #[inline(always)]
    fn owned(&self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<usize, CopyError> {
        let found = self.checked(partition, guest, length, |rights| !rights.is_none());
        if windows::IS_THERE
            && found.is_err()
            && let Some(space) = self.spaces.get(partition)
            && space.windows.has(guest, length)
        {
            return Ok(guest.0 as usize);
        }
        found
    }
}

impl Spaces for Machine {
    fn build(
        &mut self,
        partition: PartitionId,
        plan: &SpacePlan<'_>,
        _devices: impl Iterator<Item = VirtualDevice>,
    ) -> Result<(), BuildError> {
        let mut requests = Requests::new();
        requests.take(plan.regions)?;
        // A VM has a virtual interrupt controller: its lines are counted.
        let is_vm = plan.lines != 0;
        let most = if is_vm { VM_STRETCHES } else { TASK_STRETCHES };
        let unit = class::ARMV8M.granule as u32;
        let found = stretches(requests.as_slice(), unit, most).map_err(|unfit| match unfit {
            Unfit::Unaligned { index } | Unfit::Forbidden { index } => {
                BuildError::BadRegion(requests.address(index))
            }
            Unfit::Overlap { index, .. } => BuildError::Overlap(requests.address(index)),
            Unfit::TooMany { .. } => BuildError::TablesExhausted,
        })?;
        let mut stretches = Stretches::of(&found);
        let windows = Windows::of(&mut stretches);
        let share = match self.attribution.share(stretches) {
            Some(share) if IS_PAIR && is_vm => {
                self.attribution.set_all(&share, true);
                share
            }
            _ if IS_PAIR && !is_vm => Share::of_task(stretches),
            Some(share) => share,
            None if is_vm => return Err(BuildError::TablesExhausted),
            None => Share::of_task(stretches),
        };
        let space = Space { share, windows };
        if self.spaces.set(partition, space, &mut self.pool) {
            Ok(())
        } else {
            Err(BuildError::TablesExhausted)
        }
    }

    fn protect(&mut self, partition: PartitionId, guest: GuestPhys, _size: u64, permissions: Permissions) {
        self.change_window(partition, guest, permissions);
    }

    fn copy_in(&self, partition: PartitionId, guest: GuestPhys, bytes: &mut [u8]) -> Result<(), CopyError> {
        let from = self.checked(partition, guest, bytes.len() as u64, |rights| rights.read)?;
        let _view = self.view(partition);
        // SAFETY: memory of the partition, which is readable by privileged code, and to which no Rust
        // reference exists.
        unsafe { physical::read(from, bytes) }
        Ok(())
    }

    fn copy_out(&mut self, partition: PartitionId, guest: GuestPhys, bytes: &[u8]) -> Result<(), CopyError> {
        let to = self.owned(partition, guest, bytes.len() as u64)?;
        let _view = self.view(partition);
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
        let to = self.owned(partition, guest, length)?;
        let _view = self.view(partition);
        // SAFETY: as for `copy_out`.
        Ok(unsafe { clear(to, length as usize, lines::is_pending) } as u64)
    }

    fn clean(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError> {
        // A Cortex-M33 has no cache, and the hypervisor switches no cache of the board on.
        self.checked(partition, guest, length, |rights| !rights.is_none())?;
        Ok(())
    }

    fn forward(&mut self, register: HostPhys, size: u8, kind: AccessKind) -> u64 {
        let has = |trapped: crate::answer::Trapped<'_>| trapped.space.has(register.0 as u32);
        let tenant = self.tenant.filter(|_| !self.is_closed);
        let is_open = tenant.is_some_and(|tenant| self.trapped(tenant).is_some_and(has));
        let _reach = (!is_open)
            .then(|| self.attribution.reach(register.0 as u32))
            .flatten();
        // SAFETY: the system image's table of registers says that this is a register of a device.
        unsafe { Mmio::new(register.0 as usize, usize::from(size)) }.forward(size, kind)
    }

    fn reset_shared(&mut self, partition: PartitionId, _part: u32) -> Option<u32> {
        self.irq.forget(partition);
        None
    }
}
