// SPDX-License-Identifier: Apache-2.0
//! A host on the network, as in the root of the crate, by a driver that knows Bulkhead.

pub mod ethernet;
#[path = "../internet.rs"]
pub mod internet;
