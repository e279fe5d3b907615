// SPDX-License-Identifier: Apache-2.0
//! PCI functions: the sides of channels that a VM finds on the bus of its virtual host bridge.
//!
//! A function is at the device number that counts the sides of its VM with a function, on bus 0. Its
//! registers are a page of the window of the bridge, at the same number.

mod bridge;

use crate::channel::command::ChannelId;
use bulkhead_arch_api::{PartitionId, VirtualDevice, VirtualLine};
use bulkhead_devices::ivshmem::{Place, REGISTERS_SIZE};
use bulkhead_image::layout::{ChannelRecord, SideRecord};

/// The most functions of all VMs. A class without a bridge has none, and keeps no place for one.
pub const MAX_FUNCTIONS: usize = bulkhead_image::MAX_FUNCTIONS;

/// A function, by its number in the order of the sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionId(pub u8);

/// The facts of a function.
#[derive(Clone, Copy, Debug)]
pub struct FunctionFacts {
    /// The VM.
    pub partition: PartitionId,
    /// The channel.
    pub channel: ChannelId,
    /// The device number on the bus of the VM.
    pub device: u8,
    /// The line that INTx is wired to.
    pub line: VirtualLine,
    /// The addresses of the function.
    pub place: Place,
}

impl FunctionFacts {
    /// No function.
    pub const NOTHING: Self = Self {
        partition: PartitionId(0),
        channel: ChannelId(0),
        device: 0,
        line: VirtualLine(0),
        place: Place {
            registers: 0,
            memory: 0,
            size: 0,
            position: 0,
        },
    };

    /// Returns the facts of the side with number `position` of a channel, which is device `device` on the bus
    /// of the bridge whose window of registers this is.
    #[must_use]
    pub const fn new(
        side: &SideRecord,
        channel: &ChannelRecord,
        position: u8,
        registers: &VirtualDevice,
        device: u8,
    ) -> Self {
        Self {
            partition: PartitionId(side.partition.get() as u8),
            channel: ChannelId(side.channel.get() as u8),
            device,
            line: VirtualLine(side.virtual_line.get()),
            place: Place {
                registers: registers
                    .base()
                    .wrapping_add(REGISTERS_SIZE.wrapping_mul(device as u64)),
                memory: side.guest.get(),
                size: channel.size.get(),
                position,
            },
        }
    }
}
