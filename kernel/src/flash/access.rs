// SPDX-License-Identifier: Apache-2.0
//! Virtual flashes: this file carries out what `bulkhead-devices` decides about their bytes.
//!
//! The lock of a flash is held while its bytes change, at most for one step of an erasure. Only vCPUs of the
//! same partition wait for it.

use crate::dispatch::Pcpu;
use crate::dispatch::regions::Place;
use crate::parts::{FLASH, PartOf};
use bulkhead_arch_api::class::DeviceRole;
use bulkhead_arch_api::{
    Access, AccessKind, Arch, CopyError, Drivers, GuestPhys, PartitionId, Permissions, Reply, VirtualDevice,
};
use bulkhead_devices::flash::{BUFFER, Bank, Loaded, Work};
use bulkhead_sched::PcpuPolicy;

/// Bytes of an erased piece, as they are copied.
const ERASED: [u8; 512] = [0xFF; 512];

/// Returns the rights to a bank that is in array mode, or not. No guest stores to a bank directly.
const fn rights(is_array: bool) -> Permissions {
    Permissions {
        read: is_array,
        write: false,
        execute: is_array,
    }
}

/// The flashes of VMs, on a pCPU.
pub(crate) struct Flashing<'p, 's, 'i, A: Arch, D, P> {
    pub(super) pcpu: &'p mut Pcpu<'s, 'i, A, D, P>,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the part with its pCPU.
    #[inline(always)]
    pub(crate) const fn flash(&mut self) -> Flashing<'_, 's, 'i, A, D, P> {
        Flashing { pcpu: self }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Flashing<'_, '_, '_, A, D, P> {
    /// Carries out an access to a bank of the partition's flash.
    #[inline(never)]
    pub(crate) fn access_flash(&mut self, place: &Place<'_>, access: &Access) -> Option<Reply> {
        let Place {
            partition,
            device,
            offset,
        } = *place;
        let shared = self.pcpu.shared;
        let mut flash = shared.flashes.of(partition).lock();
        let bank = flash.bank(device)?;
        let was_readable = bank.is_array();
        let (reply, work) = match access.kind {
            AccessKind::Write(value) => (
                Reply::Written,
                bank.store(offset, access.size, value, device.size()),
            ),
            AccessKind::Read => match bank.load(offset, access.size, device.size()) {
                Loaded::Value(value, work) => (Reply::Read(value), work),
                Loaded::Array => (self.load_array(partition, access), Work::Nothing),
            },
        };
        // The hypervisor's copies cannot fail: the image's check has found the memory of the bank.
        let _done = self.change_flash(partition, device, bank, work);
        if bank.is_array() != was_readable {
            let (guest, size) = (GuestPhys(device.base()), u64::from(device.size()));
            self.pcpu
                .machine
                .protect(partition, guest, size, rights(bank.is_array()));
        }
        Some(reply)
    }

    /// Answers a load that was refused just before its bank went back to array mode.
    fn load_array(&mut self, partition: PartitionId, access: &Access) -> Reply {
        let mut bytes = [0; 8];
        let wanted = bytes.get_mut(..usize::from(access.size)).unwrap_or_default();
        let _loaded = self.pcpu.machine.copy_in(partition, access.address, wanted);
        Reply::Read(u64::from_le_bytes(bytes))
    }

    /// Programs or erases bytes of a bank.
    fn change_flash(
        &mut self,
        partition: PartitionId,
        device: &VirtualDevice,
        bank: &Bank,
        work: Work,
    ) -> Result<(), CopyError> {
        let at = |offset: u32| GuestPhys(device.base().saturating_add(offset.into()));
        match work {
            Work::Nothing => Ok(()),
            Work::Program { offset } => {
                let mut bytes = [0; BUFFER];
                let data = bank.data();
                let old = bytes.get_mut(..data.len()).unwrap_or_default();
                self.pcpu.machine.copy_in(partition, at(offset), old)?;
                for (old, new) in old.iter_mut().zip(data) {
                    *old &= new;
                }
                self.pcpu.machine.copy_out(partition, at(offset), old)
            }
            Work::Erase { offset, length } => {
                for done in (0..length).step_by(ERASED.len()) {
                    let place = at(offset.saturating_add(done));
                    self.pcpu.machine.copy_out(partition, place, &ERASED)?;
                }
                Ok(())
            }
        }
    }

    /// Puts the banks of the partition's flash into array mode, and notes that their contents are there.
    fn reset_flash(&mut self, partition: PartitionId) {
        let (system, shared) = (self.pcpu.system, self.pcpu.shared);
        for device in system.devices_of(partition) {
            if system.role_of(device) != Some(DeviceRole::Flash) {
                continue;
            }
            let mut flash = shared.flashes.of(partition).lock();
            flash.is_filled = true;
            if let Some(bank) = flash.bank(device)
                && !bank.is_array()
            {
                bank.reset();
                let (guest, size) = (GuestPhys(device.base()), u64::from(device.size()));
                self.pcpu.machine.protect(partition, guest, size, rights(true));
            } else if let Some(bank) = flash.bank(device) {
                bank.reset();
            }
        }
    }

    /// Tells whether a piece of a payload is not to be copied at a start: it belongs to a flash that has its
    /// contents.
    fn is_kept_in_flash(&self, partition: PartitionId, guest: GuestPhys) -> bool {
        if !self.pcpu.shared.flashes.of(partition).lock().is_filled {
            return false;
        }
        let mut devices = self.pcpu.system.devices_of(partition).iter();
        devices.any(|device| {
            self.pcpu.system.role_of(device) == Some(DeviceRole::Flash) && device.offset_of(guest.0).is_some()
        })
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> PartOf for Flashing<'_, '_, '_, A, D, P> {
    const IS_THERE: bool = FLASH;

    #[inline(always)]
    fn reset(&mut self, partition: PartitionId) {
        self.reset_flash(partition);
    }

    #[inline(always)]
    fn keeps(&mut self, partition: PartitionId, guest: GuestPhys) -> bool {
        self.is_kept_in_flash(partition, guest)
    }
}
