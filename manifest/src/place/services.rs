// SPDX-License-Identifier: Apache-2.0
//! The places where VMs find the devices that others serve.

use crate::board::Board;
use crate::model::machine::taken_line;
use crate::model::served::{Served, all, names};
use crate::model::{ClientSpec, Manifest};
use crate::units::PAGE;
use crate::window::Window;

/// The address from which on VMs find their devices, unless the manifest says otherwise: QEMU's `virt` board
/// has nothing there.
const FIRST_ADDRESS: u64 = 0x0b00_0000;
/// The line from which on the devices interrupt, unless the manifest says otherwise.
const FIRST_LINE: u32 = 128;

/// Finds the registers and the lines of all devices.
pub(crate) fn place(manifest: &mut Manifest, board: Option<&Board>) {
    for partition in 0..manifest.partitions.len() {
        let mut spec = manifest.partitions[partition].clone();
        let (mut next, mut line) = (FIRST_ADDRESS, FIRST_LINE);
        let own = |client: &ClientSpec| names(client.partition.as_ref(), &spec.name.value);
        let clients: Vec<_> = all(manifest).filter(|(_, _, client)| own(client)).collect();
        let is_given = |line: u32| {
            let mut given = clients
                .iter()
                .filter_map(|(_, _, client)| client.interrupt.as_ref());
            given.any(|given| given.value.get() == line)
        };
        for (number, service, client) in &clients {
            let base = client.guest.as_ref().map_or(next, |guest| guest.value.get());
            if client.guest.is_none() {
                next = next.saturating_add(PAGE);
            }
            let line = match &client.interrupt {
                Some(given) => given.value.get(),
                None => {
                    while line < spec.machine.lines()
                        && (is_given(line) || taken_line(&spec, board, line).is_some())
                    {
                        line = line.saturating_add(1);
                    }
                    line
                }
            };
            spec.machine.served.push(Served {
                number: *number,
                service: service.name.value.clone(),
                window: Window { base, size: PAGE },
                line,
                place: client.start,
            });
        }
        manifest.partitions[partition] = spec;
    }
}
