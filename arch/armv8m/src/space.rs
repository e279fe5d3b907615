// SPDX-License-Identifier: Apache-2.0
//! Spaces of partitions as the kernel asks for them: built, copied in and out of, cleared.

use crate::attribution::Share;
use crate::lines;
use crate::machine::Machine;
use crate::pair::IS_PAIR;
use crate::protection::{self, Space};
use crate::view::View;
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
        let stretches = Stretches::of(&found);
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
        let space = Space { share };
        if self.spaces.set(partition, space, &mut self.pool) {
            Ok(())
        } else {
            Err(BuildError::TablesExhausted)
        }
    }

    fn protect(&mut self, partition: PartitionId, guest: GuestPhys, _size: u64, permissions: Permissions) {
        if IS_PAIR {
            // The other CPU may use the space now, so a window stays closed. The tool refuses such a system.
            return;
        }
        let is_vm = self.attribution.is_vm(partition.0.into());
        let Permissions { read, write, .. } = permissions;
        // The SAU knows no rights: what a VM may load, it could write.
        let is_open = read && (write || !is_vm);
        let rights = Rights {
            read: is_open,
            write: is_open && write,
            execute: false,
        };
        let holder = self.first_of(partition);
        if is_vm && holder.is_some() && self.tenant == holder {
            self.evict();
            // So the VM gets its world anew when it runs next.
            self.current = self.current.filter(|current| Some(*current) != holder);
        }
        let Some(space) = self.spaces.get_mut(partition) else {
            return;
        };
        space.share.stretches.set_rights(guest.0 as u32, rights);
        if is_vm {
            // There is room: `build` has counted the windows.
            let _fits = self.attribution.find_runs(&mut space.share);
        } else if self.current == holder {
            protection::load(&space.share.stretches, &mut self.loaded);
        }
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
        let to = self.checked(partition, guest, bytes.len() as u64, |_| true)?;
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
        let to = self.checked(partition, guest, length, |_| true)?;
        let _view = self.view(partition);
        // SAFETY: as for `copy_out`.
        Ok(unsafe { clear(to, length as usize, lines::is_pending) } as u64)
    }

    fn clean(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError> {
        // A Cortex-M33 has no cache, and the hypervisor switches no cache of the board on.
        self.checked(partition, guest, length, |_| true)?;
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
