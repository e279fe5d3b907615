// SPDX-License-Identifier: Apache-2.0
//! `bulkhead boards`: the boards that a manifest can name.

use super::BoardsArgs;
use crate::build::tables::table;
use crate::json;
use crate::problem::{Code, Problem};
use serde_json::{Value, json};

pub(super) fn run(args: &BoardsArgs) -> Result<Code, Problem> {
    if args.json {
        super::print(&json::document("boards", json!({ "boards": boards() })))?;
        return Ok(Code::Done);
    }
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

/// Returns the boards for programs.
fn boards() -> Vec<Value> {
    let boards = bulkhead_manifest::boards().into_iter();
    boards
        .map(|board| {
            let ram = board.ram.iter();
            let devices = board.devices.iter();
            json!({
                "name": board.name,
                "description": board.description,
                "class": board.class.name(),
                "cpus": board.cpus.len(),
                "ram": ram.map(|part| json!({ "address": part.base, "size": part.size })).collect::<Vec<_>>(),
                "devices": devices.map(|device| device.name.as_str()).collect::<Vec<_>>(),
                "emulated": board.emulator.is_some(),
            })
        })
        .collect()
}
