// SPDX-License-Identifier: Apache-2.0
//! The virtual flash of a partition: the state of its banks.
//!
//! The bytes of a bank are memory of the partition, which the partition may load and fetch from but not store
//! to. Stores come to the kernel, which programs and erases ([`crate::dispatch`]). While a bank is not in
//! array mode, loads come to the kernel, too.
//!
//! Flash keeps its contents when the partition starts again: the image's contents are copied at the first
//! start only.

mod access;

use crate::parts::{Part, entries};
use bulkhead_arch_api::{MAX_PARTITIONS, VirtualDevice};
use bulkhead_devices::flash::Bank;

/// Flashes that there is room for. A class with small tables has none.
pub const FLASHES: usize = entries(Part::Flash, MAX_PARTITIONS);

/// The flash of a partition.
#[derive(Debug)]
pub struct Flash {
    /// The banks, by the number of the device's window.
    pub banks: [Bank; 2],
    /// The contents are there.
    pub is_filled: bool,
}

impl Flash {
    /// Returns the state before the first start.
    pub(crate) const fn new() -> Self {
        Self {
            banks: [const { Bank::new() }; 2],
            is_filled: false,
        }
    }

    /// Returns the bank that is a window of the device.
    pub fn bank(&mut self, device: &VirtualDevice) -> Option<&mut Bank> {
        self.banks.get_mut(usize::from(device.window()))
    }
}
