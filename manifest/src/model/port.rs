// SPDX-License-Identifier: Apache-2.0
//! Ports and locks: their numbers, and the room that a port keeps for each sender.

use bulkhead_abi::Rights;
use bulkhead_image::layout::{Name, PortRecord};
use zerocopy::FromZeros;

use super::{CapabilitySpec, Manifest, PartitionSpec, PortSpec, Target};

/// Returns the number of a port in the system image.
pub(crate) fn number(manifest: &Manifest, name: &str) -> Option<usize> {
    manifest.ports.iter().position(|port| port.name.value == name)
}

/// Returns the number of a lock in the system image.
pub(crate) fn lock_number(manifest: &Manifest, name: &str) -> Option<usize> {
    manifest.locks.iter().position(|lock| lock.name.value == name)
}

/// Tells whether a capability is one for this port, and gives the right to send there.
pub(crate) fn sends_to(capability: &CapabilitySpec, port: &str) -> bool {
    let is_it = matches!(capability.target(), Some(Target::Port(name)) if name.value == port);
    is_it && capability.gives(Rights::WRITE)
}

/// Tells whether a capability is one for this port, and gives the right to receive there.
pub(crate) fn receives_from(capability: &CapabilitySpec, port: &str) -> bool {
    let is_it = matches!(capability.target(), Some(Target::Port(name)) if name.value == port);
    is_it && (capability.rights.is_none() || capability.gives(Rights::READ))
}

/// The room of a port, as the manifest divides it.
pub(crate) struct Division {
    /// The messages for which capabilities name room.
    pub named: u32,
    /// The senders whose capabilities name none.
    pub unnamed: u32,
    /// All senders.
    pub senders: u32,
    /// The lines that receivers may bind to the port. Each takes the room of a message.
    pub lines: u32,
}

impl Division {
    /// Adds up what the manifest says of a port.
    pub fn of(manifest: &Manifest, port: &PortSpec) -> Self {
        let mut division = Self {
            named: 0,
            unnamed: 0,
            senders: 0,
            lines: 0,
        };
        let name = &port.name.value;
        for partition in &manifest.partitions {
            let own = || partition.capabilities.iter();
            let mut rooms = own().filter(|capability| sends_to(capability, name)).peekable();
            if rooms.peek().is_some() {
                let named: Vec<_> = rooms.filter_map(|capability| capability.room.as_ref()).collect();
                division.senders = division.senders.saturating_add(1);
                division.unnamed = division.unnamed.saturating_add(named.is_empty().into());
                let sum = named.iter().map(|room| room.value.get());
                division.named = sum.fold(division.named, u32::saturating_add);
            }
            if own().any(|capability| receives_from(capability, name)) {
                let lines = own().filter(|own| matches!(own.target(), Some(Target::Interrupt(_))));
                division.lines = division.lines.saturating_add(lines.count() as u32);
            }
        }
        division
    }

    /// Returns the messages that must have room so that the port keeps room for one of each sender that names
    /// none. One is for those who were granted the right to send.
    pub const fn needed(&self) -> u32 {
        let kept = self.named.saturating_add(self.unnamed);
        kept.saturating_add(self.lines).saturating_add(1)
    }

    /// Tells whether the port keeps room for a message of each sender that names none.
    pub fn has_one_each(&self, port: &PortSpec) -> bool {
        self.needed() <= port.depth.get()
    }
}

/// Returns the messages of a partition for which a port keeps room because of this capability.
pub(crate) fn room(manifest: &Manifest, holder: &PartitionSpec, capability: &CapabilitySpec) -> u32 {
    let Some(Target::Port(name)) = capability.target() else {
        return 0;
    };
    let port = manifest.ports.iter().find(|port| port.name.value == name.value);
    let (Some(port), true) = (port, sends_to(capability, &name.value)) else {
        return 0;
    };
    if let Some(room) = &capability.room {
        return room.value.get();
    }
    let mut all = holder
        .capabilities
        .iter()
        .filter(|own| sends_to(own, &name.value));
    let is_first = all.next().is_some_and(|first| std::ptr::eq(first, capability));
    let names_none = is_first && all.all(|other| other.room.is_none());
    let division = Division::of(manifest, port);
    u32::from(names_none && division.senders > 1 && division.has_one_each(port))
}

/// Returns the words of 8 bytes for the messages that can wait in a port. A port whose name no record can
/// hold has none: the rules of names report it.
pub(crate) fn words(port: &PortSpec) -> usize {
    if Name::new(&port.name.value).is_err() {
        return 0;
    }
    let mut record = PortRecord::new_zeroed();
    record.message_size = port.message_size.get().into();
    record.depth = port.depth.get().into();
    record.words() as usize
}
