// SPDX-License-Identifier: Apache-2.0
//! Ports: the class has them, and the hypervisor has room for their messages.

use bulkhead_abi::size::Tables;
use bulkhead_image::layout::{Name, PORT_IDENTIFIES, PortRecord};
use bulkhead_image::{MAX_PORTS, MESSAGE_WORDS, NameError};

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{Manifest, PortSpec};

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

pub(super) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    let Some(first) = manifest.ports.first() else {
        return;
    };
    if let Some(board) = board.filter(|board| board.class.facts().tables == Tables::Small) {
        let message = format!("a board of class `{}` has no ports", board.class.name());
        report.push(Diagnostic::at(Code::NotForClass, first.name.place, message).help("remove the ports"));
    }
    if let Some(extra) = manifest.ports.get(MAX_PORTS) {
        let message = format!(
            "there are {} ports, but room for {MAX_PORTS}",
            manifest.ports.len()
        );
        report.push(Diagnostic::at(Code::BadPort, extra.name.place, message).help("merge or remove ports"));
    }
    messages_fit(manifest, report);
}

/// Reports the first port whose messages have no room behind those of the ports before it.
fn messages_fit(manifest: &Manifest, report: &mut Report) {
    let mut words = 0_usize;
    for port in &manifest.ports {
        // Whoever has a bad name is told elsewhere.
        let own = record(port).map_or(0, |record| record.words() as usize);
        words = words.saturating_add(own);
        if words > MESSAGE_WORDS {
            let (needed, room) = (words.saturating_mul(8), MESSAGE_WORDS.saturating_mul(8));
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
