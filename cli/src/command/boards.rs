// SPDX-License-Identifier: Apache-2.0
//! `bulkhead boards`: the boards that a manifest can name.

use crate::build::tables::table;
use crate::problem::{Code, Problem};

pub(super) fn run() -> Result<Code, Problem> {
    let mut rows = table(&[
        "board",
        "class",
        "CPUs",
        "RAM",
        "devices for partitions",
        "what it is",
    ]);
    for board in bulkhead_manifest::boards() {
        let ram: u64 = board.ram.iter().map(|window| window.size).sum();
        let mut devices: Vec<String> = Vec::new();
        for device in &board.devices {
            // Numbered siblings (virtio-mmio-0, -1, ...) are one entry.
            let name = match device.name.rsplit_once('-') {
                Some((stem, number)) if number.chars().all(|char| char.is_ascii_digit()) => {
                    format!("{stem}-N")
                }
                _ => device.name.clone(),
            };
            if !devices.contains(&name) {
                devices.push(name);
            }
        }
        rows.add_row([
            board.name,
            board.class.name().to_owned(),
            board.cpus.len().to_string(),
            format!("{} MiB", ram >> 20),
            devices.join(", "),
            board.description,
        ]);
    }
    super::print(&format!("{rows}\n"))?;
    Ok(Code::Done)
}
