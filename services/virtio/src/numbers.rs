// SPDX-License-Identifier: Apache-2.0
//! The numbers of the standard that the queues and the back ends use. They come from the crate `virtio-spec`,
//! here as plain numbers.

use virtio::virtq::{AvailF, DescF};
use virtio::{DeviceStatus, F};

/// Feature: descriptors can be in a table of their own.
pub const FEATURE_INDIRECT: u64 = F::INDIRECT_DESC.bits().to_ne() as u64;
/// Feature: each side says from which buffer on it wants to be notified.
pub const FEATURE_EVENT_INDEX: u64 = F::EVENT_IDX.bits().to_ne() as u64;
/// Feature: the device follows version 1 or later.
pub const FEATURE_VERSION_1: u64 = F::VERSION_1.bits().to_ne() as u64;
/// Feature: queues are packed.
pub const FEATURE_PACKED: u64 = F::RING_PACKED.bits().to_ne() as u64;
/// The features that the queues of each device have.
pub const QUEUE_FEATURES: u64 = FEATURE_INDIRECT | FEATURE_EVENT_INDEX | FEATURE_PACKED;

/// Flag of a descriptor: the chain goes on.
pub const NEXT: u16 = DescF::NEXT.bits().to_ne();
/// Flag of a descriptor: the device writes the buffer.
pub const WRITE: u16 = DescF::WRITE.bits().to_ne();
/// Flag of a descriptor: the buffer is a table of descriptors.
pub const INDIRECT: u16 = DescF::INDIRECT.bits().to_ne();
/// Flag of a packed descriptor: the driver's wrap counter.
pub const AVAILABLE: u16 = DescF::AVAIL.bits().to_ne();
/// Flag of a packed descriptor: the device's wrap counter.
pub const USED: u16 = DescF::USED.bits().to_ne();
/// Flag of the driver's area of a split queue: no interrupt is wanted.
pub const NO_INTERRUPT: u16 = AvailF::NO_INTERRUPT.bits().to_ne();

/// An Ethernet interface.
pub const DEVICE_NETWORK: u32 = 1;
/// A block device.
pub const DEVICE_BLOCK: u32 = 2;
/// A console.
pub const DEVICE_CONSOLE: u32 = 3;
/// A source of entropy.
pub const DEVICE_ENTROPY: u32 = 4;

// The window uses no outside crate: it is part of the hypervisor, too.
const _: () = {
    use bulkhead_devices::virtio_mmio as window;
    assert!(FEATURE_VERSION_1 == window::FEATURE_VERSION_1 && FEATURE_PACKED == window::FEATURE_PACKED);
    assert!(DeviceStatus::ACKNOWLEDGE.bits() == window::STATUS_ACKNOWLEDGE);
    assert!(DeviceStatus::DRIVER.bits() == window::STATUS_DRIVER);
    assert!(DeviceStatus::DRIVER_OK.bits() == window::STATUS_DRIVER_OK);
    assert!(DeviceStatus::FEATURES_OK.bits() == window::STATUS_FEATURES_OK);
    assert!(DeviceStatus::DEVICE_NEEDS_RESET.bits() == window::STATUS_NEEDS_RESET);
    assert!(DeviceStatus::FAILED.bits() == window::STATUS_FAILED);
};

#[cfg(test)]
mod tests {
    use super::{DEVICE_BLOCK, DEVICE_CONSOLE, DEVICE_ENTROPY, DEVICE_NETWORK};
    use virtio::Id;

    // The crate makes these numbers only at run time.
    #[test]
    fn the_kinds_have_the_numbers_of_the_standard() {
        let kinds = [Id::Net, Id::Block, Id::Console, Id::Rng].map(|kind| u32::from(u8::from(kind)));
        assert_eq!(
            kinds,
            [DEVICE_NETWORK, DEVICE_BLOCK, DEVICE_CONSOLE, DEVICE_ENTROPY]
        );
    }
}
