// SPDX-License-Identifier: Apache-2.0
//! Capabilities and watches: who may do what to whom from the start.

use super::channels::is_device;
use super::secrets;
use super::{at, earlier, named, refers, require};
use crate::error::{Fault, Table};
use crate::layout::CapabilityRecord;
use crate::reader::Image;
use bulkhead_abi::hypercall::{CAPABILITY_SLOTS, SELF_CAPABILITY};
use bulkhead_abi::{ObjectKind, Rights};

pub(super) fn capability(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.capabilities(), index)?;
    let partitions = image.partitions().len();
    refers(record.partition.get(), partitions, Table::Partitions)?;
    named(&record.name)?;
    // Every partition holds the capability for itself already.
    let slot = record.index.get();
    require(
        slot != SELF_CAPABILITY && (slot as usize) < CAPABILITY_SLOTS,
        Fault::OutOfRange,
    )?;
    let rights = u8::try_from(record.rights.get()).map_or(Rights::NONE, Rights);
    require(
        rights != Rights::NONE && Rights::ALL.contains(rights),
        Fault::BadRights,
    )?;
    let kind = u8::try_from(record.kind.get())
        .ok()
        .and_then(ObjectKind::from_number)
        .ok_or(Fault::UnknownKind)?;
    match kind {
        ObjectKind::Port => port_detail(image, record, rights)?,
        ObjectKind::Secret => secrets::secret(image, record, index)?,
        _ => require(record.detail.get() == 0, Fault::Reserved)?,
    }
    match kind {
        ObjectKind::Partition | ObjectKind::EventGate | ObjectKind::Console => {
            refers(record.object.get(), partitions, Table::Partitions)?;
        }
        ObjectKind::Timer => require(record.object.get() == 0, Fault::OutOfRange)?,
        ObjectKind::Schedule => schedules(image, record.object.get())?,
        ObjectKind::Port => refers(record.object.get(), image.ports().len(), Table::Ports)?,
        ObjectKind::Lock => refers(record.object.get(), image.locks().len(), Table::Locks)?,
        ObjectKind::Channel | ObjectKind::Device | ObjectKind::Interrupt => {
            refers(record.object.get(), image.channels().len(), Table::Channels)?;
            let device = is_device(image, record.object.get());
            require(device != (kind == ObjectKind::Channel), Fault::UnknownKind)?;
        }
        ObjectKind::Service => {
            let mut windows = image.served().iter();
            let is_server = windows.any(|window| window.server == record.object);
            require(is_server, Fault::NoSuch(Table::Served))?;
        }
        ObjectKind::Secret => {}
        // Only a call makes one.
        ObjectKind::Reply => return Err(Fault::UnknownKind),
    }
    for (other, other_index) in earlier(image.capabilities(), index) {
        // The kernel finds the capabilities of a partition by their order.
        require(
            other.partition.get() <= record.partition.get(),
            Fault::NotConsecutive,
        )?;
        let same =
            other.partition == record.partition && (other.index == record.index || other.name == record.name);
        require(!same, Fault::SameAs(other_index))?;
    }
    Ok(())
}

/// Checks that who has room in a port may send there, and who has events may receive. The room for all
/// senders is in the port.
fn port_detail(image: &Image<'_>, record: &CapabilityRecord, rights: Rights) -> Result<(), Fault> {
    require(
        record.detail.get() >> 16 == 0 && record.event().unwrap_or(0) < 64,
        Fault::Reserved,
    )?;
    require(
        record.room() == 0 || rights.contains(Rights::WRITE),
        Fault::BadRights,
    )?;
    require(
        record.event().is_none() || rights.contains(Rights::READ),
        Fault::BadRights,
    )?;
    if record.room() == 0 {
        return Ok(());
    }
    let same = |other: &&CapabilityRecord| other.kind == record.kind && other.object == record.object;
    let all = image.capabilities().iter().filter(same);
    let kept: u32 = all.map(CapabilityRecord::room).sum();
    let port = image.ports().get(record.object.get() as usize);
    let depth = port.map_or(0, |port| port.depth.get());
    require(kept <= depth, Fault::OutOfRange)
}

impl CapabilityRecord {
    /// Returns the messages of the holder for which the port keeps room.
    #[must_use]
    pub const fn room(&self) -> u32 {
        self.detail.get() & 0xFF
    }

    /// Returns the event that a message which has to wait in the port raises at the holder's gate.
    #[must_use]
    pub const fn event(&self) -> Option<u32> {
        (self.detail.get() >> 8 & 0xFF).checked_sub(1)
    }
}

/// Checks that the pCPU has schedules.
fn schedules(image: &Image<'_>, pcpu: u32) -> Result<(), Fault> {
    refers(pcpu, image.pcpus().len(), Table::Pcpus)?;
    require(image.schedules_of(pcpu).next().is_some(), Fault::WrongPolicy)
}

pub(super) fn watch(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.watches(), index)?;
    refers(record.watcher.get(), image.partitions().len(), Table::Partitions)?;
    refers(record.watched.get(), image.partitions().len(), Table::Partitions)?;
    for (other, other_index) in earlier(image.watches(), index) {
        require(other != record, Fault::SameAs(other_index))?;
    }
    Ok(())
}
