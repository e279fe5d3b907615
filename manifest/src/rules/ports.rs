// SPDX-License-Identifier: Apache-2.0
//! Ports and locks: the class has them, and the hypervisor has room for them and for the messages.

use bulkhead_abi::size::Tables;
use bulkhead_image::layout::{LockRecord, Name, PORT_IDENTIFIES, PortRecord};
use bulkhead_image::{MessageLimits, NameError};

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{LockSpec, Manifest, PortSpec};

/// Returns the number of a port in the system image.
pub(crate) fn number(manifest: &Manifest, name: &str) -> Option<usize> {
    manifest.ports.iter().position(|port| port.name.value == name)
}

/// Returns the record of a port.
pub(crate) fn record(port: &PortSpec) -> Result<PortRecord, NameError> {
    Ok(PortRecord {
        name: Name::new(&port.name.value)?,
        message_size: port.message_size.get().into(),
        depth: port.depth.get().into(),
        flags: if port.identify { PORT_IDENTIFIES } else { 0 }.into(),
        reserved: 0.into(),
    })
}

/// Returns the number of a lock in the system image.
pub(crate) fn lock_number(manifest: &Manifest, name: &str) -> Option<usize> {
    manifest.locks.iter().position(|lock| lock.name.value == name)
}

/// Returns the record of a lock.
pub(crate) fn lock_record(lock: &LockSpec) -> Result<LockRecord, NameError> {
    Ok(LockRecord {
        name: Name::new(&lock.name.value)?,
    })
}

pub(super) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    let tables = board.map_or(Tables::Large, |board| board.class.facts().tables);
    let limits = MessageLimits::of(tables);
    let ports = manifest.ports.iter().map(|port| port.name.place);
    let locks = manifest.locks.iter().map(|lock| lock.name.place);
    few("ports", ports, limits.ports, report);
    few("locks", locks, limits.locks, report);
    messages_fit(manifest, limits.words, report);
}

/// Reports the first object behind the last one for which there is room.
fn few(kind: &str, mut places: impl ExactSizeIterator<Item = Place>, room: usize, report: &mut Report) {
    let count = places.len();
    if let Some(extra) = places.nth(room) {
        let message = format!("there are {count} {kind}, but room for {room}");
        report.push(Diagnostic::at(Code::BadPort, extra, message).help(format!("merge or remove {kind}")));
    }
}

/// Reports the first port whose messages have no room behind those of the ports before it.
fn messages_fit(manifest: &Manifest, room: usize, report: &mut Report) {
    let mut words = 0_usize;
    for port in &manifest.ports {
        // Whoever has a bad name is told elsewhere.
        let own = record(port).map_or(0, |record| record.words() as usize);
        words = words.saturating_add(own);
        if words > room {
            let (needed, room) = (words.saturating_mul(8), room.saturating_mul(8));
            let message = format!(
                "the messages of the ports up to `{}` need {needed} bytes, but there are {room}",
                port.name.value
            );
            report.push(
                Diagnostic::at(Code::BadPort, port.name.place, message)
                    .help("lower `depth` or `message-size` of some ports"),
            );
            return;
        }
    }
}
