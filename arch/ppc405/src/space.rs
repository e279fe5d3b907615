// SPDX-License-Identifier: Apache-2.0
//! Spaces of partitions as the kernel asks for them: built, copied in and out of, cleared.

use crate::machine::Machine;
use crate::sysreg;
use bulkhead_arch_api::{
    AccessKind, AddressSpace, BuildError, CLEAR_AT_ONCE, CopyError, GuestPhys, HostPhys, PartitionId,
    SpacePlan, Spaces, VirtualDevice,
};
use bulkhead_arch_ppc405_core::fill::Stretch;
use bulkhead_arch_support::{Mmio, physical};

impl Machine {
    /// Returns the mapping of an address, and how many bytes it has from there on.
    fn stretch(&self, partition: PartitionId, guest: u64) -> Option<(&Stretch, u64)> {
        let address = u32::try_from(guest).ok()?;
        let stretch = self.spaces.get(partition)?.at(address)?;
        let left = u64::from(stretch.last) + 1 - u64::from(address.wrapping_sub(stretch.guest));
        Some((stretch, left))
    }

    /// Calls `each` with address and length of the pieces of memory that `length` bytes are in.
    fn pieces(
        &self,
        partition: PartitionId,
        guest: GuestPhys,
        length: u64,
        mut each: impl FnMut(usize, usize, usize),
    ) -> Result<(), CopyError> {
        let mut done = 0;
        while done < length {
            let refused = CopyError {
                address: GuestPhys(guest.0.saturating_add(done)),
            };
            let address = guest.0.checked_add(done).ok_or(refused)?;
            let (stretch, left) = self.stretch(partition, address).ok_or(refused)?;
            if stretch.is_device {
                return Err(refused);
            }
            let part = left.min(length - done);
            each(
                stretch.host(address as u32) as usize,
                done as usize,
                part as usize,
            );
            done += part;
        }
        Ok(())
    }
}

impl Spaces for Machine {
    fn build(
        &mut self,
        partition: PartitionId,
        plan: &SpacePlan<'_>,
        devices: impl Iterator<Item = VirtualDevice>,
    ) -> Result<(), BuildError> {
        let space = self.spaces.claim(partition).ok_or(BuildError::TablesExhausted)?;
        for device in devices.filter(|device| device.is_in(AddressSpace::Memory) && device.size() != 0) {
            let first = device.base() as u32;
            if !space.add_device(first, first.saturating_add(device.size() - 1)) {
                return Err(BuildError::TablesExhausted);
            }
        }
        plan.regions.iter().try_for_each(|region| space.add(region))
    }

    fn copy_in(&self, partition: PartitionId, guest: GuestPhys, bytes: &mut [u8]) -> Result<(), CopyError> {
        let length = bytes.len() as u64;
        self.pieces(partition, guest, length, |host, at, length| {
            if let Some(part) = bytes.get_mut(at..at + length) {
                // SAFETY: memory of the partition, to which no Rust reference exists.
                unsafe { physical::read(host, part) }
            }
        })
    }

    fn copy_out(&mut self, partition: PartitionId, guest: GuestPhys, bytes: &[u8]) -> Result<(), CopyError> {
        self.pieces(partition, guest, bytes.len() as u64, |host, at, length| {
            if let Some(part) = bytes.get(at..at + length) {
                // SAFETY: as for `copy_in`.
                unsafe { physical::write(host, part) }
            }
            sysreg::make_code_visible(host, length);
        })
    }

    fn may_access(&self, partition: PartitionId, guest: GuestPhys, length: u64, is_store: bool) -> bool {
        let mut done = 0;
        while done < length {
            let Some(address) = guest.0.checked_add(done) else {
                return false;
            };
            match self.stretch(partition, address) {
                Some((stretch, left)) if !stretch.is_device => {
                    let may = if is_store { stretch.write } else { stretch.read };
                    if !may {
                        return false;
                    }
                    done += left;
                }
                _ => return false,
            }
        }
        true
    }

    fn clear(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<u64, CopyError> {
        /// As many bytes as a step of [`sysreg::clear_groups`] clears. A payload ends anywhere.
        const ZEROS: [u8; sysreg::GROUP] = [0; sysreg::GROUP];
        // An instruction clears four bytes: half as much as elsewhere is as long a stretch.
        let length = length.min(CLEAR_AT_ONCE / 2);
        self.pieces(partition, guest, length, |host, _, length| {
            let head = (host.next_multiple_of(ZEROS.len()) - host).min(length);
            let (groups, tail) = ((length - head) / ZEROS.len(), (length - head) % ZEROS.len());
            let bytes = |to, count| {
                // SAFETY: as for `copy_in`.
                unsafe { physical::write(to, ZEROS.get(..count).unwrap_or(&[])) }
            };
            bytes(host, head);
            // SAFETY: as for `copy_in`.
            unsafe { sysreg::clear_groups(host + head, groups) }
            bytes(host + length - tail, tail);
        })?;
        Ok(length)
    }

    fn clean(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError> {
        self.pieces(partition, guest, length, |host, _, length| {
            sysreg::make_code_visible(host, length);
        })
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
