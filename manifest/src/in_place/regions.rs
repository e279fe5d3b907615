// SPDX-License-Identifier: Apache-2.0
//! The regions of a memory protection unit: each partition has some, and there must be enough.
#![deny(clippy::arithmetic_side_effects)]

use bulkhead_arch_regions::{Forbidden, MAX_REGIONS, MAX_REQUESTS, Memory, Refusal, Region, Request, Rights};

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::guest::{AreaKind, Guest};
use crate::model::devices::registers;
use crate::model::{Access, PartitionSpec};
use crate::units::format_size;
use crate::window::{Window, range};

/// A mapping of a partition.
struct Mapped {
    what: String,
    place: Place,
    request: Request,
}

/// Returns all mappings of a partition, in the order in which the backend asks for them.
fn mapped(board: &Board, spec: &PartitionSpec, guest: &Guest) -> Vec<Mapped> {
    let one = |what: String, place, window: Window, access: Access, memory| Mapped {
        what,
        place,
        request: Request {
            // An address beyond 4G has been reported already.
            start: u32::try_from(window.base).unwrap_or(0),
            bytes: window.size,
            rights: Rights {
                read: access.read,
                write: access.write,
                execute: access.execute,
            },
            memory,
        },
    };
    let areas = guest.areas.iter().map(|area| {
        let what = match area.kind {
            AreaKind::Code => "code",
            AreaKind::Region | AreaKind::Flash => "a region",
            AreaKind::Channel(_) | AreaKind::Lent(_) => "a channel",
            AreaKind::Frames => "the ring of frames",
            AreaKind::Ram | AreaKind::Startup => "RAM",
        };
        one(
            what.to_owned(),
            area.place,
            area.window,
            area.access,
            Memory::NORMAL,
        )
    });
    let devices = registers(spec, board)
        .filter(|registers| !registers.forwarded)
        .map(|registers| {
            let (name, window) = (registers.name, registers.window.pages());
            let what = format!("device `{}`", name.value);
            one(what, name.place, window, Access::DATA, Memory::DEVICE)
        });
    areas.chain(devices).collect()
}

/// Returns the regions of a partition as the backend will load them.
pub(crate) fn regions(board: &Board, spec: &PartitionSpec, guest: &Guest) -> Vec<Region> {
    let mapped = mapped(board, spec, guest);
    let requests: Vec<Request> = mapped.iter().map(|mapped| mapped.request).collect();
    let plan = bulkhead_arch_regions::plan(&requests, MAX_REGIONS as u32);
    plan.map_or_else(|_| Vec::new(), |plan| plan.regions().to_vec())
}

/// Checks that the MPU has enough regions for the partition. The backend makes the same plan.
pub(crate) fn check_regions(board: &Board, spec: &PartitionSpec, guest: &Guest, report: &mut Report) {
    let mapped = mapped(board, spec, guest);
    if let Some(beyond) = mapped.get(MAX_REQUESTS) {
        let message = format!(
            "{} of `{}` is one more than the {MAX_REQUESTS} stretches of memory and devices that a partition may have",
            beyond.what, spec.name.value
        );
        report.push(
            Diagnostic::at(Code::TooManyRegions, beyond.place, message)
                .help("give the partition fewer devices or regions"),
        );
        return;
    }
    let requests: Vec<Request> = mapped.iter().map(|mapped| mapped.request).collect();
    let Err(refusal) = bulkhead_arch_regions::plan(&requests, MAX_REGIONS as u32) else {
        return;
    };
    let (index, why, fix) = match refusal {
        Refusal::Unaligned { index, fix } => (index, "is not made of units of 32 bytes".to_owned(), fix),
        Refusal::Forbidden { index, what } => {
            let what = match what {
                Forbidden::BitBand => "is in a bit-band alias, which reaches all RAM or all devices",
                Forbidden::System => "is in the CPU's private registers",
            };
            (index, what.to_owned(), None)
        }
        Refusal::Overlap { index, other } => {
            let other = mapped.get(other).map_or("", |other| other.what.as_str());
            (index, format!("overlaps {other}"), None)
        }
        Refusal::TooMany { needed, available } => {
            let fix = bulkhead_arch_regions::smallest_fix(&requests, available);
            let index = fix.map_or_else(|| mapped.len().saturating_sub(1), |fix| fix.index);
            let why = format!("and all else need {needed} regions of the MPU, which has {available}");
            (index, why, fix)
        }
    };
    let Some(found) = mapped.get(index) else { return };
    let message = format!("{} of `{}` {why}", found.what, spec.name.value);
    let help = match fix {
        Some(fix) => format!(
            "with {} from {:#x} there it needs {} regions in all",
            format_size(fix.bytes),
            fix.start,
            fix.needed
        ),
        None => "move it, or give the partition fewer devices or regions".to_owned(),
    };
    let window = Window {
        base: found.request.start.into(),
        size: found.request.bytes,
    };
    report.push(
        Diagnostic::at(Code::TooManyRegions, found.place, message)
            .label(range(window))
            .help(help),
    );
}
