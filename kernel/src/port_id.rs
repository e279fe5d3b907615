// SPDX-License-Identifier: Apache-2.0
//! The numbers of ports, and tables with an entry for each.

use crate::parts::{Part, entries};
use crate::table::{Id, Table};

/// Ports that a system can have. A class without ports has none.
pub const MAX_PORTS: usize = bulkhead_image::MAX_PORTS;
/// Entries of a table of ports. A table has at least one.
pub(crate) const PORT_ENTRIES: usize = entries(Part::Ports, MAX_PORTS);

/// A port, by its number in the system image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortId(pub u8);

impl Id for PortId {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One entry per port.
pub type PerPort<T> = Table<PortId, T, PORT_ENTRIES>;
