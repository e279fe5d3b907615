// SPDX-License-Identifier: Apache-2.0
//! Interfaces of VMs to networks: what the switch knows of them.
//!
//! A network connects VMs with each other and, if it is network 0, with the board's own interface. Which address is where is the
//! manifest's: nothing is learned, so nothing that a guest sends changes where others' frames go. Frames wait in memory that
//! the system image sets aside for their receiver; a receiver that does not take them loses its own, and nobody else's.

use crate::table::{Id, Table};
use bulkhead_arch_api::{GuestPhys, HostPhys, PartitionId, VirtualLine};
use bulkhead_devices::lan9118::Lan9118;
use bulkhead_image::MAX_NICS;
use bulkhead_image::layout::{NicRecord, VirtualDeviceRecord};

/// Number of an interface: that of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicId(pub u8);

impl Id for NicId {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One entry per interface.
pub(crate) type PerNic<T> = Table<NicId, T, MAX_NICS>;

/// The network that the board's interface is on.
pub(crate) const OUTSIDE: u8 = 0;

/// A MAC address.
pub(crate) type Address = [u8; 6];

/// What the manifest says of an interface.
#[derive(Clone, Copy, Debug)]
pub struct NicFacts {
    /// Whose it is.
    pub partition: PartitionId,
    /// Its network.
    pub network: u8,
    /// Its address on it.
    pub address: Address,
    /// Memory for its frames.
    pub memory: HostPhys,
    /// First register.
    pub base: GuestPhys,
    /// Bytes of its registers.
    pub size: u32,
    /// Its interrupt.
    pub line: Option<VirtualLine>,
}

impl NicFacts {
    pub(crate) const NOTHING: Self = Self {
        partition: PartitionId(0),
        network: u8::MAX,
        address: [0; 6],
        memory: HostPhys(0),
        base: GuestPhys(0),
        size: 0,
        line: None,
    };

    /// Where among its registers an address is.
    pub(crate) fn offset_of(&self, address: GuestPhys) -> Option<u64> {
        address
            .0
            .checked_sub(self.base.0)
            .filter(|offset| *offset < self.size.into())
    }

    /// An interface whose registers are those of `device`.
    pub(crate) fn new(record: &NicRecord, device: &VirtualDeviceRecord, line: Option<VirtualLine>) -> Self {
        let [a0, a1, a2, a3, a4, a5, _, _] = record.address;
        let ([base, _], [size, _]) = (device.base, device.size);
        Self {
            partition: PartitionId(record.partition.get() as u8),
            network: record.network.get() as u8,
            address: [a0, a1, a2, a3, a4, a5],
            memory: HostPhys(record.memory.get()),
            base: GuestPhys(base.get()),
            size: size.get() as u32,
            line,
        }
    }
}

/// An interface.
#[derive(Debug)]
pub(crate) struct Nic {
    /// Its registers.
    pub device: Lan9118,
    /// Frames it wanted to send with an address that is not its own, or that are no frames.
    pub refused: u32,
}

impl Nic {
    pub(crate) const fn new(address: Address) -> Self {
        Self {
            device: Lan9118::new(address),
            refused: 0,
        }
    }
}
